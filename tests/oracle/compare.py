#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare `cairn symbolize` with llvm-symbolizer, addr2line and eu-addr2line on one file, and classify every
disagreement.

    compare.py --cairn PROGRAM --facts PROGRAM [OPTION]... NAME FILE [DEBUGFILE]

Resolves the start of every function, every boundary between line rows and RANDOM random addresses in code; slow peers
get a random sample. Exits 1 when a disagreement is UNEXPLAINED or OURS WRONG (classes.py, judge.py).
"""
import argparse
import collections
import json
import os
import random
import re
import shutil
import sys
import time

import classes
import die_facts
import elf_facts
import judge
import line_facts
import peers

SEED = 20260101
MANGLED = re.compile(r"_Z|_R|_D\d")


def progress(start, text):
    print("# %5.0f s  %s" % (time.monotonic() - start, text), file=sys.stderr, flush=True)


class Facts:
    """All evidence about one file."""

    def __init__(self, file, debug):
        self.named_sections = elf_facts.sections(file)
        self.code = [(a, b) for _, a, b in self.named_sections]
        self.symbols = elf_facts.Symbols(debug, self.code, file if file != debug else None)
        self.lines = line_facts.Lines(debug, self.code)
        self.runtime = {}  # results of a Go program's own runtime
        self.peer = None   # the tool compared with; some classes apply to one tool only
        self.dies = None
        self.names = {s.name for s in self.symbols.all}
        self.is_mangled = any(MANGLED.match(n) for n in self.names)
        self.names |= {elf_facts.no_suffix(n) for n in self.names}
        self.off = {}
        self.demangled = {}

    def is_symbol(self, name):
        return name in self.names

    def spellings(self, symbols):
        """Names of symbols, mangled and demangled."""
        names = {s.name for s in symbols}
        names |= {n.split("@")[0] for n in names}
        return names | {self.demangled[n] for n in names if n in self.demangled}

    def paths_one_off(self, offset, path):
        """Paths returned by a reader that is off by one in the file or directory index."""
        table = self.lines.tables.get(offset)
        if not table:
            return ()
        if (offset, path) not in self.off:
            entries = [n for n in table.files if judge.same_path(table.path(n), path)]
            self.off[offset, path] = {p for n in entries for p in table.paths_near(n)}
        return self.off[offset, path]

    def addresses(self, starts, count):
        rng = random.Random(SEED)
        found = self.lines.boundaries() | set(self.symbols.functions()) | starts
        found = {a for a in found if any(x <= a < y for x, y in self.code)}
        given = len(found)
        total = sum(b - a for a, b in self.code)
        for _ in range(count):
            k = rng.randrange(total)
            for a, b in self.code:
                if k < b - a:
                    found.add(a + k)
                    break
                k -= b - a
        return sorted(found), given


def sample(addresses, count):
    return addresses if len(addresses) <= count else sorted(random.Random(SEED).sample(addresses, count))


def spell_alike(ours, theirs):
    """The peer's result with names as we spell them: LLVM 19 writes `>>` at the end of templates, libiberty `> >`."""
    def short(line):
        return re.sub(r"> (?=>)", ">", line)
    a, b = ours.split("\n"), theirs.split("\n")
    if len(a) != len(b):
        return theirs
    return "\n".join(x if x != y and short(x) == short(y) else y for x, y in zip(a, b))


def differing(cairn, peer, addresses, start):
    """The addresses at which the texts differ, as {address: (ours, theirs)}."""
    found = {}
    for i in range(0, len(addresses), peers.BATCH):
        part = addresses[i:i + peers.BATCH]
        ours, theirs = cairn.answers(part), peer.ask(part)
        if len(theirs) != len(part):
            sys.exit("%s gave %d answers for %d addresses" % (peer.name, len(theirs), len(part)))
        theirs = [t if o == t else spell_alike(o, t) for o, t in zip(ours, theirs)]
        found.update((a, (o, t)) for a, o, t in zip(part, ours, theirs) if o != t)
        progress(start, "%s: %d of %d" % (peer.name, min(i + peers.BATCH, len(addresses)), len(addresses)))
    return found


