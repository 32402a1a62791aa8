# SPDX-License-Identifier: Apache-2.0
"""Random samples in past hours, and the history of functions compared with the service's tables of functions.

    function-history.py send URL SEED BATCHES     send random batches
    function-history.py check URL DATA HOURS...   compare each of these hours (Unix seconds); prints TAP

The rows are read with pyarrow, from the files that the log names.
"""
import collections
import http.client
import json
import os
import random
import subprocess
import sys
import urllib.parse

FUNCTIONS = ["main", "run", "read", "parse", "hash", "sort", "write", "flush", "operator<<", "f(int, char)"]
CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"


def request(url, path, body=None, **query):
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=60)
    connection.request("POST" if body else "GET", path + "?" + urllib.parse.urlencode(query), body)
    answer = connection.getresponse()
    data = answer.read()
    if answer.status != 200:
        sys.exit(f"{path} {query}: {answer.status} {data!r}")
    return data


def send(url, seed, batches, hours):
    rng = random.Random(seed)
    for _ in range(batches):
        at = rng.choice(hours) + rng.choice((0, 1, 1800, 3599))
        lines = [";".join(rng.choices(FUNCTIONS, k=rng.randrange(1, 9))) + f" {rng.randrange(1, 1000)}"
                 for _ in range(rng.randrange(1, 30))]
        version = rng.choice(("1", "2", ""))
        name = rng.choice(("api", "db")) + (f"{{service_version={version}}}" if version else "{}")
        request(url, "/ingest", "\n".join(lines).encode(), name=name, format="folded", **{"from": at, "until": at + 1})


def read_history(data):
    import pyarrow.parquet as pq

    files = json.loads(subprocess.check_output(
        [os.environ["CAIRN"], "store", "files", "--json", "--table", "function_history", "--data", data]))
    rows = []
    for f in files:
        rows += pq.ParquetFile(f["path"]).read().to_pylist()
    return rows


def check(url, data, hours):
    rows = read_history(data)
    wrong = []
    for hour in hours:
        of_hour = [r for r in rows if r["hour"].timestamp() == hour]
        if not of_hour:
            wrong.append(("no rows", hour))
        for service in ("", "api", "db"):
            selector = f'{{service_name="{service}"}}' if service else "{}"
            want, have = {}, collections.defaultdict(lambda: [0, 0])
            for t in {r["profile_type"] for r in of_hour}:
                answer = json.loads(request(url, "/api/v1/query/top", selector=selector, type=t, limit=0, names="full",
                                            **{"from": hour, "to": hour + 3600}))
                for f in answer["rows"]:
                    want[t, f["function"], f["file"]] = [f["flat"], f["cumulative"]]
            for r in of_hour:
                if service in ("", r["service"]):
                    sums = have[r["profile_type"], r["function"], r["file"] or ""]
                    sums[0] += r["self"]
                    sums[1] += r["total"]
            if want != dict(have):
                wrong.append((hour, service, sorted(set(map(str, want.items())) ^ set(map(str, have.items())))[:6]))
    result = "not ok" if wrong else "ok"
    print(f"{result} 1 - {len(rows)} rows of {len(hours)} hours agree with the tables of functions")
    for w in wrong[:5]:
        print("#", w)
    print("1..1", flush=True)
    os._exit(bool(wrong))


def main():
    command, url = sys.argv[1:3]
    if command == "send":
        send(url, int(sys.argv[3]), int(sys.argv[4]), [int(h) for h in sys.argv[5:]])
    else:
        check(url, sys.argv[3], [int(h) for h in sys.argv[4:]])


main()
