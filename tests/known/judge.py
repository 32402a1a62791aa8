#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the percentage of CPU time with a complete user stack that the program can have.

    judge.py DUMP NAME PATTERN FILE...

DUMP is the output of tests/support/otlp_dump.py, NAME the executable whose samples are counted. A stack is written as
the names of its functions, leaf first, each followed by ';'; a frame in none of the FILEs is '~'. PATTERN must match
the whole stack. Other stacks are printed to standard error.
"""
import bisect
import collections
import re
import subprocess
import sys


def build_id(path):
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True).stdout
    found = re.search(r"Build ID: ([0-9a-f]+)", notes)
    return found.group(1) if found else ""


def functions(path):
    """Start, end and name of each function, sorted by start."""
    out = []
    for line in subprocess.run(["nm", "-nS", "--defined-only", path], capture_output=True, text=True).stdout.splitlines():
        field = line.split()
        if len(field) == 4 and field[2] in "tTwWiu":
            start = int(field[0], 16)
            out.append((start, start + int(field[1], 16), field[3]))
        elif len(field) == 3 and field[2] == "_start":
            out.append((int(field[0], 16), int(field[0], 16) + 64, "_start"))
    return sorted(out)


def main(dump, name, pattern, *files):
    known = {build_id(f): functions(f) for f in files}
    wanted = re.compile(pattern)
    total = good = 0
    bad = collections.Counter()

    def name_of(frame):
        table = known.get(frame[0])
        if not table or not frame[2]:
            return "~;"
        address = int(frame[2], 16)
        at = bisect.bisect_right(table, (address, 1 << 64, "")) - 1
        return table[at][2] + ";" if at >= 0 and address < table[at][1] else "?;"

    with open(dump) as f:
        for line in f:
            value, labels, frames = line.rstrip("\n").split("\t")
            if f"process.executable.name={name}" not in labels.split(";"):
                continue
            frames = [x.split(":", 3) for x in frames.split(";")]
            stack = "".join(name_of(x) for x in frames if x[1] != "vmlinux")
            if not stack:
                continue
            total += int(value)
            if wanted.fullmatch(stack):
                good += int(value)
            else:
                bad[stack] += int(value)
    for stack, _ in bad.most_common(5):
        print("#", stack[:300], file=sys.stderr)
    print(f"{100 * good / total:.2f}" if total else "0")


if __name__ == "__main__":
    main(*sys.argv[1:])
