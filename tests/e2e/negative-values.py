#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random stacks with negative values, and the invariants of their flame graphs in every interface.

usage: negative-values.py make FILE SEED
       negative-values.py check URL BEFORE AFTER

Prints "ok - NAME" and "not ok - NAME". A flame graph has the values of the stacks whose sum is positive.
"""
import base64
import collections
import json
import random
import sys
import time
import urllib.parse
import urllib.request

TYPE = "samples:samples:count::"


def make(path, seed):
    generator = random.Random(seed)
    with open(path, "w") as f:
        for _ in range(3000):
            stack = [f"f{depth}_{generator.randrange(3)}" for depth in range(generator.randrange(1, 9))]
            print(";".join(stack), generator.randrange(-1000, 1000) or 1, file=f)


def load(path):
    sums = collections.Counter()
    for line in open(path):
        stack, value = line.rsplit(" ", 1)
        sums[tuple(stack.split(";"))] += int(value)
    return sums


def check(name, good, detail=""):
    print(f"{'ok' if good else 'not ok'} - {name}")
    if not good:
        print("# " + str(detail)[:500])


def fetch(path, **params):
    with urllib.request.urlopen(f"{URL}{path}?{urllib.parse.urlencode(params)}", timeout=60) as r:
        return r.read().decode(), r.headers.get("X-Cairn-Note", "")


def query(operation, **params):
    return fetch("/api/v1/query/" + operation, **{"from": "now-1h", "type": TYPE, **params})


def call(method, **request):
    body = json.dumps(request).encode()
    r = urllib.request.Request(f"{URL}/querier.v1.QuerierService/{method}", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(r, timeout=60) as answer:
        return json.load(answer), answer.headers.get("X-Cairn-Note", "")


def check_nodes(name, flame, wanted):
    """A flame graph of this API: its nodes, and the sum of each side."""
    nodes, children = flame["nodes"], collections.defaultdict(lambda: [0, 0])
    sides = [(2, 3)] + [(5, 6)] * (len(wanted) > 1)
    wrong = [n for n in nodes if any(n[i] < 0 for side in sides for i in side)]
    for n in nodes[1:]:
        for k, (_, total) in enumerate(sides):
            children[n[0]][k] += n[total]
    wrong += [n for i, n in enumerate(nodes) for k, (own, total) in enumerate(sides) if n[total] != n[own] + children[i][k]]
    check(f"{name}: no bar is negative or wider than its parent, and sums add up", not wrong, wrong[:5])
    check(f"{name}: the total is that of the stacks drawn", [nodes[0][total] for _, total in sides] == wanted,
          ([nodes[0][total] for _, total in sides], wanted))


def check_levels(name, levels, sides, wanted):
    """Pyroscope's levels: for each side the distance from the node before, total and self; then the name."""
    width, wrong, above = 3 * sides + 1, [], None
    for level in levels:
        spans, ends = [], [0] * sides
        for at in range(0, len(level), width):
            node = []
            for k in range(sides):
                gap, total, own = (int(v) for v in level[at + 3 * k:at + 3 * k + 3])
                begin = ends[k] + gap
                ends[k] = begin + total
                node.append((begin, begin + total))
                if gap < 0 or total < 0 or own < 0 or own > total:
                    wrong.append((gap, total, own))
            spans.append(node)
        for node in spans if above is not None else []:
            for k in range(sides):
                if not any(p[k][0] <= node[k][0] and node[k][1] <= p[k][1] for p in above):
                    wrong.append(node)
        above = spans
    check(f"{name}: no bar is negative or outside of its parent", not wrong, wrong[:5])
    first = [int(levels[0][3 * k + 1]) for k in range(sides)]
    check(f"{name}: the total is that of the stacks drawn", first == wanted, (first, wanted))


def check_note(name, note, dropped):
    check(f"{name}: a note gives the sum that is not drawn", f"negative values are not drawn: {dropped:,} together" in note, note)


