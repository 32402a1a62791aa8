#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds many connections to a service open, until standard input ends.

usage: slow-clients.py PORT IDLE HEADERS BODIES READERS

IDLE      connections that asked once and are kept
HEADERS   connections that send a header's byte each second
BODIES    connections that send a body's byte each second
READERS   connections that ask for the longest answer there is and read nothing

Prints "ready" once all were opened and asked, then, each second, how many the
service has not ended.
"""
import resource
import select
import socket
import sys
import time

soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
port, *counts = map(int, sys.argv[1:])
FIRST = [
    b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ",
    b"POST /v1development/profiles HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n",
    b"GET /store/ HTTP/1.1\r\nHost: x\r\n\r\n" * 200,
]
trickling, everyone = [], set()
for kind, count in enumerate(counts):
    for _ in range(count):
        s = socket.create_connection(("127.0.0.1", port))
        if kind == 3:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        s.setblocking(False)
        try:
            s.send(FIRST[kind])
        except OSError:
            pass
        everyone.add(s)
        if kind in (1, 2):
            trickling.append(s)

watched = select.poll()
by_number = {s.fileno(): s for s in everyone}
for s in everyone:
    watched.register(s, select.POLLRDHUP)
print("ready", flush=True)
end = select.poll()
end.register(sys.stdin, select.POLLIN)
while not end.poll(1000):
    for number, _ in watched.poll(0):
        watched.unregister(number)
        everyone.discard(by_number[number])
    for s in trickling:
        if s in everyone:
            try:
                s.send(b"x")
            except OSError:
                pass
    print(len(everyone), flush=True)
