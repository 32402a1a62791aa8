#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An unreliable upstream debuginfod server.

    upstream.py DIR

Serves DIR/files/BUILD-ID/PART, where PART may contain slashes; writes its port to DIR/port and a line for each request
to DIR/asked. DIR/mode, read for each request, changes its behavior:

    status CODE [RETRY-AFTER]   answer so
    filter CODE                 answer so to requests for the filter of build-ids
    redirect URL                send to URL and the path
    cut                         end in order after half of the body
    hold                        send half of the body, and the rest once DIR/go is there
    late                        answer once DIR/go is there
    large                       announce 5 GiB
    page                        200 with a page of HTML
    chunked                     no Content-Length
    old                         503 for sections, as servers that have none
"""
import http.server
import os
import sys
import time

DIR = sys.argv[1]


def read(name):
    try:
        with open(os.path.join(DIR, name), "rb") as f:
            return f.read()
    except OSError:
        return None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def plain(self, code, body, headers=()):
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        with open(os.path.join(DIR, "asked"), "a") as f:
            f.write(self.path + "\n")
        mode = (read("mode") or b"").decode().split()
        while mode[:1] == ["late"] and read("go") is None:
            time.sleep(0.05)
        if mode[:1] == ["status"]:
            self.plain(int(mode[1]), b"", [("Retry-After", mode[2])] if len(mode) > 2 else [])
            return
        if mode[:1] == ["filter"] and self.path == "/buildid-filter":
            self.plain(int(mode[1]), b"")
            return
        if mode[:1] == ["old"] and "/section/" in self.path:
            self.plain(503, b"")
            return
        if mode[:1] == ["redirect"] and "redirected" not in self.path:
            self.plain(302, b"", [("Location", mode[1] + "/redirected" + self.path)])
            return
        if mode[:1] == ["page"]:
            self.plain(200, b"<html>Please log in.</html>", [("Content-Type", "text/html")])
            return
        body = read("files/" + self.path.replace("/redirected", "").removeprefix("/buildid/"))
        if body is None:
            self.plain(404, b"not found")
            return
        self.send_response(200)
        self.send_header("X-DEBUGINFOD-FILE", "/usr/lib/from upstream.debug")
        self.send_header("X-DEBUGINFOD-SIZE", str(len(body)))
        half = len(body) // 2
        if mode[:1] == ["chunked"]:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in (body[:half], body[half:], b""):
                self.wfile.write(b"%x\r\n" % len(part) + part + b"\r\n")
            return
        self.send_header("Content-Length", str(5 << 30 if mode[:1] == ["large"] else len(body)))
        self.end_headers()
        self.wfile.write(body[:half])
        self.wfile.flush()
        if mode[:1] == ["cut"]:
            self.close_connection = True
            return
        while mode[:1] == ["hold"] and read("go") is None:
            time.sleep(0.02)
        self.wfile.write(body[half:])


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        """The client has disconnected."""


def main():
    server = Server(("127.0.0.1", 0), Handler)
    with open(os.path.join(DIR, "port.new"), "w") as f:
        f.write(str(server.server_port))
    os.rename(os.path.join(DIR, "port.new"), os.path.join(DIR, "port"))
    server.serve_forever()


main()
