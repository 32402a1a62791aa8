#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the stacks of the program of agent-java.t in an OTLP profiles request.

    java-stacks.py REQUEST SOURCE
    java-stacks.py --steps STACKS SOURCE    the same for what java-steps.c prints

SOURCE has a comment `// = METHOD` in the line where a method begins, `// end METHOD` where it ends, and
`// -> METHOD METHOD...` in each line that calls methods of this file. A stack is right if each method is called in a line
that says so, methods of other files and native functions between them aside, and if lines are those of the method. What an
unreadable frame called or was called by is not known.
Prints counts, and the wrong stacks.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
from otlp_dump import Dictionary, fields, numbers, one  # noqa: E402


def read_source(path):
    """{method: (first, last line)}, {(callee, line)}"""
    ranges, calls = {}, set()
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            for name in re.findall(r"// = (\S+)", line):
                ranges[name] = (number, number)
            for name in re.findall(r"// end (\S+)", line):
                ranges[name] = (ranges[name][0], number)
            for names in re.findall(r"// -> (.*)", line):
                calls.update((name, number) for name in names.split())
    return ranges, calls


def frames(dictionary, stack, path):
    """(method, line) of SOURCE, leaf first, inlined ones included; whether the leaf is one; whether one is unreadable."""
    out, leaf, unreadable = [], None, False
    for index in numbers(stack, 1):
        for line in [fields(x) for x in dictionary.locations[index].get(3, [])]:
            function = dictionary.functions[one(line, 1)]
            name = dictionary.strings[one(function, 1)]
            if name.startswith("[java"):
                unreadable = True
                out.append((None, 0))
            is_ours = dictionary.strings[one(function, 3)] == path
            leaf = is_ours if leaf is None else leaf
            if is_ours:
                out.append((name, one(line, 2)))
    return out, bool(leaf), unreadable


def find_fault(stack, ranges, calls):
    for i, (name, line) in enumerate(stack):
        if name is None:
            continue
        if name not in ranges:
            return f"unknown method {name}"
        if line and not ranges[name][0] <= line <= ranges[name][1]:
            return f"{name} at {line}"
        if i and line and stack[i - 1][0] is not None and (stack[i - 1][0], line) not in calls:
            return f"{stack[i - 1][0]} called by {name} at {line}"
    return None


def judge_steps(stacks, path):
    ranges, calls = read_source(path)
    count = dict.fromkeys(("steps", "wrong", "cut", "unreadable"), 0)
    with open(stacks, encoding="utf-8") as f:
        lines = f.read().splitlines()
    for times, text in (line.split("\t") for line in lines):
        frames_of_stack = [frame.split("|") for frame in text.split() if "|" in frame]
        stack = [(None, 0) if name.startswith("[java") else (name, int(line)) for name, file, line in frames_of_stack
                 if file == os.path.basename(path) or name.startswith("[java")]
        fault = find_fault(stack, ranges, calls)
        is_cut = text.endswith("lost") or not stack or stack[-1][0] not in ("Calls.main", "Calls.run", "Calls.<clinit>")
        if fault or is_cut:
            print(f"{times} {fault or 'cut'}: {text}")
        count["steps"] += int(times)
        count["wrong"] += int(times) * bool(fault)
        count["cut"] += int(times) * is_cut
        count["unreadable"] += int(times) * any(name is None for name, _ in stack)
    for name, value in count.items():
        print(name, value)


def main(request, path):
    with open(request, "rb") as f:
        message = fields(f.read())
    ranges, calls = read_source(path)
    file = os.path.basename(path)
    dictionary = Dictionary(one(message, 2, b""))
    count = dict.fromkeys(("samples", "wrong", "whole", "callers", "without_line", "leaves", "leaves_without_line",
                           "unreadable"), 0)
    for profile in (fields(p) for r in message.get(1, []) for s in fields(r).get(2, []) for p in fields(s).get(2, [])):
        period = one(profile, 6, 1) or 1
        for sample in map(fields, profile.get(2, [])):
            n = max(1, sum(numbers(sample, 4)) // period)
            stack, leaf, unreadable = frames(dictionary, dictionary.stacks[one(sample, 1)], file)
            count["unreadable"] += n * unreadable
            if not any(name for name, _ in stack):
                continue
            fault = find_fault(stack, ranges, calls)
            if fault:
                print(f"{n} wrong: {fault}: {stack}")
            count["samples"] += n
            count["wrong"] += n * bool(fault)
            count["whole"] += n * (stack[-1][0] in ("Calls.main", "Calls.run", "Calls.<clinit>"))
            count["callers"] += n * sum(name is not None for name, _ in stack[1:])
            count["without_line"] += n * sum(not line for name, line in stack[1:] if name)
            count["leaves"] += n * leaf
            count["leaves_without_line"] += n * (leaf and not stack[0][1])
    for name, value in count.items():
        print(name, value)


if sys.argv[1] == "--steps":
    judge_steps(*sys.argv[2:])
else:
    main(*sys.argv[1:])
