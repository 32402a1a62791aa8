# SPDX-License-Identifier: Apache-2.0
"""Ask for many times the memory that a service may use, of every kind at once, and measure what others see meanwhile.

usage: memory-budget.py PORT SECONDS BRACKETS.gz BOMB.zst WIDE.zst BODY

Prints one line of JSON: times of /healthz and of honest ingest in milliseconds, and the answers to the load by status.
"""
import collections
import http.client
import json
import os
import socket
import sys
import threading
import time

port, seconds = int(sys.argv[1]), float(sys.argv[2])
brackets, bomb, wide, wide_body = (open(path, "rb").read() for path in sys.argv[3:7])
end = time.monotonic() + seconds
codes = collections.Counter()
retry_after_missing = 0
health_ms, ingest_ms = [], []
lock = threading.Lock()


def send(source, method, path, body, headers, timeout=30):
    """One request; its status, or 0 when the connection was ended."""
    global retry_after_missing
    try:
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout, source_address=(source, 0))
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
    while time.monotonic() < end:
        code = function()
        with lock:
            codes["%s %d" % (kind, code)] += 1
        if code != 200:
            time.sleep(0.05)


def upload(stream):
    """An object that is a zstd stream; its size is not what it unpacks to."""
    ident = os.urandom(20).hex()
    return send("127.0.0.1", "PUT", "/api/v1/debuginfo/%s/debuginfo" % ident, stream,
                {"Content-Encoding": "zstd", "X-Cairn-Size": str(1 << 31), "X-Cairn-SHA256": "0" * 64})


def hold(request, receive_buffer, bytes_per_s):
    """Send a request, then move as few bytes as a slow client does, until the end or until it is ended."""
    try:
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        s.settimeout(1)
        s.connect(("127.0.0.1", port))
        s.sendall(request)
        while time.monotonic() < end:
            try:
                if bytes_per_s and not s.recv(bytes_per_s):
                    return 1
            except socket.timeout:
                pass
            time.sleep(1)
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


def watch_health():
    while time.monotonic() < end:
        begin = time.monotonic()
        code = send("127.0.0.2", "GET", "/healthz", None, {})
        health_ms.append((time.monotonic() - begin) * 1000 if code == 200 else 60000)
        time.sleep(0.02)


def ingest():
    number = 0
    while time.monotonic() < end:
        number += 1
        body = ("main;honest;h%d 1\n" % number).encode()
        begin = time.monotonic()
        while send("127.0.0.2", "POST", "/ingest?name=honest&format=folded", body, {"Content-Type": "text/plain"}) != 200:
            time.sleep(0.02)
            if time.monotonic() - begin > 30:
                break
        ingest_ms.append((time.monotonic() - begin) * 1000)
        time.sleep(0.05)


def profile():
    """A profile of 100,000 stacks, as one client may send it."""
    return send("127.0.0.1", "POST", "/ingest?name=wide&format=folded", wide_body, {"Content-Type": "text/plain"})


def start(count, function, *arguments):
    for _ in range(count):
        threads.append(threading.Thread(target=function, args=arguments, daemon=True))


threads = []
start(1, watch_health)
start(1, ingest)
start(2, repeat, "json", lambda: send("127.0.0.1", "POST", "/api/v1/debuginfo/want", brackets,
                                      {"Content-Encoding": "gzip", "Content-Type": "application/json"}))
start(3, repeat, "bomb", lambda: upload(bomb))
start(8, repeat, "window", lambda: upload(wide))
start(12, repeat, "reader", slow_reader)
start(6, repeat, "body", slow_body)
start(1, repeat, "profile", profile)
for t in threads:
    t.start()
for t in threads:
    t.join(seconds + 60)
health_ms.sort()
ingest_ms.sort()
print(json.dumps({
    "health_count": len(health_ms), "health_median_ms": round(health_ms[len(health_ms) // 2], 1),
    "health_max_ms": round(health_ms[-1], 1), "ingest_count": len(ingest_ms),
    "ingest_median_ms": round(ingest_ms[len(ingest_ms) // 2], 1), "ingest_max_ms": round(ingest_ms[-1], 1),
    "retry_after_missing": retry_after_missing, "answers": dict(sorted(codes.items()))}))
