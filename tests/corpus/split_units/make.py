#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates the files beside this one with gcc, clang, dwp and llvm-dwp: pairs of a linked file and its split units
(fuzz_split_units.c).
"""
import os
import struct
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LINK = ["-nostdlib", "-static", "-Wl,--build-id=none,-z,noseparate-code,-e,f"]


def put(kind, name, linked, other):
    with open(os.path.join(HERE, kind, name), "wb") as f:
        f.write(struct.pack("<H", len(linked)) + linked + other)


def make(folder, compiler, version, tool):
    def run(*args):
        subprocess.run(args, cwd=folder, check=True, stderr=subprocess.DEVNULL)

    for name, text in (("a", "int g(int); int f(int x) { return g(x) + 1; }"), ("b", "int g(int x) { return x * 3; }")):
        with open(os.path.join(folder, name + ".c"), "w") as f:
            f.write(text)
    run(compiler, "-O1", "-gsplit-dwarf", "-gdwarf-%d" % version, "-fdebug-prefix-map=%s=/src" % folder, "-c", "a.c", "b.c")
    run("gcc", *LINK, "-o", "linked", "a.o", "b.o")
    run("strip", "--keep-section=.debug*", "-R", ".comment", "-R", ".text", "-R", ".eh_frame", "linked")
    if tool:
        run(tool, "-o", "linked.dwp", "a.dwo", "b.dwo")

    def read(name):
        with open(os.path.join(folder, name), "rb") as f:
            return f.read()

    return read("linked"), read("a.dwo"), read("linked.dwp") if tool else None


for compiler, version, tool in (("gcc", 4, "dwp"), ("gcc", 5, None), ("clang", 5, "llvm-dwp")):
    with tempfile.TemporaryDirectory() as folder:
        linked, dwo, package = make(folder, compiler, version, tool)
    what = "%s-%d" % (compiler, version)
    put("good", what + "-dwo", linked, dwo)
    put("bad", what + "-linked-cut-off", linked[:len(linked) // 2], dwo)
    if not package:
        continue
    put("good", what + "-package", linked, package)
    put("bad", what + "-package-cut-off", linked, package[:len(package) // 2])
    put("bad", what + "-package-as-linked", package, linked)
    # The header of an index: version, columns, units, slots.
    head = struct.pack("<I", version)
    at = package.find(head)
    while 0 <= at < len(package) - 16:
        columns, units, slots = struct.unpack_from("<III", package, at + 4)
        if 1 <= columns <= 8 and units == 2 and slots in (2, 4, 8):
            put("bad", what + "-index-of-2-to-the-31-slots", linked, package[:at + 12] + struct.pack("<I", 1 << 31) + package[at + 16:])
            break
        at = package.find(head, at + 1)
put("bad", "nothing", b"", b"")
