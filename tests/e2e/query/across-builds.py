#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions across builds: compile one program in variants, and judge which rows of a diff join the right functions.

usage: across-builds.py CAIRN DIRECTORY

Each function has a name of its own in the sources, so the truth is known whatever compilers make of the name; lambdas are
told apart by their lines. Each instruction is a sample of value 1, so a row of the diff is right if its values are the
numbers of instructions that llvm-symbolizer attributes to one function in both programs. Prints for each variant the precision and
recall of pairs, with and without matching.
"""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

from profiles import Strings, blob, num, packed

CAIRN, DIRECTORY = sys.argv[1], sys.argv[2]
COUNT = 24


class Source:
    """A source file, and the function to which each line belongs."""

    def __init__(self, name):
        self.name, self.lines, self.owners = name, [], {}

    def add(self, owner, text):
        for line in text.split("\n"):
            self.lines.append(line)
            self.owners[len(self.lines)] = owner


def add_functions(s, i, more_lambdas):
    """One function of each kind; {0} is its number."""
    pieces = [
        ("cold", "static NOINLINE int cold_{0}(int *a, int n) {{ int s = 0; for (int k = 0; k < n; k++) {{ s += a[k] * {0}3;"
                 " if (s < 0) fail(s); }} return s; }}"),
        ("cons", "static NOINLINE int cons_{0}(int n, int b) {{ for (int k = 0; k < n; k++) sink += k * b * {0}; return sink; }}"),
        ("isra", "static NOINLINE int isra_{0}(struct pair *p) {{ int s = p->x; for (int k = 0; k < p->x; k++) s ^= sink + {0}; return s; }}"),
        ("part", "static int part_{0}(int *a, int n) {{ if (!a) return 0; for (int k = 0; k < n; k++) {{ sink += a[k] + {0};"
                 " sink ^= k * 3; if (sink == 77) for (int j = 0; j < n; j++) sink += a[j] ^ k; }} return sink; }}"),
        ("small", "static MAYBE int small_{0}(int x) {{ return (x * x + {0}) ^ (x >> 3); }}"),
        ("tmpl", "template <class T> MAYBE T tmpl_{0}(T x) {{ T s = x; for (int k = 0; k < {0} + 2; k++) s += s / 3 + sink; return s; }}"),
        ("over_int", "MAYBE int over_{0}(int x) {{ return x / ({0} + 3) + sink; }}"),
        ("over_long", "MAYBE long over_{0}(long x) {{ return x % ({0} + 5) + sink; }}"),
    ]
    for owner, text in pieces:
        s.add(f"{owner}_{i}", text.format(i))
    s.add(f"lamb_{i}", f"NOINLINE int lamb_{i}(int n) {{")
    if more_lambdas:
        s.add(f"lamb_{i}/new", f"  auto h = [&](int x) {{ sink += x / {i + 2}; return sink * 3; }};")
    s.add(f"lamb_{i}/f", f"  auto f = [&](int x) {{ for (int k = 0; k < x; k++) sink += k ^ {i}; return sink; }};")
    s.add(f"lamb_{i}/g", f"  auto g = [&](int x) {{ for (int k = 0; k < x; k++) sink -= k * {i + 1}; return x; }};")
    s.add(f"lamb_{i}", f"  return f(n) + g(n + 1){' + h(n)' if more_lambdas else ''}; }}")
    s.add(f"use_{i}", f"int use_{i}(int *a, int n) {{ struct pair p = {{ n, 0, 0 }}; int s = cold_{i}(a, n) + cons_{i}(n, 13);\n"
                      f"  s += isra_{i}(&p) + part_{i}(n > 1 ? a : 0, n) + part_{i}(a, n + 1) + part_{i}(a, n + 2);\n"
                      f"  s += small_{i}(s) + small_{i}(n) + tmpl_{i}<int>(s) + (int)tmpl_{i}<long>(s);\n"
                      f"  return s + over_{i}(s) + (int)over_{i}((long)n) + lamb_{i}(n); }}")


def make_sources(order, more_lambdas):
    sources = []
    for part in range(2):
        s = Source(f"part{part}.cc")
        s.add("", "struct pair { int x, y, z; };\nextern volatile int sink;\nextern void fail(int) __attribute__((cold, noreturn));\n"
                  "#ifndef MAYBE\n#define MAYBE\n#endif\n#define NOINLINE __attribute__((noinline))")
        s.add(f"same/{part}", f"static NOINLINE int same(int x) {{ for (int k = 0; k < x; k++) sink += k * {part + 4}; return sink; }}\n"
                              f"int call_same_{part}(int x) {{ return same(x) + 1; }}")
        for i in order(range(part, COUNT, 2)):
            add_functions(s, i, more_lambdas and i % 4 == 1)
        sources.append(s)
    s = Source("main.cc")
    s.add("", "#include <stdlib.h>\nvolatile int sink;\nvoid fail(int x) { sink = x; abort(); }")
    s.add("", "".join(f"int use_{i}(int *, int);" for i in range(COUNT)) + "int call_same_0(int), call_same_1(int);")
    s.add("main", "int main(int n, char **v) { int a[99] = { n }; (void)v; return call_same_0(n) + call_same_1(n)"
                  + "".join(f" + use_{i}(a, n)" for i in range(COUNT)) + "; }")
    return sources + [s]


class Build:
    def __init__(self, name, compiler, options, order=list, more_lambdas=False, debug=True):
        self.directory = os.path.join(DIRECTORY, name)
        self.program = os.path.join(self.directory, "shop")
        self.debug = debug
        self.sources = {s.name: s for s in make_sources(order, more_lambdas)}
        source_dir = os.path.join(self.directory, "src-" + name)
        os.makedirs(source_dir)
        for s in self.sources.values():
            with open(os.path.join(source_dir, s.name), "w") as f:
                f.write("\n".join(s.lines) + "\n")
        subprocess.run([compiler, *(["-g"] if debug else []), "-Wl,--build-id", *options, "-o", self.program,
                        *(os.path.join(source_dir, n) for n in self.sources)], check=True)
        self.addresses = self.list_addresses()
        self.owners = self.find_owners()

    def list_addresses(self):
        text = subprocess.run(["objdump", "-d", "-j", ".text", "--no-show-raw-insn", self.program], check=True, capture_output=True, text=True).stdout
        # Padding between functions belongs to none in DWARF, to the one before it in line tables.
        return [int(m.group(1), 16) for m in re.finditer(r"^ +([0-9a-f]+):\t(?!.*nop|xchg +%ax,%ax|data16)", text, re.M)]

    def find_owners(self):
        """By address: the function, by source line or, without debuginfo, by symbol; None: not ours."""
        asked = "\n".join(hex(a) for a in self.addresses)
        text = subprocess.run(["llvm-symbolizer", "-e", self.program], input=asked, check=True, capture_output=True, text=True).stdout
        owners = {}
        for address, answer in zip(self.addresses, text.split("\n\n")):
            name, place = answer.split("\n")[:2]
            owner = find_owner(name)
            file, number = place.split(":")[:2]
            source = self.sources.get(os.path.basename(file))
            if owner == "same":
                owner = f"same/{source.name[4]}" if source else None
            elif owner == "lambda":  # by line: numbers are what is judged
                owner = source.owners.get(int(number) if number.isdigit() else 0) if source else None
                owner = owner if owner and "/" in owner else None
            if not self.debug and owner and re.match("over|lamb|same", owner):
                owner = None
            owners[address] = owner or None
        return owners

    def write_profile(self):
        out = os.path.join(self.directory, "profile.pb")
        s = Strings()
        text = subprocess.run(["readelf", "-lW", "-n", self.program], check=True, capture_output=True, text=True).stdout
        build_id = re.search(r"Build ID: (\w+)", text).group(1)
        offset, start, size = re.search(r"LOAD +(\w+) (\w+) \w+ (\w+) \w+ R E", text).groups()
        offset, start, size = int(offset, 16), int(start, 16), int(size, 16)
        bias = 0x550000000000
        b = blob(1, num(1, s("cpu")) + num(2, s("nanoseconds")))
        mine = [a for a in self.addresses if self.owners[a]]
        for i, _ in enumerate(mine):
            b += blob(2, packed(1, [i + 1]) + packed(2, [1]))
        b += blob(3, num(1, 1) + num(2, bias + start) + num(3, bias + start + size) + num(4, offset) + num(5, s(self.program)) +
                  num(6, s(build_id)))
        b += b"".join(blob(4, num(1, i + 1) + num(2, 1) + num(3, bias + a)) for i, a in enumerate(mine))
        b += b"".join(blob(6, t) for t in s.items) + num(9, 1700000000000000000)
        with open(out, "wb") as f:
            f.write(b)
        return out

    def count_owners(self):
        return collections.Counter(o for o in self.owners.values() if o)


def find_owner(name):
    """The function of a name of llvm-symbolizer: each has a name of its own in the sources, except lambdas and `same`."""
    if "lambda" in name or "$_" in name or "operator()" in name:
        return "lambda"
    m = re.search(r"\b(?:(cold|cons|isra|part|small|use|lamb)_(\d+)|(tmpl_\d+)(<\w+>)|(over)_(\d+)\((\w+)|(same)\b)", name)
    if not m:
        return None
    if m.group(5):
        return f"over_{m.group(7)}_{m.group(6)}"
    return m.group(8) or (m.group(3) + m.group(4) if m.group(3) else f"{m.group(1)}_{m.group(2)}")


def find_tag(owner):
    """The text that a row's name contains."""
    return re.sub(r"_(int|long)_", "_", re.sub(r"[/<].*", "", owner))


