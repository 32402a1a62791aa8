# SPDX-License-Identifier: Apache-2.0
"""Tests every route that refers to objects: one tenant has its own debuginfo space, the others share one.

    tenant-spaces.py URL GRPC-PORT PLACES    TAP

PLACES is JSON: "alpha" and "shared", each with the build-ids "only" (an object that only they have) and "both" (one with
the same build-id and another content on the other side), the address of a function in both, the paths of "source" and
"program", and the SHA-256 of an upload that was begun ("partial"). Everything in an object of one side has marker_of_alpha
or marker_of_shared in its name. alpha-token is bound to alpha; beta-token to beta, operator-token to no tenant: these two
share. All have sent the same samples of all objects.

Routes are found in the sources, as in tenants.py: a new route of TENANCY_SPACE or TENANCY_UPKEEP fails this test until
requests are added here.
"""
import gzip
import json
import sys
import urllib.parse

from profiles import blob, num
from tenants import JSON, PARCA, Report, Service, find_methods, find_routes, parca_requests, query_requests, querier_requests

CONNECT = "/debuginfo.v1alpha1.DebuginfoService/"
DEBUGINFO = "/parca.debuginfo.v1alpha1.DebuginfoService/"
KINDS = ("debuginfo", "executable", "source", "symbols", "supplementary", "dwp", "dwo")
OTHER = {"alpha": "shared", "shared": "alpha"}
OWNERS = {"alpha": [("alpha-token", None), ("alpha-token", "alpha"), ("any-token", "alpha")],
          "shared": [("operator-token", None), ("beta-token", "beta"), ("any-token", "beta"), ("any-token", None)]}


def guid(build_id):
    return (build_id[6:8] + build_id[4:6] + build_id[2:4] + build_id[0:2] + build_id[10:12] + build_id[8:10] +
            build_id[14:16] + build_id[12:14] + build_id[16:32]).upper() + "0"


def is_found(marker):
    return lambda status, content: status == 200 and marker in content


def as_json(content):
    try:
        return json.loads(content)
    except ValueError:
        return {}


def space_requests(build_id, place, marker):
    """For each route: its requests, and the marker in the response to a tenant that has the object. None: no marker."""
    found = is_found(marker)
    address, source = place["address"], urllib.parse.quote(place["source"])
    symbolize = json.dumps({"objects": [{"build_id": build_id, "addresses": [address]}]}).encode()
    jobs = json.dumps({"memoryMap": [["program", guid(build_id)]], "stacks": [[[0, int(address, 16)]]]}).encode()
    want = json.dumps({"files": [{"build_id": build_id, "kind": "debuginfo", "quality": "dwarf", "name": "x"}]}).encode()
    file = json.dumps({"file": {"gnuBuildId": build_id}}).encode()
    finished = json.dumps({"gnuBuildId": build_id}).encode()
    rules = json.dumps({"rules": ["size=1"], "dry_run": True}).encode()

    def get(path):
        return "GET", path, None, b""

    def lists_object(status, content):
        return status == 200 and build_id in str(as_json(content).get("objects"))

    def is_ok(status, content):
        return status == 200

    buildid = {("GET", "/buildid/{id}/" + kind): ([get(f"/buildid/{build_id}/{kind}")], found if kind in ("debuginfo", "executable") else None)
               for kind in KINDS if kind != "source"}
    return {
        **buildid,
        ("GET", "/buildid/{id}/section/{name}"): ([get(f"/buildid/{build_id}/section/.{name}") for name in
                                                   ("symtab", "strtab", "debug_str", "debug_line_str")], found),
        ("GET", "/buildid/{id}/source/{path...}"): ([get(f"/buildid/{build_id}/source{source}")], found),
        ("GET", "/metadata"): ([get("/metadata?key=buildid&value=" + build_id), get("/metadata?key=glob&value=*"),
                                get("/metadata?key=file&value=" + place["name"])],
                               lambda status, content: build_id in str(as_json(content).get("results"))),
        ("GET", "/api/v1/debuginfo"): ([get("/api/v1/debuginfo")], lists_object),
        ("GET", "/api/v1/debuginfo/{id}"): ([get("/api/v1/debuginfo/" + build_id)], lists_object),
        ("GET", "/api/v1/debuginfo/{id}/{kind}/partial"): (
            [get(f"/api/v1/debuginfo/{build_id}/{kind}/partial?sha256={place['partial']}") for kind in KINDS],
            lambda status, content: as_json(content).get("offset", 0) > 0),
        ("POST", "/api/v1/debuginfo/want"): ([("POST", "/api/v1/debuginfo/want", JSON, want)],
                                             lambda status, content: b"same_or_better" in content),
        ("PUT", "/api/v1/debuginfo/{id}/{kind}"): ([("PUT", f"/api/v1/debuginfo/{build_id}/debuginfo", None, b"x")], None),
        ("POST", "/api/v1/symbolize"): ([("POST", "/api/v1/symbolize", JSON, symbolize)], found),
        ("POST", "/symbolicate/v5"): ([("POST", "/symbolicate/v5", JSON, jobs)], found),
        ("GET", "/api/v1/why"): ([get(f"/api/v1/why?build_id={build_id}&address={address}")], found),
        ("GET", "/api/v1/offsets"): ([get(f"/api/v1/offsets?build_id={build_id}&field=nothing")],
                                     lambda status, content: b"no_struct" in content),
        # Their response for pprof is that no further names are needed.
        **{("POST", path): ([("POST", path.replace("{id}", build_id), None, address.encode())], None) for path in
           ("/api/v1/query/symbolz", "/symbolz", "/share/{id}/symbolz")},
        ("POST", CONNECT + "ShouldInitiateUpload"): ([("POST", CONNECT + "ShouldInitiateUpload", JSON, file)],
                                                     lambda status, content: b"same_or_better" in content),
        ("POST", CONNECT + "Upload/{id}"): ([("POST", CONNECT + "Upload/" + build_id, None, b"x")], None),
        ("POST", CONNECT + "UploadFinished"): ([("POST", CONNECT + "UploadFinished", JSON, finished)], is_ok),
        ("POST", "/api/v1/debuginfo/gc"): ([("POST", "/api/v1/debuginfo/gc", JSON, rules)],
                                           lambda status, content: status == 200 and build_id in str(as_json(content).get("removed"))),
        ("PUT", "/api/v1/debuginfo/{id}/{kind}/pin"): ([("PUT", f"/api/v1/debuginfo/{build_id}/debuginfo/pin", None, b"")], is_ok),
        ("DELETE", "/api/v1/debuginfo/{id}/{kind}/pin"): ([("DELETE", f"/api/v1/debuginfo/{build_id}/debuginfo/pin", None, b"")], is_ok),
        # One of 256 other build-ids seems to be in the set.
        ("GET", "/buildid-filter"): ([get("/buildid-filter")], None),
        ("DELETE", "/api/v1/debuginfo/{id}/{kind}"): ([("DELETE", f"/api/v1/debuginfo/{build_id}/symbols", None, b"")], None),
    }


