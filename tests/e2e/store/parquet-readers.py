# SPDX-License-Identifier: Apache-2.0
"""Reads, writes and compares with other libraries, for parquet-readers.t."""
import datetime
import glob
import json
import os
import random
import re
import shutil
import sys

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def plain(v):
    """A value in the form of tests/support/parquet_json.h."""
    if isinstance(v, bytes):
        return v.hex()
    if isinstance(v, datetime.datetime):
        d = v - EPOCH
        return (d.days * 86400 + d.seconds) * 10**6 + d.microseconds
    if isinstance(v, dict):
        out = {k: plain(x) for k, x in v.items()}
        return out if any(x is not None for x in out.values()) or not out else None
    if isinstance(v, list):
        if v and isinstance(v[0], tuple):
            return {k: plain(x) for k, x in v}
        return [plain(x) for x in v]
    return v


def lines(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def by_pyarrow(path):
    # read_table() would take a directory's name for a partition
    return [{k: plain(v) for k, v in row.items()} for row in pq.ParquetFile(path).read().to_pylist()]


def by_duckdb(path):
    db = duckdb.connect()
    db.execute("set timezone = 'UTC'")
    result = db.execute("select * from read_parquet(?, hive_partitioning = false)", [path])
    names = [column[0] for column in result.description]
    return [dict(zip(names, map(plain, row))) for row in result.fetchall()]


def same(got, want):
    """None, or the difference. Some readers do not distinguish an empty map and an empty list."""
    if len(got) != len(want):
        return f"{len(got)} rows, not {len(want)}"
    for i, (a, b) in enumerate(zip(got, want)):
        for key in b:
            x, y = plain(a[key]), plain(b[key])
            if x != y and not (x == [] and y == {}):
                return f"row {i}, {key}: {x!r}, not {y!r}"
    return None


def foreign_table(n):
    rng = random.Random(5)
    maybe = lambda v, p=0.3: None if rng.random() < p else v
    words = ["", "main", "größe", "日本語", "x" * 300]
    return pa.table({
        "time": pa.array([1763650000000000 + i * 997 for i in range(n)], pa.timestamp("us", "UTC")),
        "n": pa.array([maybe(rng.randrange(-2**63, 2**63)) for _ in range(n)], pa.int64()),
        "small": pa.array([maybe(rng.randrange(100)) for _ in range(n)], pa.int32()),
        "flag": pa.array([maybe(rng.random() < 0.5) for _ in range(n)], pa.bool_()),
        "ratio": pa.array([maybe(rng.randrange(1000) / 8) for _ in range(n)], pa.float64()),
        "single": pa.array([rng.randrange(1000) / 8 for _ in range(n)], pa.float32()),
        "word": pa.array([maybe(rng.choice(words)) for _ in range(n)], pa.string()),
        "unique": pa.array([f"row {i} {rng.random()}" for i in range(n)], pa.string()),
        "id": pa.array([rng.randbytes(16) for _ in range(n)], pa.binary()),
        "nothing": pa.array([None] * n, pa.string()),
        "ids": pa.array([maybe([maybe(rng.randrange(10**12)) for _ in range(rng.randrange(5))]) for _ in range(n)],
                        pa.list_(pa.int64())),
        "frames": pa.array([maybe([{"function": maybe(rng.choice(words)), "line": rng.randrange(3000)}
                                   for _ in range(rng.randrange(4))]) for _ in range(n)],
                           pa.list_(pa.struct([("function", pa.string()), ("line", pa.int64())]))),
        "labels": pa.array([maybe([(k, maybe(rng.choice(words))) for k in ("a", "b")[:rng.randrange(3)]])
                            for _ in range(n)], pa.map_(pa.string(), pa.string())),
    })


def write(directory):
    table = foreign_table(5000)
    put = lambda name, **options: pq.write_table(table, f"{directory}/{name}.parquet", **options)
    put("arrow-v1-zstd", compression="zstd", row_group_size=1700, data_page_size=2000)
    put("arrow-v1-plain", compression="none", use_dictionary=False, write_page_checksum=True)
    put("arrow-v2-zstd", compression="zstd", data_page_version="2.0", version="2.6", data_page_size=2000)
    put("arrow-v2-none", compression="none", data_page_version="2.0")
    put("arrow-dictionary-left", compression="zstd", dictionary_pagesize_limit=2000)
    put("arrow-delta", compression="zstd", use_dictionary=False,
        column_encoding={"time": "DELTA_BINARY_PACKED", "n": "DELTA_BINARY_PACKED", "small": "DELTA_BINARY_PACKED",
                         "unique": "DELTA_LENGTH_BYTE_ARRAY", "flag": "RLE"})
    db = duckdb.connect()
    db.register("t", table)
    for version in ("V1", "V2"):
        for codec in ("zstd", "uncompressed"):
            db.execute(f"copy t to '{directory}/duckdb-{version}-{codec}.parquet' "
                       f"(format parquet, codec '{codec}', parquet_version '{version}', row_group_size 2048)")


def append(path):
    """Rows with our table's schema, appended by deltalake, across a checkpoint of its own."""
    table = deltalake.DeltaTable(path)
    values = {"date": [datetime.date(2025, 11, 23)] * 3, "value": [1, 2, None]}
    schema = table.to_pyarrow_table().schema
    rows = pa.table([pa.array(values.get(f.name, [None] * 3), f.type) for f in schema], schema=schema)
    deltalake.write_deltalake(table, rows, mode="append")
    deltalake.DeltaTable(path).create_checkpoint()
    deltalake.write_deltalake(deltalake.DeltaTable(path), rows, mode="append")


class Tap:
    def __init__(self):
        self.count = 0

    def ok(self, trouble, name):
        self.count += 1
        print(f"{'not ok' if trouble else 'ok'} {self.count} - {name}" + (f"\n# {trouble}" if trouble else ""))


def expected_part(part, grown):
    """The rows written by write_part() of tests/unit/profile-store/test_delta_log.c."""
    return [{"time": 1763650000000000 + part * 1000000000 + i * 1001, "value": i % 10,
             "stack_id": bytes([i & 255, 255]).hex(), "ids": [i, -i, part][:i % 4],
             "frames": None if i % 5 == 0 else [{"function": "mäin" if i % 2 else "f", "line": i}],
             "label_pod": "pod-1" if grown else None, "labels_rest": {"zone": None} if grown else None}
            for i in range(1000)]


def compare_metadata(tap, path):
    meta = pq.ParquetFile(path).metadata
    tap.ok(meta.num_row_groups != 3 and f"{meta.num_row_groups} row groups", "flat: pyarrow sees three row groups")
    tap.ok(meta.metadata.get(b"cairn.test") != b"flat" and str(meta.metadata), "flat: pyarrow sees the metadata")
    rows = lines(path.replace(".parquet", ".jsonl"))
    trouble, start = None, 0
    for g in range(meta.num_row_groups):
        group = meta.row_group(g)
        part = rows[start:start + group.num_rows]
        start += group.num_rows
        for c in range(group.num_columns):
            column = group.column(c)
            values = [r[column.path_in_schema] for r in part]
            s = column.statistics
            real = [v for v in values if v is not None]
            if s is None or s.null_count != len(values) - len(real):
                trouble = f"{g} {column.path_in_schema}: null count {s}"
            elif real and s.has_min_max:
                key = (lambda v: v.encode()) if isinstance(real[0], str) else (lambda v: v)
                low, high = plain(s.min), plain(s.max)
                if key(low) > min(map(key, real)) or key(high) < max(map(key, real)):
                    trouble = f"{g} {column.path_in_schema}: bounds {low!r} {high!r}"
            elif real:
                trouble = f"{g} {column.path_in_schema}: no bounds"
    tap.ok(trouble, "flat: what pyarrow reads as statistics holds for every row")
    db = duckdb.connect()
    n = db.execute("select count(*) from read_parquet(?) where time >= to_timestamp(1763650000 + 1000) and value = 2",
                   [path]).fetchone()[0]
    want = sum(r["time"] >= (1763650000 + 1000) * 10**6 and r["value"] == 2 for r in rows)
    tap.ok(n != want and f"{n}, not {want}", "flat: DuckDB's filter that skips by statistics counts right")


def compare_table(tap, path):
    want = sum((expected_part(p, p == 4) for p in (0, 2, 3, 4)), [])
    table = deltalake.DeltaTable(path, version=6)
    rows = sorted(table.to_pyarrow_table().to_pylist(), key=lambda r: r["time"])
    tap.ok(same([{k: plain(v) for k, v in r.items()} for r in rows], want), "table: deltalake reads every value")
    days = [str(r["date"]) for r in rows[::1000]]
    tap.ok(days != ["2025-11-20", "2025-11-21", "2025-11-21", "2025-11-22"] and str(days),
           "table: deltalake reads the partitions' dates")
    old = deltalake.DeltaTable(path, version=3).to_pyarrow_table()
    tap.ok((old.num_rows != 3000 or "label_pod" in old.column_names) and str(old.schema),
           "table: deltalake reads an old version with its schema")
    files = [os.path.join(path, f) for f in table.to_pyarrow_table() and
             table.get_add_actions(flatten=True)["path"].to_pylist()]
    db = duckdb.connect()
    n, total = db.execute("select count(*), sum(value) from read_parquet(?, hive_partitioning = true, "
                          "union_by_name = true) where date >= date '2025-11-21'", [files]).fetchone()
    tap.ok((n, total) != (3000, 13500) and f"{n} {total}", "table: DuckDB reads the live files by partition")


def compare_page_index(tap, path, directory):
    """DataFusion, inside deltalake, skips pages with the page index: it must still find every row."""
    os.mkdir(directory)
    shutil.copy(path, directory)
    deltalake.convert_to_deltalake(directory)
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(directory)).execute
    rows = lines(path.replace(".parquet", ".jsonl"))
    low, high = 1763650900000000, 1763650950000000
    for where, holds in (
            (f"time >= to_timestamp_micros({low}) and time < to_timestamp_micros({high})",
             lambda r: low <= r["time"] < high),
            ("\"unique\" between 'row 12' and 'row 13'", lambda r: "row 12" <= r["unique"] <= "row 13"),
            ("word >= 'z'", lambda r: r["word"] is not None and r["word"].encode() >= b"z"),
            ("word is null and ratio > 100", lambda r: r["word"] is None and r["ratio"] > 100),
            ("wild > 9000000000000000000", lambda r: r["wild"] is not None and r["wild"] > 9000000000000000000)):
        n = pa.table(query(f"select count(*) as n from t where {where}").read_all()).to_pylist()[0]["n"]
        want = sum(map(holds, rows))
        tap.ok((n != want or not want) and f"{n}, not {want}", f"page index: DataFusion finds every row where {where}")
    plan = str(pa.table(query(f"explain analyze select value from t where time < to_timestamp_micros({low})")
                        .read_all()).to_pylist())
    pruned = re.search(r"page_index_rows_pruned=([0-9.]+) K total . ([0-9.]+) K matched", plan)
    tap.ok((not pruned or float(pruned[2]) >= float(pruned[1])) and plan, "page index: DataFusion skips pages by it")


