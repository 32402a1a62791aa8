# SPDX-License-Identifier: Apache-2.0
"""Request many times the memory that a service may use, of every kind concurrently, while honest clients send their
requests.

usage: memory-budget.py PORT ROUNDS FOLDER BRACKETS.gz BOMB.zst WIDE.zst BODY

The load lasts for the ROUNDS of the honest clients, a health check each, and an ingest in each third, and until memory
was refused. Prints one line of JSON: how many were answered with 200, their times in milliseconds and those of a control,
and the responses to the load by status.

The control is a trivial server: it responds at once, and to a POST after it has written and synced a file in FOLDER.
The same process sends requests to the service and the control in turn, so both times include the delays of this
machine, for a CPU and for the disk; the difference is due to the service. Times are for people who compare: no test
depends on them. The measuring process, the control and the load are separate processes, because threads of one Python
process would wait for each other.
"""
import collections
import http.client
import http.server
import json
import multiprocessing
import os
import socket
import sys
import threading
import time

port, rounds = int(sys.argv[1]), int(sys.argv[2])
folder = sys.argv[3]
brackets, bomb, wide, wide_body = (open(path, "rb").read() for path in sys.argv[4:8])
ended = threading.Event()
codes = collections.Counter()
retry_after_missing = 0
lock = threading.Lock()


def send(source, method, path, body, headers, timeout=120, to_port=port):
    """One request; returns its status, or 0 if the connection was closed."""
    global retry_after_missing
    try:
        c = http.client.HTTPConnection("127.0.0.1", to_port, timeout=timeout, source_address=(source, 0))
        c.request(method, path, body, headers)
        answer = c.getresponse()
        answer.read()
        if answer.status in (429, 503) and not answer.getheader("Retry-After"):
            with lock:
                retry_after_missing += 1
        return answer.status
    except OSError:
        return 0
    except http.client.HTTPException:
        return 0
    finally:
        c.close()


def repeat(kind, function):
    while not ended.is_set():
        code = function()
        with lock:
            codes["%s %d" % (kind, code)] += 1
        if code != 200:
            ended.wait(0.05)


def upload(stream):
    """An object that is a zstd stream; its announced size is not its decompressed size."""
    ident = os.urandom(20).hex()
    return send("127.0.0.1", "PUT", "/api/v1/debuginfo/%s/debuginfo" % ident, stream,
                {"Content-Encoding": "zstd", "X-Cairn-Size": str(1 << 31), "X-Cairn-SHA256": "0" * 64})


def hold(request, receive_buffer, bytes_per_s):
    """Send a request, then transfer as few bytes as a slow client, until the end or until the connection is closed."""
    try:
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        s.settimeout(1)
        s.connect(("127.0.0.1", port))
        s.sendall(request)
        while not ended.is_set():
            try:
                if bytes_per_s and not s.recv(bytes_per_s):
                    return 1
            except socket.timeout:
                pass
            ended.wait(1)
        return 2
    except OSError:
        return 0
    finally:
        s.close()


def slow_reader():
    path = "/api/v1/query/folded?from=0"
    return hold(("GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path).encode(), 4096, 1024)


def slow_body():
    head = "POST /api/v1/symbolize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return hold((head % (60 << 20)).encode() + b" " * (40 << 20), 4096, 0)


class Control(http.server.BaseHTTPRequestHandler):
    """Responds at once; to a POST after a write and a sync."""

    def answer(self):
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")

    do_GET = answer

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open(folder + "/control", "ab") as f:
            f.write(body)
            f.flush()
            os.fdatasync(f.fileno())
        self.answer()

    def log_message(self, *_):
        pass


def serve_control(pipe):
    server = http.server.HTTPServer(("127.0.0.1", 0), Control)
    pipe.send(server.server_address[1])
    server.serve_forever()


def ask(to_port, method, path, body, headers):
    """Repeat a request from 127.0.0.2 while it is refused for lack of memory; return its status and milliseconds."""
    begin = time.monotonic()
    while (status := send("127.0.0.2", method, path, body, headers, to_port=to_port)) in (429, 503):
        time.sleep(0.02)
    return status, (time.monotonic() - begin) * 1000


def measure(pipe, control_port):
    times = collections.defaultdict(list)
    answered = collections.Counter()
    for number in range(rounds):
        asked = [("health", "GET", "/healthz", None, {})]
        if number % 3 == 0:
            body = ("main;honest;h%d 1\n" % number).encode()
            asked.append(("ingest", "POST", "/ingest?name=honest&format=folded", body, {"Content-Type": "text/plain"}))
        for kind, *request in asked:
            for prefix, to_port in ("", port), ("control_", control_port):
                status, ms = ask(to_port, *request)
                answered[prefix + kind] += status == 200
                times[prefix + kind].append(ms)
        time.sleep(0.02)
    pipe.send((times, answered, retry_after_missing))


def profile():
    """A profile of 100,000 stacks."""
    return send("127.0.0.1", "POST", "/ingest?name=wide&format=folded", wide_body, {"Content-Type": "text/plain"})


def start(count, function, *arguments):
    for _ in range(count):
        threads.append(threading.Thread(target=function, args=arguments, daemon=True))


def run(target, *arguments):
    """Start a process; returns the end of a pipe from it."""
    ours, its = multiprocessing.Pipe()
    process = multiprocessing.Process(target=target, args=(its, *arguments), daemon=True)
    process.start()
    return ours


control_port = run(serve_control).recv()
measured = run(measure, control_port)
os.nice(19)  # the load represents other machines: it only uses idle CPU time of this one
threads = []
start(2, repeat, "json", lambda: send("127.0.0.1", "POST", "/api/v1/debuginfo/want", brackets,
                                      {"Content-Encoding": "gzip", "Content-Type": "application/json"}))
start(3, repeat, "bomb", lambda: upload(bomb))
start(8, repeat, "window", lambda: upload(wide))
start(12, repeat, "reader", slow_reader)
start(6, repeat, "body", slow_body)
start(1, repeat, "profile", profile)
for t in threads:
    t.start()
times, answered, missing = measured.recv()
while not any(code.endswith(" 429") for code in list(codes)):
    time.sleep(0.05)
ended.set()
for t in threads:
    t.join(60)
result = {"retry_after_missing": retry_after_missing + missing, "answers": dict(sorted(codes.items()))}
for kind, values in times.items():
    values.sort()
    result[kind + "_answered"] = answered[kind]
    result[kind + "_median_ms"] = round(values[len(values) // 2], 1)
    result[kind + "_p95_ms"] = round(values[len(values) * 95 // 100], 1)
    result[kind + "_max_ms"] = round(values[-1], 1)
print(json.dumps(result))
