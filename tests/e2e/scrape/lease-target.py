#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A target with a cumulative profile for scrape-lease.t: lease-target.py PORT-FILE.

GET /events: pprof with one function for each request that was answered, e1, e2 and so on, each with the total 1:
whoever counts an event twice gets its function with more than 1. With PUT /hold the next request for it waits until
PUT /release, and requests behind it do not; GET /held is the number of those that wait, GET /answered that of answers.
"""
import http.server
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
import profiles  # noqa: E402

lock = threading.Condition()
state = {"answered": 0, "held": 0, "hold": False}


def profile(events):
    names = [f"e{i}" for i in range(1, events + 1)]
    out = profiles.blob(1, profiles.num(1, 1) + profiles.num(2, 2))
    for i in range(events):
        n = i + 1
        out += profiles.blob(2, profiles.packed(1, (n,)) + profiles.packed(2, (1,)))
        out += profiles.blob(4, profiles.num(1, n) + profiles.blob(4, profiles.num(1, n)))
        out += profiles.blob(5, profiles.num(1, n) + profiles.num(2, i + 3))
    for text in ["", "events", "count"] + names:
        out += profiles.blob(6, text.encode())
    return out


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path != "/events":
            self.answer(str(state[self.path[1:]]).encode())
            return
        with lock:
            if state["hold"]:
                state.update(hold=False, held=1)
                lock.wait_for(lambda: not state["held"])
            state["answered"] += 1
            body = profile(state["answered"])
        self.answer(body)

    def do_PUT(self):
        with lock:
            state.update(hold=True) if self.path == "/hold" else state.update(held=0)
            lock.notify_all()
        self.answer(b"")


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(sys.argv[1] + ".new", "w", encoding="ascii") as f:
    f.write(str(server.server_port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
