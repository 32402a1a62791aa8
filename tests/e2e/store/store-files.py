# SPDX-License-Identifier: Apache-2.0
"""deploy/sql/duckdb.sql over a table with a checkpoint: store-files.py TABLES FILES.sql SUM"""
import os
import sys

import duckdb

tables, files, total = sys.argv[1:]


def views(setup):
    db = duckdb.connect()
    db.execute(setup)
    with open("deploy/sql/duckdb.sql", encoding="utf-8") as f:
        db.execute(f.read())
    way, log = db.execute("SELECT getvariable('cairn_way'), getvariable('cairn_samples_log')").fetchone()
    top = db.execute("SELECT function, flat FROM top ORDER BY ALL").fetchall()
    return way, log, top, len(db.execute("SELECT getvariable('cairn_locations')").fetchone()[0])


with open(files, encoding="utf-8") as f:
    by_files = views(f.read())
by_log = views(f"SET VARIABLE cairn = '{tables}'")
print(by_files[0], by_log[0])
print("equal" if by_files[2:] == by_log[2:] and sum(flat for _, flat in by_log[2]) == int(total) else (by_files, by_log))
print("bounded" if "checkpoint" in by_log[1] and by_log[1].count(".json") < 100 else by_log[1])
sys.stdout.flush()
os._exit(0)
