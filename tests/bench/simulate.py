#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Predicts what a fleet needs: CPU time of each node, what waits, requests and bytes of the object store, what limits first, and how
many nodes are enough. Computed from the service times that BENCH=service-times measured.

    simulate.py --hosts 100000 [--nodes 3] [--gateways G] [--interval S] [--json] ...

Model: hosts send at a constant rate and evenly to the nodes (or gateways). The work of a node is linear in batches, samples, flushes,
commits of other nodes, and queries; each node has --cpus processors. One node, which has the lease, merges the files of all. A merge of
nine files, then eight, and so on rewrites a sample w times, where C(8 + w, w) is the number of flushes in a file that is not
merged any more. A flush begins at its interval or when the queue has 64 MiB, not before the last one has
ended, and takes the longer the less the processor is free; meanwhile the queue fills. A request waits for the processor as in a queue with random arrivals (M/M/c, approximately).

Not modelled: disks (a batch waits for a sync, which batches share), networks, failures and repetitions, new stacks and
locations (after the first hours rare), debuginfo and its indexing, re-symbolization, retention, tenants, evictions of caches, batches
that differ in size, hours of more load, and a queue while a node is away. A node that needs more than it has is reported, not its
behaviour.
"""
import argparse
import json
import math
import os

DAY_S = 86400
FINAL_BYTES = 64 << 20  # a file that is not merged any more (compaction_plan.c)
MERGED_FILES = 8
FLUSH_BYTES = 64 << 20  # so much in a queue begins a flush (profile_store.h)
QUEUE_BYTES = 512 << 20  # and more is refused
CONNECTIONS = 4096  # --max-connections
STORED_ROW_BYTES = 9  # of a merged sample (make bench BENCH=compaction)
QUERY_ROW_S = 1e-8  # CPU time of a sample that `top` reads, in a large store (make bench BENCH=query)
LISTS_DAY = 24 * 18  # of the node that maintains the tables
IDLE_S = 30  # then a service closes a connection
USED_AT_MOST = 0.7
DOLLARS = {'PUT': 5e-6, 'LIST': 5e-6, 'GET': 4e-7, 'HEAD': 4e-7}  # of a request
DOLLARS_GB_MONTH = 0.023
MOST_NODES = 64
TIMES_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'service-times.json')
REMEDIES = {
    'CPU of a node': 'more nodes',
    'CPU of the node that merges': 'the role maintain on a machine of its own, more nodes',
    'CPU of a gateway': 'more gateways',
    'connections of a node': '--interval 60, gateways, more nodes, --max-connections',
    'connections of a gateway': 'more gateways, --max-connections',
    'thread that flushes': 'more nodes',
    'thread that merges': 'groups of nodes with a store each',
    'memory of a queue': 'more nodes',
}


def read_times(path=TIMES_FILE):
    with open(path, encoding='ascii') as f:
        return json.load(f)['times']


def count_rewrites(flushes):
    """How often a sample is rewritten until its file has the samples of so many flushes."""
    w = 0
    while math.comb(MERGED_FILES + w, w) < flushes:
        w += 1
    return w


def count_fleet(a):
    """Batches and samples a second of the fleet."""
    rows = a.rows * (a.interval / 10) ** a.growth
    return a.hosts / a.interval, a.hosts / a.interval * rows


def compute_flushes(t, a, nodes, rows, busy):
    """Seconds from one flush of a node to the next, and the most bytes in its queue; `busy` are the CPUs that other work uses."""
    arrives = rows / nodes * t['bytes_row_queued']
    left = min(1, a.cpus - busy)
    if left <= rows / nodes * t['flush_row']:
        return math.inf, math.inf
    waits = t['flush_duration_of_three' if nodes > 1 else 'flush_duration'] + t['flush'] / left
    per_second = rows / nodes * t['flush_row'] / left
    until_due = min(a.flush_interval, FLUSH_BYTES / arrives)
    period = max(until_due, waits / (1 - per_second))
    return period, arrives * (period + waits + period * per_second)


def compute_merging(t, nodes, rows, period):
    """CPU seconds a second of the merges of all nodes' files, which one thread of one node makes; and rewrites."""
    flushed = rows / nodes * period * t['bytes_row_flushed']
    rewrites = count_rewrites(FINAL_BYTES / flushed) if flushed < FINAL_BYTES else 0
    return rows * rewrites * t['merge_row'], rewrites


