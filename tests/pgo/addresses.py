# SPDX-License-Identifier: Apache-2.0
"""Removes the names from a profile, so that it has only addresses and a build-id, as sent by an agent.

    addresses.py PROFILE BUILD-ID RESULT
"""
import gzip
import sys

sys.path.insert(0, "tests/e2e")
from profiles import blob, num

MAPPING, LOCATION, FUNCTION, STRING = 3, 4, 5, 6
MAPPING_BUILD_ID, MAPPING_FLAGS, LOCATION_LINE = 6, range(7, 11), 4


def fields(b):
    """(number, value) of each field: bytes, or a number."""
    i = 0

    def varint():
        nonlocal i
        v = shift = 0
        while True:
            v |= (b[i] & 127) << shift
            shift += 7
            i += 1
            if b[i - 1] < 128:
                return v

    while i < len(b):
        key, value = varint(), varint()
        if key & 7 == 2:
            i, value = i + value, b[i:i + value]
        yield key >> 3, value


def message(pairs):
    return b"".join(blob(k, v) if isinstance(v, bytes) else num(k, v) for k, v in pairs)


def main():
    profile = list(fields(gzip.decompress(open(sys.argv[1], "rb").read())))
    build_id, first = sum(k == STRING for k, _ in profile), True
    out = []
    for k, v in profile:
        if k == MAPPING and first:  # of the program
            v = message([p for p in fields(v) if p[0] != MAPPING_BUILD_ID and p[0] not in MAPPING_FLAGS] + [(MAPPING_BUILD_ID, build_id)])
            first = False
        elif k == LOCATION:
            v = message(p for p in fields(v) if p[0] != LOCATION_LINE)
        if k != FUNCTION:
            out.append((k, v))
    out.append((STRING, sys.argv[2].encode()))
    open(sys.argv[3], "wb").write(gzip.compress(message(out)))


main()
