# SPDX-License-Identifier: Apache-2.0
"""Calls every route of a service with tenants as one tenant, and searches the responses for data of another tenant.

    tenants.py routes URL BUILD-ID ALPHAS BETAS    TAP; two OTLP requests
    tenants.py grpc PORT FILE         TAP: every gRPC method; FILE is an OTLP request

The tokens alpha-token, beta-token (bound to their tenants), operator-token (without one) and any-token (any tenant) have
the scope admin. Each tenant's samples have names with the tenant's own in them: service, function, label and value.

Routes are read from the sources. Each that needs a scope declares whose data it accesses (.tenancy); for each
TENANCY_OWN there must be requests in OWN below, so that a new route fails this test until requests are added.
"""
import glob
import hashlib
import http.client
import json
import re
import struct
import sys
import urllib.parse

from profiles import blob, num

MARKER = "marker-of-beta"
JSON, PROTO = "application/json", "application/proto"
SELECT = {"profileTypeID": "samples:cpu:nanoseconds:cpu:nanoseconds", "labelSelector": "{}", "start": "0",
          "end": "4102444800000", "step": 86400.0, "limit": "100", "maxNodes": "1000", "query": "{}",
          "name": "service_name", "groupBy": ["service_name"]}
KINDS = [f"{name}:cpu:nanoseconds:cpu:nanoseconds" for name in ("samples", "cpu", "process_cpu")]
RULES = "/settings.v1.RecordingRulesService/"
PARCA = "/parca.query.v1alpha1.QueryService/"


def find_routes():
    """(method, path, scope, tenancy) of the HTTP routes, and their number by an independent count."""
    routes, paths = set(), 0
    for path in glob.glob("server/**/*.c", recursive=True):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        if "struct http_route routes[]" not in text:
            continue
        names = dict(re.findall(r'#define (\w+) ("[^"]*")', text))
        flat = re.sub(r"\s+", " ", text)
        paths += flat.count(".handle = ")
        for method, parts, scope, tenancy in re.findall(
                r'ROUTE\("(\w+)", ((?:\w+ )?"[^"]*")(?:, SCOPE_(\w+), TENANCY_(\w+))?\)', flat):
            routes.add((method, "".join(names.get(p, p).strip('"') for p in parts.split()), scope or "NONE", tenancy or "NONE"))
    return sorted(routes), paths


class Service:
    def __init__(self, url):
        self.host = urllib.parse.urlparse(url)

    def call(self, method, path, token=None, tenant=None, content_type=None, body=b""):
        client = http.client.HTTPConnection(self.host.hostname, self.host.port, timeout=60)
        headers = {}
        if token:
            headers["Authorization"] = "Bearer " + token
        if tenant is not None:
            headers["X-Scope-OrgID"] = tenant
        if content_type:
            headers["Content-Type"] = content_type
        client.request(method, path, body=body or None, headers=headers)
        answer = client.getresponse()
        content = answer.read()
        text = repr(sorted(answer.getheaders())).encode() + content
        client.close()
        return answer.status, text, content


def query_requests():
    for operation in ("top", "folded", "flame", "tree", "export", "pprof", "types", "labels", "values", "series", "spans", "diff",
                      "lines", "addresses", "quality", "missing", "uploads", "autofdo", "firefox", "services"):
        parameters = ["", "&format=json", "&format=csv", "&selector=" + urllib.parse.quote("{}")]
        if operation in ("top", "diff", "lines", "addresses"):
            parameters += ["&function=" + MARKER + "-function"]
        if operation in ("top", "flame", "folded", "pprof", "series", "spans", "diff", "firefox", "services"):
            parameters += ["&by=service_name"]
        if operation == "values":
            parameters += ["&name=service_name"]
        for text in parameters:
            yield "GET", f"/api/v1/query/{operation}?from=0&to=now{text}", None, b""


