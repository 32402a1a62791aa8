# SPDX-License-Identifier: Apache-2.0
"""Calls every route of a read-only service with every method.

    read-only.py digest DIR          a line per file: its content, size, mode and time; except for LMDB's reader tables
    read-only.py call URL BUILD-ID   TAP: no route answers a modification with success or with an internal error

Routes are read from the sources, like in the test of the documentation.
"""
import glob
import hashlib
import http.client
import os
import re
import sys
import urllib.parse

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
# The effect of these bodies on a writable service is covered by other tests.
BODIES = (
    (None, b""),
    ("application/json", b'{"build_ids":[],"dry_run":false}'),
    ("application/x-protobuf", b""),
    ("application/octet-stream", b"\x7fELF"),
)


def digest(root):
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(folders):
            print("folder", os.path.relpath(os.path.join(folder, name), root))
        for name in sorted(set(files) - {"lock.mdb"}):
            path = os.path.join(folder, name)
            with open(path, "rb") as f:
                content = hashlib.sha256(f.read()).hexdigest()
            stat = os.stat(path)
            print(content, stat.st_size, oct(stat.st_mode), stat.st_mtime_ns, os.path.relpath(path, root))


def find_routes():
    routes, paths = set(), 0
    for path in glob.glob("server/**/*.c", recursive=True):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        if "struct http_route routes[]" not in text:
            continue  # gRPC methods, which a read-only service does not serve
        names = dict(re.findall(r'#define (\w+) ("[^"]*")', text))
        flat = re.sub(r"\s+", " ", text)
        paths += flat.count(".handle = ")
        for method, parts in re.findall(r'ROUTE\("(\w+)", ((?:\w+ )?"[^"]*")', flat):
            routes.add((path, method, "".join(names.get(p, p).strip('"') for p in parts.split())))
    return sorted(routes), paths


def fill(path, build_id):
    path = path.replace("{id}", build_id).replace("{kind}", "debuginfo")
    return re.sub(r"\{\w+(\.\.\.)?\}", "samples", path)


def call(url, build_id):
    host = urllib.parse.urlparse(url)
    routes, paths = find_routes()
    written, broken, calls = [], [], 0
    for _, own_method, route in routes:
        for method in METHODS:
            for content_type, body in BODIES if method not in ("GET", "HEAD", "OPTIONS") else BODIES[:1]:
                client = http.client.HTTPConnection(host.hostname, host.port, timeout=60)
                headers = {"Content-Type": content_type} if content_type else {}
                client.request(method, fill(route, build_id), body=body or None, headers=headers)
                answer = client.getresponse()
                answer.read()
                client.close()
                calls += 1
                what = f"{answer.status} {method} {route} {content_type}"
                if method == own_method and method in ("PUT", "DELETE") and answer.status < 400:
                    written.append(what)
                if answer.status in (500, 507):
                    broken.append(what)
    for number, (name, mistakes) in enumerate((
            (f"all {paths} routes were called {calls} times", [] if len(routes) == paths > 40 else [f"{len(routes)} were found"]),
            ("no route puts or deletes", written), ("no call makes the service fail", broken)), 1):
        print(f"{'not ok' if mistakes else 'ok'} {number} - {name}")
        for mistake in mistakes:
            print("#", mistake)


if sys.argv[1] == "digest":
    digest(sys.argv[2])
else:
    call(*sys.argv[2:])
