# SPDX-License-Identifier: Apache-2.0
"""Derives the correct result from line rows printed by llvm-dwarfdump, DIEs read by libdw, and symbols printed by
readelf.

The rules: of the rows of a sequence that share the greatest address not above the given one, the last covers it. The
frames are the innermost DIE whose ranges cover the address and the enclosing ones; the location of each frame but the
innermost is the call_file and call_line of the frame inlined into it. Addresses without a covering DIE have one frame,
named after the symbol. Of several units with a function at an address the first counts: linkers keep the first copy of
a function, and some give the dropped copies its address. A function without a linkage name may have that of a symbol, and
one whose linkage name no demangler reads has its plain name.

For a Go program Cairn gets only the pclntab. Then the expected result is that of the program's own runtime, and DWARF
is used only for addresses that the runtime cannot resolve.
"""
import collections
import functools
import re
import shutil
import subprocess

from elf_facts import no_suffix
from line_facts import collapse, resolve

Frame = collections.namedtuple("Frame", "linkage name path line scope")


class Case:
    """One address for which the results differ, with all evidence."""

    def __init__(self, facts, address, dies=None):
        self.facts, self.address, self.dies = facts, address, dies or facts.dies
        self.scopes = self.dies.chains(address)
        self.sequences = list(facts.lines.covering(address))
        self.covering = list(facts.symbols.covering(address))
        self.before = list(facts.symbols.before(address))
        self.chains = [c for chain in self.scopes for c in self.chains_of(chain)] or self._uncovered()
        first = min((chain[-1].unit for chain in self.scopes), default=None)
        self.later = [c for chain in self.scopes if chain[-1].unit != first for c in self.chains_of(chain)]
        self.due = [c for chain in self.scopes if chain[-1].unit == first for c in self.chains_of(chain)] or self.chains

    def rows(self, sequence):
        return self.facts.lines.rows(sequence, self.address)

    def unit(self, chain):
        return self.dies.units[chain[-1].unit]

    def due_sequences(self):
        """The sequences whose rows may give the result: those of the first unit with a function here, else all."""
        return self.sequences_of([f.scope for f in self.due[0]]) if self.scopes else self.sequences

    def sequences_of(self, chain):
        """The sequences of the unit's own table, or else all that cover the address."""
        own = [s for s in self.sequences if s.table == self.unit(chain).lines]
        return own or self.sequences

    def chains_of(self, chain):
        """The scopes as frames, once for each sequence that covers the address."""
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

    def is_stub_name(self, name):
        return (name.endswith("@plt") or name == "_PROCEDURE_LINKAGE_TABLE_") and (
            self.in_section(".plt") or self.in_section(".iplt"))

    def symbol_names(self):
        return {s.name for s in self.covering}

    def names_uncovered(self, name, mangled=""):
        """Is this name permitted for an address without a DIE: the name of a symbol that covers it, of the last one
        before it, or of a stub?
        """
        if name == "??":
            return not any(s.kind in ("FUNC", "IFUNC") and s.size for s in self.covering)
        if self.is_stub_name(name):
            return True
        return bool({name, mangled or name} & self.facts.spellings(
            self.covering + [s for s in self.before if not s.size]))

    def is_ours(self, ours, linkage):
        """Do the rules permit Cairn's result? If functions of a unit overlap, several results are permitted."""
        if self.address in self.facts.runtime:
            return self.is_runtimes(ours)
        return self.follows(ours, linkage)

    def follows(self, frames, linkage):
        """Do these frames follow from rows, DIEs and symbols?"""
        return any(self.is_chain(chain, frames, linkage) for chain in self.due)

    def is_runtimes(self, ours):
        """Are they the frames printed by Go's runtime, except for those that it is known to omit?"""
        theirs = self.facts.runtime[self.address]
        if ours[0][0] == "??":
            return len(ours) == 1 and ours[0][1:] == ("", 0) and self.is_padding()
        if len(ours) == len(theirs) + 1:  # the runtime omits a wrapper around an inlined function
            made_up = ours[-1][1:] == ("<autogenerated>", 1) and self.is_function(ours[-1][0])
            if not made_up and not self.follows(ours, [""] * len(ours)):
                return False
            ours = ours[:-1]
        return len(ours) == len(theirs) and all(
            o[1:] == t[1:] and (o[0] == t[0] or brief(o[0]) == t[0] or (t[0] == "??" and self.is_function(o[0])))
            for o, t in zip(ours, theirs))

    def is_padding(self):
        return not self.scopes and not self.sequences and not any(s.size for s in self.covering)

    def is_function(self, name):
        return any(s.kind == "FUNC" and s.name == name for s in self.covering)

    def is_chain(self, chain, ours, linkage):
        if len(chain) != len(ours):
            return False
        for frame, (name, path, line), mangled in zip(chain, ours, linkage):
            if line != frame.line or not same_path(path, frame.path):
                return False
            if not self.is_name(frame, name, mangled) and not (frame is chain[-1] and self.is_symbols(frame, mangled)):
                return False
        return True

    def is_symbols(self, frame, mangled):
        """Is this the name of a mangled symbol with a size here, for a function whose DIE has no linkage name?"""
        return bool(mangled) and not frame.linkage and any(
            s.size and no_suffix(s.name) == mangled for s in self.covering)

    def is_name(self, frame, name, mangled):
        if frame.name is None:
            return self.names_uncovered(name, mangled)
        if frame.linkage:
            return frame.linkage in (mangled, name) or (is_own_name(frame, name) and is_unreadable(frame.linkage))
        if not frame.name:
            return self.names_uncovered(name, mangled)
        return is_own_name(frame, name)


def is_own_name(frame, name):
    return bool(frame.name) and (name == frame.name or name.endswith("::" + frame.name))


@functools.lru_cache(maxsize=None)
def is_unreadable(linkage):
    """Does no demangler know this mangled name?"""
    if not re.match(r"_Z|_R|_D\d", linkage):
        return False
    outputs = [subprocess.run([tool], input=linkage, capture_output=True, text=True, check=True).stdout.strip()
               for tool in ("c++filt", "llvm-cxxfilt-19", "llvm-cxxfilt") if shutil.which(tool)]
    return all(out == linkage for out in outputs)


def brief(name):
    """A Go function's name as printed by the runtime, without type arguments."""
    return re.sub(r"\[.*\]", "[...]", name)


def same_path(a, b):
    return a == b or collapse(a) == collapse(b)


def same_resolved(a, b):
    """The same file, even if one tool collapsed 'dir/../'."""
    return same_path(a, b) or resolve(a) == resolve(b)


def same_place(a, b):
    """The same file, even if one tool also joined the unit's relative directory twice: ./misc/./misc/err.c."""
    def once(path):
        return re.sub(r"^(\.[^/]*(?:/[^/]+)*)/\1/", r"\1/", path)
    return same_resolved(a, b) or same_resolved(once(a), once(b))
