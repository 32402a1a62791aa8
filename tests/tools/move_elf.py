#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""move_elf.py FROM TO DELTA: moves a 64-bit little-endian ELF file to other addresses, like prelink.

Changes the entry, segments, sections, symbols and the offsets of relocations. The code is assumed to be
position-independent, and is not run.
"""
import struct
import sys

SHT_SYMTAB, SHT_RELA, SHT_DYNSYM, SHF_ALLOC, PT_GNU_STACK = 2, 4, 11, 2, 0x6474E551


def main(source, target, delta):
    data = bytearray(open(source, "rb").read())

    def move(at):
        struct.pack_into("<Q", data, at, (struct.unpack_from("<Q", data, at)[0] + delta) % 2**64)

    move(24)
    phoff, shoff = struct.unpack_from("<QQ", data, 32)
    phentsize, phnum, shentsize, shnum = struct.unpack_from("<HHHH", data, 54)
    for at in range(phoff, phoff + phnum * phentsize, phentsize):
        if struct.unpack_from("<I", data, at)[0] != PT_GNU_STACK:
            move(at + 16)
            move(at + 24)
    for at in range(shoff, shoff + shnum * shentsize, shentsize):
        kind, flags = struct.unpack_from("<IQ", data, at + 4)
        offset, size = struct.unpack_from("<QQ", data, at + 24)
        if flags & SHF_ALLOC:
            move(at + 16)
        if kind in (SHT_SYMTAB, SHT_DYNSYM):
            for symbol in range(offset, offset + size, 24):
                if 0 < struct.unpack_from("<H", data, symbol + 6)[0] < 0xFF00:
                    move(symbol + 8)
        elif kind == SHT_RELA and flags & SHF_ALLOC:
            for relocation in range(offset, offset + size, 24):
                move(relocation)
    open(target, "wb").write(data)


main(sys.argv[1], sys.argv[2], int(sys.argv[3], 0))
