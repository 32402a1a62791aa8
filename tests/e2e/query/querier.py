#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls every method of querier.v1 in JSON and compares the responses with /api/v1/query of the same store.

usage: querier.py URL START_MS END_MS WHEN

Prints "ok - NAME" and "not ok - NAME". The store has what querier.t imports.
"""
import base64
import collections
import gzip
import json
import sys
import urllib.error
import urllib.parse
import urllib.request

URL, START, END, WHEN = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
HEAP = "memory:inuse_space:bytes:space:bytes"
RANGE = {"start": str(START), "end": END}
failed = False


def check(name, got, want):
    global failed
    good = got == want
    failed |= not good
    print(f"{'ok' if good else 'not ok'} - {WHEN}: {name}")
    if not good:
        print(f"got  {str(got)[:1000]}\nwant {str(want)[:1000]}")


def call(method, headers=None, pack=False, service="querier.v1.QuerierService", **request):
    body = json.dumps(request).encode()
    # With the headers of Grafana's proxy.
    headers = {"Content-Type": "application/json", "X-Scope-OrgID": "anonymous", "Sec-Fetch-Site": "same-origin",
               "Sec-Fetch-Mode": "cors", "X-Forwarded-Host": "grafana.example", **(headers or {})}
    if pack:
        body = gzip.compress(body)
        headers.update({"Content-Encoding": "gzip", "Accept-Encoding": "gzip"})
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{URL}/{service}/{method}", body, headers), timeout=60) as r:
            answer = r.read()
            if r.headers["Content-Encoding"] == "gzip":
                answer = gzip.decompress(answer)
            return json.loads(answer)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)["code"]


def query(operation, **params):
    params = {"from": START * 1000000, "to": (END + 1) * 1000000, **params}
    with urllib.request.urlopen(f"{URL}/api/v1/query/{operation}?{urllib.parse.urlencode(params)}", timeout=60) as r:
        return r.read().decode()


def folded(selector, kind=CPU, **params):
    """Stacks of names, root first, to values."""
    sums = collections.Counter()
    for line in query("folded", selector=selector, type=kind, **params).splitlines():
        stack, value = line.rsplit(" ", 1)
        sums[tuple(name.removesuffix("_[k]") for name in stack.split(";"))] += int(value)
    return sums


def read_flame(flame, side=0, width=4):
    """The same for a flame graph, whose nodes are found by their positions like in clients."""
    names, sums = flame.get("names", []), collections.Counter()
    above = []
    for depth, level in enumerate(flame.get("levels", [])):
        values = [int(v) for v in level["values"]]
        at, here = 0, []
        for i in range(0, len(values), width):
            part = values[i + side * 3:i + side * 3 + 3]
            begin = at + part[0]
            at = begin + part[1]
            path = ()
            if depth:
                parents = [p for p in above if p[0] <= begin and at <= p[1]]
                assert parents, f"a node at {begin} of level {depth} is below none"
                path = parents[0][2] + (names[values[i + width - 1]],)
            here.append((begin, at, path))
            if part[2]:
                sums[path] += part[2]
        above = here
    return sums


def read_tree(data):
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    sums, parents = collections.Counter(), [None]
    while parents:
        parent = parents.pop()
        size = varint()
        name = data[at:at + size].decode()
        at += size
        path = () if parent is None else parent + (name,)
        value = varint()
        if value:
            sums[path] += value
        parents += [path] * varint()
    assert at == len(data)
    return sums


def read_profile(p):
    texts = p["stringTable"]
    names = {f["id"]: texts[int(f["name"])] for f in p["function"]}
    lines = {x["id"]: [names[line["functionId"]] for line in x["line"]] for x in p["location"]}
    sums = collections.Counter()
    for s in p["sample"]:
        sums[tuple(name for x in reversed(s["locationId"]) for name in reversed(lines[x]))] += int(s["value"][0])
    return sums


# ---- lists ----

types = call("ProfileTypes", **RANGE)["profileTypes"]
check("types", [t["ID"] for t in types], json.loads(query("types")))
check("  and their parts", [":".join(t.get(k, "") for k in ("name", "sampleType", "sampleUnit", "periodType", "periodUnit"))
                            for t in types], [t["ID"] for t in types])
check("types of all times", call("ProfileTypes"), {"profileTypes": types})
check("types of a range without samples", call("ProfileTypes", start=1, end=2), {})
TYPE_LABELS = ["__name__", "__period_type__", "__period_unit__", "__profile_type__", "__type__", "__unit__"]
check("label names", call("LabelNames", **RANGE)["names"], TYPE_LABELS + json.loads(query("labels")))
check("  of a selector", call("LabelNames", matchers=['{service_name="worker"}'], **RANGE)["names"],
      TYPE_LABELS + ["service_name"])
check("  of none", call("LabelNames", matchers=['{service_name="x"}'], **RANGE), {})
check("label values", call("LabelValues", name="version", **RANGE)["names"], json.loads(query("label/version/values")))
check("  of a type", call("LabelValues", name="service_name", matchers=[f'{{__profile_type__="{HEAP}"}}'], **RANGE),
      {"names": ["api"]})
check("  of any of two selectors", call("LabelValues", name="version", pack=True, **RANGE,
                                        matchers=['{version="1"}', '{version=~"2|3"}'])["names"], ["1", "2"])
check("  of samples without a service", call("LabelValues", name="service_name", **RANGE)["names"],
      ["api", "unknown_service", "worker"])
check("values of labels made of types", [call("LabelValues", name=n, **RANGE)["names"] for n in TYPE_LABELS],
      [["memory", "process_cpu"], ["cpu", "space"], ["bytes", "nanoseconds"], [HEAP, CPU], ["cpu", "inuse_space"],
       ["bytes", "nanoseconds"]])


def series(**request):
    return sorted(tuple((x["name"], x["value"]) for x in s["labels"])
                  for s in call("Series", **RANGE, **request).get("labelsSet", []))


check("series of two labels", series(labelNames=["service_name", "__profile_type__"], matchers=[]),
      [(("__profile_type__", HEAP), ("service_name", "api"))] +
      [(("__profile_type__", CPU), ("service_name", n)) for n in ("api", "unknown_service", "worker")])
check("  of a selector", series(label_names=["version"], matchers=['{service_name="api",__type__!="inuse_space"}']),
      [(("version", "1"),), (("version", "2"),)])
check("  of all labels", [s[-2:] for s in series(matchers=['{version="2"}'])], [(("service_name", "api"), ("version", "2"))])

# ---- selectors ----

for selector in ("{}", "", '{service_name="api"}', '{service.name=~"ap.|x"}', '{version!="1"}', '{version!~"1|2"}',
                 '{version="1",service_name="api"}', '{service_name="api", version="2",}', "{service_name=`worker`}",
                 '{"service.name"="\\u0061pi"}', '{service_name="nothing"}'):
    answer = call("SelectMergeStacktraces", profileTypeID=CPU, labelSelector=selector, **RANGE)
    check(f"flame graph of {selector or 'no selector'}", read_flame(answer["flamegraph"]), folded(selector))
for selector, same in (('{service_name="unknown_service"}', '{service_name=""}'),
                       ('{service_name!="unknown_service"}', '{service_name!=""}'),
                       ('{service_name=~"unknown.*|api"}', '{service_name=~"|api"}'),
                       ('{service_name!~"unknown.*|api"}', '{service_name!~"|api"}'),
                       (f'{{__profile_type__="{CPU}",version="1"}}', '{version="1"}'),
                       ('{__name__="process_cpu",__unit__=~"nano.*"}', "{}"),
                       ('{__period_type__!="cpu"}', '{version="none"}'),
                       ('{__profile_type__=~"memory.*"}', '{version="none"}')):
    answer = call("SelectMergeStacktraces", profileTypeID=CPU, labelSelector=selector, **RANGE)
    check(f"flame graph of {selector}", read_flame(answer["flamegraph"]), folded(same))

# ---- stacks ----

every = folded("{}")
flame = call("SelectMergeStacktraces", profileTypeID=CPU + ":delta", pack=True, **RANGE)["flamegraph"]
check("a type may end in :delta", read_flame(flame), every)
check("total and greatest self", (int(flame["total"]), int(flame["maxSelf"])), (sum(every.values()), max(every.values())))
check("the root", (flame["names"][0], flame["levels"][0]["values"]), ("total", ["0", flame["total"], "0", "0"]))
check("another type", read_flame(call("SelectMergeStacktraces", profileTypeID=HEAP, **RANGE)["flamegraph"]),
      folded("{}", HEAP))
check("a type that no sample has", read_flame(call("SelectMergeStacktraces", profileTypeID="a:b:c:d:e", **RANGE)
                                              ["flamegraph"]), {})
check("tree", read_tree(base64.b64decode(call("SelectMergeStacktraces", profileTypeID=CPU, format="PROFILE_FORMAT_TREE",
                                              **RANGE)["tree"])), every)
check("no tree", call("SelectMergeStacktraces", profileTypeID="a:b:c:d:e", format=2, **RANGE), {})
check("pprof", read_profile(call("SelectMergeStacktraces", profileTypeID=CPU, format="PROFILE_FORMAT_PPROF", **RANGE)
                            ["pprof"]["profile"]), every)
profile = call("SelectMergeProfile", profileTypeID=CPU, labelSelector='{version="1"}', **RANGE)
check("merged profile", read_profile(profile), folded('{version="1"}'))
check("  of one type", [[profile["stringTable"][int(t[k])] for k in ("type", "unit")] for t in profile["sampleType"]],
      [["cpu", "nanoseconds"]])
check("  without labels", any(s.get("label") for s in profile["sample"]), False)
site = {"callSite": [{"name": "main"}, {"name": "work"}]}
below = {k: v for k, v in every.items() if k[:2] == ("main", "work")}
check("stacks below a call site", read_flame(call("SelectMergeStacktraces", profileTypeID=CPU, stackTraceSelector=site, **RANGE)
                                             ["flamegraph"]), below)
check("  as a profile", read_profile(call("SelectMergeProfile", profileTypeID=CPU, stackTraceSelector=site, **RANGE)), below)
few = call("SelectMergeStacktraces", profileTypeID=CPU, maxNodes=4, **RANGE)["flamegraph"]
check("few nodes have the same total", (few["total"], sum(read_flame(few).values())), (flame["total"], sum(every.values())))
check("  and the rest is other", {k[-1] for k in read_flame(few)} - {n for k in every for n in k}, {"other"})
check("  also of a tree", read_tree(base64.b64decode(call("SelectMergeStacktraces", profileTypeID=CPU, maxNodes=4, format=2,
                                                          **RANGE)["tree"])), read_flame(few))
SPAN, TRACE = "00f067aa0ba902b7", "4bf92f3577b34da6a3ce929d0e0e4736"
check("a span", read_flame(call("SelectMergeSpanProfile", profileTypeID=CPU, spanSelector=[SPAN, "0" * 16], **RANGE)
                           ["flamegraph"]), folded(f'{{span_id="{SPAN}"}}'))
check("  as a tree", read_tree(base64.b64decode(call("SelectMergeSpanProfile", profileTypeID=CPU, spanSelector=[SPAN.upper()],
                                                     format=2, **RANGE)["tree"])), folded(f'{{span_id="{SPAN}"}}'))
check("  of stack traces", read_flame(call("SelectMergeStacktraces", profileTypeID=CPU, spanSelector=[SPAN], **RANGE)
                                      ["flamegraph"]), folded(f'{{span_id="{SPAN}"}}'))
check("a trace", read_flame(call("SelectMergeStacktraces", profileTypeID=CPU, traceIdSelector=[TRACE], **RANGE)["flamegraph"]),
      folded(f'{{trace_id="{TRACE}"}}'))
many = [f"{i:016x}" for i in range(998, 0, -1)]
for place in (0, 500, 998):
    check(f"  among many in any order, as number {place}", read_flame(call("SelectMergeStacktraces", profileTypeID=CPU,
          spanSelector=many[:place] + [SPAN.upper()] + many[place:], **RANGE)["flamegraph"]), folded(f'{{span_id="{SPAN}"}}'))
check("a span that no sample has", read_flame(call("SelectMergeSpanProfile", profileTypeID=CPU, spanSelector=["f" * 16], **RANGE)
                                              ["flamegraph"]), {})
left = {"profileTypeID": CPU, "labelSelector": '{version="1"}', **RANGE}
right = {"profileTypeID": CPU, "labelSelector": '{version="2"}', **RANGE}
diff = call("Diff", left=left, right=right)["flamegraph"]
check("diff", [read_flame(diff, side, 7) for side in (0, 1)], [folded('{version="1"}'), folded('{version="2"}')])
check("  and its totals", [int(diff[k]) for k in ("leftTicks", "rightTicks", "total")],
      [sum(folded('{version="1"}').values()), sum(folded('{version="2"}').values()),
       sum(folded('{version="1"}').values()) + sum(folded('{version="2"}').values())])

# ---- series ----


def points(answer, *labels):
    return {tuple(next((x["value"] for x in s.get("labels", []) if x["name"] == n), None) for n in labels):
            [(int(p["timestamp"]), p["value"]) for p in s["points"]] for s in answer.get("series", [])}


def expected(by, **params):
    answer = json.loads(query("series", type=CPU, step="60s", by=by, **params) if by else
                        query("series", type=CPU, step="60s", **params))
    return {tuple(g["labels"].values()): [(t, v) for t, v, n in g["points"] if n]
            for g in (answer["groups"] if by else [{"labels": {}, "points": answer["points"]}])}


check("series", points(call("SelectSeries", profileTypeID=CPU, step=60, **RANGE)), expected(""))
check("  of a selector", points(call("SelectSeries", profileTypeID=CPU, step=60, labelSelector='{version="2"}', **RANGE)),
      expected("", selector='{version="2"}'))
check("  by a label", points(call("SelectSeries", profileTypeID=CPU, step=60, groupBy=["version"], **RANGE), "version"),
      {tuple(x or None for x in k): v for k, v in expected("version").items()})
check("  by service and type", points(call("SelectSeries", profileTypeID=CPU, step=60.0, group_by=["service_name", "__name__"],
                                           **RANGE), "service_name", "__name__"),
      {(k[0] or "unknown_service", "process_cpu"): v for k, v in expected("service_name").items()})
check("  the greatest one", list(points(call("SelectSeries", profileTypeID=CPU, step=60, groupBy=["service_name"], limit=1,
                                             **RANGE), "service_name")), [("api",)])
# Each import is one profile, whose samples all have the same time.
heaps = [s for s in points(call("SelectSeries", profileTypeID=HEAP, step=3600, **RANGE)).values()]
average = [s for s in points(call("SelectSeries", profileTypeID=HEAP, step=3600, aggregation="TIME_SERIES_AGGREGATION_TYPE_AVERAGE",
                                  **RANGE)).values()]
# Memory in use is averaged over the snapshots of a process, as everywhere, also where SelectSeries is asked for sums.
check("two snapshots of memory in use", sum(v for s in heaps for _, v in s), 1500)
check("  and the average per profile, which Pyroscope's aggregation AVERAGE asks for", [v for s in average for _, v in s], [1500])
check("no points", call("SelectSeries", profileTypeID="a:b:c:d:e", step=60, **RANGE), {})

# ---- the store ----

stats = call("GetProfileStats")
check("statistics", (stats["dataIngested"], START <= int(stats["oldestProfileTime"]) <= int(stats["newestProfileTime"]) <= END),
      (True, True))
count = json.loads(query("top", selector='{service_name="api"}', type=CPU))["samples"]
scope, = call("AnalyzeQuery", query=CPU + '{service_name="api"}', **RANGE)["queryScopes"]
check("analysis", (int(scope["seriesCount"]), int(scope["sampleCount"])), (2, count))

# ---- rejected requests ----

for name, want, method, request in (
        ("a malformed selector", (400, "invalid_argument"), "SelectMergeStacktraces", {"profileTypeID": CPU, "labelSelector": "{a"}),
        ("  in a list", (400, "invalid_argument"), "Series", {"matchers": ['{a="b"']}),
        ("a malformed type", (400, "invalid_argument"), "SelectSeries", {"profileTypeID": "cpu", **RANGE}),
        ("no type", (400, "invalid_argument"), "SelectMergeProfile", {}),
        ("no range", (400, "invalid_argument"), "SelectSeries", {"profileTypeID": CPU}),
        ("a range that ends before it begins", (400, "invalid_argument"), "LabelNames", {"start": 2, "end": 1}),
        ("times past 64 bits of nanoseconds", (400, "invalid_argument"), "LabelNames", {"start": 1, "end": str(2 ** 63 - 1)}),
        ("too many points", (400, "invalid_argument"), "SelectSeries", {"profileTypeID": CPU, "step": 0.001, **RANGE}),
        ("a span id that is none", (400, "invalid_argument"), "SelectMergeSpanProfile", {"profileTypeID": CPU, "spanSelector": ["x"]}),
        ("nine labels", (400, "invalid_argument"), "Series", {"labelNames": list("abcdefghi")}),
        ("a number that is text", (400, "invalid_argument"), "LabelNames", {"start": "x"}),
        ("profile ids", (415, "unimplemented"), "SelectMergeProfile", {"profileTypeID": CPU, "profileIdSelector": ["x"]}),
        ("a format", (415, "unimplemented"), "SelectMergeStacktraces", {"profileTypeID": CPU, "format": "PROFILE_FORMAT_DOT"}),
        ("call sites that differ in a diff", (400, "invalid_argument"), "Diff",
         {"left": {**left, "stackTraceSelector": site}, "right": right}),
        ("two types in a diff", (400, "invalid_argument"), "Diff", {"left": left, "right": {**right, "profileTypeID": HEAP}}),
        ("a method that is not here", (501, "unimplemented"), "SelectHeatmap", {})):
    check(name + " is refused", call(method, **request), want)
for service, method in (("vcs.v1.VCSService", "GithubApp"), ("settings.v1.SettingsService", "Get"),
                        ("adhocprofiles.v1.AdHocProfileService", "List"), ("capabilities.v1.FeatureFlagsService", "GetFeatureFlags")):
    check(service + " is not here", call(method, service=service), (501, "unimplemented"))
check("another content type is refused", call("LabelNames", headers={"Content-Type": "text/plain"}), (415, "unimplemented"))


# ---- Pyroscope's HTTP API ----

def get(path, **params):
    with urllib.request.urlopen(f"{URL}{path}?{urllib.parse.urlencode(params)}", timeout=60) as r:
        assert r.headers["Content-Type"] == "application/json"
        return json.load(r)


def as_flame(bearer):
    """The flame graph of querier.v1 with the same numbers."""
    return {"names": bearer["names"], "levels": [{"values": level} for level in bearer["levels"]]}


TIMES = {"from": START, "until": END}
for prefix in ("/pyroscope", ""):
    answer = get(prefix + "/render", query=CPU + '{service_name="api"}', groupBy="version", **TIMES)
    bearer = answer["flamebearer"]
    check(f"{prefix}/render has the stacks", read_flame(as_flame(bearer)), folded('{service_name="api"}'))
    check("  their sum", bearer["numTicks"], sum(folded('{service_name="api"}').values()))
    check("  and greatest self", bearer["maxSelf"], max(level[i + 2] for level in bearer["levels"] for i in range(0, len(level), 4)))
    check("  the metadata of CPU time", (answer["version"], answer["metadata"]),
          (1, {"format": "single", "spyName": "", "sampleRate": 1000000000, "units": "samples", "name": "cpu"}))
    line = answer["timeline"]
    check("  a timeline with the same sum", sum(line["samples"]), bearer["numTicks"])
    at = [line["startTime"] + i * line["durationDelta"] for i, value in enumerate(line["samples"]) if value]
    check("  which begins with the first sample", at[0] <= START // 1000 + 900 < at[0] + line["durationDelta"], True)
    check("  and one for each version", {k: sum(v["samples"]) for k, v in answer["groups"].items()},
          {v: sum(folded(f'{{service_name="api",version="{v}"}}').values()) for v in ("1", "2")})
    check("  fewer nodes on request", "other" in get(prefix + "/render", query=CPU, maxNodes=3, **TIMES)["flamebearer"]["names"], True)
    check("  another type has its unit", get(prefix + "/render", query=HEAP, **TIMES)["metadata"]["units"], "bytes")
    empty = get(prefix + "/render", query=CPU + '{service_name="nothing"}', **TIMES)
    check("  without samples it is empty", (empty["flamebearer"]["numTicks"], sum(empty["timeline"]["samples"])), (0, 0))
    answer = get(prefix + "/render-diff", leftQuery=CPU + '{service_name="api"}', rightQuery=CPU + '{service_name="worker"}',
                 leftFrom=START, leftUntil=END, rightFrom=START, rightUntil=END)
    both = as_flame(answer["flamebearer"])
    check(f"{prefix}/render-diff has both sides", (read_flame(both, 0, 7), read_flame(both, 1, 7)),
          (folded('{service_name="api"}'), folded('{service_name="worker"}')))
    check("  and their sums", (answer["leftTicks"], answer["rightTicks"], answer["metadata"]["format"]),
          (sum(folded('{service_name="api"}').values()), sum(folded('{service_name="worker"}').values()), "double"))
    check(f"{prefix}/label-values has those of a label", get(prefix + "/label-values", label="version", **TIMES), ["1", "2"])
    check("  of a selection", get(prefix + "/label-values", label="version", query='{service_name="worker"}', **TIMES), [])
    check("  and the types", get(prefix + "/label-values", label="__name__", **TIMES), [t["ID"] for t in types])
    check(f"{prefix}/label-names has the names", get(prefix + "/label-names", **TIMES), call("LabelNames", **RANGE)["names"])
sys.exit(failed)
