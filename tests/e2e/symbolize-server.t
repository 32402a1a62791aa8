#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cairn symbolize --server: what it asks and how it prints the answer, against a stand-in that speaks
# docs/formats/symbolize.md.
set -u
cd "$(dirname "$0")/../.." || exit 1
cairn=${CAIRN_BUILD:-$PWD/build}/cairn
command -v python3 > /dev/null || { echo "1..0 # SKIP python3 is not installed"; exit 0; }
exec python3 - "$cairn" <<'END'
import http.server, json, subprocess, sys, tempfile, threading

ID = "93ac61ec5a8eb1396f9fbd350e3169a558528a40"
asked = []

class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked.append((self.path, self.headers["Content-Type"], self.headers.get("Authorization"), body))
        if body["objects"][0]["build_id"] != ID:
            answer, code = {"error": "no such thing"}, 400
        else:
            code = 200
            results = []
            for a in body["objects"][0]["addresses"]:
                known = int(a, 16) == 0x98958
                results.append({"address": a, "state": "resolved" if known else "outside", "more": {}, "frames": [
                    {"function": "in()", "linkage_name": "_Z2inv", "file": "/a.c", "line": 3, "inlined": True},
                    {"function": "out", "linkage_name": "", "file": "/b.c", "line": 0, "inlined": False},
                ] if known else []})
            answer = {"objects": [{"build_id": ID, "state": "indexed", "quality": "dwarf", "generation": 7,
                                   "results": results}]}
        text = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = "http://127.0.0.1:%d" % server.server_port
count = 0

def ok(condition, name):
    global count
    count += 1
    print("%s %d - %s" % ("ok" if condition else "not ok", count, name))

def run(*args, **more):
    return subprocess.run([sys.argv[1], "symbolize", "--server", url, *args], capture_output=True, text=True, **more)

token = tempfile.NamedTemporaryFile("w")
token.write("secret\n")
token.flush()
r = run("--build-id", ID.upper(), "--token-file", token.name, "98958", "0x10")
ok(r.returncode == 0 and r.stdout == "in()\n/a.c:3\nout\n/b.c:?\n??\n??:0\n", "frames of the service are printed like those of a file")
ok(asked[-1] == ("/api/v1/symbolize", "application/json", "Bearer secret",
                 {"objects": [{"build_id": ID, "addresses": ["0x98958", "0x10"]}]}),
   "the request is the documented one, with the token")
r = run("--build-id", ID, "--format=json", input="98958\n")
answer = json.loads(r.stdout)
ok(answer["results"][0]["frames"][0] == {"function": "in()", "linkage_name": "_Z2inv", "file": "/a.c", "line": 3,
                                         "inlined": True}, "--format=json hands them on")
before = len(asked)
r = run("--build-id", ID, input="".join("%x\n" % a for a in range(100000)))
ok(r.stdout.count("??:0") == 100000 and len(asked) - before < 60, "many addresses go in few requests")
r = run("--build-id", "abcd", "--verbose", "10")
ok(r.returncode == 2 and "no such thing" in r.stderr, "an error of the service is told with its text")
r = run("--build-id", "xyz", "10")
ok(r.returncode == 64 and "xyz" in r.stderr, "what is no build-id is wrong usage")
server.shutdown()
server.server_close()
r = run("--build-id", ID, "10", timeout=120)
ok(r.returncode == 1 and r.stdout == "", "no service is a failure")
print("1..%d" % count)
END
