# SPDX-License-Identifier: Apache-2.0
"""Finds all locations of a fleet that have worse names than the nodes would give now, and has Cairn name them.

    spark-submit --properties-file deploy/spark/spark.conf deploy/spark/resymbolize.py \
        --tables s3a://BUCKET/PREFIX/tables --node URL [--node URL]... [--token-file FILE] [--ca FILE] [--tenant NAME] [--dry-run]

Executors read the table of locations and ask the nodes for names (docs/formats/symbolize.md). The objects whose locations would
change are handed to a node (docs/formats/resymbolize.md), which looks them up again and commits: Spark writes nothing. Then the
new version of the table is compared with what the executors were told. docs/spark.md says why names are not handed over.

The output is one JSON object. Exit status: 0 done, 1 failed or names differ, 2 wrong usage.
"""
import argparse
import gzip
import http.client
import itertools
import json
import re
import ssl
import sys
import time
import urllib.error
import urllib.request
import zlib
from typing import NamedTuple

from pyspark import StorageLevel
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

BATCH_ROWS = 20000
ANSWER_BYTES = 1 << 28  # of a batch, unpacked
OBJECTS_A_REQUEST = 100000  # LIMIT of /api/v1/resymbolize
ATTEMPTS_A_NODE = 5
BUSY = (429, 502, 503, 504)
QUALITIES = ("none", "boundaries", "dynsym", "minidebuginfo", "symtab", "go_pclntab", "lines", "dwarf")  # worst first
FRAME = "struct<function:string,linkage_name:string,file:string,line:bigint,inlined:boolean>"


class NodeError(Exception):
    """A node refused a request, or none answered it."""


def read_refusal(error):
    """The text of an answer with an error, as far as it comes."""
    try:
        return error.read(1000).decode(errors="replace").strip()
    except (OSError, http.client.HTTPException) as e:
        return str(e)


class Answer(NamedTuple):
    object_state: str
    quality: int  # of QUALITIES, the best of the object
    state: str
    frames: list