def compute_answers(t, a, nodes, batches, rows):
    """CPU seconds a second of a node without those of flushes and merges."""
    kind = 'page' if a.gateways else 'ingest'
    scanned = rows * a.query_seconds * a.query_share
    return {'ingest': (batches * t[kind + '_batch'] + rows * t[kind + '_row']) / nodes,
            'query': a.queries / nodes * (t['query'] + scanned * QUERY_ROW_S),
            'idle': t['idle_second']}


def count_requests(t, nodes, period):
    """A day, by method."""
    flush = t['requests_flush_of_three' if nodes > 1 else 'requests_flush']
    counts = {m: nodes * DAY_S * (t['requests_idle_second'][m] + flush[m] / period) for m in ('PUT', 'GET', 'HEAD')}
    return counts | {'LIST': LISTS_DAY}


def wait_for_processor(used, cpus, service_s):
    """Mean of an M/M/c queue, by the approximation of Sakasegawa; infinite from 100% on."""
    if used >= cpus:
        return math.inf
    load = used / cpus
    return service_s * load ** (math.sqrt(2 * (cpus + 1)) - 1) / (cpus * (1 - load)) if load else 0


def find_first_limit(loads):
    """A queue also grows without end because something else is used up, which is named then."""
    finite = {name: used for name, used in loads.items() if used != math.inf}
    first = max(finite, key=finite.get)
    return first if finite[first] > 1 or len(finite) == len(loads) else 'memory of a queue'


def simulate(t, a, nodes):
    batches, rows = count_fleet(a)
    cpu = compute_answers(t, a, nodes, batches, rows)
    period, queued = compute_flushes(t, a, nodes, rows, sum(cpu.values()))
    cpu['flush'] = t['flush'] / period + (batches * t['flush_batch'] + rows * t['flush_row']) / nodes
    cpu['follow'] = t['follow_commit'] / period if nodes > 1 else 0
    merging, rewrites = compute_merging(t, nodes, rows, period)
    used = sum(cpu.values())
    loads = {'CPU of a node': used / a.cpus, 'CPU of the node that merges': (used + merging) / a.cpus,
             'thread that flushes': cpu['flush'], 'thread that merges': merging, 'memory of a queue': queued / QUEUE_BYTES}
    connected = a.hosts * min(1, IDLE_S / a.interval)
    if a.gateways:
        loads['CPU of a gateway'] = (batches * t['gateway_batch'] + rows * t['gateway_row']) / a.gateways / a.cpus
        loads['connections of a gateway'] = connected / a.gateways / CONNECTIONS
    else:
        loads['connections of a node'] = connected / nodes / CONNECTIONS
    first = find_first_limit(loads)
    requests = count_requests(t, nodes, period)
    service_s = cpu['ingest'] * nodes / batches
    dollars = 30 * sum(n * DOLLARS[m] for m, n in requests.items())
    stored = rows * DAY_S * STORED_ROW_BYTES
    return {'nodes': nodes, 'batches_second': batches, 'samples_second': rows, 'cpu': cpu, 'cpu_node': used, 'cpu_merging': merging,
            'rewrites': rewrites, 'flush_period_s': period, 'wait_ms': 1000 * wait_for_processor(used, a.cpus, service_s), 'queue_bytes': queued,
            'requests_day': requests, 'dollars_month': dollars, 'stored_bytes_day': stored,
            'stored_dollars_month': stored * a.days / 1e9 * DOLLARS_GB_MONTH,
            'written_bytes_day': rows * DAY_S * (t['bytes_row_flushed'] * (1 + rewrites)), 'loads': loads, 'first': first,
            'is_enough': loads[first] <= USED_AT_MOST}


def find_enough(t, a):
    """The fewest nodes of which nothing is used by more than USED_AT_MOST, or None."""
    return next((k for k in range(1, MOST_NODES + 1) if simulate(t, a, k)['is_enough']), None)


def find_capacity(t, a, nodes, limit):
    """The most batches a second at which none of the resources that limit names is used by more than 100%."""
    low, high = 0.0, 1e7
    for _ in range(60):
        middle = (low + high) / 2
        loads = simulate(t, argparse.Namespace(**{**vars(a), 'hosts': middle * a.interval}), nodes)['loads']
        low, high = (low, middle) if max(loads[name] for name in limit) > 1 else (middle, high)
    return low