class Ours:
    """Cairn's results for all addresses, resolved only once."""

    def __init__(self, cairn, addresses):
        self.cairn, self.index = cairn, {a: i for i, a in enumerate(addresses)}
        self.blocks = []
        for i in range(0, len(addresses), peers.BATCH):
            self.blocks += [sys.intern(b) for b in cairn.ask(addresses[i:i + peers.BATCH])]

    def answers(self, addresses):
        return [self.blocks[self.index[a]] for a in addresses]


def names(block):
    return block.split("\n")[0::2]


def names_differ(answers):
    return names(answers[0]) != names(answers[1])


def their_linkage(facts, peer, differ, want):
    """Mangled names of the peer's results, if the file has mangled names."""
    want = want if facts.is_mangled else []
    found = {}
    for i in range(0, len(want), peers.BATCH):
        part = want[i:i + peers.BATCH]
        for a, block in zip(part, peer.ask(part, demangle=False)):
            raw, shown = names(block), names(differ[a][1])
            if len(raw) == len(shown):
                found[a] = raw
                facts.demangled.update(zip(raw, shown))
    return found


def compare(facts, peer, differ, linkage, program, debug):
    """Addresses by class."""
    facts.peer = peer.name
    facts.demangled = {}
    mangled = their_linkage(facts, peer, differ, [a for a in differ if names_differ(differ[a])])
    found = collections.defaultdict(list)

    def frames_of(a):
        ours, theirs = map(peers.frames, differ[a])
        return ours, theirs, linkage[a] or [""] * len(ours), mangled.get(a) or [""] * len(theirs)
    for a in differ:
        for key in classes.classify(judge.Case(facts, a), *frames_of(a))[:1]:
            found[key].append(a)
    left = found.pop(classes.UNEXPLAINED.key, [])
    if peer.name != peers.Elfutils.name:
        return found | ({classes.UNEXPLAINED.key: left} if left else {})
    mangled |= their_linkage(facts, peer, differ, [a for a in left if a not in mangled])
    rows = {a: {r[-1].address for r in map(judge.Case(facts, a).rows, facts.lines.covering(a))} for a in left}
    dies = die_facts.Dies(program, debug, sorted(set().union(*rows.values())))
    for a in left:
        at_rows = [judge.Case(facts, n, dies) for n in rows[a]]
        theirs = peers.frames(differ[a][1])
        explained = classes.calls_at_row(judge.Case(facts, a), at_rows, theirs, mangled.get(a) or [""] * len(theirs))
        found[(classes.AT_ROW if explained else classes.UNEXPLAINED).key].append(a)
    return found


def cut(text, length=220):
    return text if len(text) <= length else text[:length] + "..."