def run(before_path, after_path):
    before, after = load(before_path), load(after_path)
    drawn = [sum(v for v in side.values() if v > 0) for side in (before, after)]
    dropped = [sum(v for v in side.values() if v < 0) for side in (before, after)]
    one = '{service_name="negative",version="a"}'
    other = '{service_name="negative",version="b"}'
    both = dropped[0] + dropped[1]
    for most in (20000, 50):
        what = f"up to {most} nodes"
        text, note = query("flame", selector=one, max_nodes=most)
        check_nodes(f"flame, {what}", json.loads(text), drawn[:1])
        check_note(f"flame, {what}", note, dropped[0])
        check(f"flame, {what}: the answer has the sum, too", json.loads(text)["negative"] == dropped[0], text[:300])
        text, note = query("diff", selector=other, base_selector=one, view="flame", max_nodes=most)
        check_nodes(f"diff, {what}", json.loads(text), drawn)
        check_note(f"diff, {what}", note, both)
        answer, note = call("SelectMergeStacktraces", profile_typeID=TYPE, label_selector=one, start=START, end=END, max_nodes=most)
        check_levels(f"SelectMergeStacktraces, {what}", [level["values"] for level in answer["flamegraph"]["levels"]], 1, drawn[:1])
        check_note(f"SelectMergeStacktraces, {what}", note, dropped[0])
        side = {"profile_typeID": TYPE, "start": START, "end": END, "max_nodes": most}
        answer, note = call("Diff", left={**side, "label_selector": one}, right={**side, "label_selector": other})
        check_levels(f"Diff, {what}", [level["values"] for level in answer["flamegraph"]["levels"]], 2, drawn)
        check_note(f"Diff, {what}", note, both)
        text, note = fetch("/pyroscope/render", query=TYPE + one, maxNodes=most, **{"from": "now-1h"})
        check_levels(f"render, {what}", json.loads(text)["flamebearer"]["levels"], 1, drawn[:1])
        check_note(f"render, {what}", note, dropped[0])
        text, note = fetch("/pyroscope/render-diff", leftQuery=TYPE + one, rightQuery=TYPE + other, leftFrom="now-1h",
                           rightFrom="now-1h", leftUntil="now", rightUntil="now", maxNodes=most)
        check_levels(f"render-diff, {what}", json.loads(text)["flamebearer"]["levels"], 2, drawn)
        check_note(f"render-diff, {what}", note, both)
    answer, _ = call("SelectMergeStacktraces", profile_typeID=TYPE, label_selector=one, start=START, end=END, format=2)
    data, at, own = base64.b64decode(answer["tree"]), 0, []

    def number():
        nonlocal at
        v = shift = 0
        while True:
            v |= (data[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 0x80:
                return v

    while at < len(data):
        size = number()
        at += size
        own.append(number())
        number()
    check("the tree of SelectMergeStacktraces has the stacks drawn", sum(own) == drawn[0], (sum(own), drawn[0]))
    text, note = query("sandwich", selector=one, function="f1_1")
    for half in ("callers", "callees"):
        wanted = sum(max(0, v) for v in merge(before, half).values())
        check_nodes(f"sandwich, {half}", json.loads(text)[half], [wanted])
    check("sandwich: a note says once that stacks are not drawn", note.count("not drawn") == 1, note)
    text, _ = query("flame", selector=one, format="text")
    shares = [float(line.split("%")[0]) for line in text.splitlines() if line[:7].strip().endswith("%")]
    check("text: no share is negative or beyond 100%", shares and all(0 <= s <= 100 for s in shares), shares[:5])
    check("text: stacks that are not drawn are no filter", "matching stacks" not in text, text[:400])
    text, note = query("folded", selector=one)
    sums = {tuple(line.rsplit(" ", 1)[0].split(";")): int(line.rsplit(" ", 1)[1]) for line in text.splitlines()}
    check("folded stacks are listed with all values", sums == {k: v for k, v in before.items() if v}, len(sums))
    check("  without a note", "drawn" not in note, note)
    text, note = query("top", selector=one)
    check("top has the sum of all values", json.loads(text)["total"] == sum(before.values()), text[:200])
    check("  without a note", "drawn" not in note, note)


def merge(sums, half):
    """Values by the part of each stack below its outermost f1_1, or above its innermost one."""
    merged = collections.Counter()
    for stack, value in sums.items():
        if "f1_1" in stack:
            at = stack.index("f1_1")
            merged[stack[at:] if half == "callees" else stack[:at + 1]] += value
    return merged


if sys.argv[1] == "make":
    make(sys.argv[2], int(sys.argv[3]))
else:
    URL, END = sys.argv[2], int(time.time() * 1000) + 60000
    START = END - 3600000
    run(sys.argv[3], sys.argv[4])
