# SPDX-License-Identifier: Apache-2.0
"""The classes of disagreements. Each is a predicate on the evidence; a disagreement that matches no class is
UNEXPLAINED.

A class is named after what the peer prints. "who" is the tool with the correct result: "ours", or "both" if the results
are two spellings of the same name or path, or the standard permits both. There is no class for "theirs": a result of
Cairn that does not follow from the rows and DIEs is OURS WRONG, whatever a peer prints (judge.py).
"""
import collections
import re

from elf_facts import no_suffix
from judge import is_own_name, is_unreadable, same_path, same_place, same_resolved

Class = collections.namedtuple("Class", "key who text")
CLASSES = {}
NAME_TESTS, PLACE_TESTS, CHAIN_TESTS = [], [], []

UNEXPLAINED = Class("unexplained", "?", "no class explains it")
OURS_WRONG = Class("ours wrong", "theirs", "our answer does not follow from the rows, DIEs and symbols")


def add(tests, key, who, text):
    def register(predicate):
        CLASSES[key] = Class(key, who, text)
        tests.append((key, predicate))
        return predicate
    return register


def plain(name):
    """A name reduced to the part on which all demanglers agree: without spaces and ABI tags."""
    return re.sub(r"\[abi:[^]]*\]|\s+", "", name)


# ---- names: case, index of our frame, our name and linkage name, theirs and their linkage name ----

@add(NAME_TESTS, "unreadable linkage name", "ours",
     "the linkage name as it is, because no demangler knows it. Holds when it is that of the DIE, and ours the DIE's name "
     "with its namespaces and classes")
def unreadable_linkage(c, i, ours, mangled, theirs, their_mangled):
    return any(len(chain) > i and chain[i].linkage == theirs and is_own_name(chain[i], ours) and is_unreadable(theirs)
               for chain in c.chains)


@add(NAME_TESTS, "demangler", "both",
     "the same mangled name, spelled by another demangler. Holds when the mangled names are equal")
def demangler(c, i, ours, mangled, theirs, their_mangled):
    return bool(mangled) and mangled == their_mangled


@add(NAME_TESTS, "clone suffix", "both",
     "the symbol's name with the suffix that the compiler adds for clones (`.isra.0`, `.constprop.0`, `.part.0`, "
     "`.cold`, `.lto_priv.0`); ours is the DIE's name. Holds when a symbol that covers the address has the peer's "
     "name, and the names differ only in the suffix")
def clone_suffix(c, i, ours, mangled, theirs, their_mangled):
    raw = {s.name for s in c.covering}
    for name, mine in ((their_mangled or theirs, mangled or ours), (theirs, ours)):
        if name != no_suffix(name) and no_suffix(name) == no_suffix(mine) and \
                (name in raw or theirs in c.facts.spellings(c.covering)):
            return True
    return False


def constructor(name):
    return re.sub(r"([CD])[0-5](?=[EI])", r"\1*", name)


@add(NAME_TESTS, "constructor kind", "both",
     "another of the names of one constructor or destructor (`C1`, `C2`, `D0`...) that share one address. Holds "
     "when the mangled names differ in that digit only")
def constructor_kind(c, i, ours, mangled, theirs, their_mangled):
    return bool(mangled and their_mangled) and mangled != their_mangled and \
        constructor(no_suffix(mangled)) == constructor(no_suffix(their_mangled))


@add(NAME_TESTS, "alias", "both",
     "the name of another symbol at the address where the function begins (weak and versioned aliases, `__GI_` "
     "names, folded functions). Holds when a symbol that covers the address has the peer's name, and one that "
     "begins at the same address has ours or the function's DIE names no symbol")
def alias(c, i, ours, mangled, theirs, their_mangled):
    for s in c.covering:
        if s.kind == "NOTYPE" or not {theirs, their_mangled} & c.facts.spellings([s]):
            continue
        names = {x for t in c.facts.symbols.at(s.value) for x in (t.name, no_suffix(t.name))}
        if (mangled or ours) in names or ours in names or not c.facts.is_symbol(mangled or ours):
            return True
    return False


@add(NAME_TESTS, "label", "ours",
     "a symbol without type, which is not a function (`.L` labels, ones without a name, `file.c.1a2b3c`, `_init` over the "
     "PLT). Holds "
     "when the peer's name is that of such a symbol at or before the address and ours is from the DIE, or that of "
     "the stub")
