#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the corpus of tests/fuzz/fuzz_symcache.c (docs/formats/symcache.md). Checksums are zero: the target corrects
them.
"""
import os
import struct

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "symcache")
BIG = 0xFFFFFFFF
SAME = 0xFFFFFFFF


def text(readable, linkage=None, size=None, linkage_size=None):
    out = readable + b"\0" + (b"" if linkage is None else linkage + b"\0")
    head = struct.pack("<II", len(readable) if size is None else size,
                       linkage_size if linkage_size is not None else SAME if linkage is None else len(linkage))
    return head + out + b"\0" * (-len(out) % 8)


TEXTS = [text(b"", b""), text(b"f()", b"_Z1fv"), text(b"main"), text(b"a.c", b"")]
NODES = [(0, 0, 0, 0), (5, 7, 3, 0), (2, 7, 9, 1)]  # main at a.c:3, and f() inlined into it at a.c:9


def symcache(starts=(0x1000, 0x1010, 0x1018, 0x1040), nodes_of=(1, 2, 1), buckets=(0, 1, 2, 2, 2), nodes=tuple(NODES), texts=tuple(TEXTS),
         base=0x1000, shift=4, partial=b"\0", segments=((0x1000, 0x100),), **head):
    words = b"".join(texts)
    body = struct.pack(f"<{len(starts)}Q{len(nodes_of)}I", *starts, *nodes_of)
    body += b"\0" * (-len(body) % 16)
    body += struct.pack(f"<{len(buckets)}I", *buckets)
    body += b"\0" * (-len(body) % 16)
    body += b"".join(struct.pack("<4I", *n) for n in nodes) + words
    h = dict(magic=b"cairnsyc", version=1, order=0x01020304, quality=4, complete=1, range_count=len(nodes_of),
             bucket_count=len(buckets) - 1, node_count=len(nodes), text_bytes=len(words), base=base, shift=shift,
             partial_size=len(partial), id_size=20, segment_count=len(segments), id=b"\x11" * 64, sum=0)
    h.update(head)
    front = struct.pack("<8sIIIIQQQQQIIII64sQ", *h.values()) + partial
    front += b"".join(struct.pack("<QQ", *s) for s in segments)
    front += b"\0" * 8 * ((len(body) + 65535) // 65536)
    return front + b"\0" * (-len(front) % 4096) + body


def write(name, data):
    with open(os.path.join(HERE, name), "wb") as f:
        f.write(data)


write("good/inlined", symcache())
write("good/partial-and-a-gap", symcache(nodes_of=(1, 0, 2), partial=b"1 of 2 units\0", complete=0))
write("good/no-ranges", symcache(starts=(0,), nodes_of=(), buckets=(0,), nodes=NODES[:1], base=0, shift=0, segments=()))
write("bad/cut-off-in-the-header", symcache()[:100])
write("bad/cut-off-in-the-body", symcache()[:-60])
write("bad/counts-wrap", symcache(range_count=BIG - 1, node_count=BIG))
write("bad/shift-64", symcache(shift=64))
write("bad/build-id-too-long", symcache(id_size=65))
write("bad/partial-without-nul", symcache(partial=b"xyz"))
write("bad/partial-empty", symcache(partial=b""))
write("bad/segments-past-the-file", symcache(segment_count=BIG))
write("bad/quality-unknown", symcache(quality=9))
write("bad/bucket-past-the-ranges", symcache(buckets=(0, 3, BIG, BIG, BIG)))
write("bad/buckets-descend", symcache(buckets=(2, 1, 1, 0, 0)))
write("bad/starts-descend", symcache(starts=(0x1040, 0x1018, 0x1010, 0x1000)))
write("bad/range-of-no-node", symcache(nodes_of=(1, 3, BIG)))
write("bad/base-is-the-last-address", symcache(base=2**64 - 1))
write("bad/caller-is-itself", symcache(nodes=(NODES[0], (5, 7, 3, 1), (2, 7, 9, 2))))
write("bad/callers-loop", symcache(nodes=(NODES[0], (5, 7, 3, 2), (2, 7, 9, 1))))
write("bad/names-past-the-texts", symcache(nodes=(NODES[0], (BIG, 7, 3, 0), (2, BIG, 9, 1))))
write("bad/text-in-the-last-bytes", symcache(nodes=(NODES[0], (9, 10, 3, 0), NODES[2])))
write("bad/readable-name-past-the-texts", symcache(texts=(TEXTS[0], text(b"f()", b"_Z1fv", size=BIG - 1), *TEXTS[2:])))
write("bad/sizes-add-to-a-wrap", symcache(texts=(TEXTS[0], text(b"f()", b"_Z1fv", size=BIG, linkage_size=BIG - 1), *TEXTS[2:])))
write("bad/linkage-name-past-the-texts", symcache(texts=(*TEXTS[:3], text(b"a.c", b"", linkage_size=20)), nodes=(NODES[0], (7, 7, 3, 0), NODES[2])))
write("bad/name-without-nul", symcache(texts=(TEXTS[0], text(b"f()", b"_Z1fv", size=2), *TEXTS[2:])))
write("bad/no-nodes", symcache(nodes=(), nodes_of=(0, 0, 0)))
write("bad/no-texts", symcache(texts=()))
