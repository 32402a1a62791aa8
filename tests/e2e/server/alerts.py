#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks deploy/prometheus: the metrics of the alerts exist, their links are valid, and each alert is tested. make
check-alerts runs the checks of promtool.
"""
import os
import re
import sys

import yaml

from deploy_checks import check, has_failed, read, read_metric_labels

words_of = read_metric_labels()
alerts = [r for g in yaml.safe_load(read("deploy/prometheus/alerts.yaml"))["groups"] for r in g["rules"]]
check("there are alerts", [] if len(alerts) > 15 else [str(len(alerts))])
check("each has a name of its own", {r["alert"] for r in alerts if [x["alert"] for x in alerts].count(r["alert"]) > 1})
mistakes, label_mistakes = set(), set()
for r in alerts:
    named = re.findall(r"\b(cairn_\w+)(?:\{([^}]*)\})?", r["expr"])
    if not named:
        mistakes.add(f"{r['alert']}: no metric")
    mistakes |= {f"{r['alert']}: {n}" for n, _ in named if n not in words_of}
    for name, matchers in named:
        asked = {x for pair in re.findall(r'(\w+)=~?"([^"]*)"', matchers) for x in (pair[0], *pair[1].split("|"))}
        label_mistakes |= {f"{r['alert']}: {name}: {x}" for x in asked - words_of.get(name, set())}
        grouped = {x.strip() for part in re.findall(r"\bby \(([^)]*)\)", r["expr"]) for x in part.split(",")} - {"instance"}
        label_mistakes |= {f"{r['alert']}: {name}: by {x}" for x in grouped - words_of.get(name, set())}
    shown = set(re.findall(r"\$labels\.(\w+)", r["annotations"]["summary"]))
    if " by (" in r["expr"]:
        kept = {x.strip() for part in re.findall(r"\bby \(([^)]*)\)", r["expr"]) for x in part.split(",")}
        label_mistakes |= {f"{r['alert']}: shows {x}" for x in shown - kept}
check("each metric of the alerts is there", mistakes)
check("labels and their values are those of the metric", label_mistakes)
check("counters and buckets are rates", {r["alert"] for r in alerts for n in re.findall(r"\bcairn_\w+(?:_total|_bucket)\b", r["expr"])
                                         if not re.search(rf"(rate|increase)\({n}\b", r["expr"])})
check("severities are two", {f"{r['alert']}: {r['labels']}" for r in alerts if r["labels"]["severity"] not in ("warning", "critical")})
mistakes = set()
for r in alerts:
    page, _, anchor = r["annotations"]["runbook"].partition("#")
    anchors = {re.sub(r"[^a-z0-9 -]", "", t.lower()).replace(" ", "-") for t in re.findall(r"^#+ (.*)$", read(page), re.M)} \
        if os.path.exists(page) else set()
    if not os.path.exists(page) or (anchor and anchor not in anchors):
        mistakes.add(f"{r['alert']}: {r['annotations']['runbook']}")
check("the pages that they name exist", mistakes)
tested = set(re.findall(r'alertname="(\w+)"', read("deploy/prometheus/alerts-test.yaml")))
check("each is tested", {r["alert"] for r in alerts} ^ tested)
sys.exit(has_failed())
