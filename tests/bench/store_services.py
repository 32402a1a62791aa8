# SPDX-License-Identifier: Apache-2.0
"""For benchmarks: the object store of the tests behind its proxy, services on it, and limits of their CPU time."""
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

BUILD = os.environ.get('CAIRN_BUILD', 'build')
METHODS = ('PUT', 'LIST', 'GET', 'HEAD', 'POST', 'DELETE')
LIBRARY = '/lib/x86_64-linux-gnu/libc.so.6'
TICK = os.sysconf('SC_CLK_TCK')
UNTIL_WE_END = ('setpriv', '--pdeathsig', 'KILL')  # before the command of a process


def wait_for_file(path, process):
    while not (os.path.exists(path) and os.path.getsize(path)):
        if process.poll() is not None:
            sys.exit(f'{process.args[0]} has not started')
        time.sleep(0.02)


class Store:
    """moto, or versitygw if CAIRN_TEST_VERSITYGW has its path, behind a proxy that counts, delays and fails requests."""

    def __init__(self, folder, command=()):
        port_file = folder + '/store-port'
        program = [sys.executable, 'tests/e2e/store/object-store.py', 'serve', '7', port_file]
        self.process = subprocess.Popen([*UNTIL_WE_END, *command, *program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env={**os.environ, 'TMPDIR': folder})
        wait_for_file(port_file, self.process)
        with open(port_file, encoding='ascii') as f:
            self.port = int(f.read())

    def order(self, method, path):
        connection = http.client.HTTPConnection('127.0.0.1', self.port)
        connection.request(method, '/-/' + path)
        return connection.getresponse().read()

    def count_requests(self):
        return json.loads(self.order('GET', 'requests'))

    @contextlib.contextmanager
    def counted(self):
        """The requests within, by method, when it has ended."""
        before, counts = self.count_requests(), {}
        yield counts
        after = self.count_requests()
        counts.update({m: after.get(m, 0) - before.get(m, 0) for m in METHODS})


class Service:
    """A service; without an object store if `store` is None."""

    def __init__(self, folder, name, store, prefix, *options, command=()):
        self.data = f'{folder}/{name}'
        port_file = f'{folder}/{name}.port'
        with contextlib.suppress(FileNotFoundError):
            os.remove(port_file)
        self.environment, place = dict(os.environ), []
        if store:
            self.environment |= {'AWS_ENDPOINT_URL_S3': f'http://127.0.0.1:{store.port}', 'AWS_ACCESS_KEY_ID': 'key',
                                 'AWS_SECRET_ACCESS_KEY': 'secret'}
            place = ['--store', f's3://cairn-test/{prefix}']
        if '--listen' not in options:
            place += ['--listen', '127.0.0.1:0']
        with open(f'{folder}/{name}.log', 'ab') as log:
            self.process = subprocess.Popen([*UNTIL_WE_END, *command, BUILD + '/cairn', 'serve', '--data', self.data, '--port-file', port_file,
                                             '--max-age', 'any', *place, *options], env=self.environment, stderr=log)
        wait_for_file(port_file, self.process)
        with open(port_file, encoding='ascii') as f:
            self.port = int(f.read())

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection('127.0.0.1', self.port)
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status not in (200, 201):
            sys.exit(f'{path} was answered {answer.status}: {text[:200]}')
        return text

    def metrics(self):
        """The values of /metrics; those with labels by their whole name."""
        lines = self.ask('GET', '/metrics').decode().splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(' ') for line in lines) if name[:1] != '#'}

    def metric(self, name):
        return self.metrics().get(name, 0)

    def wait_for_flush(self):
        while self.metric('cairn_queue_batches'):
            time.sleep(0.1)

    def cpu_seconds(self):
        """CPU time by name of threads; those that have ended are under "ended"."""
        def read_seconds(path):
            with open(path, encoding='utf-8', errors='replace') as f:
                name, _, rest = f.read().partition('(')[2].rpartition(')')
            fields = rest.split()
            return name, (int(fields[11]) + int(fields[12])) / TICK

        root, ret = f'/proc/{self.process.pid}', {}
        for task in os.listdir(root + '/task'):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                name, seconds = read_seconds(f'{root}/task/{task}/stat')
                ret[name] = ret.get(name, 0) + seconds
        ret['ended'] = max(0, read_seconds(root + '/stat')[1] - sum(ret.values()))
        return ret

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


class CpuLimit:
    """
    A cgroup whose processes have this many CPUs, of version 1 or 2, as the machine has it. Its weight is ten times the usual, so
    that they have these when the machine is busy. Requires root.
    """

    def __init__(self, name, cpus):
        # With the usual period of 100 ms a service that has used its share would wait that long after each answer of the store.
        period = 10000
        quota = int(cpus * period)
        if os.path.exists('/sys/fs/cgroup/cgroup.controllers'):
            root, values = '/sys/fs/cgroup', {'cpu.max': f'{quota} {period}', 'cpu.weight': 1000}
            with open(f'{root}/cgroup.subtree_control', 'w', encoding='ascii') as f:
                f.write('+cpu')
        else:
            root, values = '/sys/fs/cgroup/cpu', {'cpu.cfs_period_us': period, 'cpu.cfs_quota_us': quota, 'cpu.shares': 10240}
        self.path = f'{root}/{name}-{os.getpid()}'
        os.mkdir(self.path)
        for file, value in values.items():
            with open(f'{self.path}/{file}', 'w', encoding='ascii') as f:
                f.write(str(value))

    def command(self):
        """Before that of a program: it and its children are in the cgroup."""
        return ['sh', '-c', f'echo $$ >{self.path}/cgroup.procs && exec "$@"', 'sh']

    def remove(self):
        """After the last process has ended."""
        os.rmdir(self.path)


def store_libc_symbols(service):
    """@return the build-id of libc, of which the service has the symbols."""
    subprocess.run([BUILD + '/cairn-upload', '--server', f'http://127.0.0.1:{service.port}', LIBRARY], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    notes = subprocess.run(['readelf', '-n', LIBRARY], check=True, capture_output=True, text=True).stdout
    while service.metric('cairn_objects_indexed_total') < 1:
        time.sleep(0.1)
    return re.search(r'Build ID: (\w+)', notes)[1]


class Load:
    """Batches of a fleet at a constant rate (load_batches.c)."""

    def __init__(self, services, rate, rows, seconds, command=()):
        self.process = subprocess.Popen([*UNTIL_WE_END, *command, BUILD + '/tests/bench/load_batches', str(rate), str(seconds),
                                         str(rows), *(str(s.port) for s in services)], stdout=subprocess.PIPE, text=True)

    def read_lines(self):
        """The numbers of each second: seconds, accepted, refused, late ms, median ms, 99th percentile ms, CPU seconds."""
        for line in self.process.stdout:
            yield [float(word) for word in line.split()]
        if self.process.wait():
            sys.exit('load_batches failed')

    def finish(self):
        """@return the last line."""
        return list(self.read_lines())[-1]


def find_free_port():
    with socket.create_server(('127.0.0.1', 0)) as probe:
        return probe.getsockname()[1]


def start_group(folder, store, count, *options, limits=()):
    """Services on one store that have each other as peers."""
    ports = [find_free_port() for _ in range(count)]
    peers = [word for port in ports for word in ('--peer', f'http://127.0.0.1:{port}') if count > 1]
    return [Service(folder, f'node-{count}-{i}', store, f'nodes-{count}', '--listen', f'127.0.0.1:{port}', *peers, *options,
                    command=limits[i].command() if limits else ()) for i, port in enumerate(ports)]
