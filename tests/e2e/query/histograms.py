#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks all histograms of a text of metrics.

usage: histograms.py FILE NAME...     NAME: a family, or NAME{LABEL="VALUE"}, that has observations
"""
import re
import sys

path, *used = sys.argv[1:]
failed = False


def check(name, mistakes):
    global failed
    failed |= bool(mistakes)
    print(f"{'not ok' if mistakes else 'ok'} - {name}")
    for mistake in sorted(mistakes)[:20]:
        print(mistake)


types, series = {}, {}
with open(path, encoding="utf-8") as f:
    for line in f.read().splitlines():
        if line.startswith("# TYPE "):
            types[line.split()[2]] = line.split()[3]
        m = re.fullmatch(r'(\w+)_(bucket|sum|count)(?:\{(.*)\})? (\S+)', line)
        if not m or types.get(m[1]) != "histogram":
            continue
        labels = [x for x in re.findall(r'\w+="[^"]*"', m[3] or "")]
        own = ",".join(x for x in labels if not x.startswith("le="))
        one = series.setdefault((m[1], own), {"buckets": []})
        if m[2] == "bucket":
            one["buckets"].append((float([x for x in labels if x.startswith("le=")][0][4:-1]), int(m[4])))
        else:
            one[m[2]] = float(m[4])
mistakes = set()
for name, one in series.items():
    bounds, counts = zip(*one["buckets"])
    if list(bounds) != sorted(set(bounds)) or bounds[-1] != float("inf"):
        mistakes.add(f"{name}: bounds {bounds}")
    if list(counts) != sorted(counts) or counts[-1] != one["count"]:
        mistakes.add(f"{name}: counts {counts} of {one['count']}")
    # Each observation is greater than the bound of the previous bucket, and not greater than its own.
    steps = [b - a for a, b in zip((0,) + counts, counts)]
    least = sum(n * low for n, low in zip(steps, (0,) + bounds))
    most = sum(n * high for n, high in zip(steps, bounds) if n)
    if not least <= one["sum"] <= most:
        mistakes.add(f"{name}: the sum {one['sum']} is not between {least} and {most}")
check("buckets grow, end with infinity and agree with count and sum", mistakes or ({"none"} if not series else set()))
check("each histogram is named for its unit", {n for n, t in types.items() if (t == "histogram") != n.endswith("_duration_seconds")})
for text in used:
    name, _, own = text.rstrip("}").partition("{")
    check(f"{text} has observations", set() if series.get((name, own), {}).get("count", 0) > 0 else {str(sorted(series))})
sys.exit(failed)
