# SPDX-License-Identifier: Apache-2.0
"""Shared by the checks of deploy/: reporting results as tests, and the metrics listed in docs/metrics.md."""
import re

failed = False


def check(name, mistakes):
    global failed
    mistakes = sorted(mistakes)
    failed |= bool(mistakes)
    print(f"{'not ok' if mistakes else 'ok'} - {name}")
    for mistake in mistakes[:20]:
        print(mistake)


def has_failed():
    return failed


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def read_metric_labels():
    """Metric name to labels, and label values if they are listed. docs.t compares the list of /metrics with the code."""
    labels_of = {}
    pages = read("docs/metrics.md") + read("docs/recording-rules.md")
    for names, labels in re.findall(r"^\| (`cairn_[^|]*)\|([^|]*)\|", pages, re.M):
        for name in re.findall(r"`(\w+)`", names):
            labels_of.setdefault(name, set()).update(re.findall(r"`(\w+)`", labels))
            if name.endswith("_duration_seconds"):
                labels_of.setdefault(name + "_bucket", {"le"}).update(labels_of[name])
    return labels_of
