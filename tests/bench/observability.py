#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Measures the overhead of observability: CPU time of an acknowledged batch and of a query, of the service by default,
with --self-profile, and with a JSON log that has a line for each query (--slow-query 0.000001). Histograms cannot be
disabled: their share is the duration of one observation (bench_histogram) times the observations per batch.

The services run in turns, ROUNDS (7) times BATCHES (1000) batches and QUERIES (300) queries; medians of user and system
CPU seconds from /proc. Run it on an idle machine.
"""
import http.client
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = os.environ.get('CAIRN_BUILD', 'build')
ROUNDS = int(os.environ.get('ROUNDS', '7'))
BATCHES = int(os.environ.get('BATCHES', '1000'))
QUERIES = int(os.environ.get('QUERIES', '300'))
KINDS = {'as it is': [], '--self-profile': ['--self-profile'],
         'a line in JSON for each query': ['--log-format', 'json', '--slow-query', '0.000001']}
TICK = os.sysconf('SC_CLK_TCK')


class Service:
    def __init__(self, folder, options):
        self.process = subprocess.Popen([BUILD + '/cairn', 'serve', '--data', folder, '--listen', '127.0.0.1:0',
                                         '--port-file', folder + '.port', '--flush-interval', '1', *options], stderr=subprocess.DEVNULL)
        while not (os.path.exists(folder + '.port') and os.path.getsize(folder + '.port')):
            if self.process.poll() is not None:
                sys.exit('the service has not started')
            time.sleep(0.01)
        with open(folder + '.port') as f:
            self.connection = http.client.HTTPConnection('127.0.0.1', int(f.read()))

    def ask(self, method, path, body=None):
        self.connection.request(method, path, body)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            sys.exit(f'{path} was answered {answer.status}')
        return text.decode()

    def cpu_seconds(self):
        with open(f'/proc/{self.process.pid}/stat') as f:
            fields = f.read().rpartition(')')[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def count_observations(self):
        return sum(float(n) for n in re.findall(r'^cairn_\w+_seconds_count(?:{.*})? (\S+)$', self.ask('GET', '/metrics'), re.M))

    def wait_for_flush(self):
        while 'cairn_queue_batches 0\n' not in self.ask('GET', '/metrics'):
            time.sleep(0.05)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def send_batches(service):
    for i in range(BATCHES):
        now = int(time.time())
        body = '\n'.join(f'main;work_{k % 40};leaf_{k} {k + i}' for k in range(200))
        service.ask('POST', f'/ingest?name=bench&from={now - 1}&until={now}&format=folded', body)


def ask_queries(service):
    for _ in range(QUERIES):
        service.ask('GET', '/api/v1/query/top?from=now-1h&selector=%7Bservice_name%3D%22bench%22%7D')


def main():
    print(subprocess.run([BUILD + '/tests/bench/bench_histogram'], check=True, capture_output=True, text=True).stdout, end='')
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        services = {kind: Service(f'{folder}/{i}', options) for i, (kind, options) in enumerate(KINDS.items())}
        used = {kind: {send_batches: [], ask_queries: []} for kind in KINDS}
        before = services['as it is'].count_observations()
        for i in range(ROUNDS):
            for work in send_batches, ask_queries:
                for kind in list(KINDS)[i % len(KINDS):] + list(KINDS)[:i % len(KINDS)]:
                    for service in services.values():
                        service.wait_for_flush()  # a concurrent flush would evict this service's data from the CPU caches
                    start = services[kind].cpu_seconds()
                    work(services[kind])
                    used[kind][work].append(services[kind].cpu_seconds() - start)
        made = services['as it is'].count_observations() - before
        for service in services.values():
            service.stop()
    print(f'{made / ROUNDS / (BATCHES + QUERIES):.2f} observations for each batch or query')
    print('| service | CPU of a batch, us | | CPU of a query, us | |\n| --- | --- | --- | --- | --- |')
    plain = [statistics.median(used['as it is'][work]) for work in (send_batches, ask_queries)]
    for kind in KINDS:
        seconds = [statistics.median(used[kind][work]) for work in (send_batches, ask_queries)]
        print(f'| {kind} | {seconds[0] / BATCHES * 1e6:.0f} | {seconds[0] / plain[0]:.3f} '
              f'| {seconds[1] / QUERIES * 1e6:.0f} | {seconds[1] / plain[1]:.3f} |')


main()
