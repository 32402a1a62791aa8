#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each line of a log is valid.

usage: log-lines.py json|logfmt FILE
"""
import json
import re
import sys

kind, path = sys.argv[1:]
VALUE = re.compile(r'([a-z_]+)=("(?:[^"\\\x00-\x1f]|\\.)*"|[A-Za-z0-9:.+-]*)(?: |$)')
with open(path, "rb") as f:
    lines = f.read().decode("utf-8").split("\n")
assert lines.pop() == "", "the last line is cut"
assert lines, "there are no lines"
for line in lines:
    assert line.isprintable(), ascii(line)
    if kind == "json":
        record = json.loads(line)
    else:
        record, at = {}, 0
        while at < len(line):
            pair = VALUE.match(line, at)
            assert pair, line[at:]
            record[pair[1]] = json.loads(pair[2]) if pair[2].startswith('"') else pair[2]
            at = pair.end()
    assert list(record)[:3] == ["time", "level", "subsystem"] and list(record)[-1] == "msg", line
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record["time"]), line
    assert record["level"] in ("debug", "info", "warn", "error"), line
