#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds variables with a cleanup attribute that are still uninitialized at a return: the cleanup would then free an
indeterminate pointer. Compilers do not warn, since they only see the variable's address passed to the cleanup.

    scripts/cleanup-order.py [FILE...]   default: every .c and .h file outside of build folders

A variable without an initializer must be named again, to initialize it, before the next return, break, continue or goto.
"""
import pathlib
import re
import sys

DECLARATION = re.compile(r"\s+_cleanup_\w*(?:\(\w+\))? (.*);\s*$")
LEAVES = re.compile(r"\b(return|goto|break|continue)\b")


def names_without_value(declarators):
    depth, part, parts = 0, "", []
    for c in declarators:
        depth += (c in "({[") - (c in ")}]")
        if c == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += c
    parts.append(part)
    return [re.search(r"(\w+)(\[.*\])?\s*$", p).group(1) for p in parts if "=" not in p]


def find_early_leave(lines, start, name):
    """The number of the line that leaves before name is used, or None."""
    for number in range(start, len(lines)):
        if re.search(rf"\b{name}\b", lines[number]):
            return None
        if LEAVES.search(lines[number]) or lines[number].startswith("}"):
            return number + 1
    return None


# Does not ask git for the files: sources unpacked from a tarball are checked too.
paths = sys.argv[1:] or sorted(str(p) for p in pathlib.Path(".").rglob("*.[ch]") if not p.parts[0].startswith("build"))
found = 0
for path in paths:
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    for i, line in enumerate(lines):
        match = DECLARATION.match(line)
        for name in names_without_value(match.group(1)) if match else ():
            number = find_early_leave(lines, i + 1, name)
            if number:
                print(f"{path}:{number}: '{name}' of line {i + 1} is cleaned up here without a value; initialize it first")
                found += 1
sys.exit(bool(found))
