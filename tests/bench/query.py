#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Compares queries over a generated store with DuckDB using two threads on the same files, in the same run; sums by stack
are compared for each stack.

The store is kept in build/bench-query and has 100 hosts with 4 of 20 services each. DAYS=30, SAMPLES=50000000,
STACKS=13000, LOCATIONS=40000, FILES=1 (files of samples per day: 1 as after compaction, 8640 as flushed), TRACED=1
(percentage of samples with a trace id) and EVERY=0 (1: each stack has a sample) set its size, STORE=DIR uses an
existing one. QUERIES=stacks runs only the sum by stack, and top, which may exceed a scan's memory limit; DuckDB then
keeps the sums in a table, since conversion to Python would take most of its time. DuckDB is installed with `pip install
duckdb` (DUCKDB_PYTHON names a Python that has it); without it only Cairn's results are printed.

Each query runs ROUNDS (5) times after a first run. Cairn's times are measured in the process, to be comparable with
DuckDB's; CPU seconds are those of all threads; peak memory is that of the process up to and including the query, with
mapped files. On a machine that is not idle compare the CPU seconds.
"""
import hashlib
import os
import subprocess
import sys
import tempfile

BUILD = os.environ.get('CAIRN_BUILD', 'build')
PROGRAM = BUILD + '/tests/bench/bench_query'
ROUNDS = int(os.environ.get('ROUNDS', '5'))
SIZES = [os.environ.get(name, default) for name, default in
         (('DAYS', '30'), ('SAMPLES', '50000000'), ('STACKS', '13000'), ('LOCATIONS', '40000'), ('FILES', '1'), ('TRACED', '1'), ('EVERY', '0'))]
ONLY_STACKS = os.environ.get('QUERIES') == 'stacks'
DAYS = int(SIZES[0])
FROM = 20600 * 86400
TO = FROM + DAYS * 86400
HOUR = FROM + DAYS // 3 * 86400 + 3600
TYPE = 'process_cpu:cpu:nanoseconds:cpu:nanoseconds'
SERVICE = 'service-03'

# Runs in the Python that has DuckDB: reads queries as JSON from standard input, prints a line of seconds, CPU seconds
# and rows for each.
DUCKDB = r'''
import duckdb, json, resource, sys, time
store, rounds, in_table, queries = json.load(sys.stdin)
c = duckdb.connect()
c.execute('SET threads = 2')
c.execute('SET enable_progress_bar = false')
for table in ('samples', 'stacks', 'locations'):
    c.execute(f"CREATE VIEW {table} AS FROM read_parquet('{store}/tables/{table}/**/*.parquet', hive_partitioning = true, union_by_name = true)")
print('version', duckdb.__version__, flush=True)
for sql, path in queries:
    best = cpu = 1e9
    for i in range(rounds + 1):
        start, used = time.perf_counter(), time.process_time()
        if in_table:
            c.execute(f'CREATE OR REPLACE TEMP TABLE result AS {sql}')
        else:
            rows = c.execute(sql).fetchall()
        best, cpu = min(best, time.perf_counter() - start), min(cpu, time.process_time() - used)
    print(best, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, flush=True)
    if path:
        with open(path, 'w') as f:
            if in_table:
                c.execute('FROM result')
                rows = (row for chunk in iter(lambda: c.fetchmany(100000), []) for row in chunk)
            f.writelines(f'{bytes(r[0]).hex()},{r[1]},{r[2]}\n' for r in rows)
'''


def where(start, end, service=None):
    text = f"date BETWEEN make_timestamp({start * 10**6})::DATE AND make_timestamp({(end - 1) * 10**6})::DATE" \
           f" AND epoch_us(time) >= {start * 10**6} AND epoch_us(time) < {end * 10**6}"
    if end - start == DAYS * 86400:
        text = 'true'  # all data: no time filter
    return text + (f" AND label_service_name = '{service}'" if service else '')


def trace_id():
    """The trace id of the samples in the middle, computed like in bench_query."""
    number = int(SIZES[1]) // 2000 + 1
    return ''.join(f'{number * factor % 2**64:016x}' for factor in (0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f))


def sum_sql(condition):
    return f"SELECT stack_id, sum(value), count(*) FROM samples WHERE profile_type = '{TYPE}' AND {condition} GROUP BY stack_id"


def top_sql(condition):
    return f"""WITH sums AS (SELECT stack_id, sum(value) AS value FROM samples
            WHERE profile_type = '{TYPE}' AND {condition} GROUP BY stack_id),
        chosen AS (SELECT stack_id, any_value(location_ids) AS ids FROM stacks SEMI JOIN sums USING (stack_id) GROUP BY stack_id),
        placed AS (SELECT stack_id, unnest(ids) AS location_id, generate_subscripts(ids, 1) AS place FROM chosen),
        named AS (SELECT stack_id, place, unnest(frames) AS frame, generate_subscripts(frames, 1) AS inner_place
            FROM placed JOIN locations USING (location_id)),
        functions AS (SELECT stack_id, frame.function AS function, min(place * 1000 + inner_place) AS nearest
            FROM named GROUP BY ALL)
        SELECT function, sum(value) FILTER (WHERE nearest = 1001) AS flat, sum(value) AS cumulative
        FROM sums JOIN functions USING (stack_id) GROUP BY function ORDER BY flat DESC NULLS LAST"""


def queries():
    """Name, operation, parameters, SQL, whether to compare the rows as sums."""
    span, hour = [f'from={FROM}', f'to={TO}'], [f'from={HOUR}', f'to={HOUR + 3600}']
    one = [f'selector={{service_name="{SERVICE}"}}']
    everything, service = where(FROM, TO), where(FROM, TO, SERVICE)
    series = f"""SELECT epoch_us(time) // 21600000000 AS step, label_service_name, sum(value), count(*)
        FROM samples WHERE profile_type = '{TYPE}' AND {everything} GROUP BY ALL"""
    if ONLY_STACKS:
        return [('sum by stack', 'sum', span, sum_sql(everything), True), ('top', 'top', span, None, False)]
    return [
        ('sum by stack, one service', 'sum', span + one, sum_sql(service), True),
        ('top, one service', 'top', span + one, top_sql(service), False),
        ('sum by stack, everything', 'sum', span, sum_sql(everything), True),
        ('top, everything', 'top', span, top_sql(everything), False),
        ('flame graph, everything', 'flame', span, None, False),
        ('sum by stack, one hour', 'sum', hour, sum_sql(where(HOUR, HOUR + 3600)), True),
        ('top, one hour', 'top', hour, top_sql(where(HOUR, HOUR + 3600)), False),
        ('series by service', 'series', span + ['type=cpu', 'by=service.name', 'step=6h'], series, False),
        ('top, one trace', 'top', span + [f'selector={{trace_id="{trace_id()}"}}'],
         top_sql(f"trace_id = unhex('{trace_id()}')"), False),
        ('label names', 'labels', span, None, False),
        ('label values', 'values', span + ['name=service.name'], 'SELECT DISTINCT label_service_name FROM samples', False),
        ('profile types', 'types', span, 'SELECT DISTINCT profile_type FROM samples', False),
    ]


def run_ours(store, wanted):
    lines = ['\t'.join([operation, str(ROUNDS)] + parameters) + '\n' for _, operation, parameters, _, _ in wanted]
    out = subprocess.run([PROGRAM, 'run', store], input=''.join(lines), text=True, stdout=subprocess.PIPE, check=True)
    return [line.split('\t') for line in out.stdout.split('\n')[:-1]]


def run_duckdb(store, wanted, folder):
    import json
    python = os.environ.get('DUCKDB_PYTHON', sys.executable)
    if subprocess.run([python, '-c', 'import duckdb'], stderr=subprocess.DEVNULL).returncode:
        print('# DuckDB is not installed (pip install duckdb): Cairn alone is measured')
        return None
    asked = [(sql, f'{folder}/{i}.csv' if compares else None) for i, (_, _, _, sql, compares) in enumerate(wanted) if sql]
    out = subprocess.run([python, '-c', DUCKDB], input=json.dumps([store, ROUNDS, ONLY_STACKS, asked]), text=True,
                         stdout=subprocess.PIPE, check=True).stdout.splitlines()
    out = [line for line in out if line.strip()]
    print(f'# DuckDB {out[0].split()[1]}, 2 threads')
    answers = iter(out[1:])
    return [next(answers).split() if sql else None for _, _, _, sql, _ in wanted]


def digest_lines(path):
    """Number and digest of the lines in any order, in constant memory: the sum of a hash of each."""
    count = total = 0
    with open(path, 'rb') as f:
        for line in f:
            count += 1
            total += int.from_bytes(hashlib.blake2b(line, digest_size=16).digest(), 'little')
    return count, total % 2**128


def sums_differ(store, parameters, path):
    with tempfile.NamedTemporaryFile() as ours:
        subprocess.run([PROGRAM, 'sums', store, ours.name] + parameters, check=True)
        return digest_lines(ours.name) != digest_lines(path)


def main():
    store = os.environ.get('STORE', BUILD + '/bench-query/' + '-'.join(SIZES))
    if not os.path.exists(store):
        os.makedirs(os.path.dirname(store), exist_ok=True)
        subprocess.run([PROGRAM, 'generate', store + '.tmp'] + SIZES, check=True)
        os.rename(store + '.tmp', store)
    wanted = queries()
    print(f'# {store}: {SIZES[1]} samples of {DAYS} days')
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        opened, *ours = run_ours(store, wanted)
        theirs = run_duckdb(store, wanted, folder)
        print(f'open {float(opened[1]):.3f} s\n')
        print('| query | first, s | s | CPU s | peak, MiB | DuckDB, s | CPU s | peak, MiB | faster by | CPU less by |\n|'
              + ' --- |' * 10)
        for i, (name, operation, parameters, sql, compares) in enumerate(wanted):
            first, best, cpu = (float(x) for x in ours[i][1:4])
            count, kib, error = int(ours[i][4]), int(ours[i][5]), ours[i][6]
            if operation == 'sum' and ONLY_STACKS:
                name += f', {count} stacks'
            if error:
                print(f'| {name} | refused after {first:.3f} s: {error} | | | {kib // 1024} |')
                failed = failed or not ONLY_STACKS
                continue
            row = f'| {name} | {first:.3f} | {best:.3f} | {cpu:.3f} | {kib // 1024} |'
            if theirs and sql:
                seconds, used = (float(x) for x in theirs[i][:2])
                row += f' {seconds:.3f} | {used:.3f} | {theirs[i][2]} | {seconds / best:.1f} | {used / cpu:.1f} |'
            print(row)
        print()
        for i, (name, _, parameters, sql, compares) in enumerate(wanted):
            if theirs and compares and sums_differ(store, parameters, f'{folder}/{i}.csv'):
                print(f'DIFFERENT SUMS: {name}')
                failed = True
        if theirs:
            print('sums by stack differ' if failed else 'sums by stack are equal')
    return failed


if __name__ == '__main__':
    sys.exit(main())
