#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
A tree of Debian packages served by `cairn serve --scan` and by elfutils' debuginfod, one after the other in each round:
seconds of the first scan, CPU seconds of it, seconds of a walk in which nothing changed, warm debuginfo (MB/s), warm sections
(requests/s), memory. The best of the rounds counts.

PACKAGES=DIR takes a tree of your own; without it 200 packages are made of programs and debug files of this machine and kept
in build/bench-packages.
"""
import hashlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

BUILD = os.environ.get('CAIRN_BUILD', 'build')
COUNT = int(os.environ.get('COUNT', '200'))
ROUNDS = int(os.environ.get('ROUNDS', '3'))


def is_elf(path):
    try:
        with open(path, 'rb') as f:
            return not os.path.islink(path) and f.read(4) == b'\x7fELF'
    except OSError:
        return False


def files_below(top):
    return sorted(os.path.join(d, f) for d, _, fs in os.walk(top) for f in fs if is_elf(os.path.join(d, f)))


def make_packages(to):
    """Packages of a few programs with their documents, and of a few debug files each, as a mirror has them by halves."""
    programs, debug = files_below('/usr/bin') + files_below('/usr/sbin'), files_below('/usr/lib/debug')
    programs = [p for p in programs if os.path.getsize(p) < 4 << 20]
    debug = [p for p in debug if os.path.getsize(p) < 8 << 20]
    texts = [os.path.join(d, f) for d, _, fs in os.walk('/usr/share/doc') for f in fs][:4000]
    if not programs or not debug:
        sys.exit('no programs or no debug files here to make packages of (libc6-dbg has some)')
    os.makedirs(to + '.tmp', exist_ok=True)
    for n in range(COUNT):
        with tempfile.TemporaryDirectory() as root:
            source, per = (debug, 3) if n % 2 else (programs, 3)
            mine = [source[(n // 2 * per + k) % len(source)] for k in range(per)]
            mine += [t for t in texts[n * 20 % 3000:][:20] if os.path.isfile(t)]
            for path in mine:
                os.makedirs(root + os.path.dirname(path), exist_ok=True)
                shutil.copyfile(path, root + path)
            os.makedirs(root + '/DEBIAN')
            with open(root + '/DEBIAN/control', 'w') as f:
                f.write('Package: p%d\nVersion: 1\nArchitecture: all\nMaintainer: n <n@example.org>\nDescription: x\n' % n)
            subprocess.run(['dpkg-deb', '-Zxz', '-z1', '--root-owner-group', '-b', root, '%s.tmp/p%03d.deb' % (to, n)],
                           check=True, stdout=subprocess.DEVNULL)
    os.rename(to + '.tmp', to)


class Server:
    def __init__(self, name, tree):
        self.name, self.dir = name, tempfile.mkdtemp(prefix='bench-debuginfod-')
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            self.port = s.getsockname()[1]
        self.url = 'http://127.0.0.1:%d' % self.port
        env = {k: v for k, v in os.environ.items() if k != 'DEBUGINFOD_URLS'}
        env['HOME'] = self.dir
        if name == 'cairn':
            command = [BUILD + '/cairn', 'serve', '--data', self.dir + '/data', '--listen', '127.0.0.1:%d' % self.port,
                       '--scan', tree, '--scan-interval', '0']
        else:
            command = ['debuginfod', '-p', str(self.port), '-d', self.dir + '/db', '-U', '-t', '0', '-g', '0', tree]
        self.log = open(self.dir + '/log', 'wb')
        self.start = time.monotonic()
        self.process = subprocess.Popen(command, env=env, stdout=self.log, stderr=self.log)

    def metrics(self):
        try:
            with urllib.request.urlopen(self.url + '/metrics', timeout=10) as r:
                return dict(re.findall(r'^([^#\s][^ ]*(?:\{[^}]*\})?) ([0-9.e+]+)$', r.read().decode(), re.M))
        except OSError:
            return {}

    def scanned(self, rounds):
        m = self.metrics()
        if self.name == 'cairn':
            return float(m.get('cairn_scan_rounds_total', 0)) >= rounds
        return (float(m.get('thread_work_total{role="traverse"}', 0)) >= rounds
                and float(m.get('thread_work_pending{role="scan"}', 1)) == 0
                and float(m.get('thread_busy{role="scan"}', 1)) == 0)

    def wait_scanned(self, rounds, start):
        while not self.scanned(rounds):
            if self.process.poll() is not None:
                sys.exit('%s ended: %s' % (self.name, open(self.dir + '/log').read()[-2000:]))
            time.sleep(0.01)
        return time.monotonic() - start

    def again(self):
        start = time.monotonic()
        self.process.send_signal(signal.SIGUSR1)
        return self.wait_scanned(2, start)

    def fetch(self, path, times):
        """Bytes and seconds of so many requests over one connection."""
        urls = [self.url + path] * times
        config = ''.join('url = "%s"\noutput = "/dev/null"\n' % u for u in urls)
        start = time.monotonic()
        out = subprocess.run(['curl', '-sS', '-K', '-', '-w', '%{http_code} %{size_download}\n'], input=config, text=True,
                             check=True, stdout=subprocess.PIPE).stdout.split('\n')
        seconds = time.monotonic() - start
        if any(line and not line.startswith('200 ') for line in out):
            sys.exit('%s: %s is not answered with 200' % (self.name, path))
        return sum(int(line.split()[1]) for line in out if line), seconds

    def cpu_seconds(self):
        """Of the server and of all its processes that have ended."""
        with open('/proc/%d/stat' % self.process.pid) as f:
            ticks = f.read().rsplit(')', 1)[1].split()[11:15]
        return sum(map(int, ticks)) / os.sysconf('SC_CLK_TCK')

    def memory_mb(self):
        with open('/proc/%d/status' % self.process.pid) as f:
            return int(re.search(r'VmHWM:\s+(\d+)', f.read()).group(1)) / 1024

    def digest(self, path):
        with urllib.request.urlopen(self.url + path, timeout=60) as r:
            return hashlib.sha256(r.read()).hexdigest()

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.dir)


def build_id(path):
    out = subprocess.run(['readelf', '-n', path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    found = re.search(r'Build ID: ([0-9a-f]+)', out)
    return found and found.group(1)


def pick(tree):
    """The largest debug file of the tree's packages that has what is asked for."""
    best = (0, None)
    for name in sorted(os.listdir(tree)):
        if not name.endswith('.deb'):
            continue
        listed = subprocess.run(['dpkg-deb', '-c', tree + '/' + name], stdout=subprocess.PIPE, text=True).stdout
        for line in listed.split('\n'):
            part = line.split()
            if len(part) > 5 and part[5].endswith('.debug') and int(part[2]) > best[0]:
                best = (int(part[2]), (tree + '/' + name, part[5]))
    if not best[1]:
        sys.exit('no .debug file in the packages of ' + tree)
    with tempfile.NamedTemporaryFile() as f:
        data = subprocess.run(['dpkg-deb', '--fsys-tarfile', best[1][0]], stdout=subprocess.PIPE).stdout
        f.write(subprocess.run(['tar', '-xO', best[1][1]], input=data, stdout=subprocess.PIPE).stdout)
        f.flush()
        return build_id(f.name), best[0]


