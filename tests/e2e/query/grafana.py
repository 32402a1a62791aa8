#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks deploy/grafana: the metrics used by the dashboards exist, and the data source reaches a service.

usage: grafana.py URL TOKEN     TOKEN has the scope read
"""
import base64
import glob
import json
import os
import re
import subprocess
import sys
import urllib.request

import yaml

from deploy_checks import check, has_failed, read, read_metric_labels

URL, TOKEN = sys.argv[1:]
# Metrics used by the dashboards that come from Prometheus clients, its Go library and cAdvisor; docs.t checks those of
# Cairn.
LABELS_OF_OTHERS = {
    "process_cpu_seconds_total": {"job", "instance"}, "process_resident_memory_bytes": {"job", "instance"},
    "go_memstats_heap_alloc_bytes": {"job", "instance"},
    "container_cpu_usage_seconds_total": {"instance", "namespace", "pod", "container"},
    "container_memory_working_set_bytes": {"instance", "namespace", "pod", "container"},
}
NAME = r"\b(?:cairn|process|go|container)_\w+\b(?!=)"


def fetch(path, headers, body=None):
    with urllib.request.urlopen(urllib.request.Request(URL + path, body, headers), timeout=60) as r:
        return r.headers["Content-Type"], r.read()


def metrics_of(expr):
    return re.findall(NAME, re.sub(r"\$\w+|\bby \([^)]*\)", "", expr))


def check_metrics(questions, panels):
    names = [(t, e, n) for t, e in questions for n in metrics_of(e)]
    check("  its metrics are there", {n for _, _, n in names} - labels_of.keys())
    check("  its counters are rates, and nothing else is",
          {f"{t}: {e}" for t, e, n in names if n.endswith(("_total", "_bucket")) != bool(re.search(rf"rate \(?\(?{n}\b|rate\({n}\b", e))})
    mistakes = set()
    for title, expr in questions:
        asked = {x for part in re.findall(r"\bby \(([^)]*)\)", expr) for x in part.replace(" ", "").split(",")}
        of = [labels_of[n] for n in metrics_of(expr) if n in labels_of]
        mistakes |= {f"{title}: {x}" for x in asked if not all(x in labels for labels in of)}
    check("  labels are those of their metric", mistakes)
    check("  legends show labels that the question keeps",
          {f"{p['title']}: {t['legendFormat']}" for p in panels for t in p["targets"] if "expr" in t
           for x in re.findall(r"{{(\w+)}}", t["legendFormat"]) if not re.search(rf"by \([^)]*\b{x}\b", t["expr"])})
    check("  brackets are balanced", {e for _, e in questions if any(e.count(a) != e.count(b) for a, b in ("()", "[]", "{}"))})


def check_layout(dashboard, panels):
    ids = [p["id"] for p in dashboard["panels"]]
    check("  panels have numbers of their own", {str(i) for i in ids if ids.count(i) > 1})
    cells = {}
    for p in dashboard["panels"]:
        g = p["gridPos"]
        for x in range(g["x"], g["x"] + g["w"]):
            for y in range(g["y"], g["y"] + g["h"]):
                cells.setdefault((x, y), []).append(p["title"])
    check("  panels lie beside each other", {" and ".join(t) for t in cells.values() if len(t) > 1} |
          {f"{t[0]} leaves the page" for (x, _), t in cells.items() if x >= 24})
    variables = {v["name"] for v in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]\w*)", json.dumps(dashboard)))
    check("  variables are there", used - variables)
    check("  and are used", variables - used)
    check("  panels say what they show", {p["title"] for p in panels if not p.get("description")})
    sources = {v["name"]: v["query"] for v in dashboard["templating"]["list"] if v["type"] == "datasource"}
    asked = [(p["title"], x["datasource"]) for p in panels for x in [p, *p["targets"]]] + \
        [(v["name"], v["datasource"]) for v in dashboard["templating"]["list"] if "datasource" in v]
    check("  data sources are variables of their type",
          {f"{title}: {s}" for title, s in asked if sources.get(s["uid"].strip("${}")) != s["type"]})


def check_links(dashboard, uids):
    links = [x["url"] for x in dashboard["links"]]
    check("  links lead to other dashboards that are there",
          ({f"{x} is linked" for x in links if re.split(r"[/?]", x)[2] not in uids - {dashboard["uid"]}} if links else {"no links"}) |
          {f"{x['title']} leaves the time behind" for x in dashboard["links"] if x["type"] != "link" or not x["keepTime"]})


# ---- the dashboards ----

labels_of = {**read_metric_labels(), **LABELS_OF_OTHERS}
paths = sorted(glob.glob("deploy/grafana/dashboards/*.json"))
dashboards = {os.path.basename(p): json.loads(read(p)) for p in paths}
check("there are dashboards", {"cairn.json", "profiles.json"} ^ dashboards.keys())
every_uid = [d["uid"] for d in dashboards.values()]
check("each has a uid of its own", {u for u in every_uid if every_uid.count(u) > 1})
check("  and a title", {d["title"] for d in dashboards.values() if sum(d["title"] == e["title"] for e in dashboards.values()) > 1})
check("all are of one version", {str(d["schemaVersion"]) for d in dashboards.values()} - {"39"})
for file, one in dashboards.items():
    charts = [p for p in one["panels"] if p["type"] != "row"]
    check(f"{file}: there are panels", [] if charts else ["none"])
    check_metrics([(p["title"], t["expr"]) for p in charts for t in p["targets"] if "expr" in t], charts)
    check_layout(one, charts)
    check_links(one, set(every_uid))

# ---- metrics of Cairn ----

own = dashboards["cairn.json"]
named = set(re.findall(r"\bcairn_\w+", json.dumps([[p.get("targets") for p in own["panels"]], own["templating"]])))
check("there are panels with metrics", [] if len(own["panels"]) > 20 and len(named) > 30 else [f"{len(own['panels'])} panels, {len(named)} metrics"])
check("  also those of variables are there", named - labels_of.keys())
shown = {re.split(r"[{ ]", line)[0] for line in fetch("/metrics", {"Authorization": "Bearer " + TOKEN})[1].decode().splitlines()
         if not line.startswith("#")}
check("  and most are in /metrics of a service that has just begun",
      {n for n in named if not n.startswith("cairn_agent_")} - shown if len(named & shown) < 20 else [])

# ---- provisioning ----

settings = {}
for path in glob.glob("deploy/grafana/provisioning/*/*.yaml"):
    with open(path, encoding="utf-8") as f:
        settings[os.path.basename(os.path.dirname(path))] = yaml.safe_load(f)
check("there are both kinds of settings", {"datasources", "dashboards"} ^ settings.keys())
check("  of the version that Grafana reads", {k for k, v in settings.items() if v["apiVersion"] != 1})
sources = {s["type"]: s for s in settings["datasources"]["datasources"]}
check("data sources are of Grafana's types", sources.keys() ^ {"grafana-pyroscope-datasource", "parca", "prometheus"})
check("  and their address is their default", {s["url"] for s in sources.values()} ^ {"http://127.0.0.1:7700", "http://127.0.0.1:9090"})
check("  and dashboards ask no others",
      {v["query"] for d in dashboards.values() for v in d["templating"]["list"] if v["type"] == "datasource"} - sources.keys())
check("dashboards are loaded from a file", {p["type"] for p in settings["dashboards"]["providers"]} ^ {"file"})
# The effect of make install, without the options of the make that runs this.
bare = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
commands = subprocess.run(["make", "-n", "install", "PREFIX=/usr/local"], env=bare, stdout=subprocess.PIPE, text=True, check=True).stdout
loaded = settings["dashboards"]["providers"][0]["options"]["path"]
installed = {word for line in commands.splitlines() if line.endswith(" " + loaded) for word in line.split() if word.endswith(".json")}
check("  which make install fills with each of them", set(paths) ^ installed)
source = sources["grafana-pyroscope-datasource"]
password = source["secureJsonData"]["basicAuthPassword"].replace("$CAIRN_TOKEN", TOKEN)
basic = base64.b64encode(f"{source['basicAuthUser']}:{password}".encode()).decode()
# The data source's health check is this request.
kind, _ = fetch("/querier.v1.QuerierService/ProfileTypes", {"Authorization": "Basic " + basic, "Content-Type": "application/proto"}, b"")
check("the data source reaches a service with these settings", {kind} - {"application/proto"})
sys.exit(has_failed())