def querier_requests():
    for method in ("ProfileTypes", "LabelNames", "LabelValues", "Series", "SelectMergeStacktraces", "SelectMergeProfile",
                   "SelectSeries", "SelectHeatmap", "SelectMergeSpanProfile", "Diff", "AnalyzeQuery", "GetProfileStats",
                   "GetProfile"):
        for kind in KINDS:
            message = dict(SELECT, profileTypeID=kind)
            for keys in (tuple(message), ("start", "end"), ("start", "end", "name"), ("start", "end", "query"),
                         ("profileTypeID", "labelSelector", "start", "end"),
                         ("profileTypeID", "labelSelector", "start", "end", "step", "groupBy"), ()):
                body = json.dumps({k: message[k] for k in keys}).encode()
                yield "POST", "/querier.v1.QuerierService/" + method, JSON, body
        side = {k: SELECT[k] for k in ("profileTypeID", "labelSelector", "start", "end")}
        yield "POST", "/querier.v1.QuerierService/" + method, JSON, json.dumps({"left": side, "right": side}).encode()


def render_requests(path):
    for kind in KINDS:
        for selector in ("", "{}", "{service_name=~\".*\"}"):
            side = urllib.parse.quote(kind + selector)
            yield "GET", (f"{path}?query={side}&leftQuery={side}&rightQuery={side}&from=0&until=now&leftFrom=0&rightFrom=0"
                          "&groupBy=service_name"), None, b""
    for label in ("service_name", "where", "__name__"):
        yield "GET", f"{path}?label={label}", None, b""


def parca_messages():
    """(method, message) of Parca's query API: all labels and values, graphs and reports of each type."""
    times = num(1, 1), num(1, 4102444800)
    yield "ProfileTypes", blob(1, times[0]) + blob(2, times[1])
    yield "Labels", blob(2, times[0]) + blob(3, times[1])
    yield "Series", b""
    for name in ("service_name", "where"):
        yield "Values", blob(1, name) + blob(3, times[0]) + blob(4, times[1])
    for kind in KINDS:
        selection = blob(1, kind + "{}") + blob(2, times[0]) + blob(3, times[1])
        yield "QueryRange", selection
        yield "QueryRange", selection + blob(6, "service_name")
        for report in range(8):
            yield "Query", num(1, 2) + blob(3, selection) + num(5, report)


def querier_messages():
    """(method, message) of querier.v1."""
    yield "LabelValues", blob(1, "service_name")
    for kind in KINDS:
        yield "SelectMergeStacktraces", blob(1, kind) + blob(2, "{}")


def parca_requests():
    for method, message in parca_messages():
        yield "POST", PARCA + method, "application/grpc-web+proto", struct.pack(">BI", 0, len(message)) + message


def table_files(service, token):
    """The files of a token's tenant: their paths below /store/."""
    files = []
    for table in json.loads(service.call("GET", "/store/", token)[2])["tables"]:
        files += [f["path"][len("/store/"):] for f in table["files"]]
    return files + [t + "/_delta_log/%020d.json" % n for t in ("samples", "stacks", "locations") for n in range(4)]


def file_requests(prefix, foreign):
    for name in foreign:
        yield "GET", prefix + name, None, b""
    for place in ("../../tenants/beta/profiles/tables/samples", "..%2f..%2f..%2ftenants%2fbeta%2fprofiles%2ftables",
                  "tenants/beta/profiles/tables/samples", "beta"):
        for name in foreign[:2]:
            yield "GET", prefix + place + "/" + name, None, b""


