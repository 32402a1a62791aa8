#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare Cairn's names of PLT stubs with objdump's.

    compare_plt.py --cairn PROGRAM [--objdump PROGRAM] FILE...

Resolves the first and the last byte of every stub that objdump names. A stub of an indirect function, for which objdump
has the address of the resolver only, has the name of a symbol at this address if there is one. Exits with 1 if a name
differs, or if no file has a stub.
"""
import argparse
import json
import re
import subprocess
import sys


def stubs(objdump, path):
    """(first address, last instruction's address, name), from the disassembly of the PLT sections."""
    out = subprocess.run([objdump, "-d", "-C", "-w", path], capture_output=True, text=True, check=True).stdout
    found, name, first, last = [], None, 0, 0
    for line in out.splitlines() + ["0 <>:"]:
        label = re.match(r"([0-9a-f]+) <(.*)>:$", line)
        code = re.match(r" *([0-9a-f]+):\t", line)
        if label or line.startswith("Disassembly"):
            if name and name.endswith("@plt"):
                found.append((first, last, name))
            name = label.group(2) if label else None
            first = int(label.group(1), 16) if label else 0
        elif code:
            last = int(code.group(1), 16)
    return found


def resolvers(path):
    """Names of the indirect functions by the address of their resolver."""
    out = subprocess.run(["readelf", "-sW", path], capture_output=True, text=True, check=True).stdout
    found = {}
    for field in (line.split() for line in out.splitlines()):
        if len(field) > 7 and (field[3] == "IFUNC" or line_has_ifunc(field)):
            found.setdefault(int(field[1], 16), set()).add(field[-1].partition("@")[0] + "@plt")
    return found


def line_has_ifunc(field):
    """readelf knows the type in files marked as GNU's only: "<OS specific>: 10"."""
    return field[3:6] == ["<OS", "specific>:", "10"]


def is_right(name, found, of):
    indirect = re.match(r"\*ABS\*\+0x([0-9a-f]+)@plt$", found)
    names = of.get(int(indirect.group(1), 16)) if indirect else None
    return name in names if names else name == found


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cairn", required=True)
    p.add_argument("--objdump", default="objdump")
    p.add_argument("files", nargs="+")
    o = p.parse_args()
    total = wrong = 0
    for path in o.files:
        found = stubs(o.objdump, path)
        asked = "".join("0x%x\n0x%x\n" % (a, b) for a, b, _ in found)
        out = subprocess.run([o.cairn, "symbolize", "-e", path, "--format=json"], input=asked or "0\n",
                             capture_output=True, text=True, check=True).stdout
        names = [r["frames"][-1]["function"] if r["frames"] else "" for r in json.loads(out)["results"]]
        of = resolvers(path)
        bad = [(hex(a), n, names[2 * i], names[2 * i + 1]) for i, (a, _, n) in enumerate(found)
               if not (names[2 * i] == names[2 * i + 1] and is_right(names[2 * i], n, of))]
        print("%s: %d stubs, %d differ %s" % (path, len(found), len(bad), bad[:3] or ""))
        total += len(found)
        wrong += len(bad)
    return total == 0 or wrong > 0


if __name__ == "__main__":
    sys.exit(main())
