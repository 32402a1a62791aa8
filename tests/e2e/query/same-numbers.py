#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random samples, selections, types, ranges and filters: every interface has the same numbers, those of a simple model.

usage: same-numbers.py fill|check URL[,URL]... CAIRN SEED NOW

Of several URLs, services on one store, each gets a part of the samples, and the first one answers.

Values are no multiples of the sampling period, which some of the profiles have.

The interfaces: top as JSON, rows (cairn top), CSV; flame graphs as JSON; folded stacks; pprof; series; services; spans;
diff; SelectMergeStacktraces and SelectSeries of querier.v1; /pyroscope/render.
"""
import collections
import csv
import fractions
import gzip
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from pprof import fields  # noqa: E402
from profiles import Strings, blob, num, packed  # noqa: E402

MODE, URLS, CAIRN, SEED, NOW = sys.argv[1], sys.argv[2].split(","), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
URL = URLS[0]
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
ALLOC = "memory:alloc_space:bytes:space:bytes"
HEAP = "memory:inuse_space:bytes:space:bytes"
GOROUTINES = "goroutine:goroutine:count:goroutine:count"
GAUGES = {HEAP, GOROUTINES}
dice = random.Random(SEED)

Sample = collections.namedtuple("Sample", "type time labels stack value period")


def make_samples():
    """Imports: (type, time, labels, {stack: value}, period or 0)."""
    imports = []
    for _ in range(28):
        stacks = {}
        for _ in range(dice.randint(1, 5)):
            stack = tuple(dice.choice("abcd") for _ in range(dice.randint(1, 4)))
            stacks[stack] = stacks.get(stack, 0) + dice.randint(1, 10 ** dice.randint(0, 9))
        labels = {"service.name": dice.choice(["api", "web"]), "instance": dice.choice(["1", "2"])}
        if labels["instance"] == "2":
            labels["zone"] = labels["service.name"] + "-zone"
        kind = dice.choice([CPU, CPU, ALLOC, HEAP, GOROUTINES])
        period = dice.choice([0, 3, 7, 1000, 10000000, 52631579]) if kind == CPU else 0
        imports.append((kind, NOW - 10 * dice.randint(1, 12), labels, stacks, period))
    return imports


def make_folded(stacks):
    return "".join(";".join(stack) + f" {value}\n" for stack, value in stacks.items()).encode()


def make_pprof(stacks, period, time):
    s = Strings()
    names = sorted({frame for stack in stacks for frame in stack})
    ids = {name: i + 1 for i, name in enumerate(names)}
    cpu = num(1, s("cpu")) + num(2, s("nanoseconds"))
    data = blob(1, cpu) + blob(11, cpu) + num(12, period) + num(9, time * 10 ** 9)
    for stack, value in stacks.items():
        data += blob(2, packed(1, [ids[frame] for frame in reversed(stack)]) + packed(2, [value]))
    for name, i in ids.items():
        data += blob(4, num(1, i) + blob(4, num(1, i))) + blob(5, num(1, i) + num(2, s(name)))
    return data + b"".join(blob(6, text) for text in s.items)


def fill(imports):
    for i, (kind, time, labels, stacks, period) in enumerate(imports):
        with tempfile.NamedTemporaryFile("wb", suffix=".pb" if period else ".folded") as f:
            f.write(make_pprof(stacks, period, time) if period else make_folded(stacks))
            f.flush()
            url = URLS[i % len(URLS)]
            how = [] if period else ["--time", str(time), "--type", kind]
            subprocess.run([CAIRN, "import", "--server", url, *how, f.name] +
                           [x for k, v in labels.items() for x in ("--label", f"{k}={v}")], check=True, stdout=subprocess.DEVNULL)


# ---- the model ----

def divide(value, count):
    return (2 * value + count) // (2 * count)


def model(samples, question):
    """Stacks to values after the filters, and the total; averages are exact fractions times the number of snapshots."""
    kind, start, end, wanted, focus = question
    inside = [s for s in samples if s.type == kind and start <= s.time < end and all(s.labels.get(k) == v for k, v in wanted.items())]
    series = collections.defaultdict(list)
    for s in inside:
        series[tuple(sorted(s.labels.items())) if kind in GAUGES else ()].append(s)
    stacks, total, slack = collections.Counter(), 0, 0
    for members in series.values():
        count = len({s.time for s in members}) if kind in GAUGES else 1
        slack += len({s.stack for s in members}) if kind in GAUGES else 0
        total += divide(sum(s.value for s in members), count)
        for s in members:
            if not focus or focus in s.stack:
                stacks[s.stack] += s.value / count if kind in GAUGES else s.value
    return stacks, total, slack


def round_samples(exact):
    return max(1, int(exact + fractions.Fraction(1, 2))) if exact else 0


def model_samples(samples, question, instance=None):
    """Values divided by the period, or stacks, of all that the question selects, rounded once."""
    kind, start, end, wanted, focus = question
    exact = fractions.Fraction(0)
    for s in samples:
        if s.type == kind and start <= s.time < end and all(s.labels.get(k) == v for k, v in wanted.items()) and \
                (not focus or focus in s.stack) and (instance is None or s.labels["instance"] == instance):
            exact += fractions.Fraction(s.value, s.period) if s.period else 1
    return round_samples(exact)


def costs(stacks):
    """Stacks to {function: [flat, cumulative]}."""
    rows = collections.defaultdict(lambda: [0, 0])
    for stack, value in stacks.items():
        rows[stack[-1]][0] += value
        for f in set(stack):
            rows[f][1] += value
    return dict(rows)


# ---- the interfaces ----

def get(path, params):
    with urllib.request.urlopen(f"{URL}/{path}?{urllib.parse.urlencode(params)}", timeout=60) as r:
        return r.read()


def call(method, **request):
    body = json.dumps(request).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{URL}/querier.v1.QuerierService/{method}", body,
                                                       {"Content-Type": "application/json"}), timeout=60) as r:
        return json.load(r)


def selector_of(wanted):
    return "{" + ",".join(f'{k.replace(".", "_")}="{v}"' for k, v in wanted.items()) + "}"


def params_of(question):
    kind, start, end, wanted, focus = question
    params = {"type": kind, "from": start, "to": end, "selector": selector_of(wanted)}
    return {**params, "focus": f"^{focus}$"} if focus else params


def read_folded(text):
    stacks = collections.Counter()
    for line in text.splitlines():
        stack, value = line.rsplit(" ", 1)
        stacks[tuple(stack.split(";"))] += int(value)
    return stacks


def read_flame(data):
    stacks, paths = collections.Counter(), []
    for parent, frame, own, _, *_ in data["nodes"]:
        paths.append((paths[parent] if parent >= 0 else ()) + ((data["frames"][frame][0],) if parent >= 0 else ()))
        if own:
            stacks[paths[-1]] += own
    return stacks


def read_pprof(data):
    def ints(blob):
        at, out = 0, []
        while at < len(blob):
            value = shift = 0
            while True:
                byte = blob[at]
                value |= (byte & 127) << shift
                at, shift = at + 1, shift + 7
                if byte < 128:
                    break
            out.append(value)
        return out
    total = 0
    for number, value in fields(gzip.decompress(data)):
        if number == 2:
            values = [v for n, v in fields(value) if n == 2]
            total += sum(ints(values[0])) if isinstance(values[0], bytes) else sum(values)
    return total


mistakes = []


def same(what, question, got, want, slack=0):
    def near(a, b):
        if isinstance(a, dict) and isinstance(b, dict):
            return all(near(a.get(k, 0 if not isinstance(b.get(k), list) else [0, 0]), b.get(k, 0 if not isinstance(a.get(k), list) else [0, 0]))
                       for k in {*a, *b})
        if isinstance(a, (list, tuple)):
            return len(a) == len(b) and all(near(x, y) for x, y in zip(a, b))
        return abs(a - b) <= slack
    if not near(got, want):
        mistakes.append(f"{what} of {question}: {str(got)[:300]} instead of {str(want)[:300]}")


def rows_of(rows, suffix=""):
    return {r["function"]: [int(r["flat" + suffix]), int(r["cumulative" + suffix])] for r in rows}


def check_question(samples, question):
    kind, start, end, wanted, focus = question
    params, step = params_of(question), (end - start) * 2
    stacks, total, slack = model(samples, question)
    top = json.loads(get("api/v1/query/top", params))
    rows, flat = rows_of(top["rows"]), {k: v[0] for k, v in rows_of(top["rows"]).items() if v[0]}
    same("top", question, rows, costs(stacks), slack)
    if not focus:
        same("total", question, top["total"], total)
    same("shares", question, sum(flat.values()), top["total"])
    same("csv", question, rows_of(csv.DictReader(io.StringIO(get("api/v1/query/top", {**params, "format": "csv"}).decode()))), rows)
    command = [CAIRN, "top", "--server", URL, "--json", "--type", kind, "--from", str(start), "--to", str(end)]
    command += (["--focus", params["focus"]] if focus else []) + [params["selector"]]
    same("cairn top", question, rows_of(json.loads(subprocess.run(command, check=True, capture_output=True).stdout)), rows)
    folded = read_folded(get("api/v1/query/folded", params).decode())
    same("folded", question, costs(folded), rows)
    same("flame", question, dict(read_flame(json.loads(get("api/v1/query/flame", params)))), dict(folded))
    same("pprof", question, read_pprof(get("api/v1/query/pprof", params)), top["total"], slack if focus else 0)
    series = json.loads(get("api/v1/query/series", {**params, "step": f"{step}s"}))
    same("series", question, series["total"], top["total"])
    same("samples", question, top["samples"], model_samples(samples, question))
    same("samples of series", question, series["samples"], top["samples"])
    same("samples of flame", question, json.loads(get("api/v1/query/flame", params))["sides"][0]["samples"], top["samples"])
    if not focus:
        same("samples of uploads", question, json.loads(get("api/v1/query/uploads", params))["samples"], top["samples"])
    if kind not in GAUGES:
        same("points", question, sum(p[1] for p in series["points"]), top["total"])
    by = json.loads(get("api/v1/query/top", {**params, "by": "instance"})).get("groups", [])
    parts = collections.Counter()
    for group in by:
        parts.update({k: v[0] for k, v in rows_of(group["rows"]).items()})
    same("groups", question, dict(parts), flat, slack)
    same("totals of groups", question, sum(g["total"] for g in by), top["total"], slack if focus else 0)
    for g in by:
        same("samples of groups", question, g["samples"], model_samples(samples, question, g["labels"]["instance"]))
    by_series = json.loads(get("api/v1/query/series", {**params, "by": "instance", "step": f"{step}s"}))["groups"]
    same("series of groups", question, {g["labels"]["instance"]: [g["total"], g["samples"]] for g in by_series},
         {g["labels"]["instance"]: [g["total"], g["samples"]] for g in by})
    services = json.loads(get("api/v1/query/services", {**params, "by": "instance", "step": f"{step}s"}))
    same("services", question, {r["labels"]["instance"]: [r["value"], r["samples"]] for r in services["rows"] if r["samples"]},
         {g["labels"]["instance"]: [g["total"], g["samples"]] for g in by})
    same("total of services", question, [services["total"], services["samples"], services["named"]], [top["total"], top["samples"], top["total"]])
    points_of = {r["labels"]["instance"]: r["points"] for r in services["rows"]}
    for g in by_series:
        if g["samples"]:  # services without samples that pass the filter have no row
            same("points of services", question, points_of.get(g["labels"]["instance"]), [p[1] for p in g["points"]])
    if focus:
        return
    spans = json.loads(get("api/v1/query/spans", {**params, "by": "instance"}))
    if kind not in GAUGES:
        same("spans", question, {r["labels"]["instance"]: [r["value"], r["samples"]] for r in spans["rows"]},
             {g["labels"]["instance"]: [g["total"], g["samples"]] for g in by})
    same("samples of spans", question, spans["samples"], top["samples"])
    whole = {"start": start * 1000, "end": end * 1000 - 1}
    graph = call("SelectMergeStacktraces", profile_typeID=kind, labelSelector=params["selector"], **whole).get("flamegraph", {})
    own = collections.Counter()
    for level in graph.get("levels", []):
        values = [int(v) for v in level["values"]]
        for i in range(0, len(values), 4):
            own[graph["names"][values[i + 3]]] += values[i + 2]
    same("SelectMergeStacktraces", question, {k: v for k, v in own.items() if v}, flat)
    points = call("SelectSeries", profile_typeID=kind, labelSelector=params["selector"], step=step, **whole).get("series", [])
    points = sum(p["value"] for s in points for p in s["points"])
    if kind not in GAUGES:
        same("SelectSeries", question, points, top["total"])
    picture = json.loads(get("pyroscope/render", {"query": kind + params["selector"], "from": start * 1000, "until": end * 1000 - 1, "format": "json"}))
    same("render", question, picture["flamebearer"]["numTicks"], top["total"])


def check_diff(before, after):
    answers = [json.loads(get("api/v1/query/top", params_of(q))) for q in (before, after)]
    tops = [rows_of(answer["rows"]) for answer in answers]
    base = {f"base_{k}": v for k, v in params_of(before).items() if k in ("from", "to", "selector")}
    diff = json.loads(get("api/v1/query/diff", {**params_of(after), **base, "view": "top"}))
    services = json.loads(get("api/v1/query/services", {**params_of(after), **base, "by": "instance"}))
    groups = json.loads(get("api/v1/query/diff", {**params_of(after), **base, "view": "top", "by": "instance"}))["groups"]
    same("services and diff", (before, after), {r["labels"]["instance"]: [r["value_before"], r["value"]] for r in services["rows"]},
         {g["labels"]["instance"]: [g["total"], g["total_after"]] for g in groups})
    same("samples of diff", (before, after), [diff["samples"], diff["samples_after"]], [t["samples"] for t in answers])
    for suffix, top in (("", tops[0]), ("_after", tops[1])):
        same("diff" + suffix, (before, after), {k: v for k, v in rows_of(diff["rows"], suffix).items() if any(v)}, top)


def ask():
    start = NOW - 10 * dice.randint(3, 13)
    wanted = {k: v for k, v in (("service.name", dice.choice(["api", "web"])), ("instance", dice.choice("12"))) if dice.random() < 0.4}
    return (dice.choice([CPU, ALLOC, HEAP, GOROUTINES]), start, start + 10 * dice.randint(2, 12), wanted, dice.choice(["", "", "a", "b"]))


imports = make_samples()
if MODE == "fill":
    fill(imports)
    sys.exit(0)
everything = [Sample(kind, time, labels, stack, value, period) for kind, time, labels, stacks, period in imports for stack, value in stacks.items()]
for _ in range(25):
    asked, other = ask(), ask()
    if not any(s.type == asked[0] and asked[1] <= s.time < asked[2] for s in everything):
        continue  # a type without samples in the range is refused
    check_question(everything, asked)
    check_diff((asked[0], asked[1], asked[2], *other[3:4], asked[4]), asked)
print("\n".join(mistakes[:10]))
sys.exit(bool(mistakes))
