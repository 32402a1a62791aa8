#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates this corpus, in the input format of tests/fuzz/fuzz_minidebuginfo.c; requires gcc and binutils.

    make.py     writes good/*.bin and bad/*.bin beside itself

A byte of flags, then .gnu_debugdata (1) or the file to be compressed into it (0).
"""
import lzma
import os
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = "static int cold(int x) { return x - 1; } int hot(int x) { return cold(x) * 3; } void _start(void) { hot(1); for (;;) ; }"


def write(kind, name, packed, content):
    os.makedirs(os.path.join(HERE, kind), exist_ok=True)
    with open(os.path.join(HERE, kind, name + ".bin"), "wb") as f:
        f.write((b"\1" if packed else b"\0") + content)


def inner_file():
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        open("t.c", "w").write(SOURCE)
        subprocess.run(["gcc", "-O0", "-nostdlib", "-static", "-Wl,-Ttext=0x401000", "-Wl,--build-id=none", "t.c", "-o", "t"],
                       check=True)
        subprocess.run(["objcopy", "--only-keep-debug", "-R", ".comment", "-R", ".eh_frame", "t", "mini"], check=True)
        return open("mini", "rb").read()


def main():
    inner = inner_file()
    packed = lzma.compress(inner, check=lzma.CHECK_CRC32)
    write("good", "symbols", False, inner)
    write("good", "packed", True, packed)
    write("good", "packed-without-check", True, lzma.compress(inner, check=lzma.CHECK_NONE))
    write("bad", "packed-cut-off", True, packed[:-20])
    write("bad", "packed-empty", True, lzma.compress(b""))
    write("bad", "packed-no-elf", True, lzma.compress(b"no file at all"))
    write("bad", "packed-lzma-alone", True, lzma.compress(inner, format=lzma.FORMAT_ALONE))
    write("bad", "packed-dictionary-of-1-gib", True, lzma.compress(inner, filters=[
        {"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 30}]))
    write("bad", "symbols-cut-off", False, inner[:len(inner) // 2])


main()
