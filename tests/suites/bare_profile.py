#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write a profile in the format of pprof with addresses in all functions of a program, without names or lines.

    bare_profile.py PROGRAM PROFILE
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from profiles import blob, num, packed  # noqa: E402  pylint: disable=wrong-import-position

STEP = 3  # bytes between two addresses


def function_addresses(program):
    """Addresses in each function that has a size, from its start on."""
    listing = subprocess.run(["nm", "-S", program], capture_output=True, text=True, check=True).stdout
    for line in listing.splitlines():
        fields = line.split()
        if len(fields) == 4 and fields[2] in "tTwW":
            start = int(fields[0], 16)
            yield from range(start, start + int(fields[1], 16), STEP)


def main():
    program, profile = sys.argv[1:]
    addresses = list(function_addresses(program))
    out = blob(1, num(1, 1) + num(2, 2))
    for number, _ in enumerate(addresses, 1):
        out += blob(2, packed(1, (number,)) + packed(2, (6 + number,)))
    out += blob(3, num(1, 1) + num(2, 0) + num(3, 0x100000) + num(4, 0) + num(5, 3))
    for number, address in enumerate(addresses, 1):
        out += blob(4, num(1, number) + num(2, 1) + num(3, address))
    for text in ("", "cpu", "nanoseconds", os.path.abspath(program)):
        out += blob(6, text)
    with open(profile, "wb") as file:
        file.write(out)


if __name__ == "__main__":
    main()
