#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare `cairn symbolize` with eu-addr2line, llvm-symbolizer and addr2line, address by address.

    compare_symbols.py --cairn PROGRAM [--count N] [--least PERCENT] FILE DEBUGFILE

Takes N addresses spread over all functions of DEBUGFILE's symbol table, asks every tool for all frames of each, and
compares function, file and line of every frame. Two chains agree when they have the same files and lines and, for each
frame, the same name once clone suffixes (".isra.0"), symbol versions ("@@GLIBC_2.34") and aliases of one address
(several symbols, one function) are taken for one. What is left is listed by class. Exits 1 when fewer than PERCENT of
the addresses agree with at least one tool, or with one of the tools named by --each.

What the tools of Debian 12 are known to get wrong: eu-addr2line drops inlined frames whose function is in another unit
(programs built with LTO); addr2line takes the wrong file where a DWARF 5 table lists the primary file twice;
llvm-symbolizer names functions after untyped labels at the same address.
"""
import argparse
import collections
import random
import re
import subprocess
import sys


def run(argv, addresses, check=False):
    """eu-addr2line exits with 1 when one address of many is unknown, so only our own code is checked."""
    text = "".join("0x%x\n" % a for a in addresses)
    return subprocess.run(argv, input=text, capture_output=True, text=True, check=check, errors="replace").stdout


def symbols(path):
    """Function symbols (address, size, name) of .symtab, else .dynsym, and the names of untyped ones."""
    found, labels = [], set()
    for options in (["-sW"], ["--dyn-syms", "-W"]):
        out = subprocess.run(["readelf", *options, path], capture_output=True, text=True, check=True).stdout
        for line in out.splitlines():
            p = line.split(None, 7)
            if len(p) == 8 and p[0].rstrip(":").isdigit() and p[3] in ("FUNC", "IFUNC") and p[6] != "UND":
                size = int(p[2], 0)
                if size:
                    found.append((int(p[1], 16), size, p[7].split()[0]))
            elif len(p) == 8 and p[3] == "NOTYPE":
                labels.add(p[7].split()[0])
        if found:
            break
    return found, labels


def choose(syms, count):
    """Addresses spread over all functions: at least one of each, the rest anywhere inside, with a fixed seed."""
    rng = random.Random(20260101)
    starts = sorted({(a, s) for a, s, _ in syms})
    chosen = set()
    while len(chosen) < count:
        before = len(chosen)
        for a, s in rng.sample(starts, min(len(starts), count - len(chosen))):
            chosen.add(a + rng.randrange(s))
        if len(chosen) == before:
            break
    return sorted(chosen)


def frames_of_pairs(lines):
    frames = []
    for name, place in zip(lines[0::2], lines[1::2]):
        place = re.sub(r" \(discriminator \d+\)$", "", place)
        path, _, line = place.rpartition(":")
        frames.append((name, path if path != "??" else "", int(line) if line.isdigit() else 0))
    return frames


def by_marker(out, pattern):
    """Split the output of a tool that was told to print each address first."""
    answers, lines = {}, None
    for line in out.splitlines():
        if re.fullmatch(pattern, line):
            lines = answers.setdefault(int(line, 16), [])
        elif lines is not None and line:
            lines.append(line)
    return answers


def ask_cairn(program, path, addresses):
    lines = run([program, "symbolize", "-e", path, "--format=llvm"], addresses, check=True).split("\n\n")
    return {a: [(n, p, l) for n, p, l in llvm_frames(block)] for a, block in zip(addresses, lines)}


def llvm_frames(block):
    lines = [line for line in block.splitlines() if line]
    out = []
    for name, place in zip(lines[0::2], lines[1::2]):
        path, line, _column = place.rsplit(":", 2)
        out.append((name, path if path != "??" else "", int(line)))
    return out


def ask_llvm(path, addresses):
    lines = run(["llvm-symbolizer", "--inlines", "--demangle", "--obj=" + path], addresses).split("\n\n")
    return {a: llvm_frames(block) for a, block in zip(addresses, lines)}


def ask_binutils(path, addresses):
    out = by_marker(run(["addr2line", "-a", "-f", "-i", "-C", "-e", path], addresses), r"0x[0-9a-f]+")
    return {a: frames_of_pairs(lines) for a, lines in out.items()}


def ask_elfutils(path, addresses):
    """eu-addr2line prints 'NAME inlined at PLACE in OUTER' for inlined frames, and a column."""
    out = by_marker(run(["eu-addr2line", "-a", "-f", "-i", "-C", "-e", path], addresses), r"0x[0-9a-f]+")
    answers = {}
    for a, lines in out.items():
        frames = []
        for name, place in zip(lines[0::2], lines[1::2]):
            name = re.sub(r" inlined at .* in .*$", "", name)
            m = re.match(r"(.*?):(\d+)(?::\d+)?$", place)
            path_, line = (m.group(1), int(m.group(2))) if m else ("", 0)
            frames.append((name, "" if path_ == "??" else path_, line))
        answers[a] = frames
    return answers


class Names:
    """Names that mean the same function: those of symbols at one address. Labels are symbols that are no function."""

    def __init__(self, syms, labels):
        self.labels = labels
        self.groups = {}
        at = collections.defaultdict(set)
        for address, _, name in syms:
            at[address].add(self.plain(name))
        for names in at.values():
            union = set(names)
            for name in names:
                union |= self.groups.get(name, set())
            for name in union:
                self.groups[name] = union

    @staticmethod
    def plain(name):
        name = name.split("@")[0]
        name = re.sub(r" \[clone [^]]*\]", "", name)
        return re.sub(r"(\.(isra|constprop|part|cold|lto_priv|llvm)(\.\d+)*)+$", "", name)

    def same(self, a, b):
        a, b = self.plain(a), self.plain(b)
        return a == b or b in self.groups.get(a, ()) or a in self.groups.get(b, ())


def same_path(a, b):
    return a == b or collapse(a) == collapse(b)


def collapse(path):
    path = re.sub(r"/(\./|/)+", "/", path)
    return re.sub(r"^(\./)+", "", path)


def difference(names, ours, theirs):
    """The class of the first difference between two chains, or None."""
    def unknown(f):
        return all(n == "??" and not p for n, p, _ in f)
    if unknown(ours) or unknown(theirs):
        if unknown(ours) and unknown(theirs):
            return None
        return "we do not know it, they do" if unknown(ours) else "they do not know it, we do"
    if len(ours) != len(theirs):
        if len(theirs) < len(ours) and ours[0][1:] == theirs[0][1:]:
            return "they print the inlined place but drop inlined frames"
        return "another number of frames"
    for i, ((n1, p1, l1), (n2, p2, l2)) in enumerate(zip(ours, theirs)):
        where = "innermost" if i == 0 else "outer"
        if not p2 and p1:
            return "they have no file for it"
        if not same_path(p1, p2):
            return "another file, " + where
        if l1 != l2:
            return "another line, " + where
        if not names.same(n1, n2):
            if n2 == "??":
                return "they have no name for it"
            if n2 in names.labels:
                return "their name is a label, not a function"
            return "another name, " + where
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cairn", required=True)
    p.add_argument("--count", type=int, default=10000)
    p.add_argument("--least", type=float, default=99.5)
    p.add_argument("--show", type=int, default=3, help="examples of each class")
    p.add_argument("--each", default="llvm-symbolizer", help="tools that have to agree with PERCENT by themselves")
    p.add_argument("--tools", default="eu-addr2line,llvm-symbolizer,addr2line")
    p.add_argument("file")
    p.add_argument("debugfile")
    o = p.parse_args()

    syms, labels = symbols(o.debugfile)
    names = Names(syms, labels)
    addresses = choose(syms, o.count)
    ours = ask_cairn(o.cairn, o.file, addresses)
    ask = {"eu-addr2line": ask_elfutils, "llvm-symbolizer": ask_llvm, "addr2line": ask_binutils}
    agreed_with = collections.Counter()
    enough = True
    for tool in o.tools.split(","):
        theirs = ask[tool](o.debugfile, addresses)
        classes = collections.defaultdict(list)
        for a in addresses:
            c = difference(names, ours[a], theirs.get(a, []) or [("??", "", 0)])
            if c:
                classes[c].append(a)
            else:
                agreed_with[a] += 1
        agreed = len(addresses) - sum(len(v) for v in classes.values())
        print(f"# {o.file}: {tool}: {agreed} of {len(addresses)} agree, {100 * agreed / len(addresses):.2f}%")
        if tool in o.each.split(",") and 100 * agreed < o.least * len(addresses):
            enough = False
        for c, where in sorted(classes.items(), key=lambda x: -len(x[1])):
            print(f"#   {len(where):5} {c}")
            for a in where[: o.show]:
                print(f"#         0x{a:x}: ours {ours[a]}")
                print(f"#         0x{a:x}: theirs {theirs.get(a)}")
    alone = [a for a in addresses if not agreed_with[a]]
    percent = 100 * (len(addresses) - len(alone)) / len(addresses)
    print(f"# {o.file}: {percent:.2f}% of {len(addresses)} addresses agree with at least one tool in every frame")
    for a in alone[:20]:
        print(f"#   with none: 0x{a:x}: {ours[a]}")
    if len(addresses) < min(o.count, 1000) or percent < o.least or not enough:
        sys.exit(1)


if __name__ == "__main__":
    main()