def show(facts, address, ours, theirs):
    """Prints an example with the rows and DIEs that determine the correct result."""
    c = judge.Case(facts, address)
    out = ["0x%x" % address] + ["  %s %s" % (who, cut("%s %s:%d" % f)) for who, text in
                                (("ours   ", ours), ("theirs ", theirs)) for f in peers.frames(text)[:8]]
    for s in c.sequences[:2]:
        for r in c.rows(s)[-4:]:
            out.append("  row     0x%x %s:%d (table 0x%x)" % (r.address, r.path, r.line, s.table))
    for chain in c.scopes[:2]:
        for x in chain[:6]:
            out.append(cut("  DIE     0x%x %s %s%s origin=%s text=%s" % (x.die, x.kind, x.linkage or x.name or "?",
                       " call %s:%d" % (facts.dies.call_path(x), x.call_line) if x.kind == "inlined" else "", x.origin, x.text)))
    for s in c.covering[:4]:
        out.append(cut("  symbol  0x%x+%d %s %s" % (s.value, s.size, s.kind, s.name)))
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cairn", required=True)
    p.add_argument("--facts", required=True, help="the die_facts program")
    p.add_argument("--random", type=int, default=100000)
    p.add_argument("--limit", type=int, default=0, help="ask for no more addresses than this, a random sample")
    p.add_argument("--addr2line", type=int, default=20000, metavar="N", help="sample for addr2line")
    p.add_argument("--eu-addr2line", type=int, default=3000, metavar="N", help="sample for eu-addr2line")
    p.add_argument("--server", metavar="URL", help="ask us through this service, which has FILE")
    p.add_argument("--go", action="store_true", help="FILE is sample.go; ask its runtime too, and believe that")
    p.add_argument("--peers", default="llvm-symbolizer,llvm-symbolizer-19,addr2line,eu-addr2line")
    p.add_argument("--show", type=int, default=1, help="examples of each class")
    p.add_argument("--json", help="write the result here")
    p.add_argument("--text", default="", help="a line about the input, for the report")
    p.add_argument("name")
    p.add_argument("file")
    p.add_argument("debug", nargs="?")
    o = p.parse_args()
    debug = o.debug or o.file

    start = time.monotonic()
    facts = Facts(o.file, debug)
    progress(start, "%s: %d line rows, %d symbols" % (o.name, len(facts.lines.address), len(facts.symbols.all)))
    addresses, given = facts.addresses(die_facts.starts(o.facts, debug), o.random)
    if 0 < o.limit < len(addresses):
        o.text += ", a sample of %d addresses" % len(addresses)
        addresses = sample(addresses, o.limit)
    cairn = peers.Cairn(o.cairn, o.file, o.server)
    ours = Ours(cairn, addresses)
    progress(start, "%d addresses, %d of them starts and row boundaries" % (len(addresses), given))
    result = {"name": o.name, "order": time.time(), "text": o.text, "addresses": len(addresses), "peers": {}, "versions": peers.versions()}
    failed = False
    asks = [(peer, sample(addresses, count)) for peer, count in (
        (peers.Llvm(debug), len(addresses)), (peers.Llvm(debug, peers.NEWER_LLVM), len(addresses)), (peers.Binutils(debug), o.addr2line), (peers.Elfutils(debug), o.eu_addr2line))
        if peer.name in o.peers.split(",") and shutil.which(peer.name)]
    if o.go:
        runtime = peers.GoRuntime(o.file, addresses)
        facts.runtime = {a: peers.frames(block) for a, block in runtime.blocks.items()}
        asks.append((runtime, sorted(runtime.blocks)))
    for peer, asked in asks:
        differ = differing(ours, peer, asked, start)
        progress(start, "%s: %d differ" % (peer.name, len(differ)))
        facts.dies = die_facts.Dies(o.facts, debug, list(differ))
        facts.lines.set_directories(facts.dies.units.values())
        linkage = dict(zip(differ, cairn.linkage(list(differ))))
        found = compare(facts, peer, differ, linkage, o.facts, debug)
        agree = len(asked) - sum(map(len, found.values()))
        print("# %s: %s: %d of %d agree, %.2f%%" % (o.name, peer.name, agree, len(asked), 100 * agree / len(asked)))
        shown = {}
        for key, where in sorted(found.items(), key=lambda x: -len(x[1])):
            who = classes.CLASSES[key].who if key in classes.CLASSES else "?"
            print("#   %7d %s (right: %s)" % (len(where), key, who))
            bad = key not in classes.CLASSES
            failed = failed or bad
            shown[key] = show(facts, where[0], *differ[where[0]])
            for a in where[:(5 * o.show if bad else o.show)]:
                for line in show(facts, a, *differ[a]):
                    print("#             " + line)
        result["peers"][peer.name] = {"asked": len(asked), "agree": agree,
                                      "classes": {k: len(v) for k, v in found.items()}, "examples": shown}
    if o.json:
        os.makedirs(os.path.dirname(o.json) or ".", exist_ok=True)
        with open(o.json, "w", encoding="utf-8") as f:
            json.dump(result, f, indent=1)
    sys.exit(failed)


if __name__ == "__main__":
    main()
