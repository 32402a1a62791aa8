#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the corpus of jitdumps: tests/corpus/make-jitdump.py DIRECTORY (tests/corpus/jitdump)."""
import os
import struct
import sys

PID = 4711


class Dump:
    def __init__(self, order="<", version=1, size=40, pid=PID):
        self.order = order
        self.data = self.pack("6I2Q", 0x4A695444, version, size, 62, 0, pid, 1, 0)

    def pack(self, fmt, *values):
        return struct.pack(self.order + fmt, *values)

    def record(self, kind, body, size=None):
        self.data += self.pack("IIQ", kind, 16 + len(body) if size is None else size, 7) + body
        return self

    def load(self, addr, size, index, name, code=None):
        code = b"\xcc" * size if code is None else code
        return self.record(0, self.pack("IIQQQQ", PID, PID, addr, addr, size, index) + name + code)

    def move(self, old, new, size, index):
        return self.record(1, self.pack("IIQQQQQ", PID, PID, old, old, new, size, index))

    def lines(self, code, entries, count=None):
        body = self.pack("QQ", code, len(entries) if count is None else count)
        for addr, line, name in entries:
            body += self.pack("QII", addr, line, 0) + name
        return self.record(2, body)


def whole(order):
    return (Dump(order).load(0x1000, 0x20, 1, b"plain\0")
            .lines(0x2000, [(0x2004, 11, b"a.js\0"), (0x2010, 12, b"\xff\0")]).load(0x2000, 0x20, 2, b"f a.js\0")
            .record(4, bytes(24)).move(0x1000, 0x5000, 0x20, 1).load(0x2010, 0x40, 3, b"reused\0").record(3, b""))


FILES = {
    "good/little-endian": whole("<"),
    "good/big-endian": whole(">"),
    "good/lines-behind-an-elf-header": Dump().lines(0x1000, [(0x1040, 1, b"v8.js\0"), (0x1058, 2, b"v8.js\0")])
    .load(0x1000, 0x20, 1, b"f\0"),
    "bad/another-process": Dump(pid=1).load(0x1000, 0x20, 1, b"f\0"),
    "bad/version": Dump(version=9).load(0x1000, 0x20, 1, b"f\0"),
    "bad/header-larger-than-the-file": Dump(size=4000).load(0x1000, 0x20, 1, b"f\0"),
    "bad/record-shorter-than-its-head": Dump().load(0x1000, 0x20, 1, b"f\0").record(0, b"", size=8),
    "bad/record-past-the-end": Dump().load(0x1000, 0x20, 1, b"f\0").record(0, bytes(60), size=0xFFFFFFF0),
    "bad/code-wraps": Dump().load(0xFFFFFFFFFFFFFFF0, 0x20, 1, b"f\0"),
    "bad/code-of-no-size": Dump().load(0x1000, 0, 1, b"f\0"),
    "bad/name-without-end": Dump().load(0x1000, 0x20, 1, b"n" * 2000, code=b""),
    "bad/load-cut": Dump().record(0, bytes(20)),
    "bad/lines-count-wraps": Dump().lines(0x1000, [(0x1000, 1, b"x\0")], count=0x1000000000000001).load(0x1000, 8, 1, b"f\0"),
    "bad/lines-name-without-end": Dump().lines(0x1000, [(0x1000, 1, b"x")]).load(0x1000, 8, 1, b"f\0"),
    "bad/lines-out-of-freed-memory": Dump().lines(0x1000, [(0x1004, 1, b"\x03\xf5\x02\0\0\0\0\0\x48\xa8.js\0"),
                                                           (0x1008, 2, b"a.js\0")]).load(0x1000, 0x20, 1, b"f\0"),
    "bad/lines-before-their-code": Dump().lines(0x1000, [(0x10, 1, b"x\0")]).load(0x1000, 8, 1, b"f\0"),
    "bad/move-of-unknown-code": Dump().move(0x1000, 0x2000, 8, 5),
    "bad/move-wraps": Dump().load(0x1000, 8, 5, b"f\0").move(0xFFFFFFFFFFFFFFFF, 0x2000, 8, 5),
}

for name, dump in FILES.items():
    path = os.path.join(sys.argv[1], name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(dump.data)
