# SPDX-License-Identifier: Apache-2.0
"""Functions and inlined calls that cover addresses, as printed by die_facts (libdw)."""
import collections
import subprocess

Scope = collections.namedtuple("Scope", "die parent unit kind linkage name call_file call_line origin wrong_linkage "
                               "wrong_name ranges text")
Unit = collections.namedtuple("Unit", "offset lines directory name")


def starts(program, path):
    out = subprocess.run([program, "starts", path], capture_output=True, text=True, check=True).stdout
    return {int(line, 16) for line in out.split()}


class Dies:
    def __init__(self, program, path, addresses):
        text = "".join("%x\n" % a for a in addresses)
        out = subprocess.run([program, "scopes", path], input=text, capture_output=True, text=True, errors="replace",
                             check=True).stdout
        self.units, self.scopes, self.reached = {}, {}, {}
        self.cover = collections.defaultdict(list)
        for line in out.splitlines():
            p = line.split("\t")
            if p[0] == "A":
                self.cover[int(p[1], 16)].append(int(p[2], 16))
                self.reached[int(p[1], 16), int(p[2], 16)] = int(p[3], 16)
            elif p[0] == "D":
                self.scopes[int(p[1], 16)] = Scope(int(p[1], 16), int(p[2], 16), int(p[3], 16), p[4], p[5], p[6], p[7],
                                                   int(p[8]), *p[9:14])
            elif p[0] == "U":
                self.units[int(p[1], 16)] = Unit(int(p[1], 16), int(p[2], 16), p[3], p[4])

    def chains(self, address):
        """Chains of scopes, innermost first. More than one when functions or units overlap."""
        here = dict.fromkeys(self.cover.get(address, ()))
        parents = set()
        for die in here:
            up = self.scopes[die].parent
            while up:
                parents.add(up)
                up = self.scopes[up].parent
        found = []
        for die in here:
            if die in parents:
                continue
            chain = []
            while die:
                chain.append(self.scopes[die])
                die = self.scopes[die].parent
            found.append(chain)
        return found

    def call_path(self, scope):
        directory = self.units[scope.unit].directory
        path = scope.call_file
        if not path or not directory or path.startswith("/") or path.startswith(directory + "/"):
            return path  # libdw has joined directory 0 of version 5, which is the unit's
        return directory + "/" + path
