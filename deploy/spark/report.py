# SPDX-License-Identifier: Apache-2.0
"""Asks questions in SQL about the tables of a fleet, over the views of deploy/sql/spark.sql.

    spark-submit --properties-file deploy/spark/spark.conf deploy/spark/report.py \
        --tables s3a://BUCKET/PREFIX/tables [--set NAME=VALUE]... [--format text|csv|json] FILE.sql

Statements of FILE end with a semicolon at the end of a line; ${NAME} stands for the value of --set. The rows of each are printed.
"""
import argparse
import csv
import os
import re
import sys

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

VIEWS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "sql", "spark.sql")


def read_statements(path):
    with open(path, encoding="utf-8") as f:
        text = re.sub(r"--.*", "", f.read())
    return [s.strip() for s in re.split(r";\s*(?:\n|$)", text) if s.strip()]


def print_rows(rows, kind):
    if kind == "text":
        rows.show(1000000, truncate=False)
    elif kind == "json":
        for line in rows.toJSON().toLocalIterator():
            print(line)
    else:
        out = csv.writer(sys.stdout)
        out.writerow(rows.columns)
        out.writerows(rows.toLocalIterator())


def read_setting(text):
    name, equals, value = text.partition("=")
    if not name.isidentifier() or not equals:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUE")
    return name, value


def main():
    parser = argparse.ArgumentParser(description="Asks questions in SQL about Cairn's tables, by Spark.")
    parser.add_argument("--tables", required=True, help="s3a://BUCKET/PREFIX/tables, or a path that all executors have")
    parser.add_argument("--set", action="append", default=[], type=read_setting, metavar="NAME=VALUE", help="for ${NAME} in FILE")
    parser.add_argument("--format", choices=("text", "csv", "json"), default="text")
    parser.add_argument("file", metavar="FILE.sql")
    options = parser.parse_args()
    spark = SparkSession.builder.appName("cairn-report").getOrCreate()
    for name, value in [("cairn", options.tables), *options.set]:
        spark.conf.set(name, value)
    try:
        for statement in read_statements(VIEWS):
            spark.sql(statement)
        for statement in read_statements(options.file):
            print_rows(spark.sql(statement), options.format)
    except (AnalysisException, ParseException, OSError) as e:
        sys.exit(f"report.py: {e}")


if __name__ == "__main__":
    main()
