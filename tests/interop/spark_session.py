# SPDX-License-Identifier: Apache-2.0
"""Runs the jobs of deploy/spark in one Spark session, which takes long to start.

    spark-submit spark_session.py JOBS CODES OUT ERR

JOBS and CODES are FIFOs. What one writer writes to JOBS is a job: lines with its path and its options. Its output is in OUT, what it
would print as an error in ERR, and then its exit status comes from CODES.
"""
import contextlib
import runpy
import sys
import traceback

from pyspark.sql import SparkSession


def run_job(words):
    sys.argv = words
    try:
        runpy.run_path(words[0], run_name="__main__")
        return 0
    except SystemExit as e:
        if isinstance(e.code, str):
            print(e.code, file=sys.stderr)
            return 1
        return e.code or 0
    except Exception:
        traceback.print_exc()
        return 1


def main():
    jobs, codes, out, err = sys.argv[1:]
    SparkSession.builder.getOrCreate()
    while True:
        with open(jobs, encoding="utf-8") as f:
            words = f.read().splitlines()
        with open(out, "w", encoding="utf-8") as o, open(err, "w", encoding="utf-8") as e:
            with contextlib.redirect_stdout(o), contextlib.redirect_stderr(e):
                code = run_job(words)
        with open(codes, "w", encoding="utf-8") as f:
            f.write(f"{code}\n")


if __name__ == "__main__":
    main()
