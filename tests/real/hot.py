#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the hottest functions of two concurrent profiles.

    hot.py DUMP PERF-SCRIPT NAME...

DUMP is the output of tests/support/otlp_dump.py, PERF-SCRIPT that of `perf script -F
comm,pid,tid,time,event,ip,sym,dso`; NAMEs are the executables to include. A function is (file, start of its FDE by
.eh_frame_hdr), since most files have no names; samples in the kernel are skipped. Prints how many of the ten functions
with most self time, and of the twenty that are on most stacks, are in both profiles.
"""
import bisect
import collections
import os
import re
import struct
import sys


class Functions:
    """Starts of functions and segments of an ELF file."""

    def __init__(self, path):
        self.starts, self.segments, self.base = [], [], 0
        try:
            with open(path, "rb") as f:
                data = f.read()
        except OSError:
            return
        if data[:4] != b"\x7fELF":
            return
        offset, = struct.unpack_from("<Q", data, 32)
        size, count = struct.unpack_from("<HH", data, 54)
        for i in range(count):
            kind, _, file_offset, address, _, file_size = struct.unpack_from("<IIQQQQ", data, offset + i * size)
            if kind == 1:
                self.segments.append((file_offset, file_size, address))
            elif kind == 0x6474E550 and data[file_offset + 1:file_offset + 4] == b"\x1b\x03\x3b":
                entries, = struct.unpack_from("<I", data, file_offset + 8)
                self.starts = sorted(address + struct.unpack_from("<i", data, file_offset + 12 + 8 * n)[0]
                                     for n in range(entries))

    def address(self, file_offset):
        for at, size, address in self.segments:
            if at <= file_offset < at + size:
                return address + file_offset - at
        return None

    def start(self, address):
        at = bisect.bisect_right(self.starts, address) - 1
        return self.starts[at] if at >= 0 else address


FILES = {}


def function(path, address):
    if path not in FILES:
        FILES[path] = Functions(path)
    return os.path.basename(path), FILES[path].start(address)


def ours(path, names):
    leaf, any_frame = collections.Counter(), collections.Counter()
    with open(path) as f:
        for line in f:
            value, labels, frames = line.rstrip("\n").split("\t")
            labels = dict(label.partition("=")[::2] for label in labels.split(";"))
            frames = [x.split(":", 3) for x in frames.split(";")]
            if labels.get("process.executable.name") not in names or not frames[0][2]:
                continue
            if frames[0][1] == "vmlinux" or frames[0][1].endswith(".ko"):
                continue
            places = [function(x[1], int(x[2], 16)) for x in frames if x[2]]
            leaf[places[0]] += int(value)
            for place in set(places):
                any_frame[place] += int(value)
    return leaf, any_frame


HEAD = re.compile(r"^(\S.*?) +(\d+)/\d+ +[\d.]+:")
FRAME = re.compile(r"^\s+([0-9a-f]+) .*\((/[^()]*)\)$")


def theirs(path, names):
    """perf prints a frame's address as an offset into its file."""
    leaf, any_frame = collections.Counter(), collections.Counter()
    frames, wanted = [], False

    def end():
        if wanted and frames:
            leaf[frames[0]] += 1
            for place in set(frames):
                any_frame[place] += 1

    with open(path, errors="replace") as f:
        for line in f:
            head, frame = HEAD.match(line), FRAME.match(line)
            if head:
                end()
                frames, wanted = [], head.group(1).strip() in names
            elif frame and wanted:
                file = frame.group(2)
                if file not in FILES:
                    FILES[file] = Functions(file)
                address = FILES[file].address(int(frame.group(1), 16) - (1 if frames else 0))
                if address is not None:
                    frames.append(function(file, address))
        end()
    return leaf, any_frame


def both(title, a, b, most):
    top = [[place for place, _ in x.most_common(most)] for x in (a, b)]
    total = [sum(x.values()) or 1 for x in (a, b)]
    shared = [place for place in top[0] if place in top[1]]
    print(f"    {title}: {len(shared)} of {min(most, max(len(top[0]), len(top[1])))} are the same")
    return top, total


def main(dump, script, *names):
    leaf, frames = ours(dump, names)
    their_leaf, their_frames = theirs(script, names)
    print(f"    beside perf's {sum(their_leaf.values())} samples of user code:")
    top, total = both("self time, first 10", leaf, their_leaf, 10)
    both("on the stack, first 20", frames, their_frames, 20)
    for place in top[0][:10]:
        print(f"      {place[0]}+0x{place[1]:x} self {100 * leaf[place] / total[0]:.1f}%, perf"
              f" {100 * their_leaf[place] / total[1]:.1f}%")


if __name__ == "__main__":
    main(*sys.argv[1:])
