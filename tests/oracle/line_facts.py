# SPDX-License-Identifier: Apache-2.0
"""The line rows of a file in file order, as printed by llvm-dwarfdump."""
import array
import bisect
import collections
import re
import subprocess

Sequence = collections.namedtuple("Sequence", "start end table low high")
Row = collections.namedtuple("Row", "address path line")


def collapse(path):
    """Collapse '//' and '/./' in a path."""
    path = re.sub(r"/(\./|/)+", "/", path)
    return re.sub(r"^(\./)+", "", path)


def resolve(path):
    """collapse(), and also 'dir/../'."""
    out = []
    for part in collapse(path).split("/"):
        if part == ".." and out and out[-1] not in ("..", ""):
            out.pop()
        else:
            out.append(part)
    return "/".join(out)


class Table:
    def __init__(self, offset):
        self.offset, self.version = offset, 0
        self.directories, self.files = {}, {}
        self.comp_dir = ""

    def path(self, number):
        """The full path of a file; a relative path is joined to its directory, and that to the unit's.

        Directory 0 of version 5 is the unit's.
        """
        return self.join(*self.files.get(number, ("", 0)))

    def paths_near(self, number):
        """Paths returned by readers that are off by one in the file index, the directory index or both."""
        near = [n for n in (number - 1, number, number + 1) if n in self.files]
        indexes = {i for n in near for i in (self.files[n][1] - 1, self.files[n][1], self.files[n][1] + 1)}
        paths = {self.join(self.files[n][0], i) for n in near for i in indexes if i == 0 or i in self.directories}
        return paths | {self.comp_dir + "/" + p for p in paths}  # directory 0 of version 5, joined twice

    def join(self, name, index):
        if not name or name.startswith("/"):
            return name
        directory = self.directories.get(index, "")
        path = directory + "/" + name if directory else name
        if path.startswith("/") or not self.comp_dir or (self.version >= 5 and index == 0 and directory):
            return path
        return self.comp_dir + "/" + path


class Lines:
    def __init__(self, path, code):
        self.tables, self.sequences, self.dropped = {}, [], []
        self.address, self.line, self.file = array.array("Q"), array.array("I"), array.array("I")
        self.code = code
        dump = subprocess.Popen(["llvm-dwarfdump", "--debug-line", path], stdout=subprocess.PIPE, text=True,
                                errors="replace")
        self._read(dump.stdout)
        dump.wait()
        self.sequences.sort()
        self.starts = [s.start for s in self.sequences]
        self.furthest, far = [], 0
        for s in self.sequences:
            far = max(far, s.end)
            self.furthest.append(far)

    def _read(self, lines):
        table, low, number, name = None, 0, 0, None
        address, line_, file_ = self.address.append, self.line.append, self.file.append
        for text in lines:
            if text.startswith("0x"):
                p = text.split(None, 4)
                a = int(p[0], 16)
                address(a)
                line_(int(p[1]))
                file_(int(p[3]))
                if text.endswith("end_sequence\n"):
                    self._sequence(table, low)
                    low = len(self.address)
            elif text.startswith("debug_line["):
                offset = int(text[11:].split("]")[0], 16)
                table = self.tables[offset] = Table(offset)
            elif text.startswith("include_directories["):
                table.directories[int(text[20:].split("]")[0])] = text.split('"', 1)[1].rsplit('"', 1)[0]
            elif text.startswith("file_names["):
                number = int(text[11:].split("]")[0])
            elif text.startswith("           name: "):
                name = text.split('"', 1)[1].rsplit('"', 1)[0]
            elif text.startswith("      dir_index: "):
                table.files[number] = (name, int(text[17:]))
            elif text.startswith("         version: "):
                table.version = int(text[18:])

    def _sequence(self, table, low):
        high = len(self.address)
        s = Sequence(self.address[low], self.address[high - 1], table.offset, low, high)
        live = any(a <= s.start < b for a, b in self.code) and s.start < s.end
        (self.sequences if live else self.dropped).append(s)

    def set_directories(self, units):
        """Tables before version 5 do not contain the directory of their unit."""
        for unit in units:
            if unit.lines in self.tables:
                self.tables[unit.lines].comp_dir = unit.directory

    def boundaries(self):
        found = set()
        for s in self.sequences:
            found.update(self.address[s.low:s.high])
        return found

    def covering(self, address):
        """Sequences that cover an address."""
        i = bisect.bisect_right(self.starts, address) - 1
        while i >= 0 and self.furthest[i] > address:
            if self.sequences[i].end > address:
                yield self.sequences[i]
            i -= 1

    def rows(self, sequence, address):
        """The rows of a sequence that share the greatest address not above this one; the last covers the instruction.
        """
        high = bisect.bisect_right(self.address, address, sequence.low, sequence.high)
        low = bisect.bisect_left(self.address, self.address[high - 1], sequence.low, high)
        table = self.tables[sequence.table]
        return [Row(self.address[i], table.path(self.file[i]), self.line[i]) for i in range(low, high)]

    def last_before(self, address):
        """The last row of the sequence that ends last at or before an address."""
        i = bisect.bisect_right(self.starts, address) - 1
        if i < 0 or self.sequences[i].end > address:
            return None
        return self.rows(self.sequences[i], self.sequences[i].end - 1)[-1]
