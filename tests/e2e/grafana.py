#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks deploy/grafana: what the dashboard asks is there, and the data source reaches a service.

usage: grafana.py URL TOKEN     TOKEN has the scope read
"""
import base64
import glob
import json
import os
import re
import sys
import urllib.request

import yaml

from deploy_checks import check, has_failed, read, read_metric_labels

URL, TOKEN = sys.argv[1:]


def fetch(path, headers, body=None):
    with urllib.request.urlopen(urllib.request.Request(URL + path, body, headers), timeout=60) as r:
        return r.headers["Content-Type"], r.read()


# ---- metrics ----

labels_of = read_metric_labels()
dashboard = json.loads(read("deploy/grafana/dashboards/cairn.json"))
panels = [p for p in dashboard["panels"] if p["type"] != "row"]
questions = [(p["title"], t["expr"]) for p in panels for t in p["targets"]]
variables = {v["name"]: v for v in dashboard["templating"]["list"]}
texts = [e for _, e in questions] + [json.dumps(v) for v in variables.values()]
named = {n for text in texts for n in re.findall(r"\bcairn_\w+", text)}
check("there are panels with metrics", [] if len(panels) > 20 and len(named) > 30 else [f"{len(panels)} panels, {len(named)} metrics"])
check("each metric of the dashboard is there", named - labels_of.keys())
shown = {re.split(r"[{ ]", line)[0] for line in fetch("/metrics", {"Authorization": "Bearer " + TOKEN})[1].decode().splitlines()
         if not line.startswith("#")}
check("  and most are in /metrics of a service that has just begun",
      {n for n in named if not n.startswith("cairn_agent_")} - shown if len(named & shown) < 20 else [])
check("counters are rates, and nothing else is",
      {f"{t}: {e}" for t, e in questions for n in re.findall(r"\bcairn_\w+", e)
       if n.endswith(("_total", "_bucket")) != bool(re.search(rf"rate \(?\(?{n}\b|rate\({n}\b", e))})
mistakes = set()
for title, expr in questions:
    asked = {x for part in re.findall(r"\bby \(([^)]*)\)", expr) for x in part.replace(" ", "").split(",")}
    of = [labels_of[n] for n in re.findall(r"\bcairn_\w+", expr) if n in labels_of]
    mistakes |= {f"{title}: {x}" for x in asked if not all(x in labels for labels in of)}
check("labels are those of their metric", mistakes)
check("legends show labels that the question keeps",
      {f"{p['title']}: {t['legendFormat']}" for p in panels for t in p["targets"]
       for x in re.findall(r"{{(\w+)}}", t["legendFormat"]) if not re.search(rf"by \([^)]*\b{x}\b", t["expr"])})
check("brackets are balanced", {e for _, e in questions if any(e.count(a) != e.count(b) for a, b in ("()", "[]", "{}"))})

# ---- the dashboard ----

ids = [p["id"] for p in dashboard["panels"]]
check("panels have numbers of their own", {str(i) for i in ids if ids.count(i) > 1})
cells = {}
for p in dashboard["panels"]:
    g = p["gridPos"]
    for x in range(g["x"], g["x"] + g["w"]):
        for y in range(g["y"], g["y"] + g["h"]):
            cells.setdefault((x, y), []).append(p["title"])
check("panels lie beside each other", {" and ".join(t) for t in cells.values() if len(t) > 1} |
      {f"{t[0]} leaves the page" for (x, _), t in cells.items() if x >= 24})
check("variables are there", {v for text in texts + [json.dumps(p.get("datasource")) for p in panels]
                              for v in re.findall(r"\$\{?([a-z]\w*)", text)} - variables.keys())
check("panels say what they show", {p["title"] for p in panels if not p.get("description")})

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
check("dashboards are loaded from a file", {p["type"] for p in settings["dashboards"]["providers"]} ^ {"file"})
source = sources["grafana-pyroscope-datasource"]
password = source["secureJsonData"]["basicAuthPassword"].replace("$CAIRN_TOKEN", TOKEN)
basic = base64.b64encode(f"{source['basicAuthUser']}:{password}".encode()).decode()
# The data source's health check is this call.
kind, _ = fetch("/querier.v1.QuerierService/ProfileTypes", {"Authorization": "Basic " + basic, "Content-Type": "application/proto"}, b"")
check("the data source reaches a service with these settings", {kind} - {"application/proto"})
sys.exit(has_failed())