def own_requests(foreign, share, otlp):
    """The requests for each route that reads or writes samples, and whether its own tenant finds its marker in the
    response.
    """
    return {
        ("GET", "/api/v1/query/{operation}"): (list(query_requests()), True),
        ("GET", "/api/v1/query/label/{name}/values"): (
            [("GET", f"/api/v1/query/label/{name}/values?from=0&to=now", None, b"") for name in
             ("service_name", "where", "function", "mapping")], True),
        ("GET", "/api/v1/debuginfo/missing"): (
            [("GET", "/api/v1/debuginfo/missing" + q, None, b"") for q in ("", "?from=0&to=now", "?format=csv")], True),
        ("POST", "/querier.v1.QuerierService/{method}"): (list(querier_requests()), True),
        ("POST", PARCA + "{method}"): (list(parca_requests()), True),
        **{("GET", prefix + name): (list(render_requests(prefix + name)), name != "/label-names")
           for prefix in ("/pyroscope", "") for name in ("/render", "/render-diff", "/label-values", "/label-names")},
        ("GET", "/store/"): ([("GET", "/store/", None, b"")], False),
        ("GET", "/store/{table}/"): ([("GET", f"/store/{t}/", None, b"") for t in ("samples", "stacks", "beta")], False),
        ("GET", "/store/{table}/{path...}"): (list(file_requests("/store/", foreign)), True),
        ("GET", "/cairn"): ([("GET", "/cairn?list-type=2", None, b""), ("GET", "/cairn?location", None, b"")], False),
        ("GET", "/cairn/"): ([("GET", "/cairn/?list-type=2" + q, None, b"") for q in ("", "&prefix=samples/",
                                                                                      "&prefix=beta/")], False),
        ("GET", "/cairn/{key...}"): (list(file_requests("/cairn/", foreign)), True),
        ("PUT", "/cairn/{key...}"): ([("PUT", "/cairn/samples/x.parquet", None, b"PAR1")], False),
        ("POST", "/cairn/{key...}"): ([("POST", "/cairn/samples/x.parquet", None, b"PAR1")], False),
        ("DELETE", "/cairn/{key...}"): ([("DELETE", "/cairn/" + name, None, b"") for name in foreign[:2]], False),
        ("GET", "/api/v1/resymbolize"): ([("GET", "/api/v1/resymbolize", None, b"")], False),
        ("GET", "/api/v1/status"): ([("GET", "/api/v1/status", None, b"")], True),
        ("GET", "/api/v1/status/senders"): (
            [("GET", "/api/v1/status/senders" + q, None, b"") for q in ("", "?limit=1000000", "?tenant=beta")], True),
        ("POST", "/api/v1/resymbolize"): ([("POST", "/api/v1/resymbolize", JSON, b"{}")], False),
        ("POST", "/api/v1/store/compact"): ([("POST", "/api/v1/store/compact", JSON, b"{}")], False),
        ("POST", "/api/v1/store/expire"): (
            [("POST", "/api/v1/store/expire", JSON, json.dumps({"rules": [rule], "dry_run": dry}).encode())
             for rule in ("age=1h", '{service_name=~".*"},age=1h') for dry in (True, False)], False),
        ("POST", "/ingest"): (
            [("POST", "/ingest?name=sent-by-alpha&format=folded", "text/plain", b"sent;by;alpha 1\n")], False),
        **{("POST", RULES + name): ([("POST", RULES + name, JSON, json.dumps({"id": "x", "metricName": "m"}).encode())], False)
           for name in ("ListRecordingRules", "GetRecordingRule", "UpsertRecordingRule", "DeleteRecordingRule")},
        # Refused without an object store; fresh-nodes.t tries it with one.
        ("GET", "/api/v1/node/head"): ([("GET", "/api/v1/node/head" + q, None, b"") for q in ("", "?after=0")], False),
        ("POST", "/api/v1/node/commits"): (
            [("POST", "/api/v1/node/commits?holder=0123456789abcdef&tables=a&after=0&columns=0",
              "application/x-ndjson", b"")], False),
        ("POST", "/api/v1/node/batches"): ([("POST", "/api/v1/node/batches", "application/octet-stream", b"")], False),
        ("POST", "/api/v1/scrape/lease"): (
            [("POST", "/api/v1/scrape/lease?name=shop&holder=one", None, b"")], False),
        ("GET", "/api/v1/recorded"): ([("GET", "/api/v1/recorded", None, b"")], False),
        ("GET", "/api/v1/recorded/changes"): ([("GET", "/api/v1/recorded/changes", None, b"")], False),
        ("POST", "/push.v1.PusherService/Push"): ([("POST", "/push.v1.PusherService/Push", JSON, b"{}")], False),
        ("POST", "/v1development/profiles"): (
            [("POST", "/v1development/profiles", "application/x-protobuf", otlp)], False),
        ("POST", "/v1/profiles"): ([("POST", "/v1/profiles", "application/x-protobuf", otlp)], False),
        ("POST", "/api/v1/share"): ([("POST", "/api/v1/share?format=otlp", "application/x-protobuf", otlp)], False),
        ("GET", "/share/{id}"): ([("GET", share + q, None, b"") for q in ("", "?format=folded", "?format=json")], True),
        ("GET", "/share/{id}/profile"): ([("GET", share + "/profile", None, b"")], True),
        **{("POST", f"/{name}/{{method}}"): ([("POST", f"/{name}/Any", JSON, b"{}")], False) for name in (
            "vcs.v1.VCSService", "settings.v1.SettingsService",
            "adhocprofiles.v1.AdHocProfileService", "capabilities.v1.FeatureFlagsService")},
    }


