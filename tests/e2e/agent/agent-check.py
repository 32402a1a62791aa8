#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Evaluates samples printed by tests/support/otlp_dump.py.

    agent-check.py DUMP leaf-share BUILD-ID START END      percent of CPU time whose user leaf is in [START, END)
    agent-check.py DUMP reach BUILD-ID S1 E1 S2 E2 ...     percent of CPU time whose user stack has callers in these
                                                           ranges, innermost first, right after each other
    agent-check.py DUMP kernel                             "frames named" of kernel frames
    agent-check.py DUMP syscall-leaves BUILD-ID            addresses of user leaves under a kernel stack
    agent-check.py DUMP seconds NAME                       CPU seconds of executable NAME
    agent-check.py DUMP known NAME BUILD-ID                percent of NAME's time with a frame in BUILD-ID
"""
import sys


def samples(path):
    with open(path) as f:
        for line in f:
            value, labels, frames = line.rstrip("\n").split("\t")
            labels = dict(l.split("=", 1) for l in labels.split(";") if l)
            yield int(value), labels, [f.split(":", 3) for f in frames.split(";")]


def is_kernel(frame):
    return frame[1] == "vmlinux"


def share(path, wanted):
    total = good = 0
    for value, labels, frames in samples(path):
        total += value
        if wanted(labels, frames):
            good += value
    return round(100 * good / total) if total else 0


def inside(frame, build_id, low, high):
    return frame[0] == build_id and frame[2] and low <= int(frame[2], 16) < high


def main(path, what, *args):
    if what in ("leaf-share", "reach"):
        build_id, numbers = args[0], [int(a, 16) for a in args[1:]]
        ranges = list(zip(numbers[::2], numbers[1::2]))

        def wanted(_, frames):
            user = [f for f in frames if not is_kernel(f)]
            return len(user) >= len(ranges) and all(inside(f, build_id, *r) for f, r in zip(user, ranges))
        print(share(path, wanted))
    elif what == "kernel":
        frames = [f for _, _, fs in samples(path) for f in fs if is_kernel(f)]
        print(len(frames), sum(1 for f in frames if f[3]))
    elif what == "syscall-leaves":
        for _, _, frames in samples(path):
            for kernel, user in zip(frames, frames[1:]):
                if is_kernel(kernel) and not is_kernel(user) and user[0] == args[0]:
                    print(user[2])
    elif what == "seconds":
        print(round(sum(v for v, l, _ in samples(path) if l.get("process.executable.name") == args[0]) / 1e9, 2))
    elif what == "known":
        mine = [(v, fs) for v, l, fs in samples(path) if l.get("process.executable.name") == args[0]]
        total = sum(v for v, _ in mine)
        good = sum(v for v, fs in mine if any(f[0] == args[1] for f in fs))
        print(round(100 * good / total) if total else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
