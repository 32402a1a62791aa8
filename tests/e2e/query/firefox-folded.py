# SPDX-License-Identifier: Apache-2.0
"""firefox-folded.py FILE: prints the stacks of a profile for the Firefox Profiler in the format of `cairn flame
--format folded`, sorted. Reads the columns according to the format's types, and fails if their lengths or indexes
are inconsistent.
"""
import json
import sys

KERNEL = "Kernel"


def check_table(name, table):
    for column, values in table.items():
        if column != "length":
            assert len(values) == table["length"], f"{name}.{column} has {len(values)} of {table['length']}"


with open(sys.argv[1], encoding="utf-8") as f:
    profile = json.load(f)
shared, (thread,) = profile["shared"], profile["threads"]
strings = shared["stringArray"]
for table_name, table in shared.items():
    if table_name != "stringArray":
        check_table(table_name, table)
samples = thread["samples"]
check_table("samples", {k: v for k, v in samples.items() if k != "weightType"})
assert samples["time"] == sorted(samples["time"]), "times fall"
assert any(c["color"] == "grey" for c in profile["meta"]["categories"]), "there is no default category"
assert len(set(strings)) == len(strings), "a string is there twice"
stacks, frames, functions = shared["stackTable"], shared["frameTable"], shared["funcTable"]
scale = 1000000 if samples["weightType"] == "tracing-ms" else 1
lines = []
for stack, weight in zip(samples["stack"], samples["weight"]):
    names = []
    while stack is not None:
        frame = stacks["frame"][stack]
        kernel = profile["meta"]["categories"][frames["category"][frame]]["name"] == KERNEL
        names.append(strings[functions["name"][frames["func"][frame]]] + ("_[k]" if kernel else ""))
        prefix = stacks["prefix"][stack]
        assert prefix is None or prefix < stack, "a caller comes after its callee"
        stack = prefix
    lines.append(f"{';'.join(reversed(names)) or '[no stack]'} {round(weight * scale)}")
for source, resource in zip(functions["source"], functions["resource"]):
    assert source is None or strings[shared["sources"]["filename"][source]], "a function's file has no name"
    assert resource == -1 or strings[shared["resourceTable"]["name"][resource]], "a function's object has no name"
print("\n".join(sorted(lines)))