def compare(directory):
    tap = Tap()
    for path in sorted(glob.glob(directory + "/ours/*.parquet")):
        want, name = lines(path.replace(".parquet", ".jsonl")), os.path.basename(path)[:-8]
        for reader in (by_pyarrow, by_duckdb):
            tap.ok(same(reader(path), want), f"{name}: {reader.__name__[3:]} reads every value of {len(want)} rows")
    compare_metadata(tap, directory + "/ours/flat.parquet")
    compare_page_index(tap, directory + "/ours/flat.parquet", directory + "/converted")
    for path in sorted(glob.glob(directory + "/foreign/*.parquet")):
        name = os.path.basename(path)[:-8]
        ours = path.replace(".parquet", ".ours.jsonl")
        got = lines(ours) if os.path.exists(ours) else []
        tap.ok(same(by_pyarrow(path), [{k: plain(v) for k, v in r.items()} for r in got]) if got else "not read",
               f"{name}: our reader reads every value of {len(got)} rows")
    compare_table(tap, directory + "/tables/table")
    checkpoint = deltalake.DeltaTable(directory + "/tables/checkpoint")
    n = len(checkpoint.file_uris())
    tap.ok((checkpoint.version(), n) != (101, 99) and f"{checkpoint.version()} {n}",
           "checkpoint: deltalake starts from ours, the commits before it gone")
    print(f"1..{tap.count}", flush=True)
    os._exit(0)  # without destructors: threads of the Arrow libraries occasionally abort during interpreter shutdown


if __name__ == "__main__":
    {"write": write, "append": append, "compare": compare}[sys.argv[1]](sys.argv[2])