def label(c, i, ours, mangled, theirs, their_mangled):
    if not theirs and not their_mangled:
        return c.facts.symbols.nameless <= c.address
    named = [s for s in c.covering + c.before if s.name == (their_mangled or theirs) or s.name == theirs]
    return any(s.kind == "NOTYPE" or not s.size or c.in_section(".plt") for s in named)


@add(NAME_TESTS, "plain name", "ours",
     "the DIE's name without its namespaces, classes and parameters, if it has no linkage name that contains them. Holds "
     "when the DIE has no linkage name and the peer's name is its DW_AT_name, with which ours ends, or ours is that of a "
     "mangled symbol that covers the address")
def plain_name(c, i, ours, mangled, theirs, their_mangled):
    return any(len(chain) > i and chain[i].name == theirs and not chain[i].linkage and
               (c.is_symbols(chain[i], mangled) if mangled else ours.endswith("::" + theirs)) for chain in c.chains)


@add(NAME_TESTS, "names of the dwz file lost", "ours",
     "no name for a function that is described, or whose name is, in the supplementary file; or the name found at "
     "that offset of the program's own file; or its plain name, when only its linkage name is there. Holds when "
     "the DIE's origin or name refers to that file and the peer has no name or one of these")
def lost_names(c, i, ours, mangled, theirs, their_mangled):
    return any(len(chain) > i and chain[i].scope and "alt" in (chain[i].scope.origin, chain[i].scope.text) and
               (theirs == "??" or theirs == chain[i].scope.wrong_name or chain[i].scope.wrong_linkage in (theirs, their_mangled) or
                (chain[i].scope.text == "alt" and theirs == chain[i].scope.name)) for chain in c.chains)


@add(NAME_TESTS, "names of other units lost", "ours",
     "the name of the symbol around an inlined call whose function is described in another unit (LTO). Holds when "
     "the call's DIE has its abstract origin there and the peer's name is that of a symbol that covers the address")
def lost_unit_names(c, i, ours, mangled, theirs, their_mangled):
    return any(len(chain) > i and chain[i].scope and (chain[i].scope.kind, chain[i].scope.origin) == ("inlined", "unit")
               for chain in c.chains) and bool({theirs, their_mangled} & c.facts.spellings(c.covering))


@add(NAME_TESTS, "no name for padding", "both",
     "nothing for bytes that no DIE, row or sized symbol covers, and that the pclntab assigns to the preceding "
     "function. Holds when the program's own runtime names that function there")
def no_padding_name(c, i, ours, mangled, theirs, their_mangled):
    return theirs == "??" and c.address in c.facts.runtime and c.is_padding() and c.facts.runtime[c.address][0][0] == ours


@add(NAME_TESTS, "no stub name", "ours",
     "nothing for a PLT stub, or for the start of the PLT. Holds when the address is in a .plt section and the peer has "
     "no name")
def no_stub(c, i, ours, mangled, theirs, their_mangled):
    return theirs == "??" and c.is_stub_name(ours)


@add(NAME_TESTS, "padding named", "ours",
     "the preceding function, for bytes between functions. Holds when no DIE and no sized symbol covers the "
     "address, and ours is unknown")
def padding(c, i, ours, mangled, theirs, their_mangled):
    return ours == "??" and not c.scopes and not any(s.size for s in c.covering)


# ---- locations: case, index of our frame, our path and line, theirs ----

@add(PLACE_TESTS, "path spelling", "both",
     "the same path without `dir/../`, `./` or `//`")
def path_spelling(c, i, ours, theirs):
    return ours[1] == theirs[1] and bool(theirs[0]) and same_resolved(ours[0], theirs[0])


@add(PLACE_TESTS, "no unit directory", "ours",
     "a path that is not joined to the unit's directory. Holds when ours is that directory and the peer's path")
def no_directory(c, i, ours, theirs):
    tables = {s.table for s in c.sequences}
    units = [c.unit(chain) for chain in c.scopes] or [u for u in c.dies.units.values() if u.lines in tables]
    return ours[1] == theirs[1] and bool(theirs[0]) and any(
        same_place(ours[0], u.directory + "/" + theirs[0]) for u in units)


@add(PLACE_TESTS, "unit directory twice", "ours",
     "directory 0 of a version 5 table, which is that of the unit and relative, joined to the unit's. Holds when the "
     "peer's path is that directory and ours, which begins with it")
