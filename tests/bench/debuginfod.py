#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Compares `cairn serve --scan` with elfutils' debuginfod on a tree of Debian packages and a tree of plain debug files.

First each server runs alone: seconds and CPU seconds of the first scan, and seconds of a rescan without changes. Then
both run, and requests are sent to both alternately, PAIRS times in each of ROUNDS rounds, with the order swapped each
time: whole files, sections of plain files, of package members that were requested before (few enough for elfutils to
cache, and more), and of packages that were not. Medians of rates and ratios are reported, so that other load affects
both equally; CPU time per request is less affected by it.
The client is tests/bench/load_http.c for both: it keeps its connections open and discards bodies in the kernel, since
clients that copy them take longer than the servers.

Finally, the same sections of uploaded objects, compared with plain files in elfutils' debuginfod, which does not
support uploads.

PACKAGES=DIR uses existing packages; by default 200 are built from programs and debug files of this machine. These and
the plain files are kept in build/bench-debuginfod.
"""
import hashlib
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

BUILD = os.environ.get('CAIRN_BUILD', 'build')
COUNT = int(os.environ.get('COUNT', '200'))
ROUNDS = int(os.environ.get('ROUNDS', '3'))
PAIRS = int(os.environ.get('PAIRS', '5'))


def is_elf(path):
    try:
        with open(path, 'rb') as f:
            return not os.path.islink(path) and f.read(4) == b'\x7fELF'
    except OSError:
        return False


def files_below(top):
    return sorted(os.path.join(d, f) for d, _, fs in os.walk(top) for f in fs if is_elf(os.path.join(d, f)))


def debug_files():
    return [p for p in files_below('/usr/lib/debug') if os.path.getsize(p) < 8 << 20]


def make_files(to):
    """Every third debug file, unchanged; the packages contain the others."""
    os.makedirs(to + '.tmp', exist_ok=True)
    for path in debug_files()[::3]:
        shutil.copyfile(path, '%s.tmp/%s' % (to, path.replace('/', '_')))
    os.rename(to + '.tmp', to)


def make_packages(to):
    """Packages of a few programs with their documentation, and of a few debug files each, in equal numbers like on a
    mirror.
    """
    programs, debug = files_below('/usr/bin') + files_below('/usr/sbin'), debug_files()
    debug = [p for n, p in enumerate(debug) if n % 3]
    programs = [p for p in programs if os.path.getsize(p) < 4 << 20]
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
    def __init__(self, name, trees):
        self.name, self.dir = name, tempfile.mkdtemp(prefix='bench-debuginfod-')
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            self.port = s.getsockname()[1]
        self.url = 'http://127.0.0.1:%d' % self.port
        env = {k: v for k, v in os.environ.items() if k != 'DEBUGINFOD_URLS'}
        env['HOME'] = self.dir
        if name == 'cairn':
            command = [BUILD + '/cairn', 'serve', '--data', self.dir + '/data', '--listen', '127.0.0.1:%d' % self.port,
                       '--scan-interval', '0'] + [word for tree in trees for word in ('--scan', tree)]
        else:
            command = ['debuginfod', '-p', str(self.port), '-d', self.dir + '/db', '-F', '-U', '-t', '0', '-g', '0'] + trees
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

    def ask(self, paths, requests, connections):
        """Seconds and bytes of this many requests, and the number of successful ones."""
        out = subprocess.run([BUILD + '/tests/bench/load_http', str(self.port), str(connections), str(requests)],
                             input='\n'.join(paths), text=True, check=True, stdout=subprocess.PIPE).stdout.split()
        return float(out[0]), int(out[2]), int(out[3])

    def cpu_seconds(self):
        """CPU time of the server, of all its ended child processes, and of running ones and their children."""
        pid, ticks = self.process.pid, 0
        with open('/proc/%d/task/%d/children' % (pid, pid)) as f:
            pids = [pid] + [int(child) for child in f.read().split()]
        for one in pids:
            try:
                with open('/proc/%d/stat' % one) as f:
                    ticks += sum(map(int, f.read().rsplit(')', 1)[1].split()[11:15]))
            except OSError: # it has just ended
                pass
        return ticks / os.sysconf('SC_CLK_TCK')

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


def listed(tree):
    """The debug files of each package: (size, build-id by path or None, path, package)."""
    packages = []
    for name in sorted(os.listdir(tree)):
        if not name.endswith('.deb'):
            continue
        found = []
        for line in subprocess.run(['dpkg-deb', '-c', tree + '/' + name], stdout=subprocess.PIPE, text=True).stdout.split('\n'):
            part = line.split()
            if len(part) > 5 and part[5].endswith('.debug'):
                at = re.search(r'/\.build-id/([0-9a-f]{2})/([0-9a-f]+)\.debug$', part[5])
                found.append((int(part[2]), at and at.group(1) + at.group(2), part[5], tree + '/' + name))
        if found:
            packages.append(found)
    if not packages:
        sys.exit('no .debug file in the packages of ' + tree)
    return packages


def id_of_member(member):
    _, known, path, package = member
    if known:
        return known
    with tempfile.NamedTemporaryFile() as f:
        data = subprocess.run(['dpkg-deb', '--fsys-tarfile', package], stdout=subprocess.PIPE).stdout
        f.write(subprocess.run(['tar', '-xO', path], input=data, stdout=subprocess.PIPE).stdout)
        f.flush()
        return build_id(f.name)


def section_paths(ids):
    """The sections that debuggers request, and first .gdb_index, which few files have."""
    names = ['.gdb_index', '.debug_line', '.debug_abbrev', '.debug_aranges', '.note.gnu.build-id']
    return ['/buildid/%s/section/%s' % (i, name) for i in ids for name in names]


class Case:
    """Paths requested from both servers. Rates are per second, in requests or, for whole files, in MB."""
    def __init__(self, title, paths, requests, connections=1, once=False, whole=False):
        self.title, self.paths, self.requests, self.connections = title, paths, requests, connections
        self.once, self.whole = once, whole
        self.rates, self.ratios, self.cpu, self.size = {}, [], {}, 0

    def run(self, servers):
        got = {}
        for server in servers:
            if not self.once: # then the caches are warm
                server.ask(self.paths, len(self.paths), 1)
            cpu = server.cpu_seconds()
            seconds, size, found = server.ask(self.paths, self.requests, self.connections)
            self.cpu.setdefault(server.name, []).append((server.cpu_seconds() - cpu) / self.requests * 1e6)
            got[server.name] = (size / 1e6 if self.whole else self.requests) / seconds
            self.rates.setdefault(server.name, []).append(got[server.name])
            if self.size not in (0, (size, found)):
                sys.exit('%s: %s answers other than before' % (self.title, server.name))
            self.size = (size, found)
        if len(got) == 2:
            self.ratios.append(got['cairn'] / got['debuginfod'])

    def __str__(self):
        unit = 'MB/s' if self.whole else '1/s'
        line = '%-60s' % ('%s, %s' % (self.title, unit))
        line += ''.join('  %s %.4g' % (name, statistics.median(rates)) for name, rates in sorted(self.rates.items()))
        line += '  %.2f times as fast' % statistics.median(self.ratios) if self.ratios else ''
        cpu = {name: statistics.mean(each) for name, each in self.cpu.items()}
        line += '; CPU a request, us:' + ''.join('  %s %.3g' % one for one in sorted(cpu.items()))
        return line + ('  %.2f' % (cpu['debuginfod'] / cpu['cairn']) if len(cpu) == 2 and cpu['cairn'] else '')


def start(name, trees, result):
    server = Server(name, trees)
    try:
        r = {'scan_s': server.wait_scanned(1, server.start), 'scan_cpu_s': server.cpu_seconds(), 'again_s': server.again()}
    except BaseException:
        server.stop()
        raise
    result.setdefault(name, []).append(r)
    return server


def measure(names, trees, cases, check, result):
    servers = []
    try:
        for name in names:
            servers.append(start(name, trees, result))
        for n in range(PAIRS):
            for case in cases:
                if n == 0 or not case.once:
                    case.run(servers[::-1] if n % 2 else servers)
        if len({server.digest(path) for path in check for server in servers}) != len(check):
            sys.exit('the two serve different bytes')
        for server in servers:
            result[server.name][-1]['memory_mb'] = server.memory_mb()
    finally:
        for server in servers:
            server.stop()


def measure_stored(names, files, cases):
    servers = []
    with tempfile.TemporaryDirectory() as tree:
        try:
            for path in files:
                shutil.copy(path, tree)
            for name in names:
                servers.append(Server(name, [tree] if name == 'debuginfod' else []))
            for server in servers:
                if server.name == 'debuginfod':
                    server.wait_scanned(1, server.start)
                    continue
                while not server.metrics():
                    time.sleep(0.01)
                subprocess.run([BUILD + '/cairn-upload', '--server', server.url] + files, check=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for n in range(PAIRS):
                for case in cases:
                    case.run(servers[::-1] if n % 2 else servers)
        finally:
            for server in servers:
                server.stop()


def main():
    kept = os.path.abspath(BUILD + '/bench-debuginfod')
    tree, plain = os.environ.get('PACKAGES') or kept + '/packages', kept + '/files'
    if not os.path.isdir(plain):
        make_files(plain)
    if not os.path.isdir(tree):
        make_packages(tree)
    packages = listed(tree)
    files = sorted(os.path.join(plain, f) for f in os.listdir(plain))
    plain_ids = [build_id(f) for f in files]
    largest = max(member for members in packages for member in members)
    big = '/buildid/%s/' % id_of_member(largest)
    few = [id_of_member(members[0]) for members in packages[:3]]
    many = [id_of_member(members[0]) for members in packages[3:33]]
    fresh = [id_of_member(members[0]) for members in packages[33:53]]
    cases = [Case('whole debuginfo of %.1f MB' % (largest[0] / 1e6), [big + 'debuginfo'], 40, whole=True),
             Case('  4 connections', [big + 'debuginfo'], 40, 4, whole=True),
             Case('sections of %d plain files' % len(files), section_paths(plain_ids), 400),
             Case('  8 connections', section_paths(plain_ids), 400, 8),
             Case('sections of 3 members that were asked for before', section_paths(few), 300),
             Case('  .debug_abbrev of the large one', [big + 'section/.debug_abbrev'], 200),
             Case('  .debug_info of the large one', [big + 'section/.debug_info'], 40),
             Case('  one of each of 30 packages', ['/buildid/%s/section/.debug_line' % i for i in many], 30, once=True),
             Case('  the same again', ['/buildid/%s/section/.debug_line' % i for i in many], 30, once=True),
             Case('.gdb_index, which is not there, of 20 other packages', ['/buildid/%s/section/.gdb_index' % i for i in fresh], 20, once=True)]
    check = [big + 'debuginfo', big + 'section/.debug_line', '/buildid/%s/section/.debug_abbrev' % plain_ids[0]]
    count = len([f for f in os.listdir(tree) if f.endswith('.deb')])
    size = sum(os.path.getsize(tree + '/' + f) for f in os.listdir(tree))
    print('# %d packages of %.0f MB, %d plain files of %.0f MB; %d rounds, %d pairs in each; load %.1f' %
          (count, size / 1e6, len(files), sum(map(os.path.getsize, files)) / 1e6, ROUNDS, PAIRS, os.getloadavg()[0]))
    names = ['cairn'] + (['debuginfod'] if shutil.which('debuginfod') else [])
    if len(names) == 1:
        print("# elfutils' debuginfod is not installed")
    result = {}
    for n in range(ROUNDS):
        measure(names[::-1] if n % 2 else names, [tree, plain], cases, check, result)
    stored = [Case('sections of 30 uploaded objects', section_paths(plain_ids[:30]), 1500),
              Case('  8 connections', section_paths(plain_ids[:30]), 1500, 8)]
    measure_stored(names, files[:30], stored)
    for title, key in [('first scan, s', 'scan_s'), ('  CPU time of it, s', 'scan_cpu_s'), ('walk without changes, s', 'again_s'),
                       ('peak resident memory of the server, MB', 'memory_mb')]:
        got = {name: statistics.median(r[key] for r in result[name]) for name in names}
        line = '%-60s' % title + ''.join('  %s %.3g' % (name, got[name]) for name in names)
        print(line + ('  %.2f times as fast' % (got['debuginfod'] / got['cairn']) if len(names) == 2 else ''))
    for case in cases + stored:
        print(case)


main()
