#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates this corpus: the line tables of tests/corpus/dwarf, and crafted ones, in the input format of
tests/fuzz/fuzz_line.c.

    make.py     writes good/*.bin and bad/*.bin beside itself

A byte of flags (1: big-endian), the length of .debug_line_str in 16 bits, that section, then .debug_line.
"""
import glob
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
SECTION_COUNT, LINE, LINE_STR = 9, 2, 3


def write(kind, name, line, strings=b""):
    os.makedirs(os.path.join(HERE, kind), exist_ok=True)
    with open(os.path.join(HERE, kind, name + ".bin"), "wb") as f:
        f.write(b"\0" + struct.pack("<H", len(strings)) + strings + line)


def sections(path):
    data, at = open(path, "rb").read(), 1
    for _ in range(SECTION_COUNT):
        length, = struct.unpack_from("<H", data, at)
        yield data[at + 2:at + 2 + length]
        at += 2 + length


def table(program, line_range=4, opcode_base=10, operations=1, lengths=b"\0\1\1\1\1\0\0\0\1", header_length=None, length=None):
    """A table of version 4 with one file."""
    rest = struct.pack("<BBBbBB", 1, operations, 1, -1, line_range, opcode_base) + lengths + b"\0a.c\0\0\0\0\0"
    body = struct.pack("<HI", 4, len(rest) if header_length is None else header_length) + rest
    body += b"\0\x09\2" + struct.pack("<Q", 0x401000) + program + b"\2\x10\0\1\1"
    return struct.pack("<I", len(body) if length is None else length) + body


def embedding_table(program, texts):
    """A table of version 5 whose files have texts at these offsets of .debug_line_str."""
    rest = struct.pack("<BBBbBB", 1, 1, 1, -1, 4, 10) + b"\0\1\1\1\1\0\0\0\1" + b"\1\1\x08\1/d\0" + b"\2\1\x08\x81\x40\x1f"
    rest += bytes([len(texts)]) + b"".join(b"a.c\0" + struct.pack("<I", at) for at in texts)
    body = struct.pack("<HBBI", 5, 8, 0, len(rest)) + rest
    body += b"\0\x09\2" + struct.pack("<Q", 0x401000) + program + b"\2\x10\0\1\1"
    return struct.pack("<I", len(body)) + body


def main():
    for path in sorted(glob.glob(os.path.join(HERE, "../dwarf/good/*-gdwarf-?.bin")) +
                       glob.glob(os.path.join(HERE, "../dwarf/good/*-gdwarf64.bin"))):
        of = list(sections(path))
        write("good", os.path.basename(path)[:-4], of[LINE], of[LINE_STR])
    rows = b"\x0b\x1c\x2d"
    write("good", "two-tables", table(rows) + table(rows))
    write("good", "overlapping-sequences", table(rows + b"\2\x10\0\1\1\0\x09\2" + struct.pack("<Q", 0x401004) + rows))
    write("good", "several-operations", table(rows, operations=4))
    write("good", "embedded-sources", embedding_table(rows, [0, 4, 0]), b"int\0void\0")
    write("bad", "embedded-sources-beyond-the-strings", embedding_table(rows, [0, 6, 0xffffffff]), b"int\0void")
    write("bad", "line-range-0", table(rows, line_range=0))
    write("bad", "operations-0", table(rows, operations=0))
    write("bad", "opcode-base-0", table(rows, opcode_base=0, lengths=b""))
    write("bad", "opcode-base-1", table(rows, opcode_base=1, lengths=b""))
    write("bad", "opcode-base-255-cut-off", table(rows, opcode_base=255))
    write("bad", "header-ends-behind-the-table", table(rows, header_length=0xffff))
    write("bad", "header-of-0-bytes", table(rows, header_length=0))
    write("bad", "length-wraps", table(rows, length=0xffffffef))
    write("bad", "length-0", table(rows, length=0))
    write("bad", "length-64-wraps", b"\xff" * 12 + table(rows)[4:])
    write("bad", "known-opcodes-with-operands", table(b"\6\5" + rows + b"\7\4" + rows, lengths=b"\0\1\1\1\1\1\1\0\1"))
    write("bad", "rows-backwards", table(rows + b"\2" + b"\xff" * 9 + b"\1" + rows))
    write("bad", "lines-below-0", table(b"\3\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f" + rows))
    write("bad", "sequence-without-end", table(rows)[:-3])
    write("bad", "extended-opcode-past-the-end", table(rows + b"\0\x7f\2"))


main()
