# SPDX-License-Identifier: Apache-2.0
"""Writes and reads pprof files for tests, with an independent encoder and decoder.

    pprof.py make FILE START FILE_OFFSET SIZE PATH BUILD_ID ADDRESS...   one location per process address, one stack
    pprof.py rest FILE       everything but lines, functions and the mappings' flags, texts in place of their numbers
    pprof.py frames FILE     per location: its frames, innermost first, as "function linkage file:line", one per line
    pprof.py flags FILE      per mapping: functions, files, lines, inlined frames
"""
import gzip
import sys
from profiles import Strings, blob, num, packed


def make(path, start, offset, size, file, build_id, addresses):
    s = Strings()
    b = blob(1, num(1, s("samples")) + num(2, s("count"))) + blob(1, num(1, s("cpu")) + num(2, s("nanoseconds")))
    label = blob(3, num(1, s("thread")) + num(2, s("main loop"))) + blob(3, num(1, s("bytes")) + num(3, 4096) + num(4, s("By")))
    b += blob(2, packed(1, range(10, 10 + len(addresses))) + packed(2, [3, 30000000]) + label)
    b += blob(2, packed(1, [10, 7]) + packed(2, [1, 10000000]))
    b += blob(3, num(1, 5) + num(2, start) + num(3, start + size) + num(4, offset) + num(5, s(file)) + num(6, s(build_id)))
    b += blob(3, num(1, 6) + num(2, 0x7000000000) + num(3, 0x7000001000) + num(5, s("/lib/named.so")) + num(7, 1))
    for i, a in enumerate(addresses):
        b += blob(4, num(1, 10 + i) + num(2, 5) + num(3, a))
    b += blob(4, num(1, 7) + num(2, 6) + num(3, 0x7000000010) + blob(4, num(1, 9) + num(2, 77)))
    b += blob(5, num(1, 9) + num(2, s("by_the_sender")) + num(3, s("by_the_sender")) + num(4, s("sender.c")) + num(5, 70))
    b += num(7, s("drop.*")) + num(8, s("keep.*")) + num(9, 1700000000000000000) + num(10, 5000000000)
    b += blob(11, num(1, s("cpu")) + num(2, s("nanoseconds"))) + num(12, 10000000)
    b += packed(13, [s("a comment"), s("another")]) + num(14, s("cpu")) + num(15, s("https://example.com/doc"))
    b += blob(99, b"of a later version")
    b += b"".join(blob(6, t) for t in s.items)
    with open(path, "wb") as f:
        f.write(gzip.compress(b, mtime=0))


def fields(data):
    at = 0

    def varint():
        nonlocal at
        v = shift = 0
        while True:
            v |= (data[at] & 0x7F) << shift
            shift += 7
            at += 1
            if data[at - 1] < 0x80:
                return v

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            assert key & 7 == 2, key
            n = varint()
            at += n
            yield key >> 3, data[at - n:at]


def load(path):
    with open(path, "rb") as f:
        data = gzip.decompress(f.read())
    return list(fields(data)), [v.decode() for k, v in fields(data) if k == 6]


def rest(path):
    top, strings = load(path)
    texts = {1: {1, 2}, 3: {5, 6}, 11: {1, 2}}
    for k, v in top:
        if k in (5, 6):
            continue
        if k == 2:
            print(k, [(n, [(m, strings[w] if m != 3 else w) for m, w in fields(x)] if n == 3 else x) for n, x in fields(v)])
        elif k in texts:
            print(k, [(n, strings[x] if n in texts[k] else x) for n, x in fields(v) if k != 3 or n < 7])
        elif k == 4:
            print(k, [(n, x) for n, x in fields(v) if n != 4])
        elif k in (7, 8, 14, 15):
            print(k, strings[v])
        elif k == 13:
            print(k, [strings[i] for i in v])
        else:
            print(k, v)


def frames(path):
    top, strings = load(path)
    functions = {}
    for k, v in top:
        if k == 5:
            f = dict(fields(v))
            assert f[1] not in functions and strings[0] == ""
            functions[f[1]] = [strings[f.get(i, 0)] for i in (2, 3, 4)]
    for k, v in top:
        if k == 4:
            print("location", dict((n, x) for n, x in fields(v) if n != 4)[1])
            for n, x in fields(v):
                if n == 4:
                    line = dict(fields(x))
                    print("%s %s %s:%d" % (*functions[line[1]], line.get(2, 0)))


def flags(path):
    for k, v in load(path)[0]:
        if k == 3:
            m = dict(fields(v))
            print([m.get(i, 0) for i in (7, 8, 9, 10)])


if __name__ == "__main__":
    what, path, *more = sys.argv[1:]
    if what == "make":
        make(path, int(more[0], 0), int(more[1], 0), int(more[2], 0), more[3], more[4], [int(a, 0) for a in more[5:]])
    else:
        {"rest": rest, "frames": frames, "flags": flags}[what](path)