def other_requests(method, path, build_id):
    path = path.replace("{id}", build_id).replace("{kind}", "debuginfo")
    path = re.sub(r"\{\w+(\.\.\.)?\}", "samples", path)
    if method in ("GET", "OPTIONS"):
        return [(method, path, None, b""), (method, path + "?from=0&to=now", None, b"")]
    return [(method, path, kind, body) for kind, body in ((JSON, b"{}"), (PROTO, b""))]


class Report:
    def says(self, name, mistakes):
        print(f"{'not ok' if mistakes else 'ok'} ? - {name}")
        for mistake in mistakes[:10]:
            print("# " + str(mistake)[:300])


def totals(service):
    """The state of beta: the sum of its samples, and its files."""
    folded = service.call("GET", "/api/v1/query/folded?from=0&to=now", "beta-token")[2].decode()
    return sorted(folded.splitlines()), table_files(service, "beta-token")


def try_routes(url, build_id, otlp_path, foreign_path):
    service, report = Service(url), Report()
    routes, paths = find_routes()
    with open(otlp_path, "rb") as f:
        otlp = f.read()
    with open(foreign_path, "rb") as f:
        answer = service.call("POST", "/api/v1/share", "beta-token", None, "application/x-protobuf", f.read())
    share = json.loads(answer[2])["url"]
    foreign = table_files(service, "beta-token")
    # Data that two tenants have in common is ignored: the first commits of empty tables are equal.
    digests = {hashlib.sha256(service.call("GET", "/store/" + name, "beta-token")[2]).digest() for name in foreign
               if name.endswith(".parquet")}
    digests.add(hashlib.sha256(service.call("GET", share + "/profile", "beta-token")[2]).digest())
    own = own_requests(foreign, share, otlp)
    before = totals(service)
    undecided, unknown, found, refused, bound, crossed, whole, calls = [], [], [], [], [], [], [], 0

    def has_secret(text, content):
        return MARKER.encode() in text or hashlib.sha256(content).digest() in digests

    report.says("beta has something to read", [] if before[0] and digests and MARKER in str(before) else [before])
    for method, path, scope, tenancy in routes:
        if (scope == "NONE") != (tenancy == "NONE"):
            undecided.append((method, path))
        if tenancy == "OWN" and (method, path) not in own:
            unknown.append((method, path))
            continue
        requests, finds = own[method, path] if tenancy == "OWN" else (other_requests(method, path, build_id), False)
        owner_finds = False
        for request in requests:
            verb, target, kind, body = request
            what = f"{method} {path}: {target}"
            if tenancy == "OWN" and finds:
                owner_finds |= has_secret(*service.call(verb, target, "beta-token", None, kind, body)[1:])
            for tenant in (None, "alpha"):
                status, text, content = service.call(verb, target, "alpha-token", tenant, kind, body)
                calls += 1
                if has_secret(text, content):
                    found.append((status, tenant, what))
                if tenancy in ("WHOLE", "UPKEEP") and status != 403:
                    whole.append((status, what))
            if scope == "NONE":
                continue
            for token, tenant in (("alpha-token", "beta"), ("alpha-token", "anonymous"), ("operator-token", "beta")):
                status, text, content = service.call(verb, target, token, tenant, kind, body)
                calls += 1
                if status != 403:
                    bound.append((status, token, tenant, what))
                if has_secret(text, content):
                    crossed.append((status, token, tenant, what))
            for tenant, wanted in (("gamma", 404), ("../beta", 400), ("Beta", 400), ("", 400), ("b" * 33, 400)):
                status, text, content = service.call(verb, target, "any-token", tenant, kind, body)
                calls += 1
                if status != wanted:
                    refused.append((status, wanted, tenant, what))
        if finds and not owner_finds:
            unknown.append((method, path, "beta does not find its own marker"))
    report.says(f"all {paths} routes were called {calls} times", [] if len(routes) == paths > 40 else [len(routes)])
    report.says("each route that needs a scope has decided whose data it touches", undecided)
    report.says("each route of a tenant's own data is tried with requests that would find it", unknown)
    report.says("no answer to alpha has what beta sent", found)
    report.says("a token of one tenant, and one without, may not name another", bound)
    report.says("and is told nothing then", crossed)
    report.says("a name that is not configured or malformed is refused", refused)
    report.says("what concerns all tenants is not for a token of one", whole)
    after = totals(service)
    report.says("beta has all it had, and nothing of alpha's", [] if before == after else [before, after])


