#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An unreliable service: agent-server.py DIRECTORY [ANSWER...]

Responds to the first posts with these answers, to later ones with 200. An ANSWER is a code; CODE:SECONDS with that
Retry-After; "break" (accept the batch, close the connection without a response); "garbage" (bytes that are not HTTP);
"slow" (respond once DIRECTORY/go exists); "html" (a portal's 200). "4*503" is four of them. "busy" as the only one:
every fourth post is answered with 503, every fifth breaks.

Writes the port to DIRECTORY/port (an existing one is reused), creates DIRECTORY/ready once it listens, and writes, for
each post, a line "ANSWER BATCH-ID ENCODING PATH" to DIRECTORY/posts; the bodies of accepted batches are decompressed
to DIRECTORY/body.ID.
"""
import gzip
import http.server
import os
import sys
import threading
import time

directory = sys.argv[1]
busy = sys.argv[2:] == ["busy"]
answers = []
for argument in [] if busy else sys.argv[2:]:
    times, star, answer = argument.partition("*")
    answers += [answer] * int(times) if star else [argument]
number = 0


def next_answer():
    global number
    number += 1
    if busy:
        return "503" if number % 4 == 0 else "break" if number % 5 == 0 else "200"
    return answers[number - 1] if number <= len(answers) else "200"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path != "/v1development/profiles":
            self.send_error(404)
            return
        answer, batch = next_answer(), self.headers["X-Cairn-Batch"]
        with open(f"{directory}/posts", "a") as f:
            f.write(f"{answer} {batch} {self.headers['Content-Encoding']} {self.path}\n")
        if answer in ("200", "break", "slow") and not os.path.exists(f"{directory}/body.{batch}"):
            temporary = f"{directory}/.body.{threading.get_ident()}"  # an agent that was killed may be handled still
            with open(temporary, "wb") as f:
                f.write(gzip.decompress(body))
            os.rename(temporary, f"{directory}/body.{batch}")
        if answer == "break":
            self.close_connection = True
            return
        if answer == "garbage":
            self.wfile.write(b"\x00\x01garbage\r\n\r\n")
            self.close_connection = True
            return
        while answer == "slow" and not os.path.exists(f"{directory}/go"):
            time.sleep(0.01)
        code, _, retry_after = answer.partition(":")
        text = b"<html>please log in</html>" if answer == "html" else b""
        self.send_response(int(code) if code.isdigit() else 200)
        if retry_after:
            self.send_header("Retry-After", retry_after)
        if text:
            self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


port = int(open(f"{directory}/port").read()) if os.path.exists(f"{directory}/port") else 0
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
with open(f"{directory}/.port", "w") as f:
    f.write(str(server.server_port))
os.rename(f"{directory}/.port", f"{directory}/port")
open(f"{directory}/ready", "w").close()
server.serve_forever()
