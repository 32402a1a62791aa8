# SPDX-License-Identifier: Apache-2.0
"""Sends random honest and hostile batches to a service, and checks the result.

    store-property.py send URL SEED FIRST COUNT SENT   append the content of each acknowledged honest batch to SENT
    store-property.py check DATA SENT FOLDED STATUS    compare with the tables and Cairn's query results; prints TAP

Each honest batch has a service name and a leaf function of its own, so that its samples can be identified in the
tables.
"""
import gzip
import http.client
import json
import os
import random
import sys
import time
import urllib.parse

from profiles import Strings, blob, num, otlp, packed, pprof

NUMBERS = (-(2**63), -(2**63) + 1, -1, 0, 1, 2**31 - 1, 2**63 - 2, 2**63 - 1)
OTLP_TYPE = "application/x-protobuf"


def around(rng, limit):
    """Mostly small, sometimes at or just over a limit."""
    return rng.choice((limit - 1, limit, limit + 1, rng.randrange(limit) + 1, 1, 2, 3, 5))


# ---- honest batches: (path, content type, body, samples' values) ----


def honest(rng, number):
    name, leaf = f"honest-{number}", f"batch_{number}"
    form = rng.randrange(3)
    values = [rng.randrange(1, 1000) for _ in range(rng.randrange(1, 20))]
    at = time.time_ns() - rng.randrange(3) * 86400 * 10**9
    if form == 0:
        return "/v1development/profiles", OTLP_TYPE, otlp(names=(leaf, "main"), service=name, values=values, at_ns=at), values
    if form == 1:
        body = "".join(f"main;{leaf} {v}\n" for v in values).encode()
        return f"/ingest?name={name}&format=folded&from={at // 10**9}", "text/plain", body, values
    body = gzip.compress(pprof(strings=("", "cpu", "nanoseconds", leaf, "main.c"), values=values[:1]))
    return f"/ingest?name={name}&format=pprof&from={at // 10**9}", "application/octet-stream", body, values[:1]


# ---- hostile ones: (path, content type, body) ----


def text(rng, size):
    return bytes(rng.randrange(97, 123) if rng.random() < 0.7 else rng.randrange(1, 256) for _ in range(size))


def hostile_pprof(rng):
    """Each dimension is occasionally near its limit: labels, frames, lines of a location, days, values."""
    s = Strings()
    out = [blob(1, num(1, s("cpu")) + num(2, s("nanoseconds")))]
    work = [s("work_%d" % i) for i in range(4)]
    strings = []
    key_bytes, lines, frames = around(rng, 256), around(rng, 256), around(rng, 512)

    def add(data):
        strings.append(data)
        return len(s.items) - 1 + len(strings)

    for _ in range(around(rng, rng.choice((8, 1024)))):
        labels = b""
        if rng.random() < 0.8:
            labels = blob(3, num(1, add(text(rng, key_bytes))) + num(2, add(text(rng, around(rng, 64)))))
        out.append(blob(2, packed(1, [1 + i % 4 for i in range(frames)]) + packed(2, [rng.choice(NUMBERS)]) + labels))
    for i in range(4):
        frame = b"".join(blob(4, num(1, 1 + rng.randrange(4)) + num(2, rng.choice(NUMBERS))) for _ in range(lines))
        out.append(blob(4, num(1, 1 + i) + num(3, rng.randrange(2**64)) + frame))
    out += [blob(5, num(1, 1 + i) + num(2, work[i]) + num(4, work[i - 1])) for i in range(4)]
    out += [blob(6, t) for t in s.items] + [blob(6, t) for t in strings]
    out.append(num(9, rng.choice((time.time_ns(), time.time_ns(), *NUMBERS))) + num(10, rng.choice(NUMBERS)) +
               num(12, rng.choice(NUMBERS)))
    return b"".join(out)


def push_of_days(rng):
    now, days = time.time_ns(), around(rng, 32)
    name = blob(1, blob(1, "service_name") + blob(2, "hostile"))
    out = b""
    for day in range(days):
        raw = pprof(strings=("", "cpu", "nanoseconds", f"hostile_{day}", "x.c"))
        # The last field of a kind wins, so this time is the profile's.
        out += blob(1, name + blob(2, blob(1, raw + num(9, now - day * 86400 * 10**9))))
    return out


def damaged(rng):
    body = bytearray(otlp(names=("x", "y"), service="hostile", values=[rng.choice(NUMBERS) for _ in range(5)]))
    for _ in range(rng.randrange(1, 8)):
        body[rng.randrange(len(body))] = rng.randrange(256)
    return bytes(body[:rng.randrange(len(body))] if rng.random() < 0.3 else body)