def join_bare_names(rows):
    """Debuginfo has no linkage name for some inlined functions: a name with and one without parameters, as in `top`."""
    whole = {}
    for row in rows:
        key = row["function"].split("(")[0], row["file"], row["flat"] > 0 and row["flat_after"] > 0
        bare = whole.get(key)
        if bare and "(" in bare["function"] + row["function"] and bare["function"] != row["function"] and \
           not ("(" in bare["function"] and "(" in row["function"]):
            bare["flat"] += row["flat"]
            bare["flat_after"] += row["flat_after"]
        else:
            whole[key if not bare else (row["function"], row["file"])] = row
    return whole.values()


def judge(before, after, match):
    """Pairs in the truth, pairs found, rows that join two sides, and those that join what belongs together."""
    rows = json.loads(subprocess.run([CAIRN, "diff", "--json", "--match", match, before.write_profile(), after.write_profile()],
                                     check=True, capture_output=True, text=True).stdout)
    old, new = before.count_owners(), after.count_owners()
    units = collections.defaultdict(set)  # (values) of a function, or of all lambdas of one, to the functions
    for owner in old.keys() | new.keys():
        units[old[owner], new[owner]].add((find_tag(owner), frozenset([owner])))
    for i in range(COUNT):
        lambdas = frozenset(o for o in old.keys() | new.keys() if o.startswith(f"lamb_{i}/"))
        units[sum(old[o] for o in lambdas), sum(new[o] for o in lambdas)].add((f"lamb_{i}", lambdas))
    joined = right = 0
    found = set()
    for row in join_bare_names(rows):
        if not row["flat"] or not row["flat_after"]:
            continue
        joined += 1
        fits = [owners for tag, owners in units[row["flat"], row["flat_after"]] if re.search(rf"\b{tag}(?!\d)", row["function"])]
        right += bool(fits)
        if not fits:
            print(f"#   wrong: {row}")
        for owners in fits:
            found |= owners
    wanted = {o for o in old if new[o]}
    for owner in sorted(wanted - found) if match == "functions" else []:
        print(f"#   not found: {owner} {old[owner]} {new[owner]}")
    return len(wanted), len(wanted & found), joined, right


