#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts user stacks of a dump (tests/support/otlp_dump.py) by how they end.

    stacks.py count DUMP NAME...                   the number of samples of these executables with a user stack
    stacks.py report TITLE DUMP PERCENT NAME...    share of complete ones, reasons of the others and where those end;
                                                   fails below PERCENT
"""
import collections
import os
import sys

PERIOD_NS = 1_000_000_000 // 997


def samples(path, names):
    """(ticks, end, user frames) of each stack."""
    with open(path) as f:
        for line in f:
            value, labels, frames = line.rstrip("\n").split("\t")
            labels = dict(label.partition("=")[::2] for label in labels.split(";"))
            if labels.get("process.executable.name") not in names or "cairn.stack.end" not in labels:
                continue
            frames = [x.split(":", 3) for x in frames.split(";")]
            user = [x for x in frames if x[1] != "vmlinux" and not x[1].endswith(".ko")]
            yield round(int(value) / PERIOD_NS), labels["cairn.stack.end"], user


def place(frame):
    name = os.path.basename(frame[1])
    return f"{name}+0x{frame[2]}" if frame[2] else frame[3] or "?"


def report(title, path, percent, *names):
    ends = collections.Counter()
    last = collections.Counter()
    for ticks, end, frames in samples(path, names):
        ends[end] += ticks
        if end != "complete":
            last[end, place(frames[-1]) if frames else "no frame", len(frames)] += ticks
    total = sum(ends.values())
    share = 100 * ends["complete"] / total if total else 0
    others = " ".join(f"{end} {n}" for end, n in ends.most_common() if end != "complete")
    print(f"{'ok' if share >= float(percent) else 'NOT OK'} {title}: {share:.2f}% of {total} user stacks are complete; {others}")
    for (end, where, depth), n in last.most_common(6):
        print(f"    {n:6} {end} at {where}, depth {depth}")
    return 0 if share >= float(percent) else 1


if __name__ == "__main__":
    if sys.argv[1] == "count":
        print(sum(ticks for ticks, _, _ in samples(sys.argv[2], sys.argv[3:])))
    else:
        sys.exit(report(*sys.argv[2:]))
