#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make docs/accuracy.md, on standard output, from the results that compare.py left in a folder: report.py FOLDER"""
import json
import os
import sys

import classes

HEAD = """\
# Accuracy

Made by `tests/oracle/report.py` from the results of `make check-oracle DOC=docs/accuracy.md`; do not edit. An input that
is not listed was not compared when this was made.

`cairn symbolize` and three other tools are asked for the same addresses: where each function starts, where each row of
the line table starts, and 100,000 random places in code. All frames are compared: name, file, line. Where a text
differs, a judge works out the answer from line rows that llvm-dwarfdump prints, DIEs that libdw reads and symbols of
readelf, none of them ours (`tests/oracle/judge.py`). If ours is another, that is **ours wrong**. Otherwise the
difference has to fit one of the classes below, each of which is a test on that evidence (`tests/oracle/classes.py`); what
fits none is **unexplained**. Either fails `make check-oracle`.

A Go program is asked for stripped, so that we have its pclntab only. Its own runtime is the judge there and gives a fourth
answer: the program looks the addresses up in itself (`tests/oracle/sample.go`). The others have the same code with DWARF.

llvm-symbolizer is asked for all addresses of an input, or of those it is said to be a sample of. addr2line and
eu-addr2line take up to milliseconds for one address and get a sample.
"""


def table(rows):
    return "\n".join("| " + " | ".join(str(c) for c in row) + " |" for row in rows) + "\n"


def number(n):
    return f"{n:,}"


def agreement(results):
    rows = [("input", "peer", "addresses", "same text", "explained", "ours wrong", "unexplained"),
            ("---", "---", "---:", "---:", "---:", "---:", "---:")]
    for r in results:
        for peer, p in r["peers"].items():
            bad = {k: p["classes"].get(k, 0) for k in (classes.OURS_WRONG.key, classes.UNEXPLAINED.key)}
            explained = p["asked"] - p["agree"] - sum(bad.values())
            rows.append((r["name"], peer, number(p["asked"]), "%.2f%%" % (100 * p["agree"] / p["asked"]),
                         number(explained), number(bad[classes.OURS_WRONG.key]), number(bad[classes.UNEXPLAINED.key])))
    return table(rows)


def counts(results, peers):
    rows = [("class", "right") + tuple(peers), ("---", "---") + ("---:",) * len(peers)]
    for key, c in classes.CLASSES.items():
        total = [sum(r["peers"].get(p, {"classes": {}})["classes"].get(key, 0) for r in results) for p in peers]
        if any(total):
            rows.append((key, c.who) + tuple(number(n) if n else "" for n in total))
    return table(rows)


def by_input(results):
    rows = [("input", "peer", "classes"), ("---", "---", "---")]
    for r in results:
        for peer, p in r["peers"].items():
            listed = sorted(p["classes"].items(), key=lambda x: -x[1])
            rows.append((r["name"], peer, ", ".join("%s %s" % (k, number(n)) for k, n in listed) or "none"))
    return table(rows)


def explain(results):
    out = []
    for key, c in classes.CLASSES.items():
        found = [(p["examples"][key], r["name"], peer) for r in results for peer, p in r["peers"].items()
                 if key in p["examples"]]
        if not found:
            continue
        lines, name, peer = min(found, key=lambda x: (sum(map(len, x[0])), x[1:]))
        out.append("### %s\n\nThe peer prints %s. Right: %s. From %s, %s:\n\n```\n%s\n```\n" %
                   (key, c.text, c.who, name, peer, "\n".join(x.rstrip() for x in lines).replace(os.getcwd() + "/", "")))
    return "\n".join(out)


def main():
    results = []
    for file in os.listdir(sys.argv[1]):
        with open(os.path.join(sys.argv[1], file), encoding="utf-8") as f:
            results.append(json.load(f))
    results.sort(key=lambda r: r["order"])
    peers = list(dict.fromkeys(p for r in results for p in r["peers"]))
    print(HEAD)
    print("## Result\n\n" + agreement(results))
    print("## Inputs\n\n" + table([("input", "what it is", "addresses"), ("---", "---", "---:")] +
                                  [(r["name"], r["text"], number(r["addresses"])) for r in results]))
    versions = {k: v for r in results for k, v in r["versions"].items()}
    print("Peers: " + ", ".join("%s %s" % x for x in versions.items()) + ".\n")
    print("## Classes\n\nAn address with several differences counts once, for the most serious.\n\n" +
          counts(results, peers))
    print("Of each input:\n\n" + by_input(results))
    print("## What each class is\n\n" + explain(results), end="")


if __name__ == "__main__":
    main()
