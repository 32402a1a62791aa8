# SPDX-License-Identifier: Apache-2.0
"""Adds the values of all samples in an OTLP file of async-profiler: async-otlp.py FILE VERSION."""
import sys


def fields(data):
    """The fields of a message: number, and an integer or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            size = 8 if key & 7 == 1 else varint()
            yield key >> 3, data[at : at + size]
            at += size


def messages(data, path):
    """The messages at a path of field numbers."""
    for number, value in fields(data):
        if number == path[0]:
            yield from messages(value, path[1:]) if path[1:] else [value]


# Sample.values, which async-profiler does not pack: 1.9 of OTLP has them in field 2, 1.10 in field 4.
VALUES = 2 if sys.argv[2] in ("4.3", "4.4") else 4
with open(sys.argv[1], "rb") as file:
    samples = list(messages(file.read(), [1, 2, 2, 2]))
print(sum(value for sample in samples for number, value in fields(sample) if number == VALUES))
