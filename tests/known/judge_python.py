#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""judge_python.py OTLP VERSION: compares the stacks of python_calls.py with its comments.

Prints the samples with Python frames, how many of them are right in per cent, and how many have a wrong line. A stack is
right if it ends at the start of the program or of a thread, each function was called from a line that calls it, and
native frames stand between the two where C code makes the call. Before 3.11 they stand between all calls."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from otlp_dump import Dictionary, fields, numbers, one  # noqa: E402

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python_calls.py")
NATIVE = None


def read_program():
    """Of each line the function it is in, whom it calls, and whether C code makes the call."""
    lines, function = {}, "<module>"
    with open(PROGRAM) as f:
        for number, text in enumerate(f, 1):
            begun = re.match(r" *def (\w+)", text)
            if begun:
                function = begun.group(1)
            elif text[0] not in " \n#":
                function = "<module>"
            called = re.search(r"  # (\w+)( by C)?$", text)
            lines[number] = (function, called and called.group(1), bool(called and called.group(2)))
    return lines


def read_frame(d, index):
    """(name, file, line) of a Python frame; NATIVE."""
    location = d.locations[index]
    if one(location, 2) or d.strings[one(d.mappings[one(location, 1)], 4)]:
        return NATIVE
    line = fields(one(location, 3, b""))
    function = d.functions[one(line, 1)]
    return d.strings[one(function, 1)].split(".")[-1], d.strings[one(function, 3)], one(line, 2)


def samples(d, request):
    for resource in map(fields, request.get(1, [])):
        for scope in map(fields, resource.get(2, [])):
            for profile in map(fields, scope.get(2, [])):
                for sample in map(fields, profile.get(2, [])):
                    yield sum(numbers(sample, 4)), [read_frame(d, i) for i in numbers(d.stacks[one(sample, 1)], 1)]


def judge(stack, program, has_runs):
    """(whether the order is right, whether all lines are)"""
    name = os.path.basename(PROGRAM)
    python = [f for f in stack if f]
    callee, between, right = None, False, python[-1][0] in ("<module>", "_bootstrap")
    for frame in stack:
        if frame is NATIVE:
            between = True
            continue
        if os.path.basename(frame[1]) != name:
            between = True  # of the standard library; the calls through it are all by C
            continue
        function, called, by_c = program.get(frame[2], (None, None, False))
        if function != frame[0]:
            return right, False
        if callee:
            right = right and called == callee and (between == by_c or not has_runs)
        callee, between = frame[0], False
    return right, True


def main(path, version):
    with open(path, "rb") as f:
        request = fields(f.read())
    d, program = Dictionary(one(request, 2, b"")), read_program()
    total = good = wrong_lines = 0
    for value, stack in samples(d, request):
        if not any(stack):
            continue  # taken before the process was known, or at its end
        right, right_lines = judge(stack, program, version >= (3, 11))
        total += value
        good += value * right
        wrong_lines += value * (not right_lines)
        if not (right and right_lines):
            print("wrong:", stack, file=sys.stderr)
    print(total, f"{100 * good / max(total, 1):.2f}", wrong_lines)


main(sys.argv[1], tuple(map(int, sys.argv[2].split(".")[:2])))
