#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
How many batches 1, 2 and 3 services take whose CPU time is limited, and whether simulate.py predicts that.

Each service is in a cgroup with CPUS (0.2) processors, the store and the sender in another one, which has precedence of other
programs, too. A service has the others as peers; senders use all of them evenly, without a
proxy. Requests to the store take LATENCY_MS (50), and FAULT_PERCENT (0.5) of them fail. Data directories are in memory: services
on machines of their own have disks of their own. For each of COUNTS ("1 2 3") the rate of batches of ROWS (200) samples
rises, by a tenth each SECONDS (60), until a queue grows. With RATE that rate is kept for SECONDS instead.

No queue grows: batches are sent when they are due and acknowledged, all but 0.1%, and what is left in the queue of a service after a flush does
not grow by 5% of what arrives, from one half of the time to the other. Files to be merged are printed: merges have the lowest
priority. Requires root. CAIRN_TEST_VERSITYGW is the program of the store; without it moto is, which takes more of the machine.
"""
import os
import statistics
import sys
import tempfile
import time

import simulate
from store_services import CpuLimit, Load, Store, start_group

COUNTS = [int(n) for n in os.environ.get('COUNTS', '1 2 3').split()]
SECONDS = int(os.environ.get('SECONDS', '60'))
CPUS = float(os.environ.get('CPUS', '0.2'))
ROWS = int(os.environ.get('ROWS', '200'))
RATE = float(os.environ.get('RATE', '0'))
LATENCY_MS = int(os.environ.get('LATENCY_MS', '50'))
FAULT_PERCENT = float(os.environ.get('FAULT_PERCENT', '0.5'))
FLUSH_S = int(os.environ.get('FLUSH_S', '10'))
SETTLE_S = 2 * FLUSH_S
FIRST = 0.9  # of the predicted rate
RISE = 1.1
GROWTH = 0.05
LATE_MS = 1000
REFUSED = 0.001


def read_nodes(nodes):
    """Of each: queued bytes, failed flushes, files to be merged, flushes and their seconds."""
    names = ('cairn_queue_bytes', 'cairn_flush_failures_total', 'cairn_compaction_backlog_files', 'cairn_flushes_total',
             'cairn_flush_duration_seconds_sum')
    return [[m.get(name, 0) for name in names] for m in (n.metrics() for n in nodes)]


def keep_rate(nodes, rate, others):
    """@return whether no queue grows at this rate."""
    load = Load(nodes, rate, ROWS, SETTLE_S + SECONDS, others.command())
    lines, samples = [], []
    cpu_before = start = None
    for line in load.read_lines():
        lines.append(line)
        if line[0] < SETTLE_S:
            continue
        if cpu_before is None:
            cpu_before, start = [sum(n.cpu_seconds().values()) for n in nodes], time.monotonic()
        if len(lines) % 2:
            samples.append(read_nodes(nodes))
    seconds = time.monotonic() - start
    cpu = [(sum(n.cpu_seconds().values()) - b) / seconds for n, b in zip(nodes, cpu_before)]
    refused, late, latency = lines[-1][2], lines[-1][3], statistics.median(line[4] for line in lines[SETTLE_S:-1])
    half, growths = len(samples) // 2, []
    for i in range(len(nodes)):
        queued = [s[i][0] for s in samples]
        arrives = rate / len(nodes) * ROWS * simulate.read_times()['bytes_row_queued']
        growths.append((min(queued[half:]) - min(queued[:half])) / (seconds / 2) / arrives)
    failures = sum(b[1] - a[1] for a, b in zip(samples[0], samples[-1]))
    flushes = [f'{(b[4] - a[4]) / max(1, b[3] - a[3]):.1f}' for a, b in zip(samples[0], samples[-1])]
    is_stable = refused < REFUSED * lines[-1][1] and late < LATE_MS and max(growths) < GROWTH
    most_bytes = max(node[0] for s in samples for node in s)
    print(f'  {rate:7.1f} batches/s: {"no queue grows" if is_stable else "a queue grows":<15} late {late / 1000:.1f} s, refused {refused:.0f}, '
          f'queue {max(growths):+.1%} of what arrives, at most {most_bytes / 1e6:.0f} MB, median {latency:.0f} ms, '
          f'CPU {" ".join(f"{c:.3f}" for c in cpu)}, flushes of {" ".join(flushes)} s, failed {failures:.0f}, '
          f'files to merge {max(node[2] for node in samples[-1]):.0f}', flush=True)
    return is_stable


def find_rate(nodes, first, others):
    """The highest rate at which no queue grows; from `first` up, or down."""
    rate, best = first, 0
    while keep_rate(nodes, rate, others):
        best, rate = rate, rate * RISE
    while not best and rate > first / 8:
        for node in nodes:
            node.wait_for_flush()
        rate /= RISE
        best = rate if keep_rate(nodes, rate, others) else 0
    return best


def predict(count):
    options = f'--cpus {CPUS} --rows {ROWS} --flush-interval {FLUSH_S} --queries 0'
    a = simulate.make_parser().parse_args(options.split())
    return simulate.find_capacity(simulate.read_times(), a, count, ('CPU of a node', 'memory of a queue'))


def measure(folder, count):
    folder = f'{folder}/{count}'
    os.mkdir(folder)
    others = CpuLimit(f'cairn-{count}-others', os.cpu_count())
    store = Store(folder, others.command())
    store.order('PUT', f'delay/{LATENCY_MS}')
    limits = [CpuLimit(f'cairn-{count}-{i}', CPUS) for i in range(count)]
    nodes = start_group(folder, store, count, '--flush-interval', str(FLUSH_S), limits=limits)
    store.order('PUT', f'faults/{FAULT_PERCENT}')
    try:
        expected = predict(count)
        print(f'{count} services of {CPUS:g} CPUs; {expected:.0f} batches/s predicted', flush=True)
        Load(nodes, (RATE or expected) / 2, ROWS, SETTLE_S, others.command()).finish()  # stacks become known
        if RATE:
            return keep_rate(nodes, RATE, others) * RATE, expected
        return find_rate(nodes, expected * FIRST, others), expected
    finally:
        for process in [*(n.process for n in nodes), store.process]:
            process.kill()
            process.wait()
        time.sleep(1)  # what the store has started ends with it
        for limit in [*limits, others]:
            limit.remove()


def main():
    with tempfile.TemporaryDirectory(dir='/dev/shm') as folder:
        results = {count: measure(folder, count) for count in COUNTS}
    print(f'\n{"services":>8} {"batches/s":>10} {"samples/s":>10} {"predicted":>10} {"off by":>7} {"times one":>10}')
    for count, (rate, expected) in results.items():
        times = f'{rate / results[1][0]:10.2f}' if results.get(1, (0,))[0] else ''
        print(f'{count:>8} {rate:>10.1f} {rate * ROWS:>10.0f} {expected:>10.1f} {expected / rate - 1 if rate else 0:>+7.0%} {times:>10}')
    sys.exit(not all(rate for rate, _ in results.values()))


if __name__ == '__main__':
    main()
