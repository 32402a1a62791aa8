#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""code_addresses.py FILE [MAX]: prints addresses to look up, one per line: the starts of functions and line rows, as
read by binutils, and bytes at regular intervals in all code. At most MAX (100000) of them, spread evenly.
"""
import re
import subprocess
import sys


def lines(*command):
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace") as p:
        yield from p.stdout


def main():
    path, most = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100000
    code = []
    for line in lines("readelf", "-SW", path):
        f = re.sub(r"^ *\[ *\d+\] *", "", line).split()
        if len(f) > 6 and "AX" in f[6]:
            code.append((int(f[2], 16), int(f[4], 16)))
    found = set()
    for line in lines("readelf", "-sW", path):
        f = line.split()
        if len(f) > 7 and f[3] in ("FUNC", "NOTYPE", "IFUNC") and f[6] not in ("UND", "ABS"):
            found.add(int(f[1], 16))
    for line in lines("readelf", "--debug-dump=decodedline", path):
        m = re.search(r"\s(0x[0-9a-f]+)\s", line)
        if m:
            found.update((int(m.group(1), 16), int(m.group(1), 16) - 1))
    found = sorted(a for a in found if any(start <= a < start + size for start, size in code))
    if len(found) > most // 2:
        found = found[::-(-len(found) // (most // 2))]
    step = max(1, sum(size for _, size in code) // (most // 2))
    found = sorted(set(found).union(*(range(start, start + size, step) for start, size in code)))
    print("\n".join(f"0x{a:x}" for a in found))


main()
