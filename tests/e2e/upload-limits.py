#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts uploads and leaves them incomplete until the end of standard input.

usage: upload-limits.py PORT ADDRESS TOKEN COUNT

Each is a connection from ADDRESS that announces 1,000 bytes of an object and sends ten. Prints "ready" once all were sent.
"""
import socket
import sys

port, address, token, count = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
held = []
for n in range(count):
    s = socket.create_connection(("127.0.0.1", port), source_address=(address, 0))
    s.sendall(f"PUT /api/v1/debuginfo/{n + 1:040x}/executable HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
              f"X-Cairn-Size: 1000\r\nX-Cairn-SHA256: {'0' * 64}\r\nContent-Length: 1000\r\n\r\n0123456789".encode())
    held.append(s)
print("ready", flush=True)
sys.stdin.read()
