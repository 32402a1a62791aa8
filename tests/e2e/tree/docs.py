#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the documentation with the code and the programs' --help. usage: docs.py BUILD-FOLDER

Only names are compared, not the truth of sentences about them.
"""
import glob
import os
import re
import subprocess
import sys

BUILD = sys.argv[1]


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def all_of(*patterns):
    return {path: read(path) for pattern in patterns for path in sorted(glob.glob(pattern, recursive=True))}


FOLDERS = [f for f in os.listdir(".") if os.path.isdir(f) and f not in ("build", "tests") and not f.startswith(".")]
CODE = all_of(*(f"{folder}/**/*.[ch]" for folder in FOLDERS))
PAGES = all_of("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs/**/*.md")
MANUALS = all_of("docs/man/*.[158]")
DOCS = {**PAGES, **MANUALS}

count = 0


def test(name, mistakes):
    global count
    count += 1
    print(f"{'not ok' if mistakes else 'ok'} {count} - {name}")
    for mistake in sorted(mistakes):
        print("# " + mistake)


# ---- options ----

COMMANDS_OF = {  # commands of manual pages with another name
    "cairn": [],
    "cairn.yaml": [],
    "cairn-addr2line": [],  # tests/e2e/symbolizer/drop-in.t
    "cairn-agent": [["cairn-agent"], ["cairn-agent", "unwind-table"]],
    "cairn-upload": [["cairn-upload"]],
}
OTHERS_OPTIONS = {  # mentioned in manual pages
    "cairn-agent": {"perf-basic-prof", "perf-prof", "yjit-perf"},
    "cairn-serve": {"fdcache-mbs"},
}


def options_of(command):
    said = subprocess.run([f"{BUILD}/{command[0]}", *command[1:], "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return set(re.findall(r"^  (?:-\w,|   ) --([a-z][a-z0-9-]*)", said, re.M))


mistakes = set()
every_option = set()
for path, text in MANUALS.items():
    page = os.path.basename(path).rsplit(".", 1)[0]
    commands = COMMANDS_OF.get(page, [page.split("-", 1)])
    if not commands:
        continue
    there = set().union(*map(options_of, commands)) - {"help", "version"}
    every_option |= there
    named = set(re.findall(r"Fl (?:\w , )?-([a-z][a-z0-9-]*)", text)) - {"help", "version"} - OTHERS_OPTIONS.get(page, set())
    mistakes |= {f"{path} does not have --{o}" for o in there - named}
    mistakes |= {f"{path} has --{o}, which --help has not" for o in named - there}
test("each option of --help is in its manual page, and the other way round", mistakes)

mistakes = set()
for path, text in PAGES.items():
    for command in re.findall(r"(?:^|[`/ ])(?<!helm install )(?<!helm upgrade )(cairn(?:-agent|-upload)? [^`|\n]*)", text, re.M):
        own = re.split(r" [|;&] |'", command)[0]
        mistakes |= {f"{path}: {own.strip()}" for o in re.findall(r" --([a-z][a-z-]*)", own)
                     if o not in every_option | {"help", "version", "doctor"}}
test("commands in pages have options that are there", mistakes)

# ---- routes ----

mistakes = set()
routes = set()
for path, text in CODE.items():
    names = dict(re.findall(r'^#define (\w+) ("[^"]*")$', text, re.M))
    for method, parts in re.findall(r'(?:ROUTE\(|\.method = )"(\w+)", (?:\.path = )?((?:\w+ )?"[^"]*")', text):
        if path.startswith(("server/", "agent/")):
            routes.add((path, method, "".join(names.get(p, p).strip('"') for p in parts.split())))
everything = re.sub(r"\s+", " ", "\n".join(DOCS.values()))
for path, method, route in routes:
    # {kind} may be written in capitals or as an example, {path...} as anything.
    wanted = re.sub(r"\\\{\w+\\\.\\\.\\\.\\\}", r"[^ ]+", re.escape(route))
    wanted = re.sub(r"\\\{\w+\\\}", r"[A-Za-z0-9_{}$]+", wanted)
    if not re.search(rf"(?<![\w}}]){wanted}(?![\w/])", everything):
        mistakes.add(f"{path}: {method} {route} is in no page")
test("each route is in a page", mistakes if routes else {"no route was found"})

# ---- metrics ----

in_code = {}
for path, text in CODE.items():
    for name in re.findall(r'"(cairn_[a-z0-9_]+)"', text):
        in_code.setdefault(name, path)
METRICS = "docs/metrics.md"
listed = {name for row in re.findall(r"^\| (`cairn_[^|]*)\|", read(METRICS), re.M) for name in re.findall(r"`(\w+)`", row)}
test("each metric is in the list of them", {f"{in_code[n]}: {n}" for n in in_code.keys() - listed})
test("the list has no other", {n for n in listed - in_code.keys()})
mistakes = set()
series = {n + end for n in in_code if n.endswith("_duration_seconds") for end in ("_bucket", "_sum", "_count")}
for path, text in DOCS.items():
    mistakes |= {f"{path}: {n}" for n in re.findall(r"\bcairn_[a-z0-9_]+", text) if n not in in_code.keys() | series}
test("no page has another metric", mistakes)

# ---- folder dependencies ----

mistakes = set()
rows = re.findall(r"^\| (`[\w-]+/`[^|]*)\|[^|]*\|([^|]*)\|$", read("docs/architecture.md"), re.M)
may_use = {folder: {folder, *re.findall(r"`([\w-]+)/`", row), *re.findall(r"[a-z-]+", words)}
           for row, words in rows for folder in re.findall(r"`([\w-]+)/`", row)}
for path, text in CODE.items():
    folder = path.split("/")[0]
    if "all" in may_use.get(folder, ()) or "public" in may_use.get(folder, ()):
        continue
    mistakes |= {f"{path} includes {used}/, which docs/architecture.md does not allow"
                 for used in re.findall(r'^#include "([\w-]+)/', text, re.M) if used not in may_use.get(folder, ())}
test("folders use those that they may", mistakes)

# ---- limits, files, targets ----

limits = set(re.findall(r"^#define (LIMIT_\w+)", read("common/limits.h"), re.M))
test("limits that pages name are there", {f"{path}: {n}" for path, text in DOCS.items() for n in re.findall(r"(?<!R)LIMIT_\w+", text)
                                          if n not in limits})
code = "\n".join(text for path, text in CODE.items() if path != "common/limits.h")
test("each limit is kept to", limits - set(re.findall(r"\bLIMIT_\w+", code)))
fuzzed = {os.path.basename(path)[len("fuzz_"):-2] for path in glob.glob("tests/fuzz/fuzz_*.c")}
test("docs/security.md names each fuzz target", {n for n in fuzzed if f"`{n}`" not in read("docs/security.md")})


def anchors(text):
    return {re.sub(r"[^\w -]", "", h.lower()).strip().replace(" ", "-") for h in re.findall(r"^#+ (.*)$", text, re.M)}


mistakes = set()
for path, text in PAGES.items():
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", text):
        if target.startswith(("http:", "https:")):
            continue
        to = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
        if not os.path.exists(to):
            mistakes.add(f"{path}: {target}")
        elif anchor and anchor not in anchors(read(to)):
            mistakes.add(f"{path}: {target}#{anchor}")
test("links lead somewhere", mistakes)

# What a newcomer asks, and what the section that answers it must have.
ANSWERS = {
    ("README.md", "Install and profile"): ["apt purge", "/var/lib/cairn", "cairn store snapshot", "docs/operations.md#alerts"],
    ("README.md", "What you see of each language"): ["Node.js", "Java", "Python", "Ruby", "#what-leaves-the-host"],
    ("docs/concepts.md", "Why symbolization is a separate step"): ["cairn-agent ---", "cairn-upload ---"],  # a picture
    ("docs/concepts.md", "What names need"): ["Go", "Java", "-g", "../README.md#what-you-see-of-each-language"],
    ("docs/quick-starts/agents.md", "2. Install"): ["make deb"],
    ("docs/quick-starts/agents.md", "What leaves the host"): ["functions, variables, types and source files", "--no-upload"],
    ("docs/operations.md", "Data directory"): ["cairn store snapshot"],
    ("docs/operations.md", "Alerts"): ["alerts.yaml"],
}
mistakes = set()
for (path, heading), words in ANSWERS.items():
    section = re.search(rf"^##+ {re.escape(heading)}$(.*?)(?=^## |\Z)", PAGES[path], re.M | re.S)
    text = re.sub(r"\s+", " ", section[1]) if section else ""
    mistakes |= {f"{path}, {heading}: {word}" for word in words if word not in text}
headings = re.findall(r"^## (.*)$", PAGES["docs/concepts.md"], re.M)
if headings.index("What names need") > headings.index("Quality"):
    mistakes.add("docs/concepts.md, What names need: before Quality")
test("pages answer what a newcomer asks", mistakes)

folders = "|".join(map(re.escape, sorted(FOLDERS + ["tests"])))
mistakes = set()
for path, text in DOCS.items():
    for name in re.findall(rf"(?<![\w/.-])((?:{folders})/[\w./*\[\]-]*\w\.(?:[cht]|py|sh|md|sql|proto|service|yaml|mk|js|html))\b", text):
        if not glob.glob(name):
            mistakes.add(f"{path}: {name}")
test("files that pages name are there", mistakes)

PARTS_OF_TARGETS = {"modules", "fuzz-replays", "tests-built", "tsan-built", "generated", "bench-built", "completions"}
targets = set(re.findall(r"^([a-z0-9_.-]+):", read("Makefile") + read("scripts/targets.mk") + read("scripts/demo/demo.mk"), re.M))
test("targets that pages name are there", {f"{path}: make {t}" for path, text in PAGES.items()
                                           for t in re.findall(r"`make ([a-z0-9_.-]*[a-z0-9])", text) if t not in targets})

# ---- figures, versions ----

# The README's comparison has the same figures as docs/performance.md.
measured = set(re.findall(r"[\d.]*\d%?", read("docs/performance.md")))
compared = re.search(r"^## Compared.*?(?=^## )", read("README.md"), re.M | re.S).group()
rows = [row.split("|")[2:4] for row in re.findall(r"^\|.*\|$", compared, re.M)[2:]]
figures = {n for cells in rows for cell in cells for n in re.findall(r"[\d.]*\d", cell)} | set(re.findall(r"[\d.]*\d%", compared))
test("figures of the README are in docs/performance.md", {f"README.md: {n}" for n in figures - measured} if len(rows) > 5 else {"no rows"})

costs = re.search(r"^## What it does, and.*?(?=^## )", read("README.md"), re.M | re.S).group()
costs = re.sub(r"\([^)]*\)", "", " ".join(re.findall(r"^\|.*\|$", costs, re.M)[2:]))
known = set(re.findall(r"[\d.,]*\d%?", read("docs/performance.md") + read("docs/sizing.md")))
test("figures of what Cairn costs are in docs/performance.md or docs/sizing.md",
     {f"README.md: {n}" for n in re.findall(r"[\d.,]*\d%?", costs) if n not in known})

version = re.search(r"^VERSION := (\S+)$", read("Makefile"), re.M).group(1)
others = {"debian/changelog": r"\Acairn \(([\d.]+)", "CHANGELOG.md": r"^## ([\d.]+)", "docs/openapi.yaml": r"^  version: (\S+)$"}
test("versions agree", {f"{path} has not {version}" for path, pattern in others.items() if re.search(pattern, read(path), re.M)[1] != version})
make_help = subprocess.run(["make", "-s", "help"], check=True, stdout=subprocess.PIPE, text=True).stdout
phony = {t for line in re.findall(r"^\.PHONY: (.*)$", read("Makefile") + read("scripts/targets.mk"), re.M) for t in line.split()}
test("make help has every target that is for people", {t for t in phony - PARTS_OF_TARGETS if not re.search(rf"^  {t}\s+\w", make_help, re.M)})
print(f"1..{count}")
