# SPDX-License-Identifier: Apache-2.0
# Part of symbolize.t: on libc and its debug file, the output of --format=addr2line and --format=llvm is byte for byte
# that of addr2line -f -i -C and llvm-symbolizer --inlines --demangle. Only addresses for which all tools agree on names
# and lines are used, since this tests the format; docs/accuracy.md covers the others. Two things that the index does
# not contain are removed before: discriminators (such addresses are skipped) and columns (replaced by 0).
import json
import random
import re
import subprocess
import sys

cairn, libc = sys.argv[1:3]
ASKED, LEAST = 1500, 300
GNU = ["addr2line", "-f", "-i", "-C", "-e", libc]
LLVM = ["llvm-symbolizer", "--inlines", "--demangle", "--obj=" + libc]


def answer(command, addresses):
    text = "".join("%#x\n" % a for a in addresses)
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def frames(lines):
    """
    Pairs of lines as (function, file, line); '??' and '?' are unknown. None if there is more than that, and if
    binutils 2.40 prints ":?" for functions that are only in .symtab: in other cases it prints "??:?" for them, like
    Cairn always does.
    """
    out = []
    for function, place in zip(lines[::2], lines[1::2]):
        file, _, line = place.rpartition(":")
        if not file or not re.fullmatch(r"\d+|\?", line):
            return None
        out.append((function.replace("??", ""), file.replace("??", ""), 0 if line == "?" else int(line)))
    return [] if out == [("", "", 0)] else out


def by_gnu(addresses):
    text = answer(GNU + ["-a"], addresses)
    return [frames(part.splitlines()) for part in re.split(r"^0x[0-9a-f]{16}\n", text, flags=re.M)[1:]]


def by_llvm(addresses):
    text = re.sub(r":\d+$", "", answer(LLVM, addresses), flags=re.M)
    return [frames(part.splitlines()) for part in text.split("\n\n")[:-1]]


def by_cairn(addresses):
    results = json.loads(answer([cairn, "symbolize", "-e", libc, "--format=json"], addresses))["results"]
    return [[(f["function"], f["file"], f["line"]) for f in r["frames"]] for r in results]


def compare(name, want, got, count, with_inlined):
    assert count >= LEAST and with_inlined >= LEAST // 10, "%s: %d addresses agree, %d with inlined calls" % (
        name, count, with_inlined)
    for i, (a, b) in enumerate(zip(want.splitlines(True), got.splitlines(True))):
        assert a == b, "%s: line %d is %r, not %r" % (name, i + 1, b, a)
    assert want == got, "%s: %d bytes, not %d" % (name, len(got), len(want))
    print("# %s: %d addresses, %d with inlined calls, %d bytes" % (name, count, with_inlined, len(got)))


sections = subprocess.run(["readelf", "-SW", libc], capture_output=True, text=True, check=True).stdout
start, _, size = next(l for l in sections.splitlines() if " .text " in l).split("PROGBITS")[1].split()[:3]
random.seed(7)
addresses = [int(start, 16) + random.randrange(int(size, 16)) for _ in range(ASKED)] + [1, 2**40]
ours = by_cairn(addresses)
for name, peer, command, shape in ("addr2line", by_gnu, GNU, lambda text: text), (
        "llvm", by_llvm, LLVM, lambda text: re.sub(r":\d+$", ":0", text, flags=re.M)):
    theirs = peer(addresses)
    assert len(theirs) == len(ours) == len(addresses)
    agreed = [i for i in range(len(addresses)) if ours[i] == theirs[i]]
    asked = [addresses[i] for i in agreed]
    assert 2**40 in asked, "nobody knows this one"
    compare(name, shape(answer(command, asked)), answer([cairn, "symbolize", "-e", libc, "--format=" + name], asked),
            len(agreed), sum(len(ours[i]) > 1 for i in agreed))
