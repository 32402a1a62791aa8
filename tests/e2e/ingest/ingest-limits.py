# SPDX-License-Identifier: Apache-2.0
"""Generates push requests with many pprof profiles.

    ingest-limits.py FILE PROFILES DAYS KEYS KEY_BYTES   times are spread over DAYS days up to now
"""
import sys
import time
from profiles import Strings, blob, num, packed

DAY_NS = 86400 * 10**9


def profile(number, time_ns):
    s = Strings()
    b = blob(1, num(1, s("samples")) + num(2, s("count"))) + blob(2, packed(1, [1]) + packed(2, [1]))
    b += blob(4, num(1, 1) + blob(4, num(1, 1) + num(2, 7))) + blob(5, num(1, 1) + num(2, s("work_%d" % number)))
    b += num(9, time_ns)
    return b + b"".join(blob(6, t) for t in s.items)


def main():
    profiles, days, keys, key_bytes = map(int, sys.argv[2:])
    now = time.time_ns()
    body = b""
    for i in range(profiles):
        labels = b"".join(blob(1, blob(1, ("k%07d" % k).ljust(key_bytes, "x")) + blob(2, "v")) for k in range(keys))
        raw = profile(i, now - (i % days) * DAY_NS)
        body += blob(1, labels + blob(2, blob(1, raw)))
    with open(sys.argv[1], "wb") as f:
        f.write(body)


main()
