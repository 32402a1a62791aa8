# SPDX-License-Identifier: Apache-2.0
"""Reads an exported Parquet file with DuckDB and pyarrow, and its CSV: store-export.py FILE.parquet FILE.csv"""
import os
import sys

import duckdb
import pyarrow.parquet

parquet, csv = sys.argv[1:]
db = duckdb.connect()
db.execute("SET TimeZone = 'UTC'")
by_unit = "SELECT unit, sum(value)::BIGINT, sum(samples)::BIGINT, count(DISTINCT stack) FROM {} GROUP BY unit ORDER BY unit"
print(db.execute(by_unit.format(f"'{parquet}'")).fetchall())
table = pyarrow.parquet.read_table(parquet)
print([sum(table.column(name).to_pylist()) for name in ("value", "samples")])
# The same rows from the CSV, with empty fields as nulls.
columns = ", ".join(f'"{name}"' for name in table.column_names)
same = f"(SELECT {columns} FROM '{parquet}' EXCEPT ALL SELECT {columns} FROM read_csv('{csv}', nullstr = '', types = " \
       "{'time': 'TIMESTAMPTZ', 'labels_rest': 'VARCHAR', 'period': 'BIGINT', 'line': 'BIGINT'}))"
print(db.execute(f"SELECT count(*) FROM {same}").fetchone()[0], "rows differ")
sys.stdout.flush()
os._exit(0)
