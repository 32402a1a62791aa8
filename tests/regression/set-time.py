# SPDX-License-Identifier: Apache-2.0
"""Copies a profile with another time, the middle of the hour HOURS ago: set-time.py PPROF COPY HOURS."""

import gzip
import sys
import time

from profiles import num

TIME = 9  # time_nanos of a profile


def read_number(data, at):
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return number, at


def fields_of(data):
    """Fields of a message as (number, bytes with its key); a profile has only numbers and blobs at this level."""
    at = 0
    while at < len(data):
        key, end = read_number(data, at)
        value, end = read_number(data, end)
        end += value if key & 7 == 2 else 0
        yield key >> 3, data[at:end]
        at = end


with gzip.open(sys.argv[1]) as f:
    fields = list(fields_of(f.read()))
hour = int(time.time()) // 3600 - int(sys.argv[3])
with gzip.open(sys.argv[2], "w") as f:
    f.write(b"".join(text for number, text in fields if number != TIME) + num(TIME, (hour * 3600 + 1800) * 10**9))