def main():
    gcc, clang = ["g++", ["-O2"]], ["clang++", ["-O2"]]
    base = Build("base", *gcc)
    variants = [
        ("gcc -O2 without inlining", Build("noinline", "g++", ["-O2", "-DMAYBE=__attribute__((noinline))"])),
        ("gcc -O3", Build("o3", "g++", ["-O3"])),
        ("gcc -O1", Build("o1", "g++", ["-O1"])),
        ("gcc -O2 -flto", Build("lto", "g++", ["-O2", "-flto=auto"])),
        ("clang -O2", Build("clang", *clang)),
        ("reordered sources with new lambdas", Build("reordered", *gcc, order=lambda r: list(reversed(r)), more_lambdas=True)),
        ("gcc -O2 without debuginfo", Build("bare", *gcc, debug=False)),
    ]
    sums = collections.Counter()
    for match in "functions", "exact":
        for name, build in variants:
            wanted, found, joined, right = judge(base, build, match)
            print(f"# {match}: {name}: precision {right}/{joined}, recall {found}/{wanted}")
            sums.update({(match, "wanted"): wanted, (match, "found"): found, (match, "joined"): joined, (match, "right"): right})
    for match in "functions", "exact":
        print(f"{match} precision {sums[match, 'right'] / max(1, sums[match, 'joined']):.4f} recall {sums[match, 'found'] / sums[match, 'wanted']:.4f}")


main()
