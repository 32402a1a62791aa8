# SPDX-License-Identifier: Apache-2.0
"""The machines of the cluster test: network namespaces at one bridge, with a service, a store or a proxy in each."""
import contextlib
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request

PORT = 7700
STORE_PORT = 7070
NODE_TOKEN = 'n' * 32
INGEST_TOKEN = 'i' * 32
HEADERS = {'Authorization': f'Bearer {INGEST_TOKEN}', 'Host': 'cairn.example'}


def run(*command):
    subprocess.run(command, check=True)


def fetch(url, timeout=10):
    """The body of an answer, and its headers."""
    with urllib.request.urlopen(urllib.request.Request(url, headers=HEADERS), timeout=timeout) as response:
        return response.read().decode(), response.headers


class Machine:
    """A network namespace with an address."""

    def __init__(self, name, number):
        self.name, self.address, self.process = name, f'10.77.0.{number}', None
        run('ip', 'netns', 'add', name)
        run('ip', 'link', 'add', f'to-{name}', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name)
        run('ip', 'link', 'set', f'to-{name}', 'master', 'lan', 'up')
        self.inside('ip', 'link', 'set', 'lo', 'up')
        self.inside('ip', 'address', 'add', f'{self.address}/24', 'dev', 'eth0')
        self.inside('ip', 'link', 'set', 'eth0', 'up')
        self.inside('nft', 'add table inet faults; add chain inet faults in { type filter hook input priority 0; }; '
                    'add chain inet faults out { type filter hook output priority 0; }')

    def inside(self, *command):
        run('ip', 'netns', 'exec', self.name, *command)

    def start(self, *command, log, environment=None):
        self.process = subprocess.Popen(['ip', 'netns', 'exec', self.name, *command], stdout=log, stderr=log,
                                        env={**os.environ, **(environment or {})})

    def cut_off(self, others):
        """No packet of the others arrives, and none is sent to them; also of connections that exist."""
        for other in others:
            self.inside('nft', f'add rule inet faults in ip saddr {other.address} drop; '
                        f'add rule inet faults out ip daddr {other.address} drop')

    def connect(self):
        self.inside('nft', 'flush table inet faults')


class Store(Machine):
    """versitygw behind the proxy of the tests of object storage, which delays and fails requests."""

    def __init__(self, number, work):
        super().__init__('store', number)
        with open(f'{work}/store.log', 'wb') as log:
            self.start(os.sys.executable, 'tests/e2e/store/object-store.py', 'serve', '7', f'{work}/store-port',
                       self.address, str(STORE_PORT), log=log, environment={'TMPDIR': work})
        while not os.path.exists(f'{work}/store-port'):
            time.sleep(0.05)

    def order(self, what):
        request = urllib.request.Request(f'http://{self.address}:{STORE_PORT}/-/{what}', method='PUT')
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.read().decode()


class Node(Machine):
    """A service, on a disk of its own."""

    DISK_BYTES = 256 << 20

    def __init__(self, name, number, cairn, work, is_slow):
        super().__init__(name, number)
        self.cairn, self.work, self.disk, self.fast_disk, self.peers = cairn, work, f'{work}/{name}', f'{work}/{name}', []
        os.mkdir(self.disk)
        run('mount', '-t', 'tmpfs', '-o', f'size={self.DISK_BYTES},mode=755', name, self.disk)
        if is_slow:
            self.disk = f'{work}/{name}-slow'
            os.mkdir(self.disk)
            run('bindfs', '--read-rate=20M', '--write-rate=2M', self.fast_disk, self.disk)

    def launch(self):
        command = [self.cairn, 'serve', '--data', f'{self.disk}/data', '--listen', f'{self.address}:{PORT}', '--store',
                   's3://cairn-test/fleet', '--max-age', 'any', '--flush-interval', '2', '--lease-time', '10',
                   '--token-file', f'{self.work}/tokens', '--peer-token-file', f'{self.work}/node-token',
                   '--trusted-proxy', '10.77.0.9', '--allow-host', 'cairn.example']
        for peer in self.peers:
            command += ['--peer', f'http://{peer.address}:{PORT}']
        with open(f'{self.work}/{self.name}.log', 'ab') as log:
            self.start(*command, log=log)

    def url(self):
        return f'http://{self.address}:{PORT}'

    def is_ready(self):
        with contextlib.suppress(OSError):
            fetch(f'{self.url()}/readyz')
            return True
        return False

    def signal(self, number):
        os.kill(self.process.pid, number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()

    def read_metric(self, name):
        body, _ = fetch(f'{self.url()}/metrics', timeout=60)
        values = [line.split()[1] for line in body.splitlines() if line.split(' ')[0].split('{')[0] == name]
        return sum(float(value) for value in values)

    def fill_disk(self):
        """Leave no free block for the service."""
        with open(f'{self.fast_disk}/filler', 'wb', buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(bytes(1 << 20))

    def unmount_disk(self):
        for path in {self.disk, self.fast_disk}:
            run('umount', '-l', path)

    def free_disk(self):
        os.unlink(f'{self.fast_disk}/filler')


class Balancer(Machine):
    """HAProxy with the configuration of deploy/."""

    def __init__(self, number, work, nodes):
        super().__init__('proxy', number)
        with open('deploy/haproxy/haproxy.cfg', encoding='utf-8') as f:
            text = f.read()
        # The example has two services; the others are as its second one.
        for i in range(3, len(nodes) + 1):
            text = re.sub(r'^( *server node)2 192\.0\.2\.2(:7700.*)$', rf'\g<0>\n\g<1>{i} 192.0.2.{i}\g<2>', text, flags=re.M)
        for i, node in enumerate(nodes, 1):
            text = text.replace(f'192.0.2.{i}:7700', f'{node.address}:{PORT}')
        with open(f'{work}/haproxy.cfg', 'w', encoding='utf-8') as f:
            f.write(text)
        with open(f'{work}/haproxy.log', 'wb') as log:
            self.start('haproxy', '-f', f'{work}/haproxy.cfg', log=log)

    def url(self):
        return f'http://{self.address}:{PORT}'
