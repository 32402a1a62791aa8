# SPDX-License-Identifier: Apache-2.0
"""Asks an engine the questions of deploy/sql/questions.sql, through the views of deploy/sql.

    questions.py ENGINE TABLES      ENGINE: duckdb, spark, clickhouse

TABLES is a directory, or s3://BUCKET/PREFIX with AWS_ENDPOINT_URL_S3 and keys in the environment. The output is JSON: the
rows of each question, as texts, so that those of two engines can be compared.
"""
import datetime
import decimal
import json
import os
import re
import sys

from object_store import connect_duckdb, is_remote, name_clickhouse_table, name_spark_table, open_spark


def read_statements(name):
    with open(f"deploy/sql/{name}.sql", encoding="utf-8") as f:
        text = re.sub(r"--.*", "", f.read())
    return [s.strip() for s in text.split(";\n") if s.strip()]


def format_value(value):
    """One text for what engines return in different types."""
    if value is None:
        return None
    if isinstance(value, (bool, str)):
        return value
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, (int, float, decimal.Decimal)):
        return f"{float(value):.6f}"
    return str(value)


def ask_duckdb(tables, questions):
    c = connect_duckdb(tables, *(["delta"] if is_remote(tables) else []))
    c.execute("SET TimeZone = 'UTC'")
    c.execute("SET VARIABLE cairn = ?", [tables])
    with open("deploy/sql/duckdb.sql", encoding="utf-8") as f:
        c.execute(f.read())
    return [c.execute(q).fetchall() for q in questions]


def ask_spark(tables, questions):
    session = open_spark(tables)
    session.sql(f"SET cairn={name_spark_table(tables)}")
    for statement in read_statements("spark"):
        session.sql(statement)
    return [[tuple(row) for row in session.sql(q).collect()] for q in questions]


def ask_clickhouse(tables, questions):
    from chdb.session import Session
    if not is_remote(tables):
        os.chdir(tables)  # ClickHouse reads only below its working directory
    session = Session()
    rows = []
    for statement in STATEMENTS:
        session.query(re.sub(r"deltaLakeLocal\('cairn-data/profiles/tables/(\w+)'\)",
                             lambda table: name_clickhouse_table(f"{tables}/{table[1]}"), statement))
    for q in questions:
        text = session.query(q + " FORMAT JSONCompactEachRowWithNamesAndTypes "
                             "SETTINGS output_format_json_quote_64bit_integers = 0, session_timezone = 'UTC'")
        names, types, *found = [json.loads(line) for line in str(text).splitlines()]
        rows.append([[v[:19] if v and "DateTime" in t else v for v, t in zip(row, types)] for row in found])
    return rows


STATEMENTS = read_statements("clickhouse")


def main():
    engine, tables = sys.argv[1:]
    questions = read_statements("questions")
    assert len(questions) == 10, questions
    if not is_remote(tables):
        tables = os.path.abspath(tables)
    rows = {"duckdb": ask_duckdb, "spark": ask_spark, "clickhouse": ask_clickhouse}[engine](tables, questions)
    print(json.dumps([[[format_value(v) for v in row] for row in found] for found in rows]), flush=True)
    os._exit(0)  # without destructors, which may abort in the engines' threads


if __name__ == "__main__":
    main()