def find_methods():
    """(path, scope, whether it streams) of the gRPC methods, and their number by an independent count."""
    with open("server/api/grpc_methods.c", encoding="utf-8") as f:
        text = re.sub(r"\s*\\\n\s*", " ", f.read())
    names = dict(re.findall(r'#define (\w+) (.+)', text))
    methods = []
    for parts, rest in re.findall(r'\{ \.path = ([^,]*),([^{}]*)\}', text):
        for _ in range(2):  # a macro may use another one
            rest = re.sub(r"\b[A-Z_]+\b", lambda m: names.get(m.group(), m.group()), rest)
        path = "".join(names.get(part, part).strip('"') for part in parts.split())
        methods.append((path, re.search(r"SCOPE_(\w+)", rest).group(1), ".stream" in rest))
    return methods, text.count("{ .path =")


def try_methods(port, path):
    import grpc
    report, crossed, found, finds = Report(), [], [], set()
    methods, count = find_methods()
    report.says("all gRPC methods are found", [] if len(methods) == count > 10 else methods)
    with open(path, "rb") as f:
        message = f.read()

    def call_method(method, is_stream, content, token, tenant):
        tenants = tenant if isinstance(tenant, tuple) else (tenant,) if tenant else ()
        metadata = [("authorization", "Bearer " + token)] + [("x-scope-orgid", name) for name in tenants]
        kind = channel.stream_unary if is_stream else channel.unary_unary
        call = kind(method, lambda m: m, lambda m: m)
        try:
            return "OK", call(iter([content]) if is_stream else content, metadata=metadata, timeout=60)
        except grpc.RpcError as error:
            return error.code().name, error.details().encode()

    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        for method, scope, is_stream in methods:
            if scope == "NONE":
                continue
            for token, tenant, wanted in (("alpha-token", "beta", "PERMISSION_DENIED"),
                                          ("operator-token", "beta", "PERMISSION_DENIED"),
                                          ("any-token", "gamma", "NOT_FOUND"), ("any-token", "../x", "INVALID_ARGUMENT"),
                                          ("any-token", ("alpha", "beta"), "INVALID_ARGUMENT"),
                                          ("alpha-token", "alpha", "OK"), ("alpha-token", None, "OK")):
                code, _ = call_method(method, is_stream, message, token, tenant)
                # A message of another method may have any result for its own tenant.
                if code != wanted and (wanted != "OK" or code == "PERMISSION_DENIED" or method.endswith("/Export")):
                    crossed.append((method, token, tenant, code))
        queries = [(PARCA + method, content) for method, content in parca_messages()]
        queries += [("/querier.v1.QuerierService/" + method, content) for method, content in querier_messages()]
        for method, content in queries:
            if MARKER.encode() in call_method(method, False, content, "beta-token", None)[1]:
                finds.add(method)
            for token, tenant in (("alpha-token", None), ("alpha-token", "beta"), ("operator-token", "beta")):
                if MARKER.encode() in call_method(method, False, content, token, tenant)[1]:
                    found.append((method, token, tenant))
    report.says("gRPC methods keep to the tenant of their token", crossed)
    wanted = {PARCA + "Values", PARCA + "QueryRange", PARCA + "Query", "/querier.v1.QuerierService/LabelValues",
              "/querier.v1.QuerierService/SelectMergeStacktraces"}
    report.says("queries find what beta sent when beta asks", [] if wanted <= finds else [finds])
    report.says("and not when alpha or the operator does", found)


if __name__ == "__main__":
    commands = {"routes": try_routes, "grpc": try_methods}
    commands[sys.argv[1]](*sys.argv[2:])
