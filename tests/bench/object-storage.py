#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Counts the requests of services on an S3-compatible store, from which docs/scaling.md derives their price: of a service
without load, of flushes (beyond those without load), of several services, of batches that are acknowledged by the store,
of queries with and without what the disk caches, and of an empty service that answers its first addresses. The store is
moto behind a proxy that counts requests and delays each by LATENCY_MS (50). Requests do not depend on the machine; times
do, and moto adds its own.
"""
import concurrent.futures
import json
import os
import random
import shutil
import tempfile
import time

from store_services import BUILD, METHODS, Service, Store, store_libc_symbols

LATENCY_MS = int(os.environ.get('LATENCY_MS', '50'))
INTERVAL_S = int(os.environ.get('INTERVAL_S', '5'))  # of flushes
FLUSHES = int(os.environ.get('FLUSHES', '12'))
DAYS = int(os.environ.get('DAYS', '30'))
SENDERS = 20
ACK_S = int(os.environ.get('ACK_S', '120'))
IDLE_S = int(os.environ.get('IDLE_S', '60'))


def put_row(title, counts, per=1, more=''):
    print(f'{title:<52}' + ''.join(f'{counts.get(m, 0) / per:8.2f}' for m in METHODS) + more)


def send(service, stacks, at=None, name='app'):
    now = int(at or time.time())
    body = '\n'.join(f'main;work_{k % 40};leaf_{k} {k + 1}' for k in stacks)
    service.ask('POST', f'/ingest?name={name}{{host=a}}&from={now - 10}&until={now}&format=folded', body)


def measure_idle_service(folder, store, title, *options):
    """@return the requests of a service without samples, of each second."""
    service = Service(folder, title, store, title, *options)
    time.sleep(75)  # the first maintenance lists the folders, as it does once an hour
    with store.counted() as counts:
        time.sleep(IDLE_S)
    service.stop()
    return {m: n / IDLE_S for m, n in counts.items()}


def measure_flushes(folder, store):
    put_row('no samples, a minute of --flush-interval 60', measure_idle_service(folder, store, 'idle', '--flush-interval', '60'), 1 / 60)
    idle = measure_idle_service(folder, store, 'polls', '--flush-interval', str(INTERVAL_S))
    service = Service(folder, 'one', store, 'flushes', '--flush-interval', str(INTERVAL_S))
    send(service, range(200))
    service.wait_for_flush()
    cases = {'a flush of known stacks': lambda i: range(200), 'a flush with new stacks and locations': lambda i: range(200 * i, 200 * i + 200)}
    for title, stacks in cases.items():
        flushes = service.metric('cairn_flushes_total')
        start = time.monotonic()
        with store.counted() as counts:
            for i in range(FLUSHES):
                send(service, stacks(i + 2))
                service.wait_for_flush()
        took = time.monotonic() - start
        counts = {m: max(0, n - idle[m] * took) for m, n in counts.items()}
        put_row(title, counts, service.metric('cairn_flushes_total') - flushes)
    service.stop()


def measure_acknowledgements(folder, store):
    """From request to answer with --ack=store: SENDERS wait for each answer, then for a random part of two seconds."""
    service = Service(folder, 'ack', store, 'ack', '--ack', 'store')
    send(service, range(200))
    store.order('PUT', f'delay/{LATENCY_MS}')
    times, end = [], time.monotonic() + ACK_S

    def keep_sending(number):
        draw = random.Random(number)
        while time.monotonic() < end:
            time.sleep(draw.random() * 2)
            start = time.monotonic()
            send(service, range(200))
            times.append(time.monotonic() - start)

    with concurrent.futures.ThreadPoolExecutor(SENDERS) as senders, store.counted() as counts:
        for sender in [senders.submit(keep_sending, number) for number in range(SENDERS)]:
            sender.result()
    times.sort()
    quantiles = ', '.join(f'p{p} {times[len(times) * p // 100]:.2f} s' for p in (50, 99))
    put_row(f'--ack=store, {len(times)} batches of {SENDERS} senders', counts, 1, f'   {quantiles}, longest {times[-1]:.2f} s')
    store.order('PUT', 'delay/0')
    service.stop()


def measure_nodes(folder, store, count):
    services = [Service(folder, f'node-{count}-{i}', store, f'nodes-{count}', '--flush-interval', str(INTERVAL_S)) for i in range(count)]
    for service in services:
        send(service, range(200))
    for service in services:
        service.wait_for_flush()
    flushes = sum(s.metric('cairn_flushes_total') for s in services)
    with store.counted() as counts:
        for i in range(FLUSHES):
            for service in services:
                send(service, range(200))
            for service in services:
                service.wait_for_flush()
    flushes = sum(s.metric('cairn_flushes_total') for s in services) - flushes
    conflicts = sum(s.metric('cairn_commit_conflicts_total') for s in services)
    put_row(f'a flush, of {count} services at the same time', counts, flushes, f'   {conflicts / flushes:.2f} repeated commits')
    for service in services:
        service.stop()


def measure_queries(folder, store):
    service = Service(folder, 'days', store, 'days', '--flush-interval', '1')
    for day in range(DAYS):
        for part in range(4):
            send(service, range(500), time.time() - 86400 * day - 3600 * part, f'app-{part}')
    service.wait_for_flush()
    service.stop()
    shutil.rmtree(f'{folder}/days')
    service = Service(folder, 'days', store, 'days')
    query = f'/api/v1/query/top?from=now-{DAYS}d&selector=%7Bservice_name%3D%22app-1%22%7D'
    store.order('PUT', f'delay/{LATENCY_MS}')
    for title in (f'top of one service over {DAYS} days, cold', '  again'):
        time.sleep(1)  # a query does not ask for commits that were asked for half a second ago
        received = service.metric('cairn_object_store_received_bytes_total')
        with store.counted() as counts:
            start = time.monotonic()
            service.ask('GET', query)
            took = time.monotonic() - start
        received = service.metric('cairn_object_store_received_bytes_total') - received
        put_row(title, counts, 1, f'   {took:.2f} s, {received / 1e6:.2f} MB')
    store.order('PUT', 'delay/0')
    service.stop()


def measure_empty_node(folder, store):
    service = Service(folder, 'symbols', store, 'symbols')
    build_id = store_libc_symbols(service)
    service.stop()
    shutil.rmtree(f'{folder}/symbols')
    addresses = [hex(random.Random(1).randrange(0x30000, 0x180000)) for _ in range(10000)]
    body = json.dumps({'objects': [{'build_id': build_id, 'addresses': addresses}]})
    store.order('PUT', f'delay/{LATENCY_MS}')
    with store.counted() as counts:
        start = time.monotonic()
        service = Service(folder, 'symbols', store, 'symbols')
        started = time.monotonic()
        while service.metric('cairn_objects_indexed_total') < 1:
            time.sleep(0.02)
        service.ask('POST', '/api/v1/symbolize', body, {'Content-Type': 'application/json'})
        end = time.monotonic()
    put_row('an empty service starts and resolves 10,000 addresses', counts, 1,
            f'   start {started - start:.2f} s, then {end - started:.2f} s')
    store.order('PUT', 'delay/0')
    service.stop()


def main():
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        store = Store(folder)
        print(f'{"requests":<52}' + ''.join(f'{m:>8}' for m in METHODS))
        measure_flushes(folder, store)
        measure_acknowledgements(folder, store)
        for count in (1, 2, 3):
            measure_nodes(folder, store, count)
        measure_queries(folder, store)
        measure_empty_node(folder, store)
        store.process.kill()


if __name__ == '__main__':
    main()
