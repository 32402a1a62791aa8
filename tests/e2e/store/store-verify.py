# SPDX-License-Identifier: Apache-2.0
"""Damages tables for store-verify.t: store-verify.py KIND TABLES. Prints the file that the check must report."""
import glob
import json
import os
import sys

kind, tables = sys.argv[1:]


def newest(table):
    return sorted(glob.glob(f"{tables}/{table}/**/part-*.parquet", recursive=True) or
                  glob.glob(f"{tables}/{table}/**/*.parquet", recursive=True))[-1]


def edit_log(table, change):
    """Applies change(action) to the last add of the table; the checkpoint is removed, so that the commits are read."""
    for checkpoint in glob.glob(f"{tables}/{table}/_delta_log/*checkpoint*"):
        os.unlink(checkpoint)
    for path in sorted(glob.glob(f"{tables}/{table}/_delta_log/*.json"), reverse=True):
        with open(path, encoding="utf-8") as f:
            actions = [json.loads(line) for line in f]
        adds = [a["add"] for a in actions if "add" in a]
        if not adds:
            continue
        change(adds[-1])
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(a) + "\n" for a in actions)
        return f"{table}/{adds[-1]['path']}"
    raise SystemExit("no add")


def edit_stats(table, change):
    def on_add(add):
        stats = json.loads(add["stats"])
        change(stats)
        add["stats"] = json.dumps(stats)
    return edit_log(table, on_add)


def flip(path, at):
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 0xFF]))
    return os.path.relpath(path, tables)


def unlink(path):
    os.unlink(path)
    return os.path.relpath(path, tables)


def truncate(path):
    os.truncate(path, os.path.getsize(path) - 10)
    return os.path.relpath(path, tables)


def drop_add(table, name_of_reference):
    """Removes the add from the last commit that has one: its rows are referenced, but no file has them."""
    for path in sorted(glob.glob(f"{tables}/{table}/_delta_log/*.json"), reverse=True):
        with open(path, encoding="utf-8") as f:
            lines = [line for line in f if '"add"' not in line]
            f.seek(0)
            if len(lines) == len(f.readlines()):
                continue
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(lines)
        return name_of_reference + "/"
    raise SystemExit("no add")


def add_twice(table):
    """Adds a copy of a file under another name, in a separate commit: each of its rows is stored twice."""
    logs = sorted(glob.glob(f"{tables}/{table}/_delta_log/*.json"))
    with open(logs[-1], encoding="utf-8") as f:
        add = next(a for a in map(json.loads, f) if "add" in a)
    with open(f"{tables}/{table}/{add['add']['path']}", "rb") as f:
        content = f.read()
    add["add"]["path"] = "part-twice.parquet"
    with open(f"{tables}/{table}/part-twice.parquet", "wb") as f:
        f.write(content)
    version = int(os.path.basename(logs[-1]).removesuffix(".json")) + 1
    with open(f"{tables}/{table}/_delta_log/{version:020}.json", "w", encoding="utf-8") as f:
        f.write(json.dumps(add) + "\n")
    return f"{table}/part-twice.parquet"


print({
    "twice": lambda: add_twice("locations"),
    "missing": lambda: unlink(newest("samples")),
    "cut": lambda: truncate(newest("stacks")),
    "flipped": lambda: flip(newest("locations"), 60),
    "size": lambda: edit_log("samples", lambda add: add.update(size=add["size"] + 1)),
    "rows": lambda: edit_stats("samples", lambda s: s.update(numRecords=s["numRecords"] + 1)),
    "nulls": lambda: edit_stats("samples", lambda s: s["nullCount"].update(period=7)),
    "bounds": lambda: edit_stats("samples", lambda s: s["maxValues"].update(time="2026-09-01T00:00:00.000Z")),
    "text": lambda: edit_stats("samples", lambda s: s["minValues"].update(profile_type="z")),
    "times": lambda: edit_stats("samples", lambda s: s["minValues"].update(time="2026-09-30T00:00:00.000Z")),
    "stack": lambda: drop_add("stacks", "samples"),
    "location": lambda: drop_add("locations", "stacks"),
}[kind]())