def directory_twice(c, i, ours, theirs):
    tables = {s.table for s in c.sequences}
    units = [c.unit(chain) for chain in c.scopes] or [u for u in c.dies.units.values() if u.lines in tables]
    return ours[1] == theirs[1] and any(
        ours[0].startswith(u.directory + "/") and same_path(theirs[0], u.directory + "/" + ours[0]) for u in units)


@add(PLACE_TESTS, "file of a call without one", "ours",
     "the first file of the table, for a call whose DIE has a line and no file (Zig's own code generator). Holds when ours "
     "is that line without a file")
def call_without_file(c, i, ours, theirs):
    return i > 0 and not ours[0] and ours[1] == theirs[1] != 0 and any(
        len(chain) > i and (chain[i].path, chain[i].line) == ours for chain in c.chains)


@add(PLACE_TESTS, "file symbol", "both",
     "the name of an STT_FILE symbol for code without lines. Holds when no row covers the address, the peer's file"
     " is such a name or empty, with line 0, and ours is empty, or in a Go program equal to its runtime's output")
def file_symbol(c, i, ours, theirs):
    return not c.sequences and theirs[1] == 0 and (not theirs[0] or theirs[0] in c.facts.symbols.files) and \
        (not ours[0] or c.address in c.facts.runtime)


@add(PLACE_TESTS, "another entry of the file table", "ours",
     "the right line, with the file or directory before or after the right one in the file table. Holds when the "
     "peer's path consists of the entry and the directory with an index that is off by at most one")
def file_off_by_one(c, i, ours, theirs):
    if ours[1] != theirs[1] or not theirs[0]:
        return False
    tables = {s.table for s in c.sequences} | {c.unit(chain).lines for chain in c.scopes}
    return any(same_path(theirs[0], p) for t in tables for p in c.facts.paths_one_off(t, ours[0]))


@add(PLACE_TESTS, "no line where no function", "both",
     "nothing for bytes that a row covers but no function (padding at the end of a sequence). Holds when no DIE "
     "covers the address, a row does, and the peer has no file")
def no_line(c, i, ours, theirs):
    return not c.scopes and bool(c.sequences) and theirs == ("", 0)


@add(PLACE_TESTS, "DWARF for pclntab", "both",
     "the place in the DWARF of the unstripped Go program, where the pclntab of the stripped one has another: of "
     "an inlined call, of a wrapper generated by the compiler, or of an instruction. Holds when the peer's place "
     "follows from rows and DIEs, and ours is equal to the output of the program's own runtime")
def dwarf_for_pclntab(c, i, ours, theirs):
    return c.address in c.facts.runtime and any(
        len(chain) > i and chain[i].line == theirs[1] and same_place(chain[i].path, theirs[0]) for chain in c.chains)


@add(PLACE_TESTS, "another sequence's row", "both",
     "the row of another sequence of the unit that also covers the address (folded functions). Holds when it is "
     "that row")
def other_sequence(c, i, ours, theirs):
    sequences = c.due_sequences()
    return i == 0 and len(sequences) > 1 and any(
        r.line == theirs[1] and same_place(r.path, theirs[0]) for s in sequences for r in c.rows(s)[-1:])


@add(PLACE_TESTS, "row after its end", "ours",
     "the last row of a sequence that has ended. Holds when no row covers the address and the peer's place is the "
     "last row before it")
def ended(c, i, ours, theirs):
    last = c.facts.lines.last_before(c.address)
    return not c.sequences and not ours[0] and bool(last) and last.line == theirs[1] and same_place(last.path, theirs[0])


# ---- whole chains: case, ours and theirs as lists of (name, path, line), our linkage names, theirs ----

def subsequence(short, long, same):
    """The indexes of the items of long that form short, None if there are none. The last items must match."""
    at, kept = len(long) - 1, []
    for item in reversed(short):
        while at >= 0 and not same(item, long[at], at):
            at -= 1
        if at < 0:
            return None
        kept.append(at)
        at -= 1
    return kept[::-1]


@add(CHAIN_TESTS, "runtime's omission", "both",
     "no type arguments, no wrapper around a function inlined into it, no name for the pclntab's first function, "
     "or the preceding function for padding bytes")
def omission(c, ours, theirs, linkage, their_linkage):
    return theirs == c.facts.runtime.get(c.address)


@add(CHAIN_TESTS, "inlines of other units lost", "ours",
     "the stack without inlined frames whose function is described in another unit (LTO). Holds when the other "
     "frames are the same, or differ by the classes above, and the DIE of a missing frame has its abstract origin "
     "in another unit")
