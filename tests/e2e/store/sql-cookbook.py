# SPDX-License-Identifier: Apache-2.0
"""Runs the sql blocks of docs/sql-cookbook.md, in their order: sql-cookbook.py DATA DIR. DIR has cairn's output for the
same samples: top.json, missing.json, cairn.folded, and of each gauge TYPE TYPE.json and TYPE.series.json. `.read FILE`, a command of DuckDB's shell, is replaced by the
file.
"""
import collections
import json
import os
import re
import sys

import duckdb

data, directory = sys.argv[1:]


def says(good, name, detail=""):
    print(("ok - " if good else "not ok - ") + name)
    if not good:
        print("#  ", detail)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def blocks():
    heading = ""
    for part in re.finditer(r"^#+ ([^\n]*)$|^```sql\n(.*?)^```$", read("docs/sql-cookbook.md"), re.M | re.S):
        if part[1]:
            heading = part[1]
        else:
            yield heading, part[2]


db = duckdb.connect()
os.environ["TZ"] = "UTC"
results = collections.defaultdict(list)
for heading, text in blocks():
    text = text.replace("'cairn-data/", f"'{data}/").replace("'stacks.folded'", f"'{directory}/stacks.folded'")
    text = re.sub(r"^\.read (\S+)$", lambda m: read(m[1]), text, flags=re.M).replace("LIMIT 20", "")
    try:
        result = db.execute(text)
        rows = result.fetchall() if result.description else []
        says("SET VARIABLE" in text or rows, f"{heading}: it runs and finds something", "no rows")
        results[heading].append(rows)
    except duckdb.Error as error:
        says(False, f"{heading}: it runs", f"{error}: {text}")
        results[heading].append([])

theirs, ours = collections.Counter(), collections.Counter()
for function, file, seconds in results["Top functions by CPU time"][0]:
    theirs[function, file or ""] += round(seconds * 1e9)
top = json.loads(read(directory + "/top.json"))
for row in top:
    ours[row["function"], row["file"] or ""] += row["flat"]
says(+ours == +theirs and len(ours) > 100, "the top functions are those of cairn top", sorted((ours - theirs).items())[:3])
total = sum(row["flat"] for row in top)
cpu = sum(flat for _, _, flat, _ in results["Top functions by CPU time"][1])
says(cpu >= total > 0, "the view top has all of them", (cpu, total))
by_version = {version: value for version, _, value, percent in results["Cost by a label"][0]}
says(by_version.get("1") == by_version.get("2") is not None, "the same profile twice costs the same", by_version)
says(all(abs(before - after) < 1e-9 for _, before, after in results["Comparing two versions"][0]), "and no function's share differs")
says(sum(value for _, value in results["Over time"][0]) >= total, "the minutes have all of it")
patterns = {re.search(r"'(\^\[\^:\]\*:\S*)'", read(f"deploy/sql/{engine}.sql"))[1] for engine in ("duckdb", "spark", "clickhouse", "trino")}
says(len(patterns) == 1, "the views of all engines have the same gauges", patterns)
gauges = {profile_type.split(":")[1]: value for profile_type, _, value in results["Gauges"][0]}
for gauge in "inuse_space", "goroutine", "goroutineleak":
    rows = {row["function"]: (row["flat"], row["cumulative"]) for row in json.loads(read(f"{directory}/{gauge}.json"))}
    series = json.loads(read(f"{directory}/{gauge}.series.json"))
    says(gauges.get(gauge) == series["total"], f"{gauge}: it is averaged as by cairn query", (gauges, series["total"]))
    found = {function: values for *values, function in db.execute(
        "SELECT flat, cumulative, function FROM top WHERE split_part(profile_type, ':', 2) = ?", [gauge]).fetchall()}
    says(rows == {name: tuple(values) for name, values in found.items()}, f"{gauge}: the view top has the values of cairn top",
         (rows, found))
    points = {ms // 1000: value for ms, value, _ in series["points"] if value}
    found = {int(minute.timestamp()): value for minute, profile_type, value in results["Gauges"][2] if f":{gauge}:" in profile_type}
    says(points == found, f"{gauge}: the minutes are those of cairn query --series", (points, found))
space = {function: value for function, _, value in results["Gauges"][1]}
says(space == {"x": 124, "y": 12}, "the functions have the average of their memory in use", space)
missing = {(m["build_id"], m["state"]) for m in json.loads(read(directory + "/missing.json")) if m["state"] != "sender"}
found = {(build_id or "", state) for build_id, _, state, _ in results["Unresolved addresses"][0]}
says(missing and missing <= found, "what has no names is what cairn query --missing has", (missing, found))
folded = dict(line.rsplit(" ", 1) for line in read(directory + "/stacks.folded").splitlines())
cairn = dict(line.rsplit(" ", 1) for line in read(directory + "/cairn.folded").splitlines())
says(len(folded) > 100 and sum(map(int, folded.values())) >= sum(map(int, cairn.values())) > 0, "the folded stacks have what cairn flame has",
     (len(folded), len(cairn)))
sys.stdout.flush()
os._exit(0)
