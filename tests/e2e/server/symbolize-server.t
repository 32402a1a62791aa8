#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cairn symbolize --server: its requests, and its output for responses of a test server that implements
# docs/formats/symbolize.md.
set -u
cd "$(dirname "$0")/../../.." || exit 1
cairn=${CAIRN_BUILD:-$PWD/build}/cairn
python=/usr/bin/python3 # has Debian's python3-protobuf
tmp=$(mktemp -d "${TMPDIR:-/tmp}/cairn-e2e-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
protoc -I profile-formats/proto --python_out="$tmp" symbolize.proto ||
        { echo "Bail out! protoc is missing: make deps"; exit 1; }
PYTHONPATH=$tmp $python - "$cairn" <<'END'
import http.server, json, subprocess, sys, tempfile, threading
import symbolize_pb2 as pb

ID = "93ac61ec5a8eb1396f9fbd350e3169a558528a40"
asked = []
broken = None
partial = ""

class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        request = pb.SymbolizeRequest()
        request.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
        asked.append((self.path, self.headers["Content-Type"], self.headers.get("Authorization"), request))
        code, kind, answer = 200, "application/x-protobuf", pb.SymbolizeAnswer()
        addresses = request.objects[0].addresses
        if request.objects[0].build_id.hex() != ID:
            code, kind, text = 400, "application/json", json.dumps({"error": "no such thing"}).encode()
        else:
            answer.functions.add(name="in()", linkage_name="_Z2inv")
            answer.functions.add(name="out")
            answer.files.extend(["/a.c", "/b.c"])
            answer.states.append("outside")
            for half in (addresses[:len(addresses) // 2], addresses[len(addresses) // 2:]):
                o = answer.objects.add(build_id=request.objects[0].build_id, state="indexed",
                                       quality="dwarf", generation=7,
                                       partial=partial)
                for a in half:
                    known = a == 0x98958
                    o.states.append(0 if known else 1)
                    o.frame_counts.append(2 if known else 0)
                    if known:
                        o.functions.extend([1, 2])
                        o.files.extend([1, 2])
                        o.lines.extend([3, 0])
            text = answer.SerializeToString()
            if broken:
                text = {"cut": text[:-1], "few": text[:0], "wild": pb.SymbolizeAnswer(objects=[
                    pb.SymbolizeAnswer.Object(frame_counts=[1], functions=[9], files=[9], lines=[9])]).SerializeToString()}[broken]
        self.send_response(code)
        self.send_header("Content-Type", kind)
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
ok(r.returncode == 0 and r.stdout == "in()\n/a.c:3\nout\n/b.c:?\n??\n??:0\n",
   "frames of the service are printed like those of a file")
ok(asked[-1] == ("/api/v1/symbolize", "application/x-protobuf", "Bearer secret", pb.SymbolizeRequest(
    objects=[pb.SymbolizeRequest.Object(build_id=bytes.fromhex(ID), addresses=[0x98958, 0x10])])),
   "the request is the documented one, with the token")
r = run("--build-id", ID, "--format=json", input="98958\n")
answer = json.loads(r.stdout)
ok(answer["results"][0]["frames"][0] == {"function": "in()", "linkage_name": "_Z2inv", "file": "/a.c", "line": 3,
                                         "inlined": True}, "--format=json hands them on")
ok(answer["quality"] == "dwarf" and "partial" not in answer and r.stderr == "",
   "with the quality; nothing was said to be missing")
partial = "a unit \x1b[31m\xc2\x9b" + "x" * 1000
r = run("--build-id", ID, "98958")
line = r.stderr.strip("\n")
ok(line.startswith("cairn symbolize: symbols are partial: a unit \\x1b[31m") and "\x1b" not in line and len(line) < 400,
   "what a service says to be missing cannot control the terminal, and has a bound")
partial = ""
before = len(asked)
r = run("--build-id", ID, input="".join("%x\n" % a for a in range(100000)))
ok(r.stdout.count("??:0") == 100000 and len(asked) - before < 60, "many addresses go in few requests")
r = run("--build-id", "abcd", "--verbose", "10")
ok(r.returncode == 2 and "no such thing" in r.stderr, "an error of the service is told with its text")
for broken in ("cut", "few", "wild"):
    r = run("--build-id", ID, "10")
    ok(r.returncode == 2 and "service" in r.stderr, "an answer that is broken (%s) is refused" % broken)
broken = None
perf = tempfile.NamedTemporaryFile("w")
perf.write("p 1/1 [000] 1.0: PERF_RECORD_MMAP2 1/1: [0x5000(0x1000) @ 0x1000 <%s>]: r-xp /gone/p\n"
           "p 1/1 [000] 1.5: 1 cpu-clock: \n\t 1010 [unknown] (/gone/p)\n\n" % ID)
perf.flush()
r = run("--perf-script", perf.name, "--debug-dir", "/nonexistent")
ok(r.returncode not in (0, 64) and "does not support file offsets" in r.stderr,
   "a service that takes offsets for addresses is not believed")
ok(asked[-1][3].objects[0].file_offsets and list(asked[-1][3].objects[0].addresses) == [0x1010],
   "it was asked for offsets")
r = run("--build-id", "xyz", "10")
ok(r.returncode == 64 and "xyz" in r.stderr, "what is no build-id is wrong usage")
server.shutdown()
server.server_close()
r = run("--build-id", ID, "10", timeout=120)
ok(r.returncode == 1 and r.stdout == "", "no service is a failure")
print("1..%d" % count)
END
