# SPDX-License-Identifier: Apache-2.0
"""Compares nodes with the tables of "Roles" in docs/internals/several-nodes.md.

    node-roles.py runs ROLES PID       exit status 0 if the process has exactly the threads and maps of its roles
    node-roles.py routes ROLES URL     TAP: it answers exactly the routes of its roles
    node-roles.py methods ROLES PORT   TAP: and the gRPC methods
    node-roles.py table                TAP: the page has each route of the sources once
"""
import glob
import re
import sys
import urllib.parse

sys.path.insert(0, "tests/e2e")
from tenants import Service, find_methods, find_routes  # noqa: E402

ALL = "every node"
TAKING = ["ingest", "gateway"]
GRPC = {"opentelemetry.proto.collector.profiles.v1development.ProfilesService": TAKING,
        "parca.profilestore.v1alpha1.ProfileStoreService": TAKING, "querier.v1.QuerierService": ["query"],
        "parca.query.v1alpha1.QueryService": ["query"], "parca.debuginfo.v1alpha1.DebuginfoService": ["debuginfod"],
        "grpc.health.v1.Health": [ALL]}


def section():
    with open("docs/internals/several-nodes.md", encoding="utf-8") as f:
        return f.read().split("\n## Roles\n")[1].split("\n## ")[0]


def read_table():
    """{role: (threads, databases)}"""
    table = {}
    for line in section().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 6 and cells[1] not in ("role", "---"):
            table[cells[1].strip("`")] = tuple(set(re.findall(r"`([^`]+)`", cell)) for cell in cells[2:4])
    return table


def read_routes():
    """{"METHOD PATH": the roles of which a node with one answers}"""
    routes = {}
    for item in re.findall(r"^- (.*?):((?:\n?  ?`[A-Z]+ /[^`]*`,?| `[A-Z]+ /[^`]*`,?)+)", section(), re.MULTILINE):
        for route in re.findall(r"`([A-Z]+ /[^`]*)`", item[1]):
            assert route not in routes, route
            routes[route] = re.findall(r"`([^`]+)`", item[0]) or [item[0]]
    return routes


def number_test(name, mistakes):
    number_test.count += 1
    print("ok" if not mistakes else "not ok", number_test.count, "-", name)
    for mistake in mistakes:
        print("#", mistake)


number_test.count = 0


def compare_process(roles, pid):
    table = read_table()
    threads, maps = set(), set()
    for role in [ALL, *roles]:
        threads |= table[role][0]
        maps |= table[role][1]
    has, databases = set(), set()
    for path in glob.glob(f"/proc/{pid}/task/*/comm"):
        try:
            with open(path, encoding="utf-8") as f:
                has.add(f.read().strip())
        except FileNotFoundError:
            pass
    has.discard("grpc")
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        for line in f:
            found = re.search(r"/data-[^/]+/(.+)/data\.mdb", line)
            if found:
                databases.add(found[1])
    print("threads beyond those of the page:", sorted(has - threads), "absent:", sorted(threads - has),
          "databases:", sorted(databases), "by the page:", sorted(maps))
    return has == threads and databases == maps


def fill(path):
    for name, value in {"id": "abcdef0123456789", "kind": "debuginfo", "name": "x", "method": "X", "operation": "labels",
                        "table": "samples", "key...": "x", "path...": "x"}.items():
        path = path.replace("{" + name + "}", value)
    return urllib.parse.quote(path)


def try_routes(roles, url):
    service, mistakes, refused = Service(url), [], 0
    for route, answering in read_routes().items():
        method, path = route.split(" ")
        try:
            status, _, content = service.call(method, fill(path))
        except ConnectionError:  # no upstream answers: a debuginfod client shall ask again
            status, content = 0, b""
        is_own = answering == [ALL] or any(role in roles for role in answering)
        refused += status == 421
        text = content.decode(errors="replace")
        if is_own == (status == 421) or (not is_own and (f"needs the role {','.join(answering)}," not in text or '"reason":"role"' not in text)):
            mistakes.append(f"{route} ({answering}): {status} {text[:200]}")
    number_test(f"--role {','.join(roles)} answers the routes of the page, and refuses {refused}", mistakes)


def try_methods(roles, port):
    import grpc
    mistakes = []
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        for method, _, is_stream in find_methods()[0]:
            call = (channel.stream_unary if is_stream else channel.unary_unary)(method, lambda m: m, lambda m: m)
            answering = GRPC[method.split("/")[1]]
            try:
                call(iter([b""]) if is_stream else b"", timeout=60)
                text = "OK"
            except grpc.RpcError as error:
                text = f"{error.code().name} {error.details()}"
            is_refused = text.startswith("UNIMPLEMENTED") and f"needs the role {','.join(answering)}," in text
            if is_refused == (answering == [ALL] or any(role in roles for role in answering)):
                mistakes.append(f"{method}: {text}")
    number_test(f"--role {','.join(roles)} answers the methods of its roles", mistakes)


def check_table():
    of_page = set(read_routes())
    of_source = {f"{method} {path}" for method, path, _, _ in find_routes()[0]}
    number_test(f"each of {len(of_source)} routes has a role on the page", sorted(of_source - of_page))
    number_test("the page has no other routes", sorted(of_page - of_source))
    number_test("each gRPC service has a role", sorted({m[0].split("/")[1] for m in find_methods()[0]} ^ set(GRPC)))


def main():
    if sys.argv[1] == "table":
        check_table()
        return 0
    roles = sys.argv[2].split(",")
    if sys.argv[1] == "runs":
        return 0 if compare_process(roles, sys.argv[3]) else 1
    if sys.argv[1] == "routes":
        try_routes(roles, sys.argv[3])
    else:
        try_methods(roles, sys.argv[3])
    return 0


sys.exit(main())
