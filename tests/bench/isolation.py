#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Measures the effect of queries on ingest: the latency of acknowledged batches without queries, and while 32 clients
continuously request the top functions of a month. The target is a 99th percentile of at most twice that without
queries.

The store is that of the benchmark `query` (generated if missing; STORE=DIR uses another one), hard-linked into a data
directory of its own. In each part four senders post SECONDS (20) times 20 batches each. If permitted, they run at
real-time priority and the query clients with niceness 19, because in production both run on other hosts: the measured
latency is the service's, not the wait for a CPU of this host.
"""
import contextlib
import http.client
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import query

BUILD = os.environ.get('CAIRN_BUILD', 'build')
STORE = os.environ.get('STORE', BUILD + '/bench-query/' + '-'.join(query.SIZES))
SECONDS = int(os.environ.get('SECONDS', '20'))
SENDERS, PER_SECOND, QUERIES = 4, 20, 32
FROM = 20600 * 86400


def percentile(values, share):
    return sorted(values)[int(len(values) * share)]


def send_batches(port, number, waits):
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    connection = http.client.HTTPConnection('127.0.0.1', port)
    begin = time.monotonic()
    for i in range(SECONDS * PER_SECOND):
        pause = begin + i / PER_SECOND - time.monotonic()
        if pause > 0:
            time.sleep(pause)
        body = '\n'.join(f'main;work_{k % 40};leaf_{k} {k + 1}' for k in range(200))
        now = int(time.time())
        start = time.monotonic()
        connection.request('POST', f'/ingest?name=bench{{sender="{number}"}}&from={now - 1}&until={now}&format=folded', body)
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            sys.exit(f'a batch was answered {answer.status}')
        waits.append(time.monotonic() - start)


def ask_without_end(port, done, counts):
    """One client; counts gets the status of each response."""
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=120)
    while not done.is_set():
        connection.request('GET', f'/api/v1/query/top?from={FROM}&to={FROM + 30 * 86400}')
        answer = connection.getresponse()
        answer.read()
        counts.append(answer.status)
        if answer.status != 200:
            done.wait(0.1)


def run_clients(port, done, result):
    """Runs in a process of its own, so that no sender waits for the interpreter lock while a client reads a long response."""
    os.nice(19)
    counts = []
    clients = [threading.Thread(target=ask_without_end, args=(port, done, counts)) for _ in range(QUERIES)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    result.put(counts)


def measure_waits(port):
    waits, threads = [], []
    for number in range(SENDERS):
        threads.append(threading.Thread(target=send_batches, args=(port, number, waits)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    return waits


def find_port(server):
    for line in server.stderr:
        found = re.search(r'listening on http://127\.0\.0\.1:(\d+)', line)
        if found:
            threading.Thread(target=server.stderr.read, daemon=True).start()
            return int(found[1])
    sys.exit('the service has not started')


def main():
    if not os.path.exists(STORE):
        subprocess.run([sys.executable, 'tests/bench/query.py'], check=True, stdout=sys.stderr)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(STORE))) as folder:
        shutil.copytree(STORE, folder + '/profiles', copy_function=os.link)
        server = subprocess.Popen([BUILD + '/cairn', 'serve', '--data', folder, '--listen', '127.0.0.1:0'],
                                  stderr=subprocess.PIPE, text=True)
        try:
            port = find_port(server)
            alone = measure_waits(port)
            done, result = multiprocessing.Event(), multiprocessing.Queue()
            clients = multiprocessing.Process(target=run_clients, args=(port, done, result), daemon=True)
            clients.start()
            beside = measure_waits(port)
            done.set()
            counts = result.get()
            clients.join()
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()
    answered = counts.count(200)
    print(f'# {len(alone)} batches in each part; {answered} queries answered, {len(counts) - answered} refused')
    print('| ingest | p50, ms | p99, ms |\n| --- | --- | --- |')
    for name, waits in ('alone', alone), (f'beside {QUERIES} queries', beside):
        print(f'| {name} | {percentile(waits, 0.5) * 1e3:.2f} | {percentile(waits, 0.99) * 1e3:.2f} |')
    print(f'p99 is {percentile(beside, 0.99) / percentile(alone, 0.99):.1f} times that without queries')


main()