def put_bytes(n):
    if n == math.inf:
        return 'grows'
    for unit in ('B', 'kB', 'MB', 'GB', 'TB'):
        if n < 1000 or unit == 'TB':
            return f'{n:.3g} {unit}' if n < 1000 else f'{n:,.0f} {unit}'
        n /= 1000
    return ''


def put_share(n):
    return 'beyond it' if n == math.inf else f'{n:.0%}'


def put_count(n):
    for unit in ('', ' k', ' M', ' G'):
        if n < 1000 or unit == ' G':
            return f'{n:.3g}{unit}' if n < 1000 else f'{n:,.0f}{unit}'
        n /= 1000
    return ''


def replace_infinite(value):
    """JSON has no infinity."""
    if isinstance(value, dict):
        return {k: replace_infinite(v) for k, v in value.items()}
    return None if value == math.inf else value


def print_table(a, results, enough):
    first = results[0]
    print(f'{a.hosts:,} hosts, a batch each {a.interval:g} s: {put_count(first["batches_second"])} batches and '
          f'{put_count(first["samples_second"])} samples a second; flushes each {a.flush_interval:g} s; {a.cpus:g} CPUs a node'
          + (f'; {a.gateways} gateways' if a.gateways else ''))
    print(f'stored: {put_bytes(first["stored_bytes_day"])} a day, {put_bytes(first["stored_bytes_day"] * a.days)} and '
          f'{first["stored_dollars_month"]:.2f} dollars a month for {a.days:g} days\n')
    print(f'{"nodes":>5} {"CPU/node":>9} {"+ merges":>9} {"wait ms":>8} {"queue":>9} {"PUT/day":>9} {"GET+HEAD":>9} {"$/month":>8} '
          f'{"written/day":>12}  first limit')
    for r in results:
        requests = r['requests_day']
        print(f'{r["nodes"]:>5} {r["cpu_node"]:>9.3f} {r["cpu_merging"]:>9.3f} {r["wait_ms"]:>8.2f} {put_bytes(r["queue_bytes"]):>9} '
              f'{put_count(requests["PUT"] + requests["LIST"]):>9} {put_count(requests["GET"] + requests["HEAD"]):>9} '
              f'{r["dollars_month"]:>8.0f} {put_bytes(r["written_bytes_day"]):>12}  {r["first"]}, {put_share(r["loads"][r["first"]])}')
    last = results[-1] if enough is None else next((r for r in results if r['nodes'] == enough), results[-1])
    print(f'\nenough, with at most {USED_AT_MOST:.0%} of each used: ' + (f'{enough} nodes' if enough else f'not up to {MOST_NODES} nodes'))
    print(f'what moves the first limit of {last["nodes"]}: {REMEDIES[last["first"]]}')
    print('not modelled: see the head of tests/bench/simulate.py')


def make_parser():
    p = argparse.ArgumentParser(description='Predict CPU time, requests and bytes of a fleet.')
    p.add_argument('--hosts', type=int, default=1000)
    p.add_argument('--nodes', type=int, default=3, help='rows of the table')
    p.add_argument('--gateways', type=int, default=0)
    p.add_argument('--interval', type=float, default=10, help='seconds, of agents')
    p.add_argument('--flush-interval', type=float, default=10, help='seconds')
    p.add_argument('--rows', type=float, default=200, help='samples in a batch of ten seconds')
    p.add_argument('--growth', type=float, default=1, help='samples of a batch grow with the interval to this power; less than 1 if stacks repeat')
    p.add_argument('--cpus', type=float, default=2, help='of each node and gateway')
    p.add_argument('--days', type=float, default=30, help='that samples are kept')
    p.add_argument('--queries', type=float, default=0.1, help='a second')
    p.add_argument('--query-seconds', type=float, default=3600, help='that a query covers')
    p.add_argument('--query-share', type=float, default=0.05, help='of the samples of that time that it reads')
    p.add_argument('--times', default=TIMES_FILE, help='file of BENCH=service-times')
    p.add_argument('--json', action='store_true')
    return p


def main():
    a = make_parser().parse_args()
    t = read_times(a.times)
    enough = find_enough(t, a)
    counts = sorted({*range(1, a.nodes + 1), *([enough] if enough else [])})
    results = [simulate(t, a, k) for k in counts]
    if a.json:
        print(json.dumps({'enough': enough, 'results': [replace_infinite(r) for r in results]}, indent=1))
    else:
        print_table(a, results, enough)


if __name__ == '__main__':
    main()