def lost_unit(c, ours, theirs, linkage, their_linkage):
    return lost(c, ours, theirs, linkage, their_linkage, "unit")


@add(CHAIN_TESTS, "inlines of the dwz file lost", "ours",
     "the stack without inlined frames whose function is described in the supplementary file. Holds when the other"
     " frames are the same, or differ by the classes above, and the DIE of a missing frame has its abstract origin"
     " there")
def lost_alt(c, ours, theirs, linkage, their_linkage):
    return lost(c, ours, theirs, linkage, their_linkage, "alt")


@add(CHAIN_TESTS, "scopes below others lost", "ours",
     "only the scopes that are reached from the unit through DIEs that cover the address; namespaces, classes and "
     "other functions around a function do not cover it. Holds when the peer's frames are exactly those, or only "
     "the symbol if there are none, and some scopes are not reached")
def lost_below(c, ours, theirs, linkage, their_linkage):
    return c.facts.peer == "eu-addr2line" and any(
        walked(c, chain) and is_rest(c, frames, walked(c, chain), theirs, their_linkage)
        for chain in c.scopes for frames in c.chains_of(chain))


@add(CHAIN_TESTS, "scopes with indexed ranges lost", "ours",
     "the frames starting with the first scope whose ranges are not of DW_FORM_rnglistx. Holds when the innermost "
     "scope's ranges are, and the peer's frames are exactly those, or only the symbol if there are none")
def lost_indexed(c, ours, theirs, linkage, their_linkage):
    for chain in c.scopes if c.facts.peer == "addr2line" else ():
        first = next((i for i, x in enumerate(chain) if x.ranges != "indexed"), len(chain))
        if first and any(is_rest(c, frames, first, theirs, their_linkage) for frames in c.chains_of(chain)):
            return True
    return False


def walked(c, chain):
    """How many of the chain's scopes are not reached by a walk through DIEs that cover the address."""
    at = c.dies.reached[c.address, chain[0].die]
    return next((i for i, x in enumerate(chain) if x.die == at), len(chain))


def is_rest(c, frames, first, theirs, their_linkage):
    """Are theirs the frames from the first on, with the location of the row, or a symbol if there are no more frames?
    """
    if first == len(frames):
        return symbol_alone(c, frames, theirs, their_linkage)
    rest = [frames[first]._replace(path=frames[0].path, line=frames[0].line)] + frames[first + 1:]
    return len(rest) == len(theirs) and all(
        c.is_name(f, t[0], m) and f.line == t[2] and same_place(f.path, t[1])
        for f, t, m in zip(rest, theirs, their_linkage))


def symbol_alone(c, frames, theirs, their_linkage):
    """One frame: a symbol's name and the location of the row."""
    name, path, line = theirs[0]
    return len(theirs) == 1 and line == frames[0].line and same_place(path, frames[0].path) and \
        bool({name, their_linkage[0]} & c.facts.spellings(c.covering))


def lost(c, ours, theirs, linkage, their_linkage, origin=None):
    if len(theirs) >= len(ours) or (theirs[0][1:] != ours[0][1:] and not place_class(c, 0, ours[0][1:], theirs[0][1:])):
        return False
    chain = next((x for x in c.chains if len(x) == len(ours)), None)
    if not chain:
        return False
    names = [(t[0], m) for t, m in zip(theirs, their_linkage)]

    def same(item, frame, at):
        return item[0] == frame[0] or name_class(c, at, frame[0], linkage[at], *item) is not None
    kept = subsequence(names, ours, same)
    return kept is not None and kept[-1] == len(ours) - 1 and \
        (not origin or any(chain[i].scope and chain[i].scope.origin == origin for i in range(len(ours)) if i not in kept))


@add(CHAIN_TESTS, "DWARF not read", "ours",
     "the symbol only, where rows or DIEs cover the address (units that the peer cannot read, or finds only "
     "through .debug_aranges). Holds when the peer has one frame, named like the outermost one or a symbol there, "
     "without a line")
def not_read(c, ours, theirs, linkage, their_linkage):
    return bool(c.sequences or c.scopes) and len(theirs) == 1 and theirs[0][2] == 0 and any(o[1] for o in ours) and \
        "/" not in theirs[0][1] and (theirs[0][0] == ours[-1][0] or bool(
            name_class(c, len(ours) - 1, ours[-1][0], linkage[-1], theirs[0][0], their_linkage[0])))


