# SPDX-License-Identifier: Apache-2.0
"""Reads the three tables with one reader and prints the sums of their rows.

    read.py READER TABLES

The output is one line of JSON: the sum of each service, and of each leaf function, which requires a join of all three
tables. tests/interop/run compares it with Cairn's sums.
"""
import collections
import json
import os
import subprocess
import sys
import tempfile

from object_store import (connect_duckdb, delta_options, file_system, is_remote, name_clickhouse_table, name_spark_table,
                          open_spark)

COLUMNS = {
    "samples": ("value", "stack_id", "date", "label_service_name"),
    "stacks": ("stack_id", "date", "location_ids"),
    "locations": ("location_id", "frames"),
}


def delta_rs(path, columns):
    import deltalake
    return deltalake.DeltaTable(path, storage_options=delta_options(path)).to_pyarrow_table(columns=list(columns)).to_pylist()


def pyarrow(path, columns):
    import deltalake
    import pyarrow.dataset
    import pyarrow.parquet
    system, base = file_system(path)
    files = [base + uri[len(path):] for uri in deltalake.DeltaTable(path, storage_options=delta_options(path)).file_uris()]
    schema = pyarrow.unify_schemas([pyarrow.parquet.read_schema(f, filesystem=system) for f in files])
    partitions = pyarrow.dataset.partitioning(pyarrow.schema([("date", pyarrow.string())]), flavor="hive")
    if "date" in columns:
        schema = schema.append(pyarrow.field("date", pyarrow.string()))
    data = pyarrow.dataset.dataset(files, schema=schema, filesystem=system, format="parquet", partitioning=partitions,
                                   partition_base_dir=base)
    return data.to_table(columns=list(columns)).to_pylist()


def duckdb(path, columns):
    connection = connect_duckdb(path, "delta")
    rows = connection.sql(f"SELECT {', '.join(columns)} FROM delta_scan('{path}')").fetchall()
    return [dict(zip(columns, row)) for row in rows]


def read_views(path, columns, way):
    """Through the views of deploy/sql/duckdb.sql, with this way of finding files."""
    connection = connect_duckdb(path, *(["delta"] if way == "delta" else []))
    if way == "log":  # a directory without installed extensions
        connection.execute("SET extension_directory = ?", [os.path.join(tempfile.gettempdir(), "no-duckdb-extensions")])
    connection.execute("SET VARIABLE cairn = ?", [os.path.dirname(path)])
    with open("deploy/sql/duckdb.sql", encoding="utf-8") as script:
        connection.execute(script.read())
    found = connection.sql("SELECT getvariable('cairn_way')").fetchone()[0]
    assert found == way, f"duckdb.sql finds the files by '{found}', not by '{way}'"
    rows = connection.sql(f"SELECT {', '.join(columns)} FROM {os.path.basename(path)}").fetchall()
    return [dict(zip(columns, row)) for row in rows]


def duckdb_views(path, columns):
    return read_views(path, columns, "log")


def duckdb_delta_views(path, columns):
    return read_views(path, columns, "delta")


def polars(path, columns):
    import polars
    return polars.scan_delta(path, storage_options=delta_options(path)).select(list(columns)).collect().to_dicts()


def datafusion(path, columns):
    import datafusion
    import deltalake
    import pyarrow as arrow
    table, question = deltalake.DeltaTable(path, storage_options=delta_options(path)), f"SELECT {', '.join(columns)} FROM t"
    if is_remote(path):
        # Of datafusion 55, which finds no store for a table of deltalake 1.6, the copy in deltalake is taken.
        answer = deltalake.QueryBuilder().register("t", table).execute(question).read_all()
        return arrow.table(answer).to_pylist()
    context = datafusion.SessionContext()
    context.register_table("t", table)
    return context.sql(question).to_pylist()


def chdb(path, columns):
    import chdb
    if not is_remote(path):
        os.chdir(path)  # ClickHouse reads only below its working directory
    wanted = ["hex(stack_id) AS stack_id" if c == "stack_id" else c for c in columns]  # its strings may be binary
    rows = chdb.query(f"SELECT {', '.join(wanted)} FROM {name_clickhouse_table(path)}", "ArrowTable").to_pylist()
    for row in rows:
        if "stack_id" in row:
            row["stack_id"] = bytes.fromhex(row["stack_id"])
    return rows


def hyparquet(path, columns):
    import deltalake
    rows = []
    for uri in deltalake.DeltaTable(path).file_uris():
        made = subprocess.run(["node", os.path.join(os.path.dirname(__file__), "hyparquet.mjs"), uri, *columns],
                              check=True, stdout=subprocess.PIPE, text=True)
        for row in json.loads(made.stdout):
            if "date" in columns:
                row["date"] = uri.split("date=")[1].split("/")[0]
            rows.append(row)
    return rows


def spark(path, columns):
    table = open_spark(path).read.format("delta").load(name_spark_table(path))
    return [row.asDict(recursive=True) for row in table.select(*columns).collect()]


READERS = (delta_rs, pyarrow, duckdb, duckdb_views, duckdb_delta_views, polars, datafusion, chdb, hyparquet, spark)


def get_bytes(value):
    if isinstance(value, str):
        return value.encode("latin-1")
    return bytes(value)


def main():
    read = next(r for r in READERS if r.__name__ == sys.argv[1])
    tables = sys.argv[2] if is_remote(sys.argv[2]) else os.path.abspath(sys.argv[2])
    rows = {name: read(os.path.join(tables, name), columns) for name, columns in COLUMNS.items()}
    functions = {}
    for row in rows["locations"]:
        assert row["location_id"] not in functions, "a location is there twice"
        frames = row["frames"] or []
        functions[row["location_id"]] = frames[0]["function"] if frames else None
    stacks = {}
    for row in rows["stacks"]:
        stacks[get_bytes(row["stack_id"]), str(row["date"])] = row["location_ids"]
    services, leaves = collections.Counter(), collections.Counter()
    for row in rows["samples"]:
        leaf = functions[stacks[get_bytes(row["stack_id"]), str(row["date"])][0]]
        services[row["label_service_name"]] += int(row["value"])
        if leaf:
            leaves[leaf] += int(row["value"])
    print(json.dumps({"services": services, "functions": leaves}, sort_keys=True), flush=True)
    os._exit(0)  # without destructors, which may abort in the readers' threads


if __name__ == "__main__":
    main()
