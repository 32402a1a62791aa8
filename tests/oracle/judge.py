# SPDX-License-Identifier: Apache-2.0
"""What the answer has to be, from rows that llvm-dwarfdump printed, DIEs that libdw read, and symbols of readelf.

The rules: of the rows of a sequence that share the greatest address up to the one asked for, the last covers it; the
innermost DIE whose ranges cover the address and the ones around it are the frames; each frame but the innermost stands
at the call_file and call_line of the one inside it. Where no DIE covers, there is one frame, named after the symbol.
"""
import collections

from line_facts import collapse, resolve

Frame = collections.namedtuple("Frame", "linkage name path line scope")


class Case:
    """One address at which somebody disagrees, with all evidence."""

    def __init__(self, facts, address, dies=None):
        self.facts, self.address, self.dies = facts, address, dies or facts.dies
        self.scopes = self.dies.chains(address)
        self.sequences = list(facts.lines.covering(address))
        self.covering = list(facts.symbols.covering(address))
        self.before = list(facts.symbols.before(address))
        self.chains = [c for chain in self.scopes for c in self._places(chain)] or self._uncovered()

    def rows(self, sequence):
        return self.facts.lines.rows(sequence, self.address)

    def unit(self, chain):
        return self.dies.units[chain[-1].unit]

    def sequences_of(self, chain):
        """The sequences of the unit's own table, else all that cover the address."""
        own = [s for s in self.sequences if s.table == self.unit(chain).lines]
        return own or self.sequences

    def _places(self, chain):
        for s in self.sequences_of(chain) or [None]:
            row = self.rows(s)[-1] if s else None
            place = (row.path, row.line) if row else ("", 0)
            out = []
            for scope in chain:
                out.append(Frame(scope.linkage, scope.name, *place, scope))
                place = (self.dies.call_path(scope), scope.call_line)
            yield out

    def _uncovered(self):
        rows = [self.rows(s)[-1] for s in self.sequences]
        places = [(r.path, r.line) for r in rows] or [("", 0)]
        return [[Frame("", None, path, line, None)] for path, line in places]

    def in_section(self, prefix):
        return any(n.startswith(prefix) and a <= self.address < b for n, a, b in self.facts.named_sections)

    def symbol_names(self):
        return {s.name for s in self.covering}

    def names_uncovered(self, name):
        """May an address without a DIE have this name: of a symbol that covers it or is last before it, or of a stub?"""
        if name == "??":
            return not any(s.kind in ("FUNC", "IFUNC") and s.size for s in self.covering)
        if name.endswith("@plt"):
            return self.in_section(".plt")
        return name in self.facts.spellings(self.covering) or \
            name in self.facts.spellings(s for s in self.before if not s.size)

    def is_ours(self, ours, linkage):
        """Is our answer one that the rules allow? More than one is where functions or units overlap."""
        return any(self._is(chain, ours, linkage) for chain in self.chains)

    def _is(self, chain, ours, linkage):
        if len(chain) != len(ours):
            return False
        for frame, (name, path, line), mangled in zip(chain, ours, linkage):
            if line != frame.line or not same_path(path, frame.path):
                return False
            if not self.is_name(frame, name, mangled):
                return False
        return True

    def is_name(self, frame, name, mangled):
        if frame.name is None:
            return self.names_uncovered(name)
        if frame.linkage:
            return frame.linkage in (mangled, name)
        if not frame.name:
            return self.names_uncovered(name)
        return name == frame.name or name.endswith("::" + frame.name)


def same_path(a, b):
    return a == b or collapse(a) == collapse(b)


def same_place(a, b):
    """The same file, also where one tool took 'dir/../' out."""
    return same_path(a, b) or resolve(a) == resolve(b)
