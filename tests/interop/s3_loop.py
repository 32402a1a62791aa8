# SPDX-License-Identifier: Apache-2.0
"""Repeatedly reads the tables of a service over S3 until FILE exists: no query may fail, and no sum may decrease.

    s3_loop.py URL FILE

Prints the number of reads by each client, and exits with 1 after a failure.
"""
import os
import sys
import threading
import traceback

import deltalake
import duckdb
import pyarrow.compute
import pyarrow.dataset
import pyarrow.fs
from duckdb_extensions import import_extension

URL, STOP = sys.argv[1:]
HOST = URL.split("://")[1]
OPTIONS = {"AWS_ENDPOINT_URL": URL, "AWS_ALLOW_HTTP": "true", "AWS_SKIP_SIGNATURE": "true", "AWS_REGION": "us-east-1"}


def connect_duckdb():
    c = duckdb.connect()
    c.sql("LOAD httpfs; LOAD delta")
    c.sql(f"CREATE SECRET (TYPE s3, KEY_ID 'x', SECRET 'x', ENDPOINT '{HOST}', URL_STYLE 'path', USE_SSL false, "
          "REGION 'us-east-1')")
    return c


def read_delta_rs(state):
    table = deltalake.DeltaTable("s3://cairn/samples", storage_options=OPTIONS)
    locations = deltalake.DeltaTable("s3://cairn/locations", storage_options=OPTIONS)
    rows = locations.to_pyarrow_table(columns=["location_id"])
    assert len(set(rows.column(0).to_pylist())) == len(rows), "a location is there twice"
    return pyarrow.compute.sum(table.to_pyarrow_table(columns=["value"]).column(0)).as_py() or 0


def read_duckdb_delta(state):
    c = state.setdefault("duckdb", None) or connect_duckdb()
    state["duckdb"] = c
    twice = c.sql("SELECT count(*) - count(DISTINCT location_id) FROM delta_scan('s3://cairn/locations')").fetchone()[0]
    assert twice == 0, "a location is there twice"
    return int(c.sql("SELECT coalesce(sum(value), 0) FROM delta_scan('s3://cairn/samples')").fetchone()[0])


def read_duckdb_glob(state):
    c = state.setdefault("duckdb", None) or connect_duckdb()
    state["duckdb"] = c
    c.sql("SELECT count(*) FROM read_parquet('s3://cairn/locations/*.parquet')").fetchone()
    return int(c.sql("SELECT sum(value) FROM read_parquet('s3://cairn/samples/date=*/*.parquet')").fetchone()[0])


def read_pyarrow(state):
    fs = pyarrow.fs.S3FileSystem(anonymous=True, endpoint_override=HOST, scheme="http", region="us-east-1")
    samples = pyarrow.dataset.dataset("cairn/samples", filesystem=fs, format="parquet", ignore_prefixes=["_"])
    pyarrow.dataset.dataset("cairn/locations", filesystem=fs, format="parquet", ignore_prefixes=["_"]).to_table()
    return pyarrow.compute.sum(samples.to_table(columns=["value"]).column(0)).as_py() or 0


failures = []
counts = {}


def run(read):
    state, last, count = {}, 0, 0
    while not failures and (count == 0 or not os.path.exists(STOP)):
        try:
            now = read(state)
            assert now >= last, f"the sum fell from {last} to {now}"
        except Exception:
            failures.append(f"{read.__name__}, reading {count + 1}:\n{traceback.format_exc()}")
            break
        last = now
        count += 1
    counts[read.__name__] = f"{count} times, last sum {last}"


for extension in ("httpfs", "delta"):  # once: concurrent installations fail
    import_extension(extension)
threads = [threading.Thread(target=run, args=(read,))
           for read in (read_delta_rs, read_duckdb_delta, read_duckdb_glob, read_pyarrow)]
for t in threads:
    t.start()
for t in threads:
    t.join()
for name, text in sorted(counts.items()):
    print(f"# {name}: {text}")
print("\n".join(failures), end="", flush=True)
os._exit(1 if failures else 0)  # without destructors: running threads of the clients' libraries would abort in them
