#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the corpus: one small program's pclntab in every layout, as a data segment at 0x20000, and malformed ones.

    make.py DIRECTORY

    0x1000  main.main   /src/main.go:10
    0x100c              /src/main.go:11
    0x1010              main.add at /src/add.go:25, inlined at /src/main.go:11
    0x1018              main.mul at /src/add.go:30, inlined at /src/add.go:25, inlined at /src/main.go:11
    0x1020              /src/main.go:12
    0x1038              padding
    0x1040  main.(*T).Area  /src/shape.go:7
    0x1050  the end
"""
import pathlib
import sys

ADDRESS, TEXT = 0x20000, 0x1000
MAGIC = {"1.2": 0xFFFFFFFB, "1.16": 0xFFFFFFFA, "1.18": 0xFFFFFFF0, "1.20": 0xFFFFFFF1}
FILES = [b"/src/main.go", b"/src/add.go", b"/src/shape.go"]
NAMES = [b"main.main", b"main.(*T).Area", b"main.add", b"main.mul"]
NONE = 0xFFFFFFFF


def varint(v):
    out = b""
    while v >= 0x80:
        out += bytes([v & 0x7F | 0x80])
        v >>= 7
    return out + bytes([v])


def steps(quantum, *pairs):
    """A pc-value table of (value, length) pairs."""
    out, last = b"", -1
    for value, length in pairs:
        d = value - last
        out += varint(d * 2 if d >= 0 else -d * 2 - 1) + varint(length // quantum)
        last = value
    return out + b"\0"


class Blob:
    def __init__(self, order):
        self.order, self.data = order, b"\0"

    def add(self, data, align=1):
        self.data += bytes(-len(self.data) % align)
        at = len(self.data)
        self.data += data
        return at

    def word(self, v, n):
        return (v & (1 << 8 * n) - 1).to_bytes(n, self.order)


def tables(blob, q, files):
    """Offsets of: file, line, call of main.main; file, line of Area; a table unrelated to calls."""
    m, a, s = files
    return [blob.add(x) for x in (
        steps(q, (m, 16), (a, 16), (m, 24)), steps(q, (10, 12), (11, 4), (25, 8), (30, 8), (12, 24)),
        steps(q, (-1, 16), (0, 8), (1, 8), (-1, 24)), steps(q, (s, 16)), steps(q, (7, 16)), steps(q, (0, 56)))]


def tree(blob, names, version):
    calls = [(-1, names[2], 12), (0, names[3], 20)]
    w = blob.word
    if version == "1.20":
        return b"".join(w(0, 4) + w(n, 4) + w(pc, 4) + w(1, 4) for _, n, pc in calls)
    return b"".join(w(p, 2) + w(0, 2) + w(0, 4) + w(0, 4) + w(n, 4) + w(pc, 4) for p, n, pc in calls)


def record(b, version, ptr, entry, name, file, line, pcdata, funcdata, at):
    """A function's record, which starts at offset `at`."""
    w = b.word
    out = w(entry, 4 if version in ("1.18", "1.20") else ptr)
    out += w(name, 4) + w(0, 4) + w(0, 4) + w(0, 4) + w(file, 4) + w(line, 4) + w(len(pcdata), 4)
    if version != "1.2":
        out += w(0, 4)
    if version == "1.20":
        out += w(9, 4)
    out += bytes([0, 0, 0, len(funcdata)]) + b"".join(w(x, 4) for x in pcdata)
    if version in ("1.18", "1.20"):
        return out + b"".join(w(x, 4) for x in funcdata)
    out += bytes(-(at + len(out)) % ptr)
    return out + b"".join(w(x, ptr) for x in funcdata)


def columns(kind, call, other, tree_at, elsewhere):
    """pcdata and funcdata of a function with inlined calls."""
    if kind == "1.12":
        return [other, call, other], [elsewhere, elsewhere, tree_at, elsewhere, elsewhere]
    if kind == "1.14":
        return [other, other, call], [elsewhere, elsewhere, elsewhere, elsewhere, tree_at]
    return [other, other, call], [elsewhere, elsewhere, elsewhere, tree_at]


def go_1_2(kind, ptr, order, quantum):
    b = Blob(order)
    b.data = bytes(8 + ptr + 5 * ptr + 4)  # header, two functions and the end, offset of the files
    names = [b.add(n + b"\0") for n in NAMES]
    paths = [b.add(f + b"\0") for f in FILES]
    t = tables(b, quantum, [1, 2, 3])
    files = b.add(b"".join(b.word(x, 4) for x in [4, *paths]), 8)
    nothing = ADDRESS + b.add(bytes(64), 8)
    inlined = ADDRESS + b.add(tree(b, names, "1.2"), 8)
    pcdata, funcdata = columns(kind, t[2], t[5], inlined, nothing)
    at = b.add(b"", 8)
    main = b.add(record(b, "1.2", ptr, TEXT, names[0], t[0], t[1], pcdata, funcdata, at))
    area = b.add(record(b, "1.2", ptr, TEXT + 0x40, names[1], t[3], t[4], [], [], 0), 8)
    w = b.word
    head = w(MAGIC["1.2"], 4) + bytes([0, 0, quantum, ptr]) + w(2, ptr)
    head += w(TEXT, ptr) + w(main, ptr) + w(TEXT + 0x40, ptr) + w(area, ptr) + w(TEXT + 0x50, ptr) + w(files, 4)
    return head + b.data[len(head):]


