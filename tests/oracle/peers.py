# SPDX-License-Identifier: Apache-2.0
"""Runs Cairn and its peers. Each result is a text "name\\nfile:line\\nname\\nfile:line", innermost first; unknown is
??:0.
"""
import json
import re
import shutil
import subprocess

import elf_facts

BATCH = 200000
NEWER_LLVM = "llvm-symbolizer-19"  # of the package llvm-19; asked if it is installed
UNKNOWN = "??\n??:0"


def feed(argv, addresses):
    """eu-addr2line exits with 1 if any address is unknown, so exit codes are ignored."""
    text = "".join("0x%x\n" % a for a in addresses)
    return subprocess.run(argv, input=text, capture_output=True, text=True, errors="replace").stdout


def llvm_blocks(out):
    out = re.sub(r":\d+$", "", out, flags=re.M)
    return out.split("\n\n")[:-1]


def marked_blocks(out, addresses):
    """Split the output of a tool that prints each address before its result."""
    parts = re.split(r"^0x([0-9a-f]+)\n", out, flags=re.M)
    found = {int(a, 16): text.rstrip("\n") for a, text in zip(parts[1::2], parts[2::2])}
    return [found.get(a, UNKNOWN) or UNKNOWN for a in addresses]


class Cairn:
    name = "cairn"

    def __init__(self, program, file, server=None):
        self.argv = [program, "symbolize"] + (
            ["--server", server, "--build-id", elf_facts.build_id(file)] if server else ["-e", file])

    def ask(self, addresses):
        blocks = llvm_blocks(feed(self.argv + ["--format=llvm"], addresses))
        if len(blocks) != len(addresses):
            raise SystemExit("cairn gave %d answers for %d addresses" % (len(blocks), len(addresses)))
        return blocks

    def linkage(self, addresses):
        """Linkage names, one list for each address."""
        found = []
        for i in range(0, len(addresses), BATCH):
            out = feed(self.argv + ["--format=json"], addresses[i:i + BATCH])
            found += [[f["linkage_name"] for f in r["frames"]] for r in json.loads(out)["results"]]
        return found


class Llvm:
    def __init__(self, debug, name="llvm-symbolizer"):
        self.debug, self.name = debug, name

    def ask(self, addresses, demangle=True):
        option = "--demangle" if demangle else "--no-demangle"
        out = feed([self.name, "--addresses", "--inlines", option, "--obj=" + self.debug], addresses)
        return marked_blocks(re.sub(r":\d+$", "", out, flags=re.M), addresses)  # a name may be empty, as a block's end is


class Binutils:
    name = "addr2line"

    def __init__(self, debug):
        self.debug = debug

    def ask(self, addresses, demangle=True):
        out = feed(["addr2line", "-afi" + ("C" if demangle else ""), "-e", self.debug], addresses)
        out = re.sub(r" \(discriminator \d+\)$", "", out, flags=re.M)
        return marked_blocks(re.sub(r":\?$", ":0", out, flags=re.M), addresses)


class Elfutils:
    """eu-addr2line prints 'NAME inlined at PLACE in OUTER' for inlined frames, and a column."""
    name = "eu-addr2line"

    def __init__(self, debug):
        self.debug = debug

    def ask(self, addresses, demangle=True):
        out = feed(["eu-addr2line", "-afi" + ("C" if demangle else ""), "-e", self.debug], addresses)
        out = re.sub(r"(:\d+):\d+$", r"\1", out, flags=re.M)
        return marked_blocks(re.sub(r" inlined at .*$", "", out, flags=re.M), addresses)


class GoRuntime:
    """The Go program itself, which prints the results of its runtime (sample.go)."""
    name = "Go's runtime"

    def __init__(self, program, addresses):
        """The last byte before a function's entry cannot be looked up and is not in blocks."""
        out = subprocess.run([program, "frames"], input="".join("0x%x\n" % a for a in addresses),
                             capture_output=True, text=True, check=True).stdout
        parts = re.split(r"^0x([0-9a-f]+)\n", out, flags=re.M)
        self.blocks = {int(a, 16): self._normal(text.rstrip("\n")) for a, text in zip(parts[1::2], parts[2::2])}

    @staticmethod
    def _normal(text):
        text = re.sub(r"^\?:0$", "??:0", text, flags=re.M)
        return re.sub(r"^(?=\n|$)", "??", text) if text else UNKNOWN

    def ask(self, addresses, demangle=True):
        return [self.blocks[a] for a in addresses]


def frames(block):
    """(name, path, line) of each frame."""
    lines = block.split("\n")
    found = []
    for name, place in zip(lines[0::2], lines[1::2]):
        path, _, line = place.rpartition(":")
        found.append((name, "" if path == "??" else path, int(line) if line.isdigit() else 0))
    return found


def version(argv):
    out = subprocess.run(argv, capture_output=True, text=True).stdout
    m = re.search(r"(?:LLVM version|\(elfutils\)|Binutils[^)]*\)) ?(\S+)", out)
    return m.group(1) if m else "?"


def versions():
    newer = {NEWER_LLVM: version([NEWER_LLVM, "--version"])} if shutil.which(NEWER_LLVM) else {}
    return {"llvm-symbolizer": version(["llvm-symbolizer", "--version"]), **newer,
            "eu-addr2line": version(["eu-addr2line", "--version"]),
            "addr2line": version(["addr2line", "--version"])}
