#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the tables of DATA with other programs.

    real-python.py same DATA TOP.json       the SQL of docs/sql-cookbook.md and `cairn top --json` give the same numbers
    real-python.py delta DATA               deltalake opens the tables; prints samples, summed value, locations
    real-python.py places DATA BUILD-ID DEBUG-FILE
                                            the locations of an object agree with eu-addr2line
"""
import collections
import json
import os
import re
import subprocess
import sys

import duckdb
from deltalake import DeltaTable


def cookbook_sql(data):
    """The cookbook's top functions by CPU time, for the tables of DATA and without its limit; .read is a command of the
    shell.
    """
    with open('docs/sql-cookbook.md', encoding='utf-8') as f:
        opening, query = [block.split('```')[0] for block in f.read().split('```sql\n') if 'cairn-data' in block or 'cpu_seconds' in block]
    assert "'cairn-data/" in opening and '\n.read deploy/sql/duckdb.sql\n' in opening and 'LIMIT 20' in query, opening + query
    with open('deploy/sql/duckdb.sql', encoding='utf-8') as f:
        views = f.read()
    return (opening.replace("'cairn-data/", f"'{data}/").replace('.read deploy/sql/duckdb.sql', views) +
            query.replace('LIMIT 20', ''))


def same(data, top_file):
    theirs = collections.Counter()
    for function, file, seconds in duckdb.connect().execute(cookbook_sql(data)).fetchall():
        theirs[(function, file or '')] += round(seconds * 1e9)
    ours = collections.Counter()
    with open(top_file, encoding='utf-8') as f:
        for row in json.load(f):
            ours[(row['function'], row['file'] or '')] += row['flat']
    ours, theirs = +ours, +theirs
    differ = [(k, ours[k], theirs[k]) for k in ours.keys() | theirs.keys() if ours[k] != theirs[k]]
    for key, a, b in sorted(differ, key=lambda d: -max(d[1:]))[:10]:
        print(f'{key}: cairn top {a}, SQL {b}')
    print(f'{len(ours)} functions, {sum(ours.values())} ns')
    return not differ and len(ours) > 10


def delta(data):
    tables = {name: DeltaTable(os.path.join(data, 'profiles', 'tables', name)).to_pyarrow_table()
              for name in ('samples', 'stacks', 'locations')}
    ids = tables['locations'].column('location_id').to_pylist()
    used = {i for row in tables['stacks'].column('location_ids').to_pylist() for i in row}
    assert len(ids) == len(set(ids)), 'a location is there twice'
    assert used == set(ids), 'stacks and locations do not agree'
    print(tables['samples'].num_rows, sum(tables['samples'].column('value').to_pylist()), len(ids))
    return True


def addr2line(debug_file, addresses):
    """The location of each address and a function that contains it, without the suffix of a clone. With elfutils 0.188
    this is often the outer one, since it omits inlined functions of other units.
    """
    out = subprocess.run(['eu-addr2line', '-a', '-f', '-i', '-e', debug_file], input='\n'.join(map(hex, addresses)) + '\n',
                         text=True, capture_output=True, check=True).stdout
    for block in re.split(r'^0x[0-9a-f]+\n', out, flags=re.MULTILINE)[1:]:
        function, place = block.splitlines()[:2]
        file, line = place.split(' ')[0].split(':')[:2]
        yield function.split(' inlined at ')[0].split('.')[0], os.path.basename(file), int(line)


def symbols(debug_file):
    """Address by name; names with the same address are the same function."""
    out = subprocess.run(['nm', debug_file], text=True, capture_output=True, check=True).stdout
    return {fields[2].split('@')[0]: fields[0] for fields in map(str.split, out.splitlines()) if len(fields) == 3}


def places(data, build_id, debug_file):
    locations = DeltaTable(os.path.join(data, 'profiles', 'tables', 'locations')).to_pyarrow_table()
    rows = [r for r in locations.to_pylist() if r['build_id'] == build_id]
    named = symbols(debug_file)
    wrong = []
    for row, want in zip(rows, addr2line(debug_file, [r['address'] for r in rows]), strict=True):
        frames = row['frames'] or [{'function': '??', 'linkage_name': '??', 'file': '??', 'line': 0}]
        names = {(n or '').split('.')[0] for f in frames for n in (f['function'], f['linkage_name'])}
        place = (os.path.basename(frames[0]['file'] or '??'), frames[0]['line'] or 0)
        alias = want[0] in named and any(named.get(n) == named[want[0]] for n in names)
        if place != want[1:] or not (alias or want[0] in names):
            wrong.append((hex(row['address']), (sorted(names), *place), want))
    for line in wrong[:10]:
        print('%s: table %s, eu-addr2line %s' % line)
    print(f'{len(rows)} locations, {len(wrong)} differ')
    return len(rows) >= 1 and len(wrong) * 200 <= len(rows)


good = {'same': same, 'delta': delta, 'places': places}[sys.argv[1]](*sys.argv[2:])
sys.stdout.flush()
os._exit(not good)  # without destructors: threads of the Arrow libraries occasionally abort during interpreter shutdown
