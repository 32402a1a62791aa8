#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates the good files of this corpus: debug sections of small programs, in the input format of
tests/fuzz/fuzz_dwarf.c.

    make.py     writes good/*.bin beside itself; needs gcc, g++, clang, dwz, dwp, llvm-dwp and objcopy

As tests/fuzz/dwarf_input.h has it: a byte of flags, the nine sections of the program, those of its dwz file, .debug_types
of both, then a .dwo file or a package.
"""
import os
import struct
import subprocess
import tempfile

SECTIONS = ["info", "abbrev", "line", "line_str", "str", "str_offsets", "addr", "ranges", "rnglists"]
C = """
static inline __attribute__((always_inline)) int twice(int x) { return x + x; }
__attribute__((section(".text.cold"))) int cold(int x) { return twice(x) - 1; }
int hot(int x) { if (x > 3) { int y = twice(x); return y * cold(y); } return x; }
void _start(void) { hot(1); for (;;) ; }
"""
CXX = """
namespace n { namespace { struct s { int v; int get() const { return v; } template <class F> int call(F f) const { return f(v); } }; } }
extern "C" void _start() { n::s a { 3 }; volatile int r = a.call([&](int x) { return x + a.get(); }); for (;;) r = r + 1; }
"""
TYPES = """
namespace n { struct s { struct in { int f(int x); }; int g(int x); }; }
__attribute__((noinline)) int n::s::in::f(int x) { return x * 3; }
__attribute__((noinline)) int n::s::g(int x) { struct own { int h(int y) { return y * 5; } }; return own().h(x); }
extern "C" void _start() { volatile int r = n::s().g(n::s::in().f(3)); for (;;) r = r + 1; }
"""


def pack(path, sections=SECTIONS):
    out = b""
    for name in sections:
        with tempfile.NamedTemporaryFile() as f:
            subprocess.run(["objcopy", "-O", "binary", "--set-section-flags", f".debug_{name}=alloc",
                            f"--only-section=.debug_{name}", path, f.name], check=True, stderr=subprocess.DEVNULL)
            data = f.read()
        assert len(data) < 65536
        out += struct.pack("<H", len(data)) + data
    return out


def pack_split(here, compiler, source, version, common):
    """One seed with a .dwo file and one with a package of it."""
    name = compiler.replace("+", "x") + "-gdwarf-" + version + "-gsplit-dwarf"
    subprocess.run([compiler, *common, "-gdwarf-" + version, "-gsplit-dwarf", "-c", source, "-o", "s.o"], check=True)
    subprocess.run([compiler, *common, "s.o", "-o", name], check=True)
    if version == "4":
        subprocess.run(["dwp", "s.dwo", "-o", "s.dwp"], check=True)
    elif source == "t.cc":  # llvm-dwp 14 does not terminate on the other one, and dwp 2.40 writes empty packages
        subprocess.run(["llvm-dwp", "s.dwo", "-o", "s.dwp"], check=True)
    for suffix in ("dwo", "dwp") if version == "4" or source == "t.cc" else ("dwo",):
        content = b"\0" + pack(name) + b"\0\0" * (len(SECTIONS) + 2) + open("s." + suffix, "rb").read()
        open(os.path.join(here, "good", name + "." + suffix + ".bin"), "wb").write(content)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        open("t.c", "w").write(C)
        open("t.cc", "w").write(CXX)
        open("types.cc", "w").write(TYPES)
        common = ["-O1", "-nostdlib", "-static", "-Wl,-Ttext=0x401000", "-fdebug-prefix-map=" + work + "=/src"]
        for compiler, source in (("gcc", "t.c"), ("clang", "t.c"), ("g++", "t.cc"), ("clang++", "t.cc")):
            for options in (["-gdwarf-2"], ["-gdwarf-3"], ["-gdwarf-4"], ["-gdwarf-5"], ["-gdwarf-5", "-gdwarf64"],
                            ["-gdwarf-4", "-fdebug-types-section"], ["-gdwarf-5", "-gsplit-dwarf"]):
                name = compiler.replace("+", "x") + "".join(options)
                subprocess.run([compiler, *common, *options, source, "-o", name], check=True)
                open(os.path.join(here, "good", name + ".bin"), "wb").write(b"\0" + pack(name))
        for compiler, source in (("gcc", "t.c"), ("clang", "t.c"), ("g++", "t.cc"), ("clang++", "t.cc")):
            for version in ("4", "5"):
                pack_split(here, compiler, source, version, common)
        # Classes that are only a signature in their unit.
        for version in ("-gdwarf-4", "-gdwarf-5"):
            subprocess.run(["clang++", *common, version, "-gsce", "-fdebug-types-section", "types.cc", "-o", "types"], check=True)
            open(os.path.join(here, "good", "signatures" + version + ".bin"), "wb").write(
                b"\0" + pack("types") + b"\0\0" * len(SECTIONS) + pack("types", ["types"]))
        for name in ("a", "b"):
            subprocess.run(["g++", *common, "-gdwarf-4", "t.cc", "-o", name], check=True)
        subprocess.run(["dwz", "-m", "alt", "-M", "alt", "a", "b"], check=True)
        open(os.path.join(here, "good", "dwz.bin"), "wb").write(b"\0" + pack("a") + pack("alt"))


main()
