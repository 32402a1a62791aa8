#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the corpora of fuzz_grpc_session and fuzz_grpc_message: make-grpc.py (in this folder)."""
import gzip
import os
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    """A literal header without indexing (RFC 7541, 6.2.2); strings shorter than 127 bytes."""
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def block(path="/e/E", *more, method="POST", kind="application/grpc"):
    pairs = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "x"), ("content-type", kind), *more]
    return b"".join(literal(*p) for p in pairs)


def call(stream, message=b"hello", path="/e/E", *more, flag=0):
    return (frame(HEADERS, END_HEADERS, stream, block(path, *more)) +
            frame(DATA, END_STREAM, stream, struct.pack(">BI", flag, len(message)) + message))


def session(*frames, piece=0):
    return bytes([piece]) + PREFACE + frame(SETTINGS, 0, 0) + b"".join(frames)


SESSIONS = {
    "echo": session(call(1), call(3)),
    "echo-in-pieces": session(call(1), call(3), piece=1),
    "acknowledged": session(frame(SETTINGS, ACK, 0), frame(WINDOW, 0, 0, struct.pack(">I", 1000)), call(1, b"x" * 4000)),
    "gzip": session(call(1, gzip.compress(b"hello" * 100), "/e/E", ("grpc-encoding", "gzip"), flag=1)),
    "gzip-bomb": session(call(1, gzip.compress(bytes(100000)), "/e/E", ("grpc-encoding", "gzip"), flag=1)),
    "gzip-cut": session(call(1, gzip.compress(b"hello" * 100)[:20], "/e/E", ("grpc-encoding", "gzip"), flag=1)),
    "compressed-how": session(call(1, b"x", flag=1)),
    "flag": session(call(1, b"x", flag=7)),
    "large": session(frame(HEADERS, END_HEADERS, 1, block()), frame(DATA, 0, 1, struct.pack(">BI", 0, 5000)), frame(DATA, 1, 1)),
    "cut": session(frame(HEADERS, END_HEADERS, 1, block()), frame(DATA, END_STREAM, 1, b"\0\0\0")),
    "two-messages": session(frame(HEADERS, END_HEADERS, 1, block()), frame(DATA, END_STREAM, 1, bytes(10))),
    "no-message": session(frame(HEADERS, END_HEADERS | END_STREAM, 1, block())),
    "refused": session(call(1, b"", "/r/R"), call(3, b"", "/r/R", ("authorization", "Bearer ab")),
                       call(5, b"", "/r/R", ("authorization", "Bearer abc"))),
    "timeout": session(frame(HEADERS, END_HEADERS, 1, block("/e/E", ("grpc-timeout", "1S"))), *[frame(PING, 0, 0, bytes(8))] * 9,
                       piece=3),
    "bad-timeout": session(call(1, b"", "/e/E", ("grpc-timeout", "soon"))),
    "unknown": session(call(1, b"", "/u/U"), call(3, b"", "/e/E", ("grpc-encoding", "br"))),
    "snappy": session(call(1, b"\x05\x10hello", "/e/E", ("grpc-encoding", "snappy"), flag=1)),
    "not-grpc": session(frame(HEADERS, END_HEADERS | END_STREAM, 1, block(method="GET")),
                        frame(HEADERS, END_HEADERS | END_STREAM, 3, block(kind="text/plain"))),
    "trailers": session(frame(HEADERS, END_HEADERS, 1, block()), frame(DATA, 0, 1, bytes(5)),
                        frame(HEADERS, END_HEADERS | END_STREAM, 1, literal("x-end", "1"))),
    "continuation": session(frame(HEADERS, 0, 1, block()[:30]), frame(CONTINUATION, END_HEADERS, 1, block()[30:])),
    "many-headers": session(frame(HEADERS, 0, 1, block()), *[frame(CONTINUATION, 0, 1, literal("x", "y" * 120) * 20)] * 6),
    "resets": session(*[frame(HEADERS, END_HEADERS, i, block()) + frame(RESET, 0, i, struct.pack(">I", 8)) for i in range(1, 400, 2)]),
    "pings": session(*[frame(PING, 0, 0, bytes(8))] * 200, piece=2),
    "priorities": session(*[frame(PRIORITY, 0, i, struct.pack(">IB", 0, 1)) for i in range(1, 99, 2)], call(101)),
    "many-calls": session(*[frame(HEADERS, END_HEADERS, i, block()) for i in range(1, 150, 2)]),
    "stream": session(frame(HEADERS, END_HEADERS, 1, block("/s/S")), frame(DATA, 0, 1, bytes(5)),
                      frame(DATA, END_STREAM, 1, struct.pack(">BI", 0, 2) + b"ab" + bytes(5)), piece=3),
    "stream-fails": session(frame(HEADERS, END_HEADERS, 1, block("/s/S")),
                            frame(DATA, 0, 1, bytes(5) + struct.pack(">BI", 0, 3) + b"abc" + bytes(5))),
    "stream-reset": session(frame(HEADERS, END_HEADERS, 1, block("/s/S")), frame(DATA, 0, 1, bytes(7)),
                            frame(RESET, 0, 1, struct.pack(">I", 8))),
    "stream-cut": session(frame(HEADERS, END_HEADERS, 1, block("/s/S")), frame(DATA, END_STREAM, 1, bytes(7))),
    "stream-empty": session(frame(HEADERS, END_HEADERS | END_STREAM, 1, block("/s/S"))),
    "goaway": session(call(1), frame(GOAWAY, 0, 0, bytes(8)), call(3)),
    "http1": b"\0GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "reset-while-reading": session(frame(HEADERS, END_HEADERS, 1, block()), frame(DATA, 0, 1, bytes(3)),
                                   frame(RESET, 0, 1, struct.pack(">I", 8)), piece=2),
}

MESSAGES = {
    "usual": b"10S\nno memory left\n\0" + struct.pack(">BI", 0, 5) + b"hello" + struct.pack(">BI", 1, 0),
    "pieces": b"99999999H\n50% \xc3\xa9\r\n\2" + struct.pack(">BI", 0, 20) + b"x" * 20,
    "nanoseconds": b"1n\n\n",
    "too-long": b"123456789S\n" + b"~" * 300 + b"\n\xff" + struct.pack(">BI", 0, 1 << 31),
    "flag": b"S\n\n\0\2\0\0\0\0",
    "most": b"\n\n\x40" + struct.pack(">BI", 0, 4096) + b"y" * 4096,
}

here = os.path.dirname(os.path.abspath(__file__))
for folder, files in (("grpc_session", SESSIONS), ("grpc_message", MESSAGES)):
    os.makedirs(f"{here}/{folder}", exist_ok=True)
    for name, data in files.items():
        with open(f"{here}/{folder}/{name}", "wb") as f:
            f.write(data)
