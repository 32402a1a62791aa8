#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""go-stacks.py PROGRAM DUMP: judges the labels of samples of tests/e2e/agent/go-labels.go, as otlp_dump.py prints them.

A sample belongs to the function main.spin_X or spin_X of its stack; samples without one are those of the runtime.
The scheduler, called by runtime.mcall on a stack of its own, works for the next goroutine: frames behind are of the
last one. Prints CPU time in ms by label: NAME RIGHT NONE WRONG, where NONE are samples without labels and WRONG
have the label of another function.
"""
import bisect
import subprocess
import sys

program, dump = sys.argv[1:]
symbols = []
for line in subprocess.run(["nm", "-n", program], capture_output=True, text=True, check=True).stdout.splitlines():
    fields = line.split(maxsplit=2)
    if len(fields) == 3 and fields[1] in "tT":
        symbols.append((int(fields[0], 16), fields[2]))
starts = [address for address, _ in symbols]


def name(frame):
    address = frame.split(":")[2]
    at = bisect.bisect_right(starts, int(address, 16)) - 1 if address else -1
    return symbols[at][1] if at >= 0 else ""


def functions(frames):
    """The X of each spin_X, leaf first."""
    for symbol in map(name, frames):
        if symbol.startswith("runtime.mcall"):
            return
        if "spin_" in symbol:
            yield symbol.split("spin_")[1].removesuffix(".abi0")


times = {}
for line in open(dump):
    value, labels, frames = line.rstrip("\n").split("\t")
    labels = dict(label.split("=", 1) for label in labels.split(";") if "=" in label)
    label = labels.get("work")
    names = list(functions(frames.split(";")))
    if not names:
        key = ("runtime", 0 if label else 1)
    elif names[-1] == "none":
        key = ("none", 1 if label is None else 2)
    else:
        key = (names[-1], 1 if label is None else 0 if label == names[-1] else 2)
    counts = times.setdefault(key[0], [0, 0, 0])
    counts[key[1]] += int(value) // 1000000
for key, counts in sorted(times.items()):
    print(key, *counts)
