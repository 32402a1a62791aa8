#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints where the user stacks of each executable end, and the longest incomplete stacks as examples.

    ends.py DUMP [EXAMPLES]

DUMP is the output of tests/support/otlp_dump.py for a profile recorded with --stack-end-label.
"""
import collections
import sys


def main(dump, examples="3"):
    ends = collections.defaultdict(collections.Counter)
    stacks = collections.Counter()
    with open(dump) as f:
        for line in f:
            value, labels, frames = line.rstrip("\n").split("\t")
            label = dict(x.split("=", 1) for x in labels.split(";") if "=" in x)
            end = label.get("cairn.stack.end")
            if not end:
                continue  # a kernel thread, or a process that is exiting
            name = label.get("process.executable.name", "?")
            ends[name][end] += int(value)
            if end != "complete":
                frames = [x.split(":", 3) for x in frames.split(";")]
                stacks[name, end, " ".join(f[3] or f"{f[1]}+{f[2]}" for f in frames)] += int(value)
    for name, of in sorted(ends.items(), key=lambda x: -sum(x[1].values())):
        total = sum(of.values())
        text = "".join(f" {end} {n / 1e9:.2f}" for end, n in of.most_common() if end != "complete")
        print(f"    {name} {100 * of['complete'] / total:.2f}% of {total / 1e9:.2f} s{text}")
    for (name, end, stack), n in stacks.most_common(int(examples)):
        print(f"    # {n / 1e9:.2f} s {name} {end}: {stack[:400]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
