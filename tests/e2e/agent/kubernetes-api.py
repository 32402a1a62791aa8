#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A simulated API server and kubelet of one node: kubernetes-api.py DIRECTORY [CERTIFICATE KEY]

Answers GET /api/v1/pods?...fieldSelector=spec.nodeName=NODE-of-DIRECTORY/node, with the token of DIRECTORY/token, and
GET /pods, by DIRECTORY/pods.json; with the status code in DIRECTORY/code if that file exists; hangs while
DIRECTORY/hang exists. Writes the port to DIRECTORY/port, and a line "CODE PATH" for each request to
DIRECTORY/requests.
"""
import http.server
import os
import ssl
import sys
import time
import urllib.parse

directory = sys.argv[1]


def read(name):
    with open(f"{directory}/{name}") as f:
        return f.read().strip()


class Handler(http.server.BaseHTTPRequestHandler):
    def judge(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if os.path.exists(f"{directory}/code"):
            return int(read("code"))
        if url.path == "/pods":
            return 200
        if url.path != "/api/v1/pods":
            return 404
        if self.headers["Authorization"] != "Bearer " + read("token"):
            return 401
        return 200 if query.get("fieldSelector") == "spec.nodeName=" + read("node") else 403

    def do_GET(self):
        while os.path.exists(f"{directory}/hang"):
            time.sleep(0.05)
        code = self.judge()
        text = read("pods.json") if code == 200 else '{"kind":"Status","status":"Failure","message":"no"}'
        with open(f"{directory}/requests", "a") as f:
            f.write(f"{code} {self.path}\n")
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
with open(f"{directory}/.port", "w") as f:
    f.write(str(server.server_port))
os.rename(f"{directory}/.port", f"{directory}/port")
server.serve_forever()