def marked_patterns():
    """Regular expressions that select by name; some responses repeat them."""
    return ".*marker_of_alpha.*", ".*marker_of_shared.*"


def sample_requests(places):
    """Queries whose responses contain names, lines, sources and instructions."""
    yield from query_requests()
    yield from querier_requests()
    yield from parca_requests()
    for operation in ("lines", "disassembly", "addresses", "sandwich"):
        for pattern in marked_patterns():
            source = "&source=file" if operation == "lines" else ""
            yield "GET", f"/api/v1/query/{operation}?from=0&to=now&function={urllib.parse.quote(pattern)}{source}", None, b""
    for place in (places["alpha"], places["shared"]):
        for build_id in (place["only"], place["both"]):
            yield "GET", f"/api/v1/query/addresses?from=0&to=now&build_id={build_id}", None, b""
            yield "GET", (f"/api/v1/query/disassembly?from=0&to=now&build_id={build_id}&start={place['address']}"
                          f"&end={int(place['address'], 16) + 16:x}"), None, b""


def try_spaces(url, grpc_port, places):
    service, report = Service(url), Report()
    routes, _ = find_routes()
    paths = {(method, path): tenancy for method, path, scope, tenancy in routes if tenancy in ("SPACE", "UPKEEP")}
    known = set(space_requests(places["alpha"]["only"], places["alpha"], b""))
    found, silent, mixed, calls = [], [], [], 0
    report.says("each route that names objects is tried", sorted(known ^ set(paths)))
    for side, foreign in OTHER.items():
        marker, foreign_marker = places[side]["marker"].encode(), places[foreign]["marker"].encode()
        mine = space_requests(places[side]["only"], places[side], marker)
        both = space_requests(places[side]["both"], places[side], marker)
        for route, tenancy in paths.items():
            if route not in mine:
                continue
            requests, says = mine[route]
            for token, tenant in OWNERS[side]:
                if tenancy == "UPKEEP" and token == "beta-token":
                    continue
                answers = [(r, service.call(r[0], r[1], token, tenant, *r[2:])) for r in requests + both[route][0]]
                calls += len(answers)
                if says and not any(says(a[0], a[2]) for _, a in answers[:len(requests)]):
                    silent.append((side, token, tenant, route, [(r, a[0], a[2][:300]) for r, a in answers]))
                mixed += [(side, token, tenant, r) for r, a in answers if foreign_marker in a[1]]
            for token, tenant in OWNERS[foreign]:
                for request in requests:
                    status, text, content = service.call(request[0], request[1], token, tenant, *request[2:])
                    calls += 1
                    if (says and says(status, content)) or marker in text:
                        found.append((side, token, tenant, request, status, content[:100]))
    report.says(f"whoever has an object finds it ({calls} calls)", silent)
    report.says("  and the others do not", found)
    report.says("  and of two with one build-id everybody has that of its own side", mixed)
    found, silent, calls = [], [], 0
    for side, foreign in OTHER.items():
        finds = set()
        for request in sample_requests(places):
            token, tenant = OWNERS[side][0]
            status, _, content = service.call(request[0], request[1], token, tenant, *request[2:])
            calls += 1
            content = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
            for asked in marked_patterns():
                content = content.replace(asked.encode(), b"")
            if places[side]["marker"].encode() in content:
                finds.add(request[1].split("?")[0])
            if places[foreign]["marker"].encode() in content:
                found.append((side, token, status, request[1], content[:100]))
        wanted = {"/api/v1/query/" + o for o in ("top", "folded", "flame", "pprof", "lines", "disassembly", "addresses")}
        silent += [(side, w) for w in sorted(wanted - finds)]
    report.says(f"queries of samples name the functions that the tenant has debuginfo for ({calls} calls)", silent)
    report.says("  and no others", found)
    try_parca(grpc_port, places, report)


