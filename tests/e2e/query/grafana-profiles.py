#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends a service the queries of deploy/grafana/dashboards/profiles.json, like Grafana's Pyroscope data source.

usage: grafana-profiles.py URL TOKEN TIME     the service has the profiles that grafana.t stores at TIME
"""
import base64
import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

from deploy_checks import check, has_failed, read

URL, TOKEN, TIME = sys.argv[1], sys.argv[2], int(sys.argv[3])
FROM, TO = (TIME - 900) * 1000, (TIME + 900) * 1000
CPU, HEAP = "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "memory:inuse_space:bytes:space:bytes"
ALL = "$__all"
SHOP = [("host-1", "shop-1:6060"), ("host-2", "shop-2:6060"), ("", "shop-3:6060")]
# The selection at the top of the dashboard, and the matching profiles of the shop.
CHOICES = [
    ("all of the service", {"host": ALL, "instance": ALL}, (1, 1, 1)),
    ("two hosts", {"host": ["host-1", "host-2"], "instance": ALL}, (1, 1, 0)),
    ("two instances", {"host": ALL, "instance": ["shop-2:6060", "shop-3:6060"]}, (0, 1, 1)),
    ("a host and an instance", {"host": ["host-1"], "instance": ["shop-1:6060"]}, (1, 0, 0)),
]
STORED = {"CPU": (CPU, (1, 2, 4)), "Memory": (HEAP, (16, 32, 64))}

dashboard = json.loads(read("deploy/grafana/dashboards/profiles.json"))
variables = {v["name"]: v for v in dashboard["templating"]["list"]}


def call(method, request):
    basic = base64.b64encode(f"grafana:{TOKEN}".encode()).decode()
    headers = {"Authorization": "Basic " + basic, "Content-Type": "application/json", "Connect-Protocol-Version": "1"}
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{URL}/querier.v1.QuerierService/{method}", json.dumps(request).encode(), headers),
                                    timeout=60) as r:
            return json.load(r)
    except urllib.error.HTTPError as e:
        return {"error": e.read().decode()}


def put_in(text, chosen):
    """Replaces the variables in a text. Grafana inserts allValue unchanged; several values without a format are {a,b}.
    """
    def value_of(match):
        name, form = match[1] or match[3], match[2]
        value = chosen[name]
        if value == ALL:
            return variables[name]["allValue"]
        many = isinstance(value, list)
        if form == "pipe":
            return "|".join(value) if many else value
        if form == "percentencode":
            return urllib.parse.quote(value, safe="")
        assert form is None, f"a format that this test does not know: {form}"
        return value if not many else value[0] if len(value) == 1 else "{" + ",".join(value) + "}"
    return re.sub(r"\$\{(\w+)(?::(\w+))?\}|\$(?!__rate_interval)(\w+)", value_of, text)


def choose(host, instance):
    texts = {v["name"]: v["query"] for v in variables.values() if v["type"] == "textbox"}
    return {"prometheus": "uid-of-prometheus", "profiles": "uid-of-cairn", "service": "shop", **texts,
            "host": host, "instance": instance, "__from": str(FROM), "__to": str(TO)}


def ask(target, chosen):
    """Sum of the response, and the labels of its series."""
    request = {"profileTypeID": target["profileTypeId"], "labelSelector": put_in(target["labelSelector"], chosen), "start": FROM, "end": TO}
    if target["queryType"] == "metrics":
        answer = call("SelectSeries", {**request, "groupBy": target["groupBy"], "step": 15})
        if "error" in answer:
            return answer["error"], None
        series = answer.get("series", [])
        labels = {tuple({x["name"]: x["value"] for x in s["labels"]}.get(k, "") for k in target["groupBy"]) for s in series}
        return sum(p["value"] for s in series for p in s["points"]), labels
    answer = call("SelectMergeStacktraces", {**request, "maxNodes": 8192})
    flame = answer.get("flamegraph", {})
    functions = {"main", "work"} - set(flame.get("names", []))
    return answer.get("error") or (int(flame.get("total", 0)) if not functions else f"no {functions}"), None


def panels_by_row():
    for p in dashboard["panels"]:
        if p["type"] == "row":
            title = p["title"]
        else:
            yield title, p


# ---- variables ----

want = {"service": {"other", "shop"}, "host": {"host-1", "host-2"}, "instance": {i for _, i in SHOP}}
asking = {n: v["query"] for n, v in variables.items() if v["type"] == "query"}
check("variables are asked of the profiles", want.keys() ^ asking.keys())
for name, query in asking.items():
    got = call("LabelValues", {"name": query["labelName"], "matchers": [query["profileTypeId"] + "{}"], "start": FROM, "end": TO})
    check(f"  {name} has the values of its label", {str(got)} if set(got.get("names", [])) - {""} != want[name] or query["type"] != "labelValue" else [])
check("  what has several values can have all", {n for n, v in variables.items() if v.get("multi") and v.get("allValue") != ".*"})

# ---- panels ----

rows = {}
for row, panel in panels_by_row():
    rows.setdefault(row, []).append(panel)
check("there are rows for both kinds of profiles", STORED.keys() ^ rows.keys())
for row, panels in rows.items():
    kinds = sorted((p["type"], p["datasource"]["type"]) for p in panels)
    check(f"{row} has metrics, profiles and a flame graph", {str(kinds)} if kinds != [
        ("flamegraph", "grafana-pyroscope-datasource"), ("timeseries", "grafana-pyroscope-datasource"), ("timeseries", "prometheus")] else [])
    kind, values = STORED[row]
    for panel in panels:
        for target in (t for t in panel["targets"] if "profileTypeId" in t):
            check(f"{panel['title']}: its type and query", {json.dumps(target)} if target["profileTypeId"] != kind or target["queryType"] != {
                "flamegraph": "profile", "timeseries": "metrics"}[panel["type"]] else [])
            for what, chosen, taken in CHOICES:
                got, labels = ask(target, choose(**chosen))
                right = sum(v * t for v, t in zip(values, taken))
                check(f"  {what}: the profiles with these labels", {f"got {got}, want {right}"} if got != right else [])
                if labels is not None:
                    check("    by host and instance", labels ^ {s for s, t in zip(SHOP, taken) if t})

# ---- links ----

# A label matcher for metrics, translated to the label of profiles with the same values.
MATCHERS = {"service_name": '$service_label="$service"', "host_name": '$host_label=~"$host"', "instance": 'instance=~"$instance"'}
exprs = {t["expr"] for p in dashboard["panels"] for t in p.get("targets", []) if "expr" in t}
process = "{" + ",".join(MATCHERS.values()) + "}"
container = "{" + MATCHERS["service_name"].replace("service_label", "container_label") + "," + MATCHERS["host_name"] + "}"
check("metrics are chosen by labels that profiles have", {e for e in exprs if (container if "container_" in e else process) not in e})
for row, panels in rows.items():
    kind, values = STORED[row]
    for panel in panels:
        links = panel.get("fieldConfig", {"defaults": {}})["defaults"].get("links", [])
        if panel["type"] == "flamegraph":
            continue
        check(f"{panel['title']}: it has links", [] if links else ["none"])
        for link in links:
            mistakes = set()
            for what, chosen, taken in CHOICES:
                chosen = choose(**chosen)
                url = urllib.parse.urlsplit(put_in(link["url"], chosen))
                query = {k: v[0] for k, v in urllib.parse.parse_qs(url.query, strict_parsing=True).items()}
                if url.path == "/explore":
                    pane = json.loads(query["panes"])["a"]
                    target = pane["queries"][0]
                    times = pane["range"]["from"], pane["range"]["to"]
                    source = target["datasource"]
                    if pane["datasource"] != source["uid"] or source["uid"] != {
                            "prometheus": "uid-of-prometheus", "grafana-pyroscope-datasource": "uid-of-cairn"}[source["type"]]:
                        mistakes.add(f"{what}: the data source {source}")
                    if source["type"] == "prometheus":
                        asked = {put_in(t["expr"], {**chosen, **{n: "|".join(c) if isinstance(c, list) else c for n, c in chosen.items()}})
                                 for p in panels for t in p["targets"] if "expr" in t}
                        if target["expr"] not in asked:
                            mistakes.add(f"{what}: {target['expr']} is of no panel beside it")
                    elif target["profileTypeId"] != kind or ask({**target, "queryType": "profile"}, {})[0] != sum(
                            v * t for v, t in zip(values, taken)):
                        mistakes.add(f"{what}: {target} is not answered")
                else:
                    times = query["from"], query["to"]
                    if (url.path, query["var-dataSource"], query["var-serviceName"], query["var-profileMetricId"]) != (
                            "/a/grafana-pyroscope-app/explore", "uid-of-cairn", "shop", kind):
                        mistakes.add(f"{what}: {url.query}")
                if times != (str(FROM), str(TO)):
                    mistakes.add(f"{what}: the time is {times}")
            check(f"  {link['title']}", mistakes)
sys.exit(has_failed())
