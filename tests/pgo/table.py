# SPDX-License-Identifier: Apache-2.0
"""Prints the table of `go tool pprof -top` or of `cairn top --json` as sorted lines "function flat cumulative".

    table.py pprof|cairn < TABLE
"""
import collections
import json
import sys


def read_pprof(lines):
    for line in lines:
        parts = line.split(None, 5)
        if len(parts) == 6 and parts[0].rstrip("ns").isdigit() and parts[4].endswith("%"):
            yield parts[5].strip().removesuffix(" (inline)").removesuffix(" (partial-inline)"), parts[0], parts[3]


def main():
    sums = collections.defaultdict(lambda: [0, 0])
    if sys.argv[1] == "pprof":
        rows = [(f, int(a.rstrip("ns")), int(b.rstrip("ns"))) for f, a, b in read_pprof(sys.stdin)]
    else:
        rows = [(r["function"], r["flat"], r["cumulative"]) for r in json.load(sys.stdin)]
    for function, flat, cumulative in rows:
        sums[function][0] += flat
        sums[function][1] += cumulative
    for function, (flat, cumulative) in sorted(sums.items()):
        print(function, flat, cumulative)


main()
