#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the corpus of tests/fuzz/fuzz_portable_symbols.c (docs/formats/symbol-file.md). Sizes and checksums are zero:
the target corrects them.
"""
import os
import struct

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "portable_symbols")
BIG = 0xFFFFFFFF


def u(v):
    out = b""
    while v >= 0x80:
        out += bytes([v & 0x7F | 0x80])
        v >>= 7
    return out + bytes([v])


def s(v):
    out = b""
    while not -64 <= v < 64:
        out += bytes([v & 0x7F | 0x80])
        v >>= 7
    return out + bytes([v & 0x7F])


STRINGS = b"\0main\0two\0a.c\0"


def symbols(segments=((0x1000, 0x200, 0x401000),), gaps=(0x401000, 0), lengths=(4, 0x1C), range_chains=(0, 0), chains=(1, 2),
            functions_of=(1, 1, -1), files=(10, 0, 0), lines=(3, -2, 3), linkage=(0, 0), names=(1, 5), declared=(10, 0), starts=(2, -1), strings=STRINGS, tail=b"", **head):
    body = b"".join(u(n) for one in segments for n in one) + b"".join(map(u, gaps)) + b"".join(map(u, lengths))
    body += b"".join(map(s, range_chains)) + b"".join(map(u, chains))
    body += b"".join(map(s, (*functions_of, *files, *lines, *linkage, *names, *declared, *starts))) + strings + tail
    h = dict(magic=b"cairnpsf", version=1, quality=7, segments=len(segments), ranges=len(gaps), chains=len(chains),
             frames=len(functions_of), functions=len(linkage), string_bytes=len(strings), partial=0, zero=0, id_size=4, go_id_size=0,
             id=b"\x11\x22\x33\x44", go_id=b"", body_bytes=0, body_hash=0, header_hash=0)
    h.update(head)
    return struct.pack("<8sIIIIIIIIIHBB64s64sQQQ", *h.values()) + body


def write(name, data):
    with open(os.path.join(HERE, name), "wb") as f:
        f.write(data)


write("good/two-ranges", symbols())
write("good/go-build-id", symbols(go_id_size=20, go_id=b"\x55" * 20))
write("good/partial", symbols(strings=STRINGS + b"half of it\0", partial=len(STRINGS), quality=6))
write("good/nothing", symbols(segments=(), gaps=(), lengths=(), range_chains=(), chains=(), functions_of=(), files=(), lines=(),
                              linkage=(), names=(), declared=(), starts=(), strings=b"\0", id_size=0, quality=0))
write("good/unknown-function", symbols(functions_of=(0, 1, 0)))
write("good/up-to-the-last-address", symbols(gaps=(0x401000, 0xFFFFFFFFFFBFEFFB - 0x1C), lengths=(4, 0x1C)))
write("bad/another-version", symbols(version=2))
write("bad/magic-from-before-the-first-release", symbols(magic=b"cairnsyf", version=2))
write("bad/declared-past-the-strings", symbols(declared=(14, 0)))
write("bad/start-line-past-32-bits", symbols(starts=(BIG, 1)))
write("bad/cut-off-in-the-header", symbols()[:150])
write("bad/cut-off-in-the-body", symbols()[:-9])
write("bad/bytes-behind-it", symbols(tail=b"\0"))
write("bad/counts-past-the-file", symbols(ranges=BIG, frames=BIG, functions=BIG))
write("bad/segments-past-the-limit", symbols(segments=((0, 0, 0),) * 1025))
write("bad/quality-unknown", symbols(quality=8))
write("bad/build-id-too-long", symbols(id_size=65))
write("bad/range-past-the-last-address", symbols(gaps=(0x401000, 0xFFFFFFFFFFFFFFFF)))
write("bad/length-past-the-last-address", symbols(lengths=(4, 0xFFFFFFFFFFFFFFFF)))
write("bad/empty-range", symbols(lengths=(0, 0x1C)))
write("bad/range-without-its-chain", symbols(range_chains=(0, 1)))
write("bad/chain-below-none", symbols(range_chains=(-1, 0)))
write("bad/chain-without-frames", symbols(chains=(0, 3)))
write("bad/chains-past-the-frames", symbols(chains=(2, 2)))
write("bad/chains-short-of-the-frames", symbols(chains=(1, 1)))
write("bad/chain-count-wraps", symbols(chains=(0xFFFFFFFFFFFFFFFF, 4)))
write("bad/frame-without-its-function", symbols(functions_of=(1, 2, -1)))
write("bad/file-past-the-strings", symbols(files=(14, 0, 0)))
write("bad/file-below-none", symbols(files=(-1, 0, 0)))
write("bad/line-past-32-bits", symbols(lines=(3, BIG, 0)))
write("bad/line-step-past-64-bits", symbols()[:200] + b"\xff" * 60)
write("bad/name-past-the-strings", symbols(names=(1, 99)))
write("bad/strings-without-nul", symbols(strings=b"\0main\0two\0a.cd"))
write("bad/no-strings", symbols(strings=b""))
write("bad/partial-past-the-strings", symbols(partial=14))
write("bad/partial-of-two-lines", symbols(strings=STRINGS + b"two\nlines\0", partial=len(STRINGS)))
