#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the corpus of tests/fuzz/fuzz_eh_frame.c: tests/corpus/make-eh-frame.py (needs cc, objcopy, strip)."""
import os
import struct
import subprocess
import tempfile

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "eh_frame")
ADDRESS = 0x1000000  # of the section, as in the fuzz target
CIE = b"\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01"


def record(body):
    body += b"\0" * (-len(body) % 4)
    return struct.pack("<I", len(body)) + body


def frames(*programs, cie=CIE, start=0x1000, size=0x40):
    out = record(b"\0\0\0\0" + cie)
    for p in programs:
        at = len(out)
        out += record(struct.pack("<IiI", at + 4, start - (ADDRESS + at + 8), size) + b"\0" + p)
        start += 0x100
    return out


def write(name, kind, data):
    with open(os.path.join(HERE, name), "wb") as f:
        f.write(bytes([kind]) + data)


PLT = bytes.fromhex("0f0b770880003f1a3a2a332422")
DRAP = bytes.fromhex("0f037678061006027600")
SAVE = b"\x41\x0e\x10\x86\x02\x43\x0d\x06\x7f\x0c\x07\x08"
write("good/plt-drap-and-frame-pointer", 0, frames(PLT, DRAP, SAVE, b"\x07\x10"))
write("good/signal-frame", 0, frames(b"\x0f\x04\x77\xa0\x01\x06\x10\x10\x03\x77\xa8\x01\x10\x06\x03\x77\xf8\x00",
                                     cie=CIE.replace(b"zR", b"zRS")))
write("good/aarch64-leaf-and-signed", 1, frames(b"\x44\x2d\x41\x0e\x10\x9d\x02\x9e\x01",
                                                cie=b"\x01zR\0\x04\x78\x1e\x01\x1b\x0c\x1f\x00"))
debug_cie = record(b"\xff\xff\xff\xff\x04\0\x08\0\x01\x78\x10\x0c\x07\x08\x90\x01")
write("good/debug-frame-version-4", 2, debug_cie + record(struct.pack("<IQQ", 0, 0x2000, 0x30) + SAVE))
write("bad/length-past-section", 0, frames(SAVE) + struct.pack("<I", 0x7fffffff) + b"\0\0\0\0")
write("bad/cie-pointer-before-section", 0, frames(SAVE) + record(struct.pack("<Iii", 0x1000, 0, 0)))
write("bad/cie-pointer-to-fde", 0, frames(SAVE) + record(struct.pack("<IiI", 0x14, -4096, 16) + b"\0"))
write("bad/remember-without-end", 0, frames(b"\x0a" * 100))
write("bad/restore-without-remember", 0, frames(b"\x0b"))
write("bad/expression-past-record", 0, frames(b"\x0f\x7f\x77\x08"))
write("bad/leb128-without-end", 0, frames(b"\x0e" + b"\xff" * 40))
write("bad/offset-overflows", 0, frames(b"\x05\x06" + b"\xff" * 8 + b"\x7f", b"\x12\x07" + b"\xff" * 8 + b"\x7f"))
write("bad/advance-wraps", 0, frames(b"\x1d" + b"\xff" * 8, b"\x04\xff\xff\xff\xff"))
write("bad/range-wraps", 2, debug_cie + record(struct.pack("<IQQ", 0, 0x2000, 2**64 - 1) + SAVE))
write("bad/unknown-augmentation", 0, frames(SAVE, cie=CIE.replace(b"zR", b"zQ")))
write("bad/wide-length", 0, b"\xff\xff\xff\xff" + b"\xff" * 8 + b"\0" * 16)
write("bad/same-start-and-overlap", 0, frames(SAVE) + frames(SAVE, SAVE, start=0x1010, size=0x1000)[len(record(b"\0\0\0\0" + CIE)):])

with tempfile.TemporaryDirectory() as d:
    with open(os.path.join(d, "a.c"), "w") as f:
        f.write("void _start(void) { for (;;); }\nint f(int n) { return n ? f(n - 1) + 1 : 0; }\n")
    elf = os.path.join(d, "a")
    subprocess.run(["cc", "-O1", "-nostdlib", "-static", "-no-pie", "-Wl,--eh-frame-hdr,-z,max-page-size=4096", "-o", elf,
                    os.path.join(d, "a.c")], check=True)
    write("good/whole-elf-file", 4, open(elf, "rb").read())
    subprocess.run(["strip", "--strip-section-headers", elf], check=False, stderr=subprocess.DEVNULL)
    data = bytearray(open(elf, "rb").read())
    data[40:48] = b"\0" * 8  # e_shoff
    data[58:64] = b"\0" * 6  # e_shentsize, e_shnum, e_shstrndx
    write("good/without-section-headers", 4, bytes(data))