def hostile(rng):
    form = rng.randrange(6)
    if form < 2:
        return "/ingest?name=hostile&format=pprof", "application/octet-stream", hostile_pprof(rng)
    if form == 2:
        return "/push.v1.PusherService/Push", "application/proto", push_of_days(rng)
    if form == 3:
        return "/v1development/profiles", OTLP_TYPE, damaged(rng)
    if form == 4:
        times = rng.choice(NUMBERS) & (2**64 - 1)
        body = otlp(names=("x",) * around(rng, 512), service=text(rng, around(rng, 300)), at_ns=times or 1,
                    values=[rng.choice(NUMBERS) for _ in range(rng.randrange(50))])
        return "/v1development/profiles", OTLP_TYPE, body
    line = b";".join(text(rng, around(rng, 64)) for _ in range(around(rng, 512)))
    return f"/ingest?name=hostile&format=folded&from={rng.choice(NUMBERS)}", "text/plain", line + b" 3\n" + text(rng, 20)


# ---- send ----


def post(where, path, content_type, body):
    connection = http.client.HTTPConnection(where, timeout=60)
    connection.request("POST", path, body, {"Content-Type": content_type})
    answer = connection.getresponse()
    detail = answer.read()
    connection.close()
    return answer.status, detail


def send(url, seed, first, count, sent):
    where = urllib.parse.urlsplit(url).netloc
    rng = random.Random(seed * 1000 + first)
    answers = {}
    with open(sent, "a", encoding="utf-8") as f:
        for number in range(first, first + count):
            if rng.random() < 0.5:
                path, content_type, body, values = honest(rng, number)
                status, detail = post(where, path, content_type, body)
                if status != 200:
                    sys.exit(f"honest batch {number} to {path}: {status} {detail!r}")
                f.write(json.dumps({"batch": number, "sum": sum(values)}) + "\n")
                f.flush()
                continue
            request = hostile(rng)
            status, detail = post(where, *request)
            answers[status] = answers.get(status, 0) + 1
            if status not in (200, 400, 413):
                sys.exit(f"hostile batch {number} to {request[0]}: {status} {detail!r}")
    print("hostile answers:", answers)


# ---- check ----


def check(data, sent, folded, status):
    import deltalake
    import duckdb
    import pyarrow.parquet as pq

    failures = count = 0

    def ok(trouble, name):
        nonlocal failures, count
        count += 1
        failures += bool(trouble)
        print(f"{'not ok' if trouble else 'ok'} {count} - {name}" + (f"\n# {str(trouble)[:2000]}" if trouble else ""))

    with open(sent, encoding="utf-8") as f:
        batches = [json.loads(line) for line in f]
    want = {b["batch"]: b["sum"] for b in batches}
    db = duckdb.connect()
    files, rows = {}, {}
    for table in ("samples", "stacks", "locations"):
        files[table] = [os.path.join(data, "profiles", "tables", table, path)
                        for path in deltalake.DeltaTable(os.path.join(data, "profiles", "tables", table))
                        .get_add_actions(flatten=True)["path"].to_pylist()]
        wrong, rows[table] = [], 0
        for path in files[table]:
            # Both decode every value. pyarrow's read_table() would interpret a directory name as a partition.
            theirs = pq.ParquetFile(path).read().num_rows
            columns = db.execute("describe select * from read_parquet(?, hive_partitioning = false)", [path]).fetchall()
            hashes = ", ".join('bit_xor(hash("%s"))' % c[0].replace('"', '""') for c in columns)
            others = db.execute(f"select count(*), {hashes} from read_parquet(?, hive_partitioning = false)",
                                [path]).fetchone()[0]
            rows[table] += theirs
            if theirs != others or not theirs:
                wrong.append((path, theirs, others))
        ok(wrong or not files[table], f"{len(files[table])} files of {table}: pyarrow and DuckDB read equally many rows")

    with open(status, encoding="utf-8") as f:
        ours = json.load(f)
    got = {table: ours[table[:-1] + "_rows"] for table in rows}
    ok(got != rows and (got, rows), "our reader has as many rows in each table")

    sums = dict(db.execute("""
        select coalesce(label_service_name, labels_rest['service_name']) as name, sum(value)::bigint
        from read_parquet(?, hive_partitioning = false, union_by_name = true)
        where name like 'honest-%' group by name""", [files["samples"]]).fetchall())
    sums = {int(name.split("-")[1]): value for name, value in sums.items()}
    ok(sums != want and sorted(set(sums.items()) ^ set(want.items())),
       f"every one of {len(want)} acknowledged honest batches is in the tables, once")

    sums = {}
    with open(folded, encoding="utf-8") as f:
        for line in f:
            stack, value = line.rsplit(" ", 1)
            leaf = stack.split(";")[-1]
            sums[leaf] = sums.get(leaf, 0) + int(value)
    # A pprof batch has one frame, in the others the frame is called by main.
    expected = {f"batch_{number}": value for number, value in want.items()}
    ok(sums != expected and sorted(set(sums.items()) ^ set(expected.items())), "a query has the same sums")
    print(f"1..{count}", flush=True)
    os._exit(failures > 0)  # threads of the Arrow libraries may abort during interpreter shutdown


def main():
    if sys.argv[1] == "send":
        url, seed, first, count, sent = sys.argv[2:]
        send(url, int(seed), int(first), int(count), sent)
    else:
        check(*sys.argv[2:])


main()
