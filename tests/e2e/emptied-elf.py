# SPDX-License-Identifier: Apache-2.0
"""Writes the debuginfo of a program as parca-debuginfo and parca-agent extract it:

    emptied-elf.py PROGRAM DEBUGINFO

Sections other than DWARF, symbol tables, the PLT, pclntab and notes are NOBITS with size 0 and keep their address; of
the program headers only PT_NOTE remains. Little-endian ELF64.
"""
import re
import struct
import sys

SHT_NULL, SHT_SYMTAB, SHT_STRTAB, SHT_NOTE, SHT_NOBITS, SHT_DYNSYM, PT_NOTE = 0, 2, 3, 7, 8, 11, 4
KEPT = re.compile(rb"\.z?debug_|\.plt|\.gopclntab|\.comment")

data = bytearray(open(sys.argv[1], "rb").read())
phoff, shoff = struct.unpack_from("<QQ", data, 32)
phnum, _, shnum, shstrndx = struct.unpack_from("<HHHH", data, 56)
names = struct.unpack_from("<Q", data, shoff + shstrndx * 64 + 24)[0]

notes = []
for i in range(phnum):
    header = bytes(data[phoff + i * 56:phoff + (i + 1) * 56])
    if struct.unpack_from("<I", header)[0] == PT_NOTE:
        notes.append(header)
data[phoff:phoff + phnum * 56] = b"".join(notes).ljust(phnum * 56, b"\0")
struct.pack_into("<H", data, 56, len(notes))

for i in range(shnum):
    at = shoff + i * 64
    name, kind = struct.unpack_from("<II", data, at)
    offset, size = struct.unpack_from("<QQ", data, at + 24)
    text = bytes(data[names + name:data.index(0, names + name)])
    if kind in (SHT_NULL, SHT_SYMTAB, SHT_STRTAB, SHT_NOTE, SHT_DYNSYM) or KEPT.match(text):
        continue
    if kind != SHT_NOBITS:
        data[offset:offset + size] = bytes(size)
    struct.pack_into("<I", data, at + 4, SHT_NOBITS)
    struct.pack_into("<Q", data, at + 32, 0)

open(sys.argv[2], "wb").write(data)