def measure(name, tree, wanted):
    server, result = Server(name, tree), {}
    path = '/buildid/%s/' % wanted
    try:
        result['scan_s'] = server.wait_scanned(1, server.start)
        result['scan_cpu_s'] = server.cpu_seconds()
        result['again_s'] = server.again()
        start = time.monotonic()
        result['digest'] = server.digest(path + 'debuginfo'), server.digest(path + 'section/.debug_line')
        result['first_s'] = time.monotonic() - start
        size, seconds = server.fetch(path + 'debuginfo', 50)
        result['debuginfo_mb_s'] = size / seconds / 1e6
        server.fetch(path + 'section/.debug_abbrev', 10)
        _, seconds = server.fetch(path + 'section/.debug_abbrev', 500)
        result['sections_s'] = 500 / seconds
        result['memory_mb'] = server.memory_mb()
    finally:
        server.stop()
    return result


def main():
    tree = os.environ.get('PACKAGES') or os.path.abspath(BUILD + '/bench-packages')
    if not os.path.isdir(tree):
        make_packages(tree)
    count = len([f for f in os.listdir(tree) if f.endswith('.deb')])
    size = sum(os.path.getsize(tree + '/' + f) for f in os.listdir(tree))
    wanted, wanted_size = pick(tree)
    print('# %d packages of %.0f MB; debuginfo of %.1f MB; best of %d rounds' % (count, size / 1e6, wanted_size / 1e6, ROUNDS))
    names = ['cairn'] + (['debuginfod'] if shutil.which('debuginfod') else [])
    if len(names) == 1:
        print("# elfutils' debuginfod is not installed")
    runs = {name: [] for name in names}
    for _ in range(ROUNDS):
        for name in names:
            runs[name].append(measure(name, tree, wanted))
    if len({r['digest'] for name in names for r in runs[name]}) != 1:
        sys.exit('the two serve different bytes')
    rows = [('first scan, s', 'scan_s', min), ('  CPU time of it, s', 'scan_cpu_s', min), ('walk without changes, s', 'again_s', min),
            ('first debuginfo and section, s', 'first_s', min), ('warm debuginfo, MB/s', 'debuginfo_mb_s', max),
            ('warm section requests, 1/s', 'sections_s', max), ('peak resident memory of the server, MB', 'memory_mb', max)]
    for title, key, best in rows:
        got = {name: best(r[key] for r in runs[name]) for name in names}
        line = '%-42s' % title + ''.join('  %s %.3g' % (name, got[name]) for name in names)
        if len(names) == 2 and got['cairn'] and got['debuginfod']:
            ratio = got['debuginfod'] / got['cairn'] if best is min or key == 'memory_mb' else got['cairn'] / got['debuginfod']
            line += '  %.2f times as good' % ratio
        print(line)


main()