@add(CHAIN_TESTS, "overlap", "both",
     "another of several functions of the first unit that cover the address. Holds when the peer's answer is another chain "
     "of the DIEs and rows that cover it")
def overlap(c, ours, theirs, linkage, their_linkage):
    return len(c.due) > 1 and c.is_ours(theirs, their_linkage)


@add(CHAIN_TESTS, "a later unit", "ours",
     "the frames of a unit whose copy of the function the linker dropped: the linker keeps the first copy, and "
     "ld.bfd and gold assign its address to copies of the same size. Holds when the peer's frames are the DIEs and"
     " rows of a unit after the first that covers the address; plain names are accepted")
def later_unit(c, ours, theirs, linkage, their_linkage):
    def is_frame(i, frame):
        name, path, line = theirs[i]
        mangled = their_linkage[i] or (linkage[i] if i < len(ours) and name == ours[i][0] else "")
        return line == frame.line and same_place(path, frame.path) and \
            (name == frame.name or c.is_name(frame, name, mangled))
    return any(len(chain) == len(theirs) and all(is_frame(i, f) for i, f in enumerate(chain)) for chain in c.later)


AT_ROW = Class("calls of the row's address", "ours",
               "the calls around the address where the line row begins, instead of those around the requested address. Holds"
               " when the outer frames are exactly those reached as in `scopes below others lost` at that address, and the "
               "innermost is that reached at the requested one")
CLASSES[AT_ROW.key] = AT_ROW


def calls_at_row(c, at_rows, theirs, their_linkage):
    """at_rows: the cases of the start addresses of the rows that cover c's address."""
    if not is_innermost(c, theirs[0], their_linkage[0]):
        return False
    return any(len(outer) == len(theirs) - 1 and
               all(n.is_name(f, t[0], m) and f.line == t[2] and same_place(f.path, t[1])
                   for f, t, m in zip(outer, theirs[1:], their_linkage[1:]))
               for n in at_rows for outer in walked_calls(n))


def is_innermost(c, theirs, their_linkage):
    for chain in c.scopes:
        for frames in c.chains_of(chain):
            left = frames[walked(c, chain):]
            if theirs[2] == frames[0].line and same_place(theirs[1], frames[0].path) and (
                    c.is_name(left[0], theirs[0], their_linkage) if left else
                    symbol_alone(c, frames, [theirs], [their_linkage])):
                return True
    return any(f[0].line == theirs[2] and same_place(f[0].path, theirs[1]) and
               c.names_uncovered(theirs[0], their_linkage) for f in c.chains if not c.scopes)


def walked_calls(c):
    """The outer frames reached by a walk; possibly none if the innermost call's function is in another unit."""
    for chain in c.scopes:
        first = walked(c, chain)
        for frames in c.chains_of(chain):
            yield frames[first + 1:]
            if first < len(chain) and chain[first].origin in ("unit", "alt"):
                yield []
    if not c.scopes:
        yield []


def name_class(c, i, ours, mangled, theirs, their_mangled):
    return next((key for key, test in NAME_TESTS if test(c, i, ours, mangled, theirs, their_mangled)), None)


def place_class(c, i, ours, theirs):
    return next((key for key, test in PLACE_TESTS if test(c, i, ours, theirs)), None)


def classify(c, ours, theirs, linkage, their_linkage):
    """The classes that explain all differences, most serious first; otherwise UNEXPLAINED or OURS WRONG."""
    if not c.is_ours(ours, linkage):
        return [OURS_WRONG.key]
    found = {}
    if len(ours) != len(theirs):
        found[UNEXPLAINED.key] = 0
    for i, (o, t) in enumerate(zip(ours, theirs) if not found else ()):
        if o[1:] != t[1:]:
            found[place_class(c, i, o[1:], t[1:]) or UNEXPLAINED.key] = 0
        if o[0] != t[0]:
            found[name_class(c, i, o[0], linkage[i], t[0], their_linkage[i]) or UNEXPLAINED.key] = 0
    if UNEXPLAINED.key in found:
        return [next((key for key, test in CHAIN_TESTS if test(c, ours, theirs, linkage, their_linkage)),
                     UNEXPLAINED.key)]
    return sorted(found, key=ORDER.index)


ORDER = [k for k, v in CLASSES.items() if v.who == "ours"] + [k for k, v in CLASSES.items() if v.who != "ours"]
