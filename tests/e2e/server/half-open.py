#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients on a host that is about to disappear.

usage: half-open.py HOST PORT PATH COUNT SYNS

Opens COUNT connections of each kind: idle after a response, in the middle of the headers, in the middle of a body, and
reading the response to GET PATH, which is long; and sends SYNS initial packets of connections from unused addresses.
Prints "ready" when all are established and the readers have read some data, and continues reading until it is killed.
Partial headers are sent last, since they have the shortest timeout.
"""
import random
import select
import socket
import struct
import sys
import time

host, port, path, count, syns = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
token = b"Authorization: Bearer the-reader\r\n"


def checksum(data):
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    total = (total >> 16) + (total & 0xffff)
    return ~(total + (total >> 16)) & 0xffff


def first_packet(source):
    source, target = socket.inet_aton(source), socket.inet_aton(host)
    tcp = struct.pack("!HHIIBBHHH", random.randrange(1024, 65536), port, random.getrandbits(32), 0, 5 << 4, 2, 64000, 0, 0)
    tcp = tcp[:16] + struct.pack("!H", checksum(source + target + struct.pack("!BBH", 0, 6, len(tcp)) + tcp)) + tcp[18:]
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, source, target)
    return ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:] + tcp


def connect(text):
    s = socket.create_connection((host, port))
    s.sendall(text)
    return s


kept, readers = [], []
for _ in range(count):
    s = connect(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    s.recv(4096)
    kept.append(s)
    kept.append(connect(b"POST /v1development/profiles HTTP/1.1\r\nHost: localhost\r\n" + token + b"Content-Length: 1000000\r\n\r\nhalf"))
    readers.append(connect(b"GET " + path.encode() + b" HTTP/1.1\r\nHost: localhost\r\n" + token + b"\r\n"))
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) if syns else None
for i in range(syns):
    raw.sendto(first_packet("10.77.0.%d" % (100 + i % 100)), (host, 0))
waiting = set(readers)
while True:
    for s in select.select(readers, [], [], 1)[0]:
        if not s.recv(65536):
            readers.remove(s)
        if s in waiting:
            waiting.remove(s)
            if not waiting:
                kept += [connect(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Half: ") for _ in range(count)]
                print("ready", flush=True)
    time.sleep(0.05)