def try_parca(port, places, report):
    import grpc
    wrong, unknown = [], []
    methods = [path for path, _, _ in find_methods()[0] if path.startswith(DEBUGINFO)]
    known = {DEBUGINFO + name for name in ("ShouldInitiateUpload", "InitiateUpload", "Upload", "MarkUploadFinished")}
    report.says("each method of Parca's uploads is known here", sorted(known ^ set(methods)))
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        def call(method, message, token, tenant, stream=False):
            metadata = [("authorization", "Bearer " + token)] + ([("x-scope-orgid", tenant)] if tenant else [])
            kind = channel.stream_unary if stream else channel.unary_unary
            try:
                return "OK", kind(DEBUGINFO + method, lambda m: m, lambda m: m)(iter(message) if stream else message,
                                                                                metadata=metadata, timeout=60)
            except grpc.RpcError as error:
                return error.code().name, error.details().encode()

        for side, foreign in OTHER.items():
            asks = blob(1, places[side]["only"]) + num(5, 1)
            for token, tenant in OWNERS[side]:
                code, answer = call("ShouldInitiateUpload", asks, token, tenant)
                if code != "OK" or answer[:2] == num(1, 1):
                    unknown.append((side, token, code, answer))
                code, answer = call("InitiateUpload", asks + num(2, 1000) + blob(3, "00"), token, tenant)
                if code != "FAILED_PRECONDITION":
                    unknown.append((side, token, code, answer))
            for token, tenant in OWNERS[foreign]:
                code, answer = call("ShouldInitiateUpload", asks, token, tenant)
                if code != "OK" or answer[:2] != num(1, 1):
                    wrong.append((side, token, code, answer))
                code, answer = call("InitiateUpload", asks + num(2, 1000) + blob(3, "00"), token, tenant)
                if code != "OK":
                    wrong.append((side, token, code, answer))
        with open(places["parca"]["file"], "rb") as f:
            content = f.read()
        build_id = places["parca"]["only"]
        # The response: {1: {1: build_id, 2: upload_id, ...}}
        code, answer = call("InitiateUpload", blob(1, build_id) + num(5, 1) + num(2, len(content)) + blob(3, "00"), "alpha-token", None)
        at = 2 + 2 + len(build_id)
        info = blob(1, build_id) + blob(2, answer[at + 2:at + 2 + answer[at + 1]])
        code, answer = call("Upload", [blob(1, info), blob(2, content)], "alpha-token", None, True)
        report.says("alpha uploads as Parca's agent does", [] if code == "OK" else [(code, answer)])
        for token, tenant in OWNERS["shared"]:
            code, answer = call("ShouldInitiateUpload", blob(1, build_id) + num(5, 1), token, tenant)
            if code != "OK" or answer[:2] != num(1, 1):
                wrong.append((token, code, answer))
    report.says("Parca's agents are asked for what their tenant does not have", wrong)
    report.says("  and for nothing that it has", unknown)


if __name__ == "__main__":
    with open(sys.argv[3], encoding="utf-8") as f:
        try_spaces(sys.argv[1], sys.argv[2], json.load(f))
