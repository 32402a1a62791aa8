#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""boundaries.py CAIRN [FILE]...: functions of stripped files that Cairn names by their start, against symbol tables.

For files of this machine whose debug file is installed (without FILE: in /usr/bin, /usr/sbin and /usr/lib), random
addresses inside functions are resolved without the debug file. An answer is right if its function begins where a symbol
that covers the address begins, or has the name of one. Prints a line per file, and the shares of all.
"""
import bisect
import json
import os
import random
import subprocess
import sys

ADDRESSES = 2000  # of a file
FILES_MAX = 200


def run(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, errors="replace", check=False).stdout


def debug_file(path):
    for line in run("readelf", "-n", path).splitlines():
        if "Build ID:" in line:
            build_id = line.split()[-1]
            return f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    return ""


def functions(path):
    """(start, size, name) of the functions in the symbol table, sorted."""
    ret = set()
    for line in run("readelf", "-sW", path).splitlines():
        part = line.split()
        if len(part) >= 8 and part[3] in ("FUNC", "IFUNC") and part[6] != "UND" and int(part[2], 0):
            ret.add((int(part[1], 16), int(part[2], 0), part[7].split("@")[0]))
    return sorted(ret)


def covering(symbols, starts, address):
    at = bisect.bisect_right(starts, address)
    return [s for s in symbols[max(0, at - 16) : at] if s[0] <= address < s[0] + s[1]]


def check(cairn, path, symbols):
    """The numbers of addresses, of right, wrong and missing answers; the names of functions that are wrong."""
    random.seed(path)
    addresses = [s[0] + random.randrange(s[1]) for s in random.choices(symbols, [s[1] for s in symbols], k=ADDRESSES)]
    starts = [s[0] for s in symbols]
    answer = json.loads(run(cairn, "symbolize", "--no-cache", "--no-debuginfod", "--debug-dir", "/nonexistent", "--format",
                            "json", "-e", path, text="\n".join(map(hex, addresses))))
    right = missing = 0
    wrong = set()
    for result in answer["results"]:
        address = int(result["address"], 16)
        truth = covering(symbols, starts, address)
        frame = result["frames"][-1] if result["frames"] else None
        if not frame or not frame["function"]:
            missing += 1
        elif frame["function"].startswith("fn@"):
            start = int(frame["function"][3:].split()[0], 16)
            ok = any(s[0] == start for s in truth)
            right += ok
            if not ok:
                wrong.add(truth[0][2] if truth else "?")
        else:
            name = (frame["linkage_name"] or frame["function"]).split("@")[0]
            ok = any(s[2] == name for s in truth)
            right += ok
            if not ok:
                wrong.add(truth[0][2] if truth else "?")
    return len(addresses), right, missing, wrong


def candidates():
    for folder in ("/usr/bin", "/usr/sbin", "/usr/lib"):
        for root, _, names in os.walk(folder):
            if not root.startswith("/usr/lib/debug"):
                for name in sorted(names):
                    path = os.path.join(root, name)
                    if not os.path.islink(path) and os.path.isfile(path):
                        with open(path, "rb") as f:
                            if f.read(4) == b"\x7fELF":
                                yield path


def main():
    cairn, files = sys.argv[1], sys.argv[2:]
    total = [0, 0, 0]
    count = 0
    for path in files or candidates():
        debug = debug_file(path)
        if not os.path.isfile(debug):
            continue
        symbols = functions(debug)
        if len(symbols) < 10:
            continue
        n, right, missing, wrong = check(cairn, path, symbols)
        total = [total[0] + n, total[1] + right, total[2] + missing]
        count += 1
        print(f"{path}: {100 * right / n:.2f}% of {len(symbols)} functions' addresses right, {missing} of {n} unnamed;"
              f" wrong: {' '.join(sorted(wrong)[:4])}", flush=True)
        if count == FILES_MAX:
            break
    if not total[0]:
        sys.exit("no file with an installed debug file was found")
    share = 100 * total[1] / total[0]
    print(f"{count} files, {total[0]} addresses: {share:.3f}% right, {100 * total[2] / total[0]:.3f}% unnamed")
    sys.exit(share < 99)


if __name__ == "__main__":
    main()