def newer(version, ptr, order, quantum, text_in_module, trees="40"):
    """trees: the word of moduledata that says where they are, or "behind" the functions' data, which nothing says."""
    w = Blob(order).word
    names, paths, units, pcs, funcs, data = (Blob(order) for _ in range(6))
    names.data = paths.data = units.data = funcs.data = data.data = b""
    name = [names.add(n + b"\0") for n in NAMES]
    for path in FILES:
        units.add(w(paths.add(path + b"\0"), 4))
    t = tables(pcs, quantum, [0, 1, 2])
    data.add(bytes(32 if trees != "behind" else 0))
    inlined = data.add(tree(data, name, version), 8)
    relative = version in ("1.18", "1.20")
    word = 4 if relative else ptr
    base = 0 if relative else TEXT
    header = 8 + ptr * (8 if relative else 7)
    at = [header]
    for part in (names, units, paths, pcs):
        part.data += bytes(-(at[-1] + len(part.data)) % 8)
        at.append(at[-1] + len(part.data))
    table_bytes = 5 * word
    tree_address = 0x20800 + inlined
    pcdata, funcdata = columns("1.15", t[2], t[5], inlined if relative else tree_address,
                               NONE if relative else 0x20800)
    first = table_bytes + -table_bytes % 8
    main = record(funcs, version, ptr, base, name[0], t[0], t[1], pcdata, funcdata, at[-1] + first)
    second = first + len(main) + -len(main) % 8
    area = record(funcs, version, ptr, base + 0x40, name[1], t[3], t[4], [], [], at[-1] + second)
    table = w(base, word) + w(first, word) + w(base + 0x40, word) + w(second, word) + w(base + 0x50, word)
    functions = table + bytes(first - len(table)) + main + bytes(-len(main) % 8) + area
    head = w(MAGIC[version], 4) + bytes([0, 0, quantum, ptr]) + w(2, ptr) + w(3, ptr)
    if relative:
        head += w(0 if text_in_module else TEXT, ptr)
    head += b"".join(w(x, ptr) for x in at)
    out = head + names.data + units.data + paths.data + pcs.data + functions
    if trees == "behind":
        out += bytes(-len(out) % 8) + data.data
    assert len(out) < 0x400
    out += bytes(0x400 - len(out))
    module = [0] * 75
    for index, part in ((0, -1), (1, 0), (4, 1), (7, 2), (10, 3), (13, 4), (16, 4)):
        module[index] = ADDRESS if part < 0 else ADDRESS + at[part]
    module[20], module[21], module[22], module[23] = TEXT, TEXT + 0x50, TEXT, TEXT + 0x50
    module[38 if version == "1.18" else 40] = 0x20800
    if trees != "40":
        module[40] = ADDRESS + at[1]
    if trees == "41":
        module[41] = 0x20800
    out += b"".join(w(x, ptr) for x in module)
    return out + bytes(0x800 - len(out)) + (data.data if trees != "behind" else b"")


def main():
    good = {
        "go1.12": go_1_2("1.12", 8, "little", 1), "go1.14": go_1_2("1.14", 8, "little", 1),
        "go1.15": go_1_2("1.15", 8, "little", 1), "go1.15-mips": go_1_2("1.15", 4, "big", 4),
        "go1.16": newer("1.16", 8, "little", 1, False), "go1.18": newer("1.18", 8, "little", 1, False),
        "go1.18-s390x": newer("1.18", 8, "big", 2, False), "go1.20": newer("1.20", 8, "little", 1, False),
        "go1.20-arm64": newer("1.20", 8, "little", 4, False), "go1.20-386": newer("1.20", 4, "little", 1, False),
        "go1.26": newer("1.20", 8, "little", 1, True),
        "go1.27": newer("1.20", 8, "little", 1, True, "behind"),
        "go1.27-moved": newer("1.20", 8, "little", 1, True, "41"),
    }
    new, old = good["go1.20"], good["go1.15"]
    bad = {
        "magic-only": new[:8], "cut-header": new[:40], "cut-functions": new[:0x120], "cut-tree": new[:0x820],
        "huge-count": new[:8] + b"\xff" * 8 + new[16:], "huge-offsets": new[:32] + b"\xff" * 40 + new[72:],
        "old-huge-count": old[:8] + b"\xff" * 7 + b"\x7f" + old[16:], "old-cut": old[:60],
        "no-module": good["go1.26"][:0x400], "all-ones": new[:8] + b"\xff" * 1024,
        # A call inlined into itself: its parent's pc is inside it.
        "cycle": new[:0x820 + 8] + (20).to_bytes(4, "little") + new[0x820 + 12:],
    }
    out = pathlib.Path(sys.argv[1])
    for kind, files in (("good", good), ("bad", bad)):
        for name, data in files.items():
            (out / kind / name).write_bytes(data)


main()
