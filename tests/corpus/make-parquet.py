#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/corpus/parquet/bad, one file for each defect, with a manual encoder of the format.

Usage: make-parquet.py DIRECTORY
"""
import pathlib
import struct
import sys

I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12


def varint(v):
    out = b""
    while v > 127:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])


def zigzag(v):
    return varint((v << 1 ^ v >> 63) & (1 << 64) - 1)


class Struct:
    def __init__(self, **fields):
        self.fields = sorted((int(k[1:]), v) for k, v in fields.items())

    def encode(self):
        out, last = b"", 0
        for field, value in self.fields:
            kind, body = encode(value)
            out += bytes([field - last << 4 | kind]) + body
            last = field
        return out + b"\0"


class Raw:
    """A field's type and bytes as they are."""

    def __init__(self, kind, body):
        self.kind, self.body = kind, body


def encode(value):
    if isinstance(value, Raw):
        return value.kind, value.body
    if isinstance(value, Struct):
        return STRUCT, value.encode()
    if isinstance(value, bytes):
        return BINARY, varint(len(value)) + value
    if isinstance(value, tuple):  # (I32 or I64, number)
        return value[0], zigzag(value[1])
    if isinstance(value, list):
        bodies = [encode(v) for v in value]
        kind = bodies[0][0] if bodies else STRUCT
        head = bytes([len(value) << 4 | kind]) if len(value) < 15 else bytes([0xF0 | kind]) + varint(len(value))
        return LIST, head + b"".join(b for _, b in bodies)
    return I32, zigzag(value)


def page(payload, count, encoding=0, kind=0, unpacked=None, stored=None, **more):
    detail = Struct(_1=count, _2=encoding, _3=3, _4=3) if kind == 0 else Struct(_1=count, _2=encoding)
    head = {"_1": kind, "_2": len(payload) if unpacked is None else unpacked,
            "_3": len(payload) if stored is None else stored, "_5" if kind == 0 else "_7": detail}
    head.update(more)
    return Struct(**head).encode() + payload


def element(name, physical=None, repetition=0, children=None, converted=None):
    fields = {"_4": name, "_3": repetition}
    if physical is not None:
        fields["_1"] = physical
    if children is not None:
        fields["_5"] = children
    if converted is not None:
        fields["_6"] = converted
    return Struct(**fields)


FLAT = [element(b"schema", children=1), element(b"a", physical=2)]
TEXT = [element(b"schema", children=1), element(b"a", physical=6, converted=0)]
MAYBE = [element(b"schema", children=1), element(b"a", physical=2, repetition=1)]
LISTS = [element(b"schema", children=1), element(b"a", repetition=0, children=1, converted=3),
         element(b"list", repetition=2, children=1), element(b"element", physical=2)]


def file(schema, pages, values, rows=None, physical=2, offset=4, size=None, codec=0, dictionary=None, group=None,
         footer=None, length=None, magic=b"PAR1", all_rows=None):
    rows = values if rows is None else rows
    size = len(pages) if size is None else size
    meta = {"_1": physical, "_2": [0], "_3": [b"a"], "_4": codec, "_5": (I64, values), "_6": (I64, size),
            "_7": (I64, size), "_9": (I64, offset)}
    if dictionary is not None:
        meta["_11"] = (I64, dictionary)
    chunk = Struct(_2=(I64, 0), _3=Struct(**meta))
    group = Struct(_1=[chunk], _2=(I64, size), _3=(I64, rows)) if group is None else group
    if footer is None:
        footer = Struct(_1=1, _2=schema, _3=(I64, rows if all_rows is None else all_rows), _4=[group]).encode()
    return b"PAR1" + pages + footer + struct.pack("<I", len(footer) if length is None else length) + magic


def levels(*runs):
    body = b"".join(runs)
    return struct.pack("<I", len(body)) + body


def run(count, value, width=1):
    return varint(count << 1) + value.to_bytes(width, "little")


INTS = struct.pack("<4q", 1, 2, 3, 4)
GOOD = page(INTS, 4)
TEXTS = b"".join(struct.pack("<I", len(s)) + s for s in (b"x", b"yy"))
DICTIONARY = page(TEXTS, 2, kind=2)
ZSTD_EMPTY = bytes.fromhex("28b52ffd2000010000")
BOMB = b"\x1c" * 2000

