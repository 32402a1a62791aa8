#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write a compilation database for clangd and clang-tidy: make -n -B V=1 TARGETS | compile-commands.py FILE.

Each line that compiles one C file, "COMPILER ... -c FILE -o OBJECT", becomes an entry. The database is replaced atomically,
and only if it has changed, so that clangd does not index the tree again.
"""

import json
import os
import shlex
import sys


def find_entry(line, directory):
    """Return the entry of a line of make's output, or None when it compiles nothing."""
    try:
        words = shlex.split(line)
    except ValueError:  # a part of a longer shell command
        return None
    if "-c" not in words or "-o" not in words:
        return None
    source = words[words.index("-c") + 1]
    if not source.endswith(".c"):
        return None
    return {"directory": directory, "file": source, "output": words[words.index("-o") + 1], "arguments": words}


def main():
    if len(sys.argv) != 2:
        print("usage: compile-commands.py FILE <OUTPUT-OF-MAKE", file=sys.stderr)
        return 64
    path, directory = sys.argv[1], os.getcwd()
    entries = {}
    for line in sys.stdin.read().replace("\\\n", " ").split("\n"):
        entry = find_entry(line, directory)
        if entry:
            entries[entry["file"]] = entry
    if not entries:
        print("compile-commands.py: no line compiles a C file", file=sys.stderr)
        return 1
    text = json.dumps([entries[name] for name in sorted(entries)], indent=1) + "\n"
    try:
        with open(path, encoding="utf-8") as f:
            same = f.read() == text
    except OSError:
        same = False
    if not same:
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        os.replace(path + ".new", path)
    print(f"{path}: {len(entries)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
