#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Measures what simulate.py computes with, and writes tests/bench/service-times.json: CPU time of services for a batch, a sample, a flush,
a merge, a query and an address, requests to the object store, and bytes.

CPU time is that of the threads of a service, by their names. What a batch and what a sample takes is solved from a load of many
small batches and one of fewer large ones, what a flush takes beyond that from one of hardly any, of SECONDS (40) each. CPU time hardly depends on other load of the machine,
unless that evicts caches; the rest does not at all. The store delays each request by LATENCY_MS (50).
"""
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time

from store_services import Load, Service, Store, start_group, store_libc_symbols

SECONDS = int(os.environ.get('SECONDS', '40'))
LATENCY_MS = int(os.environ.get('LATENCY_MS', '50'))
FLUSH_S = 2
LARGE, SMALL, TRICKLE = (40, 200), (200, 10), (1, 1)  # batches a second, samples of each
INGEST = {'ingest', 'MHD-worker', 'http-accept', 'http-watch'}
COMPACTION = {'cairn-compact', 'cairn-maintain'}
KINDS = ('ingest', 'flush', 'compaction', 'other')
CHARGED = ('PUT', 'GET', 'HEAD')  # with LIST, which services only do once an hour
FIRST_MAINTENANCE_S = 75


def read_state(service):
    """CPU seconds by kind of work, and the counters of which the work is a function."""
    metrics, state = service.metrics(), dict.fromkeys(KINDS, 0)
    for name, seconds in service.cpu_seconds().items():
        kind = 'ingest' if name in INGEST else 'flush' if name == 'cairn-flush' else 'compaction' if name in COMPACTION else 'other'
        state[kind] += seconds
    state |= {'batches': metrics['cairn_ingest_batches_total'], 'rows': metrics['cairn_ingest_samples_total'],
              'flushes': metrics['cairn_flushes_total'],
              'flushing': metrics['cairn_flush_duration_seconds_sum'], 'merged_bytes': metrics['cairn_compaction_read_bytes_total']}
    return state


def take_difference(before, after):
    return {name: after[name] - before[name] for name in before}


def run_load(target, rate, rows, watched):
    """@return for each watched service what a load of the target took."""
    before = [read_state(s) for s in watched]
    Load([target], rate, rows, SECONDS).finish()
    if target.metric('cairn_forward_requests_total'):
        time.sleep(2)
    for service in watched:
        service.wait_for_flush()
    return [take_difference(a, read_state(s)) for a, s in zip(before, watched)]


def solve(small, large, kind):
    """@return CPU seconds of a batch, and of a sample beyond that, not negative, from those of two loads."""
    (a, b, c), (d, e, f) = ((load['batches'], load['rows'], load[kind]) for load in (small, large))
    y = max(0, (a * f - d * c) / (a * e - d * b))
    return max(0, (c - b * y) / a), y


def measure_one(folder, store, times):
    service = Service(folder, 'one', store, 'one', '--flush-interval', str(FLUSH_S))
    Load([service], 50, 200, 10).finish()
    service.wait_for_flush()
    time.sleep(FLUSH_S)
    before, start = read_state(service), time.monotonic()
    time.sleep(SECONDS)
    seconds = time.monotonic() - start
    idle = take_difference(before, read_state(service))
    times['idle_second'] = sum(idle[k] for k in KINDS) / seconds
    (trickle,) = run_load(service, *TRICKLE, [service])
    (small,) = run_load(service, *SMALL, [service])
    (large,) = run_load(service, *LARGE, [service])
    times['ingest_batch'], times['ingest_row'] = solve(small, large, 'ingest')
    times['flush'] = trickle['flush'] / trickle['flushes']
    for load in (small, large):
        load['flush'] -= times['flush'] * load['flushes']
    times['flush_batch'], times['flush_row'] = solve(small, large, 'flush')
    measure_bytes(service, times)
    # Nearly all merges are of the files of flushes.
    merged_rows = (small['merged_bytes'] + large['merged_bytes']) / times['bytes_row_flushed']
    times['merge_row'] = (small['compaction'] + large['compaction']) / merged_rows
    measure_answers(service, times)
    service.stop()


def measure_bytes(service, times):
    """Of a sample in the queue and in the file of a flush. Batches repeat, so that merged files would be too small."""
    service.ask('POST', '/api/v1/store/compact')
    before = service.metrics()
    load = Load([service], *LARGE, 2 * FLUSH_S)
    while service.metric('cairn_queue_batches') < LARGE[0]:
        time.sleep(0.1)
    metrics = service.metrics()
    times['bytes_row_queued'] = metrics['cairn_queue_bytes'] / metrics['cairn_queue_batches'] / LARGE[1]
    load.finish()
    service.wait_for_flush()
    metrics = service.metrics()
    times['bytes_row_flushed'] = (metrics['cairn_table_bytes'] - before['cairn_table_bytes']) / (
        metrics['cairn_ingest_samples_total'] - before['cairn_ingest_samples_total'])


def count_cpu_seconds(service, *request, count=20):
    service.ask(*request)
    before = sum(service.cpu_seconds().values())
    for _ in range(count):
        service.ask(*request)
    return (sum(service.cpu_seconds().values()) - before) / count


def measure_answers(service, times):
    """A query of some 20,000 stacks, and addresses of libc."""
    times['query'] = count_cpu_seconds(service, 'GET', '/api/v1/query/top?from=now-1h&to=now&limit=50')
    build_id = store_libc_symbols(service)
    addresses = [hex(random.Random(1).randrange(0x30000, 0x180000)) for _ in range(10000)]
    body = json.dumps({'objects': [{'build_id': build_id, 'addresses': addresses}]})
    request = ('POST', '/api/v1/symbolize', body, {'Content-Type': 'application/json'})
    times['lookup_address'] = count_cpu_seconds(service, *request) / len(addresses)


def measure_requests(folder, store, times):
    """Of a service without samples, and, beyond that, of flushes at the default interval, alone and in a group of three."""
    service = Service(folder, 'quiet', store, 'quiet', '--flush-interval', '60')
    time.sleep(FIRST_MAINTENANCE_S)
    with store.counted() as counts:
        time.sleep(60)
    service.stop()
    idle = times['requests_idle_second'] = {m: n / 60 for m, n in counts.items() if m in CHARGED}
    for count, suffix in ((1, ''), (3, '_of_three')):
        nodes = start_group(folder, store, count)
        Load(nodes, 20 * count, 50, FIRST_MAINTENANCE_S).finish()
        before, start = [read_state(n) for n in nodes], time.monotonic()
        with store.counted() as counts:
            Load(nodes, 20 * count, 50, 60).finish()
        seconds = time.monotonic() - start
        spent = [take_difference(a, read_state(n)) for a, n in zip(before, nodes)]
        flushes = sum(s['flushes'] for s in spent)
        times['requests_flush' + suffix] = {m: max(0, counts[m] - count * idle[m] * seconds) / flushes for m in CHARGED}
        times['flush_duration' + suffix] = sum(s['flushing'] for s in spent) / flushes
        if count > 1:
            measure_following(nodes, times)
        for node in nodes:
            node.stop()


def measure_following(nodes, times):
    """CPU time of a node for each flush of the others."""
    before, start = read_state(nodes[2]), time.monotonic()
    Load(nodes[:2], 20, 50, 60).finish()
    spent = take_difference(before, read_state(nodes[2]))
    idle = times['idle_second'] * (time.monotonic() - start)
    times['follow_commit'] = max(0, sum(spent[k] for k in ('ingest', 'flush', 'other')) - idle) / 6


def measure_gateway(folder, store, times):
    node = Service(folder, 'behind', store, 'behind', '--flush-interval', str(FLUSH_S))
    gateway = Service(folder, 'gateway', None, None, '--role', 'gateway', '--forward', f'http://127.0.0.1:{node.port}')
    Load([gateway], 50, 200, 10).finish()
    loads = [run_load(gateway, *kind, [gateway, node]) for kind in (SMALL, LARGE)]
    (small_gateway, small_node), (large_gateway, large_node) = loads
    for state, sent in ((small_node, small_gateway), (large_node, large_gateway)):
        state['batches'] = sent['batches']
    for state in (small_gateway, large_gateway):
        state['all'] = sum(state[k] for k in KINDS)
    times['gateway_batch'], times['gateway_row'] = solve(small_gateway, large_gateway, 'all')
    times['page_batch'], times['page_row'] = solve(small_node, large_node, 'ingest')
    gateway.stop()
    node.stop()


def read_processor():
    with open('/proc/cpuinfo', encoding='ascii') as f:
        return next((line.partition(': ')[2].strip() for line in f if line.startswith('model name')), platform.machine())


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else 'tests/bench/service-times.json'
    times = {}
    with tempfile.TemporaryDirectory(dir='/dev/shm') as folder:
        store = Store(folder)
        store.order('PUT', f'delay/{LATENCY_MS}')
        measure_one(folder, store, times)
        measure_requests(folder, store, times)
        measure_gateway(folder, store, times)
        store.process.kill()
    rounded = {name: {m: round(n, 3) for m, n in value.items()} if isinstance(value, dict) else float(f'{value:.3g}')
               for name, value in times.items()}
    version = subprocess.run(['git', 'describe', '--always'], capture_output=True, text=True, check=False).stdout.strip()
    head = {'command': 'make bench BENCH=service-times', 'measured': time.strftime('%Y-%m-%d', time.gmtime()), 'version': version,
            'machine': f'{os.cpu_count()} x {read_processor()}', 'store_latency_ms': LATENCY_MS,
            'units': 'CPU seconds, durations in seconds; requests of one node for each flush, or second; bytes'}
    with open(out, 'w', encoding='ascii') as f:
        json.dump(head | {'times': rounded}, f, indent=1)
        f.write('\n')
    print(json.dumps(rounded, indent=1))


if __name__ == '__main__':
    main()