FILES = {
    "empty-file": b"",
    "only-magic": b"PAR1PAR1",
    "truncated-footer": file(FLAT, GOOD, 4)[:-20] + b"PAR1",
    "no-magic-at-end": file(FLAT, GOOD, 4, magic=b"PAR2"),
    "encrypted": file(FLAT, GOOD, 4, magic=b"PARE"),
    "footer-length-past-file": file(FLAT, GOOD, 4, length=1 << 31),
    "footer-length-into-pages": file(FLAT, GOOD, 4, length=len(file(FLAT, GOOD, 4)) - 12),
    "thrift-nesting-bomb": file(FLAT, GOOD, 4, footer=BOMB),
    "thrift-list-bomb": file(FLAT, GOOD, 4, footer=b"\xf9" + b"\xf9\xff\xff\xff\xff\x0f" * 1000),
    "schema-count-huge": file(FLAT, GOOD, 4, footer=b"\x15\x02\x19\xfc\xff\xff\xff\x7f"),
    "schema-children-lie": file([element(b"schema", children=3), element(b"a", physical=2)], GOOD, 4),
    "schema-nested-too-deep": file([element(b"g", children=1)] * 200 + [element(b"a", physical=2)], GOOD, 4),
    "schema-root-only": file([element(b"schema", children=1)], GOOD, 4),
    "schema-two-roots": file([element(b"schema", children=1), element(b"a", physical=2), element(b"b", physical=2)],
                             GOOD, 4),
    "schema-negative-children": file([element(b"schema", children=-1), element(b"a", physical=2)], GOOD, 4),
    "column-count-lies": file(FLAT, GOOD, 4, group=Struct(_1=[], _2=(I64, 1), _3=(I64, 4))),
    "chunk-past-file": file(FLAT, GOOD, 4, offset=1 << 40),
    "chunk-size-past-file": file(FLAT, GOOD, 4, size=1 << 40),
    "chunk-size-negative": file(FLAT, GOOD, 4, size=-1),
    "chunk-of-another-type": file(FLAT, GOOD, 4, physical=6),
    "rows-do-not-add-up": file(FLAT, GOOD, 4, all_rows=5),
    "values-huge": file(FLAT, GOOD, 1 << 60),
    "values-more-than-pages": file(FLAT, GOOD, 5),
    "values-fewer-than-pages": file(FLAT, GOOD, 3),
    "values-not-rows": file(FLAT, GOOD, 4, rows=3),
    "page-header-cut": file(FLAT, GOOD[:5], 4),
    "page-stored-size-past-chunk": file(FLAT, page(INTS, 4, stored=1 << 30), 4),
    "page-unpacked-size-lies": file(FLAT, page(INTS, 4, unpacked=31), 4),
    "page-unpacked-size-huge": file(FLAT, page(INTS, 4, unpacked=(1 << 31) - 1), 4, codec=6),
    "page-not-zstd": file(FLAT, page(INTS, 4), 4, codec=6),
    "page-zstd-shorter-than-said": file(FLAT, page(ZSTD_EMPTY, 4, unpacked=32), 4, codec=6),
    "page-count-negative": file(FLAT, page(INTS, -4), 4),
    "page-count-more-than-values": file(FLAT, page(INTS[:-1], 4), 4),
    "page-checksum-wrong": file(FLAT, page(INTS, 4, _4=12345), 4),
    "page-encoding-unknown": file(FLAT, page(INTS, 4, encoding=99), 4),
    "page-without-its-header": file(FLAT, Struct(_1=0, _2=4, _3=4).encode() + b"abcd", 4),
    "codec-unknown": file(FLAT, GOOD, 4, codec=42),
    "string-length-past-page": file(TEXT, page(struct.pack("<I", 1 << 31) + b"x", 1), 1, physical=6),
    "dictionary-index-out-of-range": file(TEXT, DICTIONARY + page(b"\x08" + run(4, 2), 4, encoding=8), 4, physical=6,
                                          offset=4 + len(DICTIONARY), dictionary=4),
    "dictionary-width-over-32": file(TEXT, DICTIONARY + page(b"\x40" + run(4, 0, 8), 4, encoding=8), 4, physical=6,
                                     offset=4 + len(DICTIONARY), dictionary=4),
    "dictionary-missing": file(TEXT, page(b"\x01" + run(4, 0), 4, encoding=8), 4, physical=6),
    "dictionary-twice": file(TEXT, DICTIONARY * 2 + page(b"\x01" + run(4, 0), 4, encoding=8), 4, physical=6),
    "dictionary-count-lies": file(TEXT, page(TEXTS, 5, kind=2) + page(b"\x01" + run(4, 0), 4, encoding=8), 4,
                                  physical=6),
    "dictionary-count-huge": file(TEXT, page(TEXTS, (1 << 31) - 1, kind=2), 4, physical=6),
    "levels-length-past-page": file(MAYBE, page(struct.pack("<I", 1 << 30) + INTS, 4), 4),
    "levels-over-maximum": file(MAYBE, page(levels(run(4, 2)) + INTS, 4), 4),
    "levels-end-early": file(MAYBE, page(levels(run(3, 1)) + INTS, 4), 4),
    "levels-run-of-zero": file(MAYBE, page(levels(run(0, 1) * 3) + INTS, 4), 4),
    "levels-say-more-values-than-there-are": file(MAYBE, page(levels(run(5, 1)) + INTS, 5), 5),
    "levels-begin-inside-a-row": file(LISTS, page(levels(run(4, 1)) + levels(run(4, 1)) + INTS, 4), 4, rows=1),
    "levels-go-on-after-an-empty-list": file(LISTS, page(levels(run(1, 0), run(1, 1)) + levels(run(1, 0), run(1, 1)) +
                                                         INTS[:8], 2), 2, rows=1),
    "levels-more-rows-than-the-group": file(LISTS, page(levels(run(4, 0)) + levels(run(4, 1)) + INTS, 4), 4, rows=3),
    "levels-fewer-rows-than-the-group": file(LISTS, page(levels(run(1, 0), run(3, 1)) + levels(run(4, 1)) + INTS, 4),
                                             4, rows=2),
    "levels-run-huge-for-one-value": file(LISTS, page(levels(run((1 << 62), 0)) + levels(run(1 << 62, 1)) + INTS[:8],
                                                      2), 2, rows=2),
    "delta-count-lies": file(FLAT, page(varint(128) + varint(4) + varint(9) + zigzag(1), 4, encoding=5), 4),
    "delta-block-zero": file(FLAT, page(varint(0) + varint(4) + varint(4) + zigzag(1), 4, encoding=5), 4),
    "delta-miniblocks-zero": file(FLAT, page(varint(128) + varint(0) + varint(4) + zigzag(1), 4, encoding=5), 4),
    "delta-block-huge": file(FLAT, page(varint(1 << 40) + varint(1 << 35) + varint(4) + zigzag(1), 4, encoding=5), 4),
    "delta-width-over-64": file(FLAT, page(varint(128) + varint(4) + varint(4) + zigzag(1) + zigzag(0) + b"\xff" * 4 +
                                           b"\0" * 2000, 4, encoding=5), 4),
    "delta-cut": file(FLAT, page(varint(128) + varint(4) + varint(4) + zigzag(1) + zigzag(0) + b"\x08" * 4 + b"\0", 4,
                                 encoding=5), 4),
    "delta-length-negative": file(TEXT, page(varint(128) + varint(4) + varint(1) + zigzag(-1), 1, encoding=6), 1,
                                  physical=6),
    "v2-levels-past-page": file(MAYBE, Struct(_1=3, _2=32, _3=32, _8=Struct(_1=4, _2=0, _3=4, _4=0, _5=99, _6=0))
                                .encode() + INTS, 4),
}

if __name__ == "__main__":
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in FILES.items():
        (directory / (name + ".parquet")).write_bytes(content)
    (directory.parent / "good").mkdir(exist_ok=True)
    good = {"plain": file(FLAT, GOOD, 4), "nulls": file(MAYBE, page(levels(run(3, 1), run(1, 0)) + INTS[:24], 4), 4),
            "lists": file(LISTS, page(levels(run(1, 0), run(3, 1)) + levels(run(4, 1)) + INTS, 4), 4, rows=1),
            "empty-lists": file(LISTS, page(levels(run(2, 0)) + levels(run(2, 0)), 2), 2),
            "dictionary": file(TEXT, DICTIONARY + page(b"\x01" + run(4, 1), 4, encoding=8), 4, physical=6,
                               offset=4 + len(DICTIONARY), dictionary=4)}
    for name, content in good.items():
        (directory.parent / "good" / (name + ".parquet")).write_bytes(content)
