#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A service that is hard to reach: agent-server.py DIRECTORY REFUSALS

Answers the first REFUSALS posts with 503, later ones with 200. Writes the port to DIRECTORY/port and, for each post,
a line "CODE BATCH-ID ENCODING PATH" to DIRECTORY/posts; accepted bodies go to DIRECTORY/body.N, unpacked.
"""
import gzip
import http.server
import os
import sys

directory, refusals = sys.argv[1], int(sys.argv[2])
accepted = 0


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        global refusals, accepted
        body = self.rfile.read(int(self.headers["Content-Length"]))
        code = 503 if refusals > 0 else 200
        refusals -= 1
        if code == 200:
            with open(f"{directory}/body.{accepted}", "wb") as f:
                f.write(gzip.decompress(body))
            accepted += 1
        with open(f"{directory}/posts", "a") as f:
            f.write(f"{code} {self.headers['X-Cairn-Batch']} {self.headers['Content-Encoding']} {self.path}\n")
        self.send_response(code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
with open(f"{directory}/.port", "w") as f:
    f.write(str(server.server_port))
os.rename(f"{directory}/.port", f"{directory}/port")
server.serve_forever()
