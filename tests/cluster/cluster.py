#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three services behind HAProxy on one object store: faults, and checks that every acknowledged sample counts once.

    cluster.py CAIRN SECONDS SEED

Run by tests/cluster/run in namespaces of its own. Senders give each batch an id and send it until it is acknowledged, by
whatever service HAProxy chooses. Meanwhile one or two faults at a time, drawn from the seed, hit the services: kill -9,
a pause beyond the lease, partitions from the store, from the other services, from HAProxy and from all, a full disk; and
the store: slow, away, failing. One service has a slow disk all the time. Readers ask services and check that an answer
has all samples that were acknowledged before the question, unless its note says what is missing, and never more than
were sent. At the end all faults are taken back; each service, and the tables as deltalake reads them, have the sums of
the senders, and no row of a location or stack is there twice.
"""
import contextlib
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(__file__))
from machines import (HEADERS, INGEST_TOKEN, NODE_TOKEN, PORT, STORE_PORT, Balancer, Node, Store, fetch,  # noqa: E402
                      run)

SENDERS = 6
QUESTION = '/api/v1/query/top?' + urllib.parse.urlencode({'from': 'now-1d', 'format': 'json', 'limit': '1000'})


class Tally:
    """What was sent and acknowledged, and what went wrong."""

    def __init__(self):
        self.lock = threading.Lock()
        self.sent, self.acknowledged, self.counts, self.problems = [0] * SENDERS, [0] * SENDERS, {}, []

    def count(self, what, n=1):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + n

    def problem(self, text):
        with self.lock:
            self.problems.append(text)
        print(f'# {text}', flush=True)


tally = Tally()
stop_sending, stop_reading = threading.Event(), threading.Event()


class Sender(threading.Thread):
    """Batches of one host, each sent until it is acknowledged."""

    def __init__(self, number, proxy, seed):
        super().__init__(daemon=True)
        self.number, self.proxy, self.draw = number, proxy, random.Random(f'{seed}/sender/{number}')

    def run(self):
        while not stop_sending.is_set():
            value, batch = self.draw.randrange(1, 1000), f'{self.draw.getrandbits(128):032x}'
            # Stacks that all senders have, which services see at once, and now and then a new one.
            body = f'main;host-{self.number};step-{self.draw.randrange(200)} {value}\n'
            with tally.lock:
                tally.sent[self.number] += value
            while not self.send(batch, body):
                time.sleep(0.2)
            with tally.lock:
                tally.acknowledged[self.number] += value
            time.sleep(0.1)

    def send(self, batch, body):
        connection = http.client.HTTPConnection(self.proxy.address, PORT, timeout=15)
        try:
            connection.request('POST', '/ingest?name=app&format=folded', body,
                               {**HEADERS, 'X-Cairn-Batch': batch, 'X-Cairn-Sender': f'host-{self.number}'})
            response = connection.getresponse()
            text = response.read().decode()
        except (OSError, http.client.HTTPException):
            tally.count('requests without an answer')
            return False
        finally:
            connection.close()
        if response.status == 200:
            tally.count('batches')
            return True
        tally.count(f'answers {response.status} to senders')
        if response.status not in (421, 429, 503, 502, 504, 507):
            tally.problem(f'a batch is refused with {response.status}: {text.strip()}')
        return False


def read_sums(url, timeout):
    """The sum of each sender, and the note of an answer."""
    body, headers = fetch(url + QUESTION, timeout=timeout)
    sums = [0] * SENDERS
    for row in json.loads(body)['rows']:
        kind, _, number = row['function'].partition('-')
        if kind == 'host':
            sums[int(number)] = row['cumulative']
    return sums, headers.get('X-Cairn-Note')


class Reader(threading.Thread):
    """Asks one service for all samples, over and over."""

    def __init__(self, node):
        super().__init__(daemon=True)
        self.node = node

    def run(self):
        while not stop_reading.is_set():
            self.ask(self.node)
            time.sleep(0.5)

    def ask(self, node):
        with tally.lock:
            least = list(tally.acknowledged)
        try:
            sums, note = read_sums(node.url(), 60)
        except (OSError, http.client.HTTPException, ValueError):
            tally.count('queries without an answer')
            return
        with tally.lock:
            most = list(tally.sent)
        tally.count('answers with a note' if note else 'answers without a note')
        if any(a > b for a, b in zip(sums, most)):
            tally.problem(f'{node.name} has more than was sent: {sums}, {most}')
        if not note and any(a < b for a, b in zip(sums, least)):
            tally.problem(f'{node.name} lacks acknowledged samples and does not say so: {sums}, {least}')


class Faults:
    """Faults by name: how each begins and ends."""

    def __init__(self, nodes, store, proxy, seed):
        self.nodes, self.store, self.proxy, self.draw = nodes, store, proxy, random.Random(f'{seed}/faults')
        self.active = {}  # by machine: the function that ends its fault, and when
        self.of_node = {'kill -9': self.kill, 'pause': self.pause, 'full disk': self.fill,
                        'no store': lambda n: self.cut(n, [store]), 'no peers': lambda n: self.cut(n, nodes),
                        'no proxy': lambda n: self.cut(n, [proxy]), 'alone': lambda n: self.cut(n, [*nodes, store, proxy])}
        self.of_store = {'slow store': ('delay/500', 'delay/50'), 'failing store': ('faults/10', 'faults/0'),
                         'store away': ('away', 'back')}

    def kill(self, node):
        node.kill()
        return node.launch

    def pause(self, node):
        node.signal(signal.SIGSTOP)
        return lambda: node.signal(signal.SIGCONT)

    def fill(self, node):
        node.fill_disk()
        return node.free_disk

    def cut(self, node, others):
        node.cut_off([other for other in others if other is not node])
        return node.connect

    def begin(self):
        free = [m for m in [*self.nodes, self.store] if m not in self.active]
        machine = self.draw.choice(free)
        if machine is self.store:
            name = self.draw.choice(list(self.of_store))
            begin, end = self.of_store[name]
            self.store.order(begin)
            undo = lambda: self.store.order(end)  # noqa: E731
        else:
            name = self.draw.choice(list(self.of_node))
            undo = self.of_node[name](machine)
        seconds = self.draw.uniform(1, 15)
        print(f'# {time.strftime("%H:%M:%S")} {machine.name}: {name} for {seconds:.0f} s', flush=True)
        tally.count(f'fault: {name}')
        self.active[machine] = (time.monotonic() + seconds, undo)

    def end(self, is_due):
        for machine, (due, undo) in list(self.active.items()):
            if is_due(due):
                undo()
                del self.active[machine]

    def inject(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            now = time.monotonic()
            self.end(lambda due: due <= now)
            if len(self.active) < 2 and self.draw.random() < 0.2:
                self.begin()
            self.check_processes()
            time.sleep(0.5)
        self.end(lambda _: True)

    def check_processes(self):
        for node in self.nodes:
            if node not in self.active and node.process.poll() is not None:
                tally.problem(f'{node.name} ended with {node.process.returncode}')
                node.launch()


def wait_for(what, is_true):
    seconds = 300
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if is_true():
                return True
        time.sleep(0.2)
    tally.problem(f'{what}: not within {seconds} s')
    return False


def check(name, got, wanted):
    if got != wanted:
        tally.problem(f'{name}: got {got}, expected {wanted}')
    print(f'{"ok" if got == wanted else "not ok"} - {name}', flush=True)


def read_table(what):
    # deltalake's threads sometimes abort the process at its end, after it has printed.
    return subprocess.run([sys.executable, 'tests/e2e/store/object-store.py', what, f'10.77.0.10:{STORE_PORT}'], check=False,
                          stdout=subprocess.PIPE, text=True).stdout.strip()


def check_end(nodes, senders):
    """After the faults: all is acknowledged and flushed, and every reader has the same sums."""
    stop_sending.set()
    for sender in senders:
        sender.join(300)
    check('every batch is acknowledged after the faults', tally.acknowledged, tally.sent)
    for node in nodes:
        wait_for(f'the flush of {node.name}', lambda n=node: n.read_metric('cairn_queue_batches') == 0)
    stop_reading.set()
    for node in nodes:
        check(f'{node.name} has each acknowledged sample once', *(read_sums(node.url(), 120)[0], tally.acknowledged))
    check('the tables have each acknowledged sample once', read_table('sum').split()[1:], [str(sum(tally.acknowledged))])
    check('no location or stack is there twice', read_table('doubled'), 'locations 0 stacks 0')
    for node in nodes:
        check(f'{node.name} set no batch aside', node.read_metric('cairn_quarantined_batches_total'), 0)


def start_cluster(cairn, work):
    run('ip', 'link', 'set', 'lo', 'up')
    run('ip', 'link', 'add', 'lan', 'type', 'bridge')
    run('ip', 'address', 'add', '10.77.0.1/24', 'dev', 'lan')
    run('ip', 'link', 'set', 'lan', 'up')
    os.makedirs('/run/netns', exist_ok=True)
    run('mount', '-t', 'tmpfs', 'netns', '/run/netns')
    with open(f'{work}/tokens', 'w', encoding='ascii') as f:
        f.write(f'{NODE_TOKEN} node\n{INGEST_TOKEN} ingest,read\n')
    with open(f'{work}/node-token', 'w', encoding='ascii') as f:
        f.write(f'{NODE_TOKEN}\n')
    os.chmod(f'{work}/tokens', 0o600)
    os.chmod(f'{work}/node-token', 0o600)
    store = Store(10, work)
    os.environ.update(AWS_ENDPOINT_URL_S3=f'http://{store.address}:{STORE_PORT}', AWS_ACCESS_KEY_ID='key',
                      AWS_SECRET_ACCESS_KEY='secret')
    nodes = [Node(f'node{i}', 10 + i, cairn, work, is_slow=i == 3) for i in (1, 2, 3)]
    for node in nodes:
        node.peers = [other for other in nodes if other is not node]
        node.launch()
    for node in nodes:
        wait_for(node.name, node.is_ready)
    return nodes, store, Balancer(9, work, nodes)


def main():
    cairn, seconds, seed = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    with tempfile.TemporaryDirectory(prefix='cairn-cluster-') as work:
        nodes, store, proxy = start_cluster(cairn, work)
        try:
            wait_for('HAProxy', lambda: fetch(proxy.url() + '/readyz'))
            senders = [Sender(i, proxy, seed) for i in range(SENDERS)]
            for thread in [*senders, *map(Reader, nodes)]:
                thread.start()
            Faults(nodes, store, proxy, seed).inject(seconds)
            check_end(nodes, senders)
        finally:
            if tally.problems:
                kept = tempfile.mkdtemp(prefix='cairn-cluster-logs-')
                subprocess.run(f'cp {work}/*.log {kept}/', shell=True, check=False)
                print(f'# the logs are in {kept}')
            for node in nodes:
                node.kill()
                node.unmount_disk()
    for what, n in sorted(tally.counts.items()):
        print(f'# {what}: {n}')
    print(f'# {seconds:.0f} s of faults, seed {seed}: {len(tally.problems)} problems')
    sys.exit(bool(tally.problems))


if __name__ == '__main__':
    main()
