#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the tables written by test_store_tables to DIR with the results of deltalake and DuckDB; prints TAP."""
import collections
import datetime
import os
import struct
import sys

import duckdb
from deltalake import DeltaTable

SAMPLE_COLUMNS = ['time', 'duration_ns', 'period', 'profile_type', 'unit', 'value', 'stack_id', 'trace_id', 'span_id',
                  'labels_rest', 'label_comm', 'label_service_name', 'label_thread_name', 'date']
failures = count = 0


def ok(passed, name, note=''):
    global failures, count
    count += 1
    failures += not passed
    print(f"{'ok' if passed else 'not ok'} {count} - {name}")
    if not passed:
        print(f'# {note}')


def table(top, name):
    return DeltaTable(os.path.join(top, 'profiles', 'tables', name))


def our_top(top):
    ret = collections.Counter()
    with open(os.path.join(top, 'top.tsv'), encoding='utf-8') as f:
        for line in f:
            function, file, value = line.rstrip('\n').split('\t')
            ret[(function, file)] += int(value)
    return dict(ret)


def duckdb_top(top):
    db = duckdb.connect()
    tables = os.path.join(top, 'profiles', 'tables')
    db.execute(f"SET VARIABLE cairn = '{tables}'")
    with open('deploy/sql/duckdb.sql', encoding='utf-8') as f:
        db.execute(f.read())
    rows = db.execute('SELECT function, file, flat FROM top WHERE flat > 0').fetchall()
    return db, {(function, file): flat for function, file, flat in rows}


def check(top, what, unresolved):
    samples = table(top, 'samples').to_pyarrow_table()
    stacks = table(top, 'stacks').to_pyarrow_table()
    locations = table(top, 'locations').to_pyarrow_table()
    ok(sorted(samples.column_names) == sorted(SAMPLE_COLUMNS), f'{what}: samples have the documented columns',
       samples.column_names)
    ok(samples.num_rows == 800, f'{what}: deltalake reads every sample once', samples.num_rows)
    times = samples.column('time').to_pylist()
    dates = samples.column('date').to_pylist()
    ok(all(t.date() == d for t, d in zip(times, dates)) and min(dates) == datetime.date(2024, 10, 4),
       f'{what}: samples lie in the partition of their day')
    pairs = list(zip(stacks.column('date').to_pylist(), stacks.column('stack_id').to_pylist()))
    ok(len(pairs) == len(set(pairs)), f'{what}: a stack has one row a day')
    ok({(d, s) for d, s in zip(dates, samples.column('stack_id').to_pylist())} == set(pairs),
       f'{what}: every sample has its stack in its day, and no stack is without a sample')
    ids = locations.column('location_id').to_pylist()
    used = {i for row in stacks.column('location_ids').to_pylist() for i in row}
    ok(len(ids) == len(set(ids)) and used == set(ids), f'{what}: every location is there once')
    kernel = [a for a, k in zip(locations.column('address').to_pylist(), locations.column('is_kernel').to_pylist()) if k]
    ok(len(kernel) == 8 and all(struct.pack('>q', a).startswith(b'\xff\xff\xff\xff\x81') for a in kernel),
       f'{what}: kernel addresses are their bits in a long', kernel)
    states = collections.Counter(locations.column('state').to_pylist())
    ok(states.get('no_debuginfo', 0) == unresolved, f'{what}: states say what has symbols', states)

    db, theirs = duckdb_top(top)
    ours = our_top(top)
    ok(theirs == ours, f'{what}: DuckDB and our scan agree on the top of {len(ours)} functions',
       sorted(set(theirs.items()) ^ set(ours.items()))[:6])
    total = sum(samples.column('value').to_pylist())
    ok(sum(ours.values()) == total, f'{what}: the values of all functions are those of all samples')
    folded = db.execute('SELECT sum(value), min(length(stack)) FROM folded').fetchone()
    ok(folded[0] == total and folded[1] > 0, f'{what}: the folded stacks too', folded)
    frames = db.execute('SELECT count(*), min(len(frames)) FROM resolved_stacks').fetchone()
    ok(frames == (stacks.num_rows, frames[1]) and frames[1] > 0, f'{what}: every stack is resolved to frames', frames)
    return samples, db


def main():
    top = sys.argv[1]
    before, _ = check(os.path.join(top, 'before'), 'before re-symbolization', 32)
    after, db = check(os.path.join(top, 'after'), 'after re-symbolization', 0)
    ok(before.num_rows == after.num_rows and table(os.path.join(top, 'after'), 'samples').version() == 4,
       're-symbolization commits nothing to the samples')
    compacted, _ = check(os.path.join(top, 'compacted'), 'after compaction', 0)
    log = table(os.path.join(top, 'compacted'), 'samples').history()
    # Label columns without a value in a day's files are omitted from these, and read as null.
    key = lambda row: sorted((k, repr(v)) for k, v in row.items() if v is not None and v != [])
    ok(sorted(map(key, compacted.to_pylist())) == sorted(map(key, after.to_pylist())),
       'compaction leaves every row as it is')
    ok(len(table(os.path.join(top, 'compacted'), 'samples').file_uris()) == 3 and
       any(c['operation'] == 'OPTIMIZE' for c in log), 'in one file a day, by commits that say so', log[:2])
    row = db.execute("SELECT file, line FROM stack_frames WHERE function = 'work_3_inner' LIMIT 1").fetchone()
    ok(row == ('/src/work.c', 41), 're-symbolized frames have their file and line', row)
    print(f'1..{count}')
    sys.stdout.flush()
    os._exit(failures > 0)  # threads of the Arrow libraries may abort during interpreter shutdown


main()
