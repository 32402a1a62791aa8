#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds many connections to a service open, until standard input ends.

usage: slow-clients.py PORT IDLE HEADERS BODIES READERS

IDLE      connections that sent one request and are kept open
HEADERS   connections that send a header's byte each second
BODIES    connections that send a body's byte each second
READERS   connections that request the longest response and read nothing

Connections of each kind are opened after those of the previous kind, so that idle ones can be closed in favor of later
ones. Prints "ready" once all are open and have sent their request.
"""
import os
import select
import socket
import sys

PER_PROCESS = 500  # connections, since a process is often limited to 1,024 descriptors
FIRST = [
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    b"POST /v1development/profiles HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n",
    b"GET /store/ HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200,
]
HEADERS, BODIES, READERS = 1, 2, 3


def connect(port, kind):
    s = socket.create_connection(("127.0.0.1", port))
    if kind == READERS:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    s.setblocking(False)
    send(s, FIRST[kind])
    return s


def send(s, data):
    """Ignores errors, if the service has closed the connection or reads too slowly."""
    try:
        s.send(data)
    except OSError:
        pass


def hold(port, kind, count, ready):
    held = [connect(port, kind) for _ in range(count)]
    os.write(ready, b"x")
    os.close(ready)
    end = select.poll()
    end.register(sys.stdin, select.POLLIN)
    while not end.poll(1000):
        if kind in (HEADERS, BODIES):
            for s in held:
                send(s, b"x")


def main():
    port, *counts = map(int, sys.argv[1:])
    holders = []
    for kind, count in enumerate(counts):
        ready, ready_end = os.pipe()
        sizes = [min(PER_PROCESS, count - start) for start in range(0, count, PER_PROCESS)]
        for size in sizes:
            pid = os.fork()
            if not pid:
                hold(port, kind, size, ready_end)
                os._exit(0)
            holders.append(pid)
        os.close(ready_end)
        if sum(len(piece) for piece in iter(lambda: os.read(ready, PER_PROCESS), b"")) < len(sizes):
            sys.exit("slow-clients.py: not all connections could be opened")
        os.close(ready)
    print("ready", flush=True)
    for pid in holders:
        os.waitpid(pid, 0)


main()
