#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs honest and hostile clients concurrently against a service, over loopback, and checks invariants throughout.

    soak.py CAIRN SECONDS

Starts CAIRN serve (a build with sanitizers) on an empty directory, with a hostile debuginfod server as upstream and a
package tree that changes: for the first half of SECONDS over plain HTTP without tokens, for the second half with TLS
and tokens. Each kind of client is one thread with a random generator of its own (SOAK_SEED), so that the load is
bounded. Checks that the service does not exit, that /healthz always responds, that no sanitizer reports an error, and
that each sample of each acknowledged honest batch is stored exactly once, also after each restart.
"""
import gzip
import hashlib
import http.client
import http.server
import json
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "e2e"))
import profiles  # noqa: E402  the tests' own encoder

cairn, seconds = sys.argv[1], float(sys.argv[2])
seed = int(os.environ.get("SOAK_SEED", "1"))
work = tempfile.mkdtemp(prefix="cairn-soak-")
log_path = work + "/serve.log"
stop = threading.Event()
lock = threading.Lock()
counts, problems, acknowledged = {}, [], {}
port = None
secure = False  # in the second half: TLS, and a token in each request
TOKENS = {"all": "a" * 32, "ingest": "i" * 32, "read": "r" * 32, "slow": "s" * 32, "unknown": "u" * 32}
no_verification = ssl.create_default_context()
no_verification.check_hostname = False
no_verification.verify_mode = ssl.CERT_NONE


def note(what, n=1):
    with lock:
        counts[what] = counts.get(what, 0) + n


def problem(text):
    with lock:
        if len(problems) < 50:
            problems.append(text)


def start():
    global port
    port_file = work + "/port"
    if os.path.exists(port_file):
        os.unlink(port_file)
    environment = dict(os.environ, ASAN_OPTIONS="detect_leaks=1:abort_on_error=0", TSAN_OPTIONS="halt_on_error=0:exitcode=66",
                       UBSAN_OPTIONS="print_stacktrace=1")
    with open(log_path, "ab") as log:
        server = subprocess.Popen([cairn, "serve", "--data", work + "/data", "--listen", "127.0.0.1:0", "--port-file", port_file,
                                   "--flush-interval", "1", "--max-per-address", "1000", "--scan", tree, "--scan-interval", "1",
                                   "--upstream", f"http://127.0.0.1:{upstream.server_port}/"] + (
                                       ["--tls-cert", work + "/cert.pem", "--tls-key", work + "/key.pem",
                                        "--token-file", work + "/tokens"] if secure else []), stderr=log)
    while not os.path.exists(port_file) or not os.path.getsize(port_file):
        if server.poll() is not None:
            print(open(log_path).read()[-4000:])
            sys.exit("Bail out! the service does not start")
        time.sleep(0.05)
    port = int(open(port_file).read())
    return server


def write_tokens():
    """Adds or removes the token "slow"; the service rereads the file on SIGHUP."""
    lines = [TOKENS["all"] + " read,ingest,upload,admin", TOKENS["ingest"] + " ingest", TOKENS["read"] + " read"]
    if random.random() < 0.5:
        lines.append(TOKENS["slow"] + " read,upload rate=5 bytes=10000")
    with open(work + "/tokens.new", "w") as f:
        f.write("\n".join(lines) + "\n")
    os.rename(work + "/tokens.new", work + "/tokens")


def request(method, path, body=None, headers=None, timeout=60, token=None):
    """(status, body), or (0, b"") if the service closed the connection. Without a token a random one is used, mostly
    the one with all scopes.
    """
    headers = dict(headers or {})
    if secure:
        c = http.client.HTTPSConnection("127.0.0.1", port, timeout=timeout, context=no_verification)
        token = token or random.choice(("all",) * 12 + tuple(TOKENS))
        headers["Authorization"] = "Bearer " + TOKENS[token]
    else:
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        c.request(method, path, body, headers)
        r = c.getresponse()
        return r.status, r.read()
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        c.close()


UPSTREAM_IDS = 70  # no client uploads build IDs of elf_with_id() from 45 on
PROTOBUF = {"Content-Type": "application/x-protobuf"}


def mutate(r, data):
    data = bytearray(data)
    for _ in range(r.randint(1, 12)):
        if not data:
            break
        at = r.randrange(len(data))
        kind = r.randrange(4)
        if kind == 0:
            data[at] = r.randrange(256)
        elif kind == 1:
            del data[at:at + r.randint(1, 40)]
        elif kind == 2:
            data[at:at] = bytes(r.randrange(256) for _ in range(r.randint(1, 20)))
        else:
            data[at:at] = data[r.randrange(len(data)):][:r.randint(1, 400)]
    return bytes(data)


# ---- clients: each is called repeatedly until the end ----

def honest(r, n):
    number = f"{n}-{r.getrandbits(40):x}"
    body = profiles.otlp(service="honest", names=(f"batch-{number}", "root"), values=(1,))
    batch = hashlib.md5(number.encode()).hexdigest()
    for _ in range(r.choice((1, 1, 1, 2))):  # some are sent twice
        status, _ = request("POST", "/v1development/profiles", body, {**PROTOBUF, "X-Cairn-Batch": batch}, token="ingest")
        if status == 200:
            with lock:
                acknowledged[number] = True
        elif status == 0:
            with lock:  # unknown whether it was accepted: it may be stored, but only once
                acknowledged.setdefault(number, False)
        elif status not in (429, 503):
            problem(f"an honest batch was answered with {status}")
        note(f"honest {status}")
    time.sleep(0.02)


def hostile_profiles(r, n):
    kind = r.randrange(5)
    body = profiles.otlp(service="x", names=("f",), values=(1,))
    if kind == 0:
        body = mutate(r, body)
    elif kind == 1:
        body = profiles.otlp(service="y" * r.choice((10, 4000, 70000)), names=tuple("n%d" % i for i in range(r.randint(1, 3000))))
    elif kind == 2:
        body = profiles.otlp(service=f"s{r.random()}", names=("f",), at_ns=r.choice((0, 1, 2**63 - 1, 2**63, 2**64 - 1, r.getrandbits(63))))
    elif kind == 3:
        body = profiles.otlp(addresses=tuple(r.getrandbits(64) for _ in range(2000)), build_id=r.randbytes(20).hex(),
                             values=(2**63 - 1, -2**63))
    else:
        body = r.randbytes(r.randint(0, 3000))
    path = r.choice(("/v1development/profiles", "/ingest?name=a&from=1&until=2", "/ingest?name=%00&format=pprof", "/push.v1.PusherService/Push"))
    status, _ = request("POST", path, body, PROTOBUF)
    note(f"hostile profile {status}")


def bombs(r, n):
    zeros = bytes(1 << 20)
    if r.random() < 0.5:
        status, _ = request("POST", "/v1development/profiles", gzip.compress(zeros * r.choice((1, 20, 80))),
                            {**PROTOBUF, "Content-Encoding": "gzip"})
    else:
        packed = subprocess.run(["zstd", "-q", "-c"], input=zeros * r.choice((1, 30, 100)), stdout=subprocess.PIPE, check=True).stdout
        status, _ = request("PUT", f"/api/v1/debuginfo/{r.randbytes(20).hex()}/debuginfo", packed,
                            {"Content-Encoding": "zstd", "X-Cairn-Size": str(r.choice((100, 1 << 20, 1 << 40))),
                             "X-Cairn-SHA256": r.randbytes(32).hex()})
    note(f"bomb {status}")
    time.sleep(0.2)


def uploads(r, n):
    data = elf_with_id(r.randrange(40))
    build_id = data[1]
    body = data[0] if r.random() < 0.6 else mutate(r, data[0])
    kind = r.choice(("executable", "debuginfo", "symbols", "source", "dwp", "nonsense"))
    headers = {"X-Cairn-Size": str(len(body)), "X-Cairn-SHA256": hashlib.sha256(body).hexdigest()}
    if r.random() < 0.3:
        headers["X-Cairn-Offset"] = str(r.randrange(len(body)))
    status, _ = request("PUT", f"/api/v1/debuginfo/{build_id}/{kind}", body, headers)
    note(f"upload {status}")
    time.sleep(0.05)


def elf_with_id(n):
    build_id = (n + 1).to_bytes(20, "big")
    return base_elf.replace(b"\xab" * 20, build_id), build_id.hex()


def slow(r, n):
    host = b"Host: 127.0.0.1:%d\r\n" % port  # other values are answered with 421 before the request is processed
    profile = b"POST /v1development/profiles HTTP/1.1\r\n" + host + b"Content-Type: application/x-protobuf\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
        try:
            if secure and r.random() < 0.7:
                s = no_verification.wrap_socket(s)
            s.sendall(r.choice((b"", b"GET /healthz HT", profile + b"Content-Length: 100000\r\n\r\nabc",
                                b"GET /api/v1/query/folded?from=now-1h HTTP/1.1\r\n" + host + b"\r\n", r.randbytes(300),
                                b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                b"GET / HTTP/1.1\r\n" + host + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde")))
            if not stop.wait(r.random() * 3) and r.random() < 0.5:
                s.recv(100)
        except OSError:
            pass
    note("slow or broken connection")


def queries(r, n):
    selector = r.choice(('{service_name="honest"}', '{service_name=~"(a+)+$"}', '{service_name=~"(x{1,500}){1,500}"}', '{a=~"' + "(" * 200 + '"}',
                         "{", '{service_name=~".*.*.*.*=.*"}', '{service_name!~"^(h|o|n|e|s|t)*$"}', "\0"))
    query = urllib.parse.urlencode({"selector": selector, "from": r.choice(("now-1h", "now-10y", "0", "-1", "x")), "to": "now"})
    status, _ = request("GET", f"/api/v1/query/{r.choice(('folded', 'top', 'flame', 'pprof', 'labels', 'nonsense'))}?{query}")
    note(f"query {status}")


def lookups(r, n):
    keys = [{"build_id": elf_with_id(r.randrange(45))[1], "addresses": [hex(r.getrandbits(r.choice((12, 13, 64)))) for _ in range(200)]}
            for _ in range(r.randint(1, 20))]
    body = json.dumps({"objects": keys}).encode()
    if r.random() < 0.4:
        body = mutate(r, body)
    if r.random() < 0.1:
        body = b"[" * r.randint(1, 100000)
    status, _ = request("POST", r.choice(("/api/v1/symbolize", "/symbolicate/v5")), body, {"Content-Type": "application/json"})
    note(f"lookup {status}")


def debuginfod(r, n):
    build_id = r.choice((elf_with_id(r.randrange(45))[1], elf_with_id(r.randrange(45, UPSTREAM_IDS))[1], "..%2f..", "0" * 4000, r.randbytes(20).hex()))
    path = r.choice((f"/buildid/{build_id}/executable", f"/buildid/{build_id}/section/.text", f"/buildid/{build_id}/source/%2fetc%2fpasswd",
                     f"/buildid/{build_id}/debuginfo", "/metadata?key=glob&value=*", f"/api/v1/debuginfo/{build_id}"))
    ranges = r.choice((None, "bytes=0-0", "bytes=-1", "bytes=5-2", "bytes=0-99999999999999999999", "bytes=1-2,3-4", "x" * 3000))
    status, _ = request("GET", path, None, {"Range": ranges} if ranges else {})
    note(f"debuginfod {status}")


def upkeep(r, n):
    build_id = elf_with_id(r.randrange(40))[1]
    method, path, body = r.choice((("DELETE", f"/api/v1/debuginfo/{build_id}/executable", None),
                                   ("PUT", f"/api/v1/debuginfo/{build_id}/executable/pin", b""),
                                   ("DELETE", f"/api/v1/debuginfo/{build_id}/executable/pin", None),
                                   ("POST", "/api/v1/debuginfo/gc", b'{"rules":["size=1M"]}'), ("POST", "/api/v1/debuginfo/gc", b"{"),
                                   ("POST", "/api/v1/resymbolize", b"{}"), ("GET", "/metrics", None), ("GET", "/readyz", None)))
    status, _ = request(method, path, body, {"Content-Type": "application/json"})
    note(f"upkeep {status}")
    if r.random() < 0.2:
        write_tokens()
        os.kill(server.pid, signal.SIGHUP)
    time.sleep(0.1)


def packages(r, n):
    """Adds, modifies while they are read, and removes files of the scanned tree."""
    path = f"{tree}/{r.randrange(30)}{r.choice(('', '.so', '.deb', '.tar.zst', '.debug'))}"
    kind = r.randrange(6)
    data = elf_with_id(r.randrange(60))[0]
    try:
        if kind == 0:
            os.unlink(path)
        elif kind == 1:
            os.symlink(r.choice((work + "/p", "/proc/self/mem", ".", path)), path)
        elif kind == 2:
            os.mkfifo(path)
        else:
            if kind == 3:
                data = subprocess.run(["tar", "--zstd", "-c", "-C", work, "p"], check=True, stdout=subprocess.PIPE).stdout
            with open(path, "r+b" if os.path.isfile(path) and not os.path.islink(path) else "xb") as f:
                f.write(data if kind != 5 else mutate(r, data))
    except OSError:
        pass
    note("change of the scanned tree")
    stop.wait(0.2)


class Upstream(http.server.BaseHTTPRequestHandler):
    """A debuginfod server that usually misbehaves."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        r = random
        note("request to the upstream")
        kind = r.randrange(9)
        words = self.path.split("/")
        data = next((d for d, i in map(elf_with_id, range(UPSTREAM_IDS)) if len(words) > 2 and i == words[2]), b"")
        try:
            if kind < 3 and data:
                self.answer(200, data if kind else mutate(r, data))
            elif kind == 3:
                self.answer(200, elf_with_id(r.randrange(UPSTREAM_IDS))[0])
            elif kind == 4:
                self.answer(r.choice((404, 403, 429, 500, 503)), b"no", {"Retry-After": r.choice(("1", "-5", "99999999999", "x"))})
            elif kind == 5:
                self.answer(302, b"", {"Location": r.choice((self.path, "file:///etc/passwd", "http://127.0.0.1:1/", "//"))})
            elif kind == 6:
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n" + data[:100])
                self.close_connection = True
            elif kind == 7:
                self.wfile.write(r.randbytes(500))
                self.close_connection = True
            else:
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\nX-DEBUGINFOD-SIZE: -1\r\n\r\n")
                for _ in range(10):
                    self.wfile.write(b"x" * 20)
                    self.wfile.flush()
                    if stop.wait(0.2):
                        break
                self.close_connection = True
        except OSError:
            self.close_connection = True

    do_HEAD = do_GET

    def answer(self, status, body, headers=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except OSError:  # the service closed the connection
            pass


def health(r, n):
    began = time.monotonic()
    status, body = request("GET", "/healthz", timeout=120, token="all")
    took = time.monotonic() - began
    with lock:
        counts["slowest /healthz, ms"] = max(counts.get("slowest /healthz, ms", 0), int(took * 1000))
    if status != 200 and not stop.is_set():
        problem(f"/healthz was answered with {status} after {took:.1f} s")
    stop.wait(0.2)


def drive(client, number):
    r = random.Random(seed * 1000 + number)
    n = 0
    while not stop.is_set():
        try:
            client(r, n)
        except OSError as e:
            note(f"client error {e.errno}")
        except Exception as e:  # a bug of the test
            problem(f"{client.__name__}: {e!r}")
            return
        n += 1


# ---- the run ----

def folded():
    query = urllib.parse.urlencode({"selector": '{service_name="honest"}', "from": "now-2h", "to": "now"})
    for _ in range(120):
        status, body = request("GET", f"/api/v1/query/folded?{query}", timeout=300, token="read")
        if status == 200:
            return body.decode()
        time.sleep(0.5)
    return ""


def check_honest(when):
    got = {}
    for line in folded().splitlines():
        stack, _, value = line.rpartition(" ")
        got[stack.rpartition(";batch-")[2]] = int(value)
    lost = [b for b, sure in acknowledged.items() if sure and b not in got]
    twice = [b for b, value in got.items() if value != 1]
    if lost or twice:
        problem(f"{when}: {len(lost)} acknowledged batches are not there ({lost[:3]}), {len(twice)} count more than once ({twice[:3]})")


def end(when):
    server.terminate()
    try:
        code = server.wait(300)
    except subprocess.TimeoutExpired:
        server.kill()
        code = "nothing within 300 s"
    if code != 0:
        problem(f"{when}: the service ended with {code}")


def run_clients(when):
    stop.clear()
    threads = [threading.Thread(target=drive, args=(c, i + 100 * secure)) for i, c in enumerate(clients)]
    for t in threads:
        t.start()
    until = time.monotonic() + seconds / 2
    while time.monotonic() < until and server.poll() is None:
        time.sleep(0.2)
    if server.poll() is not None:
        problem(f"{when}: the service ended by itself with {server.returncode}")
    stop.set()
    for t in threads:
        t.join()
    if server.poll() is None:
        check_honest(when)
        end(when)


with open(work + "/p.c", "w") as f:
    f.write("__attribute__((noinline)) int part(int n) { return n * 3; }\nint main(int c, char **v) { (void)v; return part(c); }\n")
subprocess.run(["gcc", "-g", "-Wl,--build-id=0x" + "ab" * 20, "-o", work + "/p", work + "/p.c"], check=True)
base_elf = open(work + "/p", "rb").read()
subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=127.0.0.1", "-keyout", work + "/key.pem", "-out", work + "/cert.pem"], check=True, stderr=subprocess.DEVNULL)
write_tokens()
tree = work + "/packages"
os.mkdir(tree)
upstream = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
upstream.daemon_threads = True
threading.Thread(target=upstream.serve_forever, daemon=True).start()
clients = [honest, honest, hostile_profiles, hostile_profiles, bombs, uploads, slow, slow, slow, queries, lookups, debuginfod, upkeep,
           packages, health]
server = start()
run_clients("plain HTTP")
secure = True
server = start()
check_honest("after a restart with TLS")
run_clients("TLS")
server = start()
check_honest("after the last restart")
end("the last end")
log = open(log_path, errors="replace").read()
for word in ("Sanitizer", "runtime error:"):
    if word in log:
        at = log.index(word)
        problem("a sanitizer report:\n" + log[max(0, at - 200):at + 6000])
for what in sorted(counts):
    print(f"# {what}: {counts[what]}")
print(f"# honest batches acknowledged: {sum(acknowledged.values())}")
for p in problems:
    print("# " + p.replace("\n", "\n# "))
if problems:
    print(f"# the log and the data are in {work}")
else:
    subprocess.run(["rm", "-rf", work], check=True)
print(("not ok" if problems else "ok") + f" 1 - the service holds under {seconds:.0f} s of honest and hostile load\n1..1")
sys.exit(bool(problems))
