#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the stacks of the program of agent-node.t in an OTLP profiles request.

    node-stacks.py REQUEST FILE

A stack is right if each function of FILE is called where the table says, built-in functions and C++ between them aside,
and if lines are those of the function. Prints counts, and the wrong stacks.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../support"))
from otlp_dump import Dictionary, fields, numbers, one  # noqa: E402

# Name, first and last line; the line of the caller that calls it.
FUNCTIONS = {"arbeit": (2, 8), "teil": (9, 11), "summe": (13, 17), "toJSON": (18, 20), "schlüssel語": (22, 24),
             "tief": (25, 29), "runde": (31, 34), "immer": (35, 41), "(anonymous)": (14, 16), "script": (1, 42)}
CALLS = {("arbeit", "(anonymous)"): {15}, ("arbeit", "schlüssel語"): {23}, ("teil", "arbeit"): {5},
         ("(anonymous)", "summe"): {14}, ("summe", "toJSON"): {19}, ("schlüssel語", "tief"): {28},
         ("tief", "tief"): {27}, ("tief", "runde"): {33}, ("toJSON", "runde"): {32}, ("runde", "immer"): {38},
         ("immer", "script"): {42}}


def frames(dictionary, stack, path):
    """(function, line) of FILE, leaf first, inlined ones included; and whether such a frame is the leaf."""
    out, leaf = [], None
    for index in numbers(stack, 1):
        lines = [fields(x) for x in dictionary.locations[index].get(3, [])]
        for line in lines:
            function = dictionary.functions[one(line, 1)]
            is_ours = dictionary.strings[one(function, 3)] == path
            leaf = is_ours if leaf is None else leaf
            if not is_ours:
                continue
            name, start = dictionary.strings[one(function, 1)], one(function, 4)
            if name == "(anonymous)" and start == 1:
                name = "script"
            out.append((name, one(line, 2), start))
    return out, bool(leaf)


def find_fault(stack):
    for i, (name, line, start) in enumerate(stack):
        if name not in FUNCTIONS or start != FUNCTIONS[name][0]:
            return f"{name} starts at {start}"
        if line and not FUNCTIONS[name][0] <= line <= FUNCTIONS[name][1]:
            return f"{name} at {line}"
        if i and ((stack[i - 1][0], name) not in CALLS or (line and line not in CALLS[stack[i - 1][0], name])):
            return f"{stack[i - 1][0]} called by {name} at {line}"
    return None


def main(request, path):
    with open(request, "rb") as f:
        message = fields(f.read())
    dictionary = Dictionary(one(message, 2, b""))
    count = dict.fromkeys(("samples", "wrong", "whole", "callers", "without_line", "leaves", "leaves_without_line"), 0)
    for profile in (fields(p) for r in message.get(1, []) for s in fields(r).get(2, []) for p in fields(s).get(2, [])):
        period = one(profile, 6, 1) or 1
        for sample in map(fields, profile.get(2, [])):
            n = max(1, sum(numbers(sample, 4)) // period)
            stack, leaf = frames(dictionary, dictionary.stacks[one(sample, 1)], path)
            if not stack:
                continue
            fault = find_fault(stack)
            if fault:
                print(f"{n} wrong: {fault}: {stack}")
            count["samples"] += n
            count["wrong"] += n * bool(fault)
            count["whole"] += n * (stack[-1][0] in ("script", "immer"))
            count["callers"] += n * (len(stack) - 1)
            count["without_line"] += n * sum(not line for _, line, _ in stack[1:])
            count["leaves"] += n * leaf
            count["leaves_without_line"] += n * (leaf and not stack[0][1])
    for name, value in count.items():
        print(name, value)


main(*sys.argv[1:])