class Nodes:
    """Clients of equal nodes. Executors get copies."""

    def __init__(self, urls, token, ca, tenant):
        self.urls = [url.rstrip("/") for url in urls]
        self.ca = ca  # PEM; None: those of the system
        self.headers = {"Content-Type": "application/json", "Accept-Encoding": "gzip"}
        if token:
            self.headers["Authorization"] = f"Bearer {token}"
        if tenant:
            self.headers["X-Scope-OrgID"] = tenant

    def request(self, url, path, body, timeout_s):
        request = urllib.request.Request(url + path, json.dumps(body).encode(), self.headers)
        context = ssl.create_default_context(cadata=self.ca) if url.startswith("https:") else None
        with urllib.request.urlopen(request, timeout=timeout_s, context=context) as answer:
            stream = gzip.GzipFile(fileobj=answer) if answer.headers["Content-Encoding"] == "gzip" else answer
            data = stream.read(ANSWER_BYTES + 1)
        if len(data) > ANSWER_BYTES:
            raise NodeError(f"{url}{path}: the answer has more than {ANSWER_BYTES} bytes")
        return json.loads(data)

    def post(self, path, body, first, timeout_s):
        """The answer of the node with this number, or of another one if it is away or busy. Requests can be repeated."""
        last = None
        for attempt in range(ATTEMPTS_A_NODE * len(self.urls)):
            url = self.urls[(first + attempt) % len(self.urls)]
            if attempt >= len(self.urls):
                time.sleep(min(30, 2 ** (attempt // len(self.urls) - 1)))
            try:
                return self.request(url, path, body, timeout_s)
            except urllib.error.HTTPError as e:
                last = f"{url}{path}: {e.code} {read_refusal(e)}"
                if e.code not in BUSY:
                    raise NodeError(last) from e
            except (OSError, EOFError, ValueError, http.client.HTTPException, zlib.error) as e:  # away, an answer cut short
                last = f"{url}{path}: {e}"
        raise NodeError(f"no node answers; the last one: {last}")


def list_frames(frames):
    """Frames of a row or an answer, so that they can be compared: what is unknown, or a name repeated, is empty or 0."""
    return [(f["function"] or "", "" if f["linkage_name"] in (None, f["function"]) else f["linkage_name"], f["file"] or "",
             f["line"] or 0, bool(f["inlined"])) for f in frames or []]


def ask_names(nodes, first, rows):
    """The answers to rows, in a dictionary by build-id, kind and address."""
    keys = {}
    for row in rows:
        keys.setdefault((row.build_id, row.address_kind), {})[row.address] = None
    objects = [{"build_id": build_id, "file_offsets": kind == "file_offset",
                "addresses": [f"{address & (1 << 64) - 1:#x}" for address in addresses]}
               for (build_id, kind), addresses in keys.items()]
    answer = nodes.post("/api/v1/symbolize", {"objects": objects}, first, 300)
    names = {}
    try:
        for (key, addresses), found in zip(keys.items(), answer["objects"], strict=True):
            for address, result in zip(addresses, found["results"], strict=True):
                names[(*key, address)] = Answer(found["state"], QUALITIES.index(found["quality"]), result["state"],
                                                  list_frames(result["frames"]))
    except (AttributeError, KeyError, TypeError, ValueError) as e:
        raise NodeError(f"an answer of /api/v1/symbolize has another form than it should: {e!r}") from e
    return names


def would_change(row, answer):
    """Whether Cairn changes the row for this answer: docs/formats/tables.md, Source of frames."""
    if answer.state != "resolved":
        return answer.object_state == "indexed" and row.state not in ("resolved", "sender", answer.state)
    if row.state in ("resolved", "sender"):
        least = QUALITIES.index("go_pclntab" if row.state == "sender" else row.quality)
        return answer.quality >= least and list_frames(row.frames) != answer.frames
    return True


def make_finder(nodes):
    """The function of executors: from rows of a partition, those that would change, with the answer."""
    def find(partition, rows):
        while batch := list(itertools.islice(rows, BATCH_ROWS)):
            names = ask_names(nodes, partition, batch)
            for row in batch:
                answer = names[row.build_id, row.address_kind, row.address]
                if would_change(row, answer):
                    yield row.location_id, row.build_id, row.state, answer.state, answer.frames
    return find


def read_locations(spark, tables):
    """The newest version of the table, which stays the same while others commit, and its number."""
    path = f"{tables}/locations"
    version = spark.sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT 1").head().version
    return spark.read.format("delta").option("versionAsOf", version).load(path), version


def compare_names(spark, tables, stale):
    """Counts what became of the stale rows: renamed, kept by Cairn's rules, and others, which have other names than told."""
    after, version = read_locations(spark, tables)
    frames = F.expr("transform(frames, f -> struct(coalesce(f.function, '') AS function, "
                    "coalesce(nullif(f.linkage_name, f.function), '') AS linkage_name, coalesce(f.file, '') AS file, "
                    "coalesce(f.line, 0L) AS line, coalesce(f.inlined, false) AS inlined))")  # as list_frames()
    named = (F.col("new_state") == F.col("told_state")) & (F.coalesce(F.col("new_frames"), F.array()) == F.col("told_frames"))
    kept = F.col("new_state").isin("sender", "too_large")
    outcome = F.when(named, "renamed").when(kept, "kept").otherwise("differ")
    rows = (after.select("location_id", F.col("state").alias("new_state"), frames.alias("new_frames")).join(stale, "location_id")
            .groupBy(outcome.alias("outcome")).count().collect())
    return {"version_after": version, **{name: 0 for name in ("renamed", "kept", "differ")}, **{r.outcome: r["count"] for r in rows}}


def resymbolize(spark, options, nodes):
    locations, version = read_locations(spark, options.tables)
    rows = (locations.where("build_id IS NOT NULL AND address IS NOT NULL AND address_kind <> 'none'")
            .select("location_id", "build_id", "address", "address_kind", "state", "quality", "frames"))
    # Ranges of addresses, so that a large object has several tasks, and a task few objects.
    tasks = int(spark.conf.get("spark.sql.shuffle.partitions"))
    ranged = rows.repartition(tasks, "build_id", F.shiftright("address", 20)).sortWithinPartitions("build_id", "address")
    stale = spark.createDataFrame(ranged.rdd.mapPartitionsWithIndex(make_finder(nodes)), "location_id bigint, build_id string, "
                                  f"old_state string, told_state string, told_frames array<{FRAME}>")
    stale = stale.persist(StorageLevel.DISK_ONLY)  # each location is asked for once
    objects = sorted(row.build_id for row in stale.select("build_id").distinct().collect())
    report = {"version": version, "locations": rows.count(), "stale_locations": stale.count(), "stale_objects": len(objects),
              "locations_changed": 0}
    if options.dry_run:
        return report
    for i in range(0, len(objects), OBJECTS_A_REQUEST):
        done = nodes.post("/api/v1/resymbolize", {"build_ids": objects[i:i + OBJECTS_A_REQUEST]}, 0, 3600)
        report["locations_changed"] += done["locations_changed"]
    return {**report, **compare_names(spark, options.tables, stale)}


def read_options():
    parser = argparse.ArgumentParser(description="Finds locations with outdated names by Spark, and has Cairn name them.")
    parser.add_argument("--tables", required=True, help="s3a://BUCKET/PREFIX/tables, or a path that all executors have")
    parser.add_argument("--node", action="append", required=True, help="URL of a node with the role symbolize; repeat it")
    parser.add_argument("--token-file", type=argparse.FileType(), help="its first line is a token with the scopes read and admin")
    parser.add_argument("--ca", type=argparse.FileType(), help="CA certificates for the nodes, PEM")
    parser.add_argument("--tenant", help="name of the tenant")
    parser.add_argument("--dry-run", action="store_true", help="find them, and change nothing")
    return parser.parse_args()


def main():
    options = read_options()
    token = options.token_file.readline().strip() if options.token_file else None
    nodes = Nodes(options.node, token, options.ca.read() if options.ca else None, options.tenant)
    spark = SparkSession.builder.appName("cairn-resymbolize").getOrCreate()
    try:
        report = resymbolize(spark, options, nodes)
    except Exception as e:  # an error of an executor comes as text within one of Spark's
        found = re.findall(r"NodeError: (.*)", str(e))
        if not found and not isinstance(e, NodeError):
            raise
        sys.exit(f"resymbolize.py: {found[-1] if found else e}")
    print(json.dumps(report))
    if report.get("differ"):
        sys.exit(f"resymbolize.py: {report['differ']} locations have other names than the nodes gave: symbols changed meanwhile, "
                 "or the node that committed lacks them; run it again")


if __name__ == "__main__":
    main()
