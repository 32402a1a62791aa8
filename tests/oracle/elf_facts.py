# SPDX-License-Identifier: Apache-2.0
"""Symbols and code sections of an ELF file, as printed by readelf."""
import bisect
import collections
import re
import subprocess

Symbol = collections.namedtuple("Symbol", "value size kind bind name")
CLONE = re.compile(r"(\.(isra|constprop|part|cold|lto_priv|llvm|localalias|warm|abi0|abiinternal)(\.\d+)*|\.\d+)+$")


def readelf(*argv):
    return subprocess.run(["readelf", "-W", *argv], capture_output=True, text=True, errors="replace").stdout


def sections(path):
    """(name, start, end) of every executable section, sorted by address."""
    found = []
    for line in readelf("-S", path).splitlines():
        m = re.match(r"\s*\[\s*\d+\]\s+(\S+)\s+\S+\s+([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+) \S+\s+([A-Za-z]*)\s", line)
        if m and "X" in m.group(4) and "A" in m.group(4) and int(m.group(3), 16):
            found.append((m.group(1), int(m.group(2), 16), int(m.group(2), 16) + int(m.group(3), 16)))
    return sorted(found, key=lambda s: s[1])


def build_id(path):
    m = re.search(r"Build ID: ([0-9a-f]+)", readelf("-n", path))
    return m.group(1) if m else ""


def no_suffix(name):
    """A name without its symbol version and the suffixes that compilers add to clones."""
    name = re.sub(r" \[clone [^]]*\]", "", name.split("@")[0])
    return CLONE.sub("", name) or name


class Symbols:
    """Functions and labels in code, sorted by address."""

    def __init__(self, path, code, also=None):
        seen = {}
        self.files = set()
        self.nameless = float("inf")  # the first label without a name
        for file in [path] + ([also] if also else []):
            for line in readelf("-s", file).splitlines():
                p = line.split(None, 7)
                if len(p) == 7 and p[3] == "NOTYPE" and p[6] != "UND":
                    self.nameless = min(self.nameless, int(p[1], 16))
                if len(p) != 8 or not p[0].rstrip(":").isdigit() or p[6] == "UND":
                    continue
                if p[3] == "FILE":
                    self.files.add(p[7])
                if p[3] in ("FUNC", "IFUNC", "NOTYPE", "OBJECT"):
                    s = Symbol(int(p[1], 16), int(p[2], 0), p[3], p[4], p[7] if "(" in p[7] else p[7].split(" ")[0])  # names of Zig have spaces
                    if any(a <= s.value < b for a, b in code):
                        seen[s] = None
        self.all = sorted(seen)
        self.starts = [s.value for s in self.all]
        self.longest = max((s.size for s in self.all), default=0)

    def at(self, address):
        """Symbols whose value is the address."""
        i = bisect.bisect_left(self.starts, address)
        while i < len(self.all) and self.starts[i] == address:
            yield self.all[i]
            i += 1

    def covering(self, address):
        """Symbols whose size covers the address."""
        i = bisect.bisect_right(self.starts, address) - 1
        while i >= 0 and self.starts[i] + self.longest > address:
            s = self.all[i]
            if s.value <= address < s.value + max(s.size, 1):
                yield s
            i -= 1

    def before(self, address):
        """The last symbols at or before the address, whatever their sizes."""
        i = bisect.bisect_right(self.starts, address) - 1
        return self.at(self.starts[i]) if i >= 0 else iter(())

    def functions(self):
        return sorted({s.value for s in self.all if s.kind in ("FUNC", "IFUNC")})
