# SPDX-License-Identifier: Apache-2.0
"""Compares docs/openapi.yaml with the source and a service: openapi.py URL BUILD-ID ADDRESS PROGRAM.

Routes come from the tables in the source, as tenants.py finds them; the operations of /api/v1/query/ and the methods
of the Connect services from theirs. Responses are recorded from the service, which has BUILD-ID with code at ADDRESS,
a profile with names, and samples of PROGRAM. The file permits additional members, which clients must ignore; this test
does not, so that responses with a new member fail until the file documents it.
"""
import copy
import glob
import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

import jsonschema
import openapi_spec_validator
import yaml

from tenants import find_routes

FILE = "docs/openapi.yaml"
URL, BUILD_ID, ADDRESS, PROGRAM = sys.argv[1:]
METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
CONNECT = {"/querier.v1.QuerierService/{method}": "methods", "/parca.query.v1alpha1.QueryService/{method}": "parca_methods"}


def says(name, mistakes):
    print(("not ok - " if mistakes else "ok - ") + name)
    for mistake in mistakes:
        print("#  ", mistake)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


api = yaml.safe_load(read(FILE))


# ---- the file ----

def operations():
    for path, item in api["paths"].items():
        for method, operation in item.items():
            if method in METHODS:
                yield method.upper(), path, operation


def check_file():
    try:
        openapi_spec_validator.validate(api)
        mistakes = []
    except Exception as error:  # any error of the validator
        mistakes = [str(error)[:2000]]
    says("it is OpenAPI 3.1", mistakes + ([] if api["openapi"].startswith("3.1.") else [api["openapi"]]))
    version = re.search(r"^VERSION := (\S+)$", read("Makefile"), re.M).group(1)
    says("it has the version of the programs", [] if api["info"]["version"] == version else [api["info"]["version"]])
    ids = [operation["operationId"] for _, _, operation in operations()]
    says("operations have names of their own", [i for i in ids if ids.count(i) > 1])
    tags = {tag["name"] for tag in api["tags"]}
    says("tags are described and used", tags ^ {tag for _, _, operation in operations() for tag in operation["tags"]})
    used = set(re.findall(r"#/components/(\w+/\w+)'", read(FILE)))
    there = {f"{kind}/{name}" for kind, parts in api["components"].items() for name in parts if kind != "securitySchemes"}
    says("each component is used", there - used)


# ---- the routes ----

def table_of(path, name):
    return re.findall(r'\{ "(\w+)",', re.search(rf"\b{name}\[\] = \{{(.*?)^\}};", read(path), re.S | re.M).group(1))


def read_query_operations():
    """The rows of the table of operations: name -> (formats, parameters)."""
    code = read("query/operations/query_operations.c")
    texts = dict(re.findall(r'^#define (\w+) "(.*)"$', code, re.M))
    formats = {name: set(re.findall(r"FORMAT_(\w+)", bits)) for name, bits in re.findall(r"^\s+(AS_\w+) = (.*),$", code, re.M)}
    table = re.search(r"query_operations\[\] = \{(.*?)^\};", code, re.S | re.M).group(1)
    rows = {}
    for row in re.split(r"(?=\{ \.name)", table)[1:]:
        words = re.search(r'\.parameters = ((?:\s*(?:\w+|"[^"]*"))+)', row).group(1)
        bits = re.findall(r"FORMAT_\w+|AS_\w+", (re.search(r"\.formats = ([\w |<]+)", row) or [""])[0])
        rows[re.search(r'\.name = "(\w+)"', row).group(1)] = (
            {name.lower() for bit in bits for name in formats.get(bit, {bit[7:]})},
            set("".join(text + texts.get(macro, "") for text, macro in re.findall(r'"([^"]*)"|(\w+)', words)).split()))
    return rows


def check_query_operations(queries):
    mistakes, page = [], read("docs/formats/query-api.md")
    for name, (formats, parameters) in queries.items():
        given = {p["name"]: p for p in parameters_of(api["paths"].get(f"/api/v1/query/{name}", {}).get("get", {})) if p["in"] == "query"}
        wanted = parameters | {"selector", "from", "to"} | ({"format"} if formats else set())
        mistakes += [f"{name}: {parameter}" for parameter in sorted(wanted ^ set(given))]
        if formats and "format" in given and set(given["format"]["schema"]["enum"]) != formats:
            mistakes.append(f"{name}: formats")
        if f"| `{name}` |" not in page and f"`{name}?name=NAME` |" not in page:
            mistakes.append(f"{name}: no line in docs/formats/query-api.md")
    says("each operation of the table has its parameters and formats, and a line on its page", mistakes)


def check_routes():
    routes, paths = find_routes()
    queries = read_query_operations()
    wanted = set()
    for method, path, scope, _ in routes:
        path = path.replace("...}", "}")
        for operation in queries if "{operation}" in path else [""]:
            wanted.add((method, path.replace("{operation}", operation), scope.lower()))
    there = {(method, path, operation["x-cairn-scope"]) for method, path, operation in operations()}
    says(f"all {paths} routes of the source are found", [] if len(routes) == paths > 40 and len(queries) > 10 else routes)
    check_query_operations(queries)
    says("each route is in the file, with its scope", sorted(wanted - there))
    says("the file has no other", sorted(there - wanted))
    mistakes = []
    for path, name in CONNECT.items():
        enum = set(api["paths"][path]["post"]["parameters"][0]["schema"]["enum"])
        mistakes += enum ^ set(table_of("query/querier/querier.c", name))
    says("methods of the Connect services are those of the source", mistakes)
    known = {p["name"] for path, item in api["paths"].items() if path.startswith("/api/v1/query/") for p in parameters_of(item.get("get", {}))
             if p["in"] == "query"}
    code = "\n".join(read(path) for path in glob.glob("query/**/*.c", recursive=True))
    taken = set(re.findall(r'query_param_get(?:_flag)?\([^")]*(?:"\w*", )?"(\w+)"', code)) | \
        set(re.findall(r'parse_number_param\(params, "(\w+)"', code))
    says("parameters of queries are those of the source", sorted(taken - known) if len(taken) > 10 else ["none found"])


def parameters_of(operation):
    return [resolve(p) for p in operation.get("parameters", [])]


def resolve(part):
    while "$ref" in part:
        names = part["$ref"].split("/")[1:]
        part = api
        for name in names:
            part = part[name]
    return part


# ---- the schemas ----

def close(schema):
    """The same schema, without additional members."""
    if isinstance(schema, dict):
        if "properties" in schema and "additionalProperties" not in schema:
            schema["additionalProperties"] = False
        for part in schema.values():
            close(part)
    elif isinstance(schema, list):
        for part in schema:
            close(part)
    return schema


strict = close(copy.deepcopy(api))


def validate(schema, value):
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", "components": strict["components"], **schema}
    validator = jsonschema.Draft202012Validator(whole)
    return [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in validator.iter_errors(value)][:5]


def check_members():
    """Each member of a schema occurs as a string in the source."""
    code = "\n".join(read(path) for top in ("server", "query", "pipeline", "symbolizer", "profile-store", "http", "debuginfo-store")
                     for path in glob.glob(f"{top}/**/*.[ch]", recursive=True))
    of_proto = {"OtlpAnswer", "Status", "PushRequest"}
    mistakes = []

    def look(name, schema):
        if isinstance(schema, dict):
            for member in schema.get("properties", {}):
                if not re.search(rf'\\?"{member}\\?"', code):
                    mistakes.append(f"{name}: {member}")
            for part in schema.values():
                look(name, part)
        elif isinstance(schema, list):
            for part in schema:
                look(name, part)
    for name, schema in api["components"]["schemas"].items():
        if name not in of_proto:
            look(name, schema)
    says("each member of a schema is in the source", mistakes)


# ---- answers ----

def send(method, path, body=None, content_type="application/json"):
    data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
    request = urllib.request.Request(URL + path, data=data, method=method, headers={"Content-Type": content_type} if data is not None else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def schema_of(method, template, status, content_type):
    responses = strict["paths"][template][method.lower()]["responses"]
    response = responses.get(str(status), responses.get("default"))
    if response is None:
        return None, f"status {status} is not in the file"
    while "$ref" in response:
        response = strict["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
    if content_type not in response.get("content", {}):
        return None, f"{content_type} is not in the file for {status}"
    return response["content"][content_type].get("schema"), None


recorded = {}


def record(method, template, target, status=200, body=None, content_type="application/json"):
    """Sends a request, and records violations of the file in the response."""
    path = template + target if target.startswith("?") or not target else target
    code, headers, content = send(method, path, body, content_type)
    kind = headers.get_content_type()
    mistakes = [] if code == status else [f"{path} is {code}, not {status}: {content[:200]}"]
    schema, missing = schema_of(method, template, code, kind)
    if missing:
        mistakes.append(f"{path}: {missing}")
    if schema:
        mistakes += [f"{path}: {m}" for m in validate(schema, json.loads(content or b"null"))]
    recorded.setdefault((method, template), []).extend(mistakes)
    return json.loads(content) if kind == "application/json" and content else content


def record_queries():
    everything = "?from=0&"
    q = "/api/v1/query/"
    for more in ("", "focus=.", "by=version", "by=version&groups=1", "names=short", "type=cpu", "selector=" + urllib.parse.quote('{version="1"}'),
                 "ignore=main", "selector=%7Bservice_name%3D%22shop%22%7D"):
        for name in ("top", "flame"):
            record("GET", q + name, everything + more)
        if not more.startswith("names"):
            record("GET", q + "series", "?" + more)
        if not more.startswith(("focus", "ignore", "names")) and "groups" not in more:
            record("GET", q + "spans", everything + more)
        record("GET", q + "diff", everything + "base_from=0&" + more)
        record("GET", q + "diff", everything + "base_from=0&view=top&compare=values&match=exact&sort=cumulative&" + more)
    record("GET", q + "gate", everything + "base_from=0&part=none&compare=values&match=exact&limit=5&fail_if=total%3E5%25")
    record("GET", q + "gate", everything + "base_from=0&cluster=service_name&part=10m")
    record("GET", q + "gate", everything, 400)
    record("GET", q + "services", everything + "base_from=0&base_to=1&step=365d")
    record("GET", q + "series", everything + "step=365d&versions=1")
    record("GET", q + "services", everything + "base_from=0&base_to=1&step=365d&format=text&by=version")
    for name in ("top", "flame", "series", "diff", "types", "labels", "missing", "uploads"):
        record("GET", q + name, "?from=yesterdayish", 400)
        record("GET", q + name, "?format=text")
    record("GET", q + "top", everything + "type=nothing:here", 400)
    record("GET", q + "folded", everything)
    record("GET", q + "firefox", everything)
    record("GET", q + "pprof", everything)
    record("GET", q + "autofdo", everything)
    record("POST", q + "symbolz", "", 200, b"0x10+0x20")
    record("POST", "/symbolz", "", 200, b"0x10+0x20")
    names = [row["function"] for row in record("GET", q + "top", everything)["rows"][:3]]
    for name in map(urllib.parse.quote, map(re.escape, names)):
        record("GET", q + "sandwich", everything + "function=" + name)
        for source in ("line", "file", "none"):
            record("GET", q + "lines", everything + f"source={source}&function=" + name)
        record("GET", q + "lines", everything + "base_from=0&compare=values&function=" + name)
    record("GET", q + "sandwich", everything, 400)
    record("GET", q + "trend", everything + "function=main&by=service_version")
    record("GET", q + "trend", everything, 400)
    record("GET", q + "changes", everything + "all=1&min_change=1%25&limit=5")
    record("GET", q + "changes", everything + "min_change=x", 400)
    of_program = everything + "selector=" + urllib.parse.quote('{service_name="shop"}')
    record("GET", q + "lines", of_program + "&function=main")
    record("GET", q + "disassembly", of_program + "&function=main")
    record("GET", q + "addresses", of_program + "&function=main")
    record("GET", q + "addresses", everything + "function=.*")
    record("GET", q + "addresses", everything + "build_id=" + BUILD_ID)
    record("GET", q + "addresses", everything, 400)
    for name in ("types", "labels", "missing", "uploads"):
        record("GET", q + name, everything)
    record("GET", q + "values", everything + "name=version")
    record("GET", q + "label/{name}/values", q + "label/service_name/values" + everything)


def record_debuginfo():
    d = "/api/v1/debuginfo"
    record("GET", d, "")
    record("GET", d + "/{id}", f"{d}/{BUILD_ID}")
    record("GET", d + "/{id}", f"{d}/00112233", 404)
    record("GET", d + "/missing", "")
    record("GET", d + "/upstreams", "")
    unknown = {"build_id": "00" * 20, "kind": "debuginfo", "quality": "dwarf", "size": 1}
    record("POST", d + "/want", "", 200, {"files": [unknown, dict(unknown, build_id=BUILD_ID), dict(unknown, size=1 << 40), dict(unknown, kind="odd")]})
    record("POST", d + "/want", "", 400, {"files": [{}]})
    record("PUT", d + "/{id}/{kind}/pin", f"{d}/{BUILD_ID}/debuginfo/pin", 200, b"")
    record("DELETE", d + "/{id}/{kind}/pin", f"{d}/{BUILD_ID}/debuginfo/pin", 200)
    record("GET", d + "/{id}/{kind}/partial", f"{d}/{BUILD_ID}/debuginfo/partial?sha256=" + "0" * 64)
    record("PUT", d + "/{id}/{kind}", f"{d}/{BUILD_ID}/debuginfo", 400, b"x", "application/octet-stream")
    record("POST", d + "/gc", "", 200, {"dry_run": True, "rules": ["size=1"]})
    record("POST", d + "/gc", "", 400, {"rules": ["odd"]})
    record("POST", d + "/scan", "", 404, b"")
    record("POST", "/api/v1/resymbolize", "", 200, {"dry_run": True})
    record("POST", "/api/v1/resymbolize", "", 200, {})
    record("GET", "/api/v1/resymbolize", "")
    record("GET", "/metadata", "?key=buildid&value=" + BUILD_ID)
    record("GET", "/metadata", "?key=odd&value=x", 400)
    service = "/debuginfo.v1alpha1.DebuginfoService/"
    record("POST", service + "ShouldInitiateUpload", "", 200, {"file": {"gnuBuildId": BUILD_ID}})
    record("POST", service + "ShouldInitiateUpload", "", 200, {"file": {"gnuBuildId": "00" * 20}})
    with open(PROGRAM, "rb") as f:
        record("POST", service + "Upload/{id}", service + "Upload/" + BUILD_ID, 200, f.read(), "application/octet-stream")
    record("POST", service + "UploadFinished", "", 200, {"gnuBuildId": BUILD_ID})
    record("POST", service + "UploadFinished", "", 404, {"gnuBuildId": "00" * 20})
    for name in ("debuginfo", "executable"):
        record("GET", f"/buildid/{{id}}/{name}", f"/buildid/{BUILD_ID}/{name}")
    record("GET", "/buildid/{id}/section/{name}", f"/buildid/{BUILD_ID}/section/.text")


def record_symbols():
    objects = [{"build_id": BUILD_ID, "addresses": ["0x" + ADDRESS, "0x1"]}, {"build_id": "00" * 20, "addresses": ["0x1"]}]
    names = record("POST", "/api/v1/symbolize", "", 200, {"objects": objects})
    says("the recorded names are those of the program", [] if "main" in json.dumps(names) else [names])
    record("POST", "/api/v1/symbolize", "", 400, {"objects": [{}]})
    raw = bytes.fromhex(BUILD_ID)[:16]
    debug_id = (raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:]).hex().upper() + "0"
    record("POST", "/symbolicate/v5", "", 200, {"memoryMap": [["program", debug_id]], "stacks": [[[0, int(ADDRESS, 16)], [-1, 5]]]})
    record("POST", "/symbolicate/v5", "", 200, {"jobs": []})
    record("GET", "/api/v1/why", f"?build_id={BUILD_ID}&address={ADDRESS},1")
    record("GET", "/api/v1/why", "?build_id=xyz&address=1", 400)
    record("GET", "/api/v1/offsets", f"?build_id={BUILD_ID}&field=nothing.field,nothing")
    record("GET", "/api/v1/offsets", f"?build_id={BUILD_ID}&field=a..b", 400)


def record_ingest():
    record("POST", "/v1development/profiles", "", 200, {})
    record("POST", "/v1/profiles", "", 200, {})
    record("POST", "/v1/profiles", "", 400, b"{\"resourceProfiles\": 7}")
    record("POST", "/push.v1.PusherService/Push", "", 200, {"series": []})
    record("POST", "/push.v1.PusherService/Push", "", 400, {"series": [{"samples": [{"rawProfile": "AAAA"}]}]})
    record("POST", "/ingest", "?name=x&format=odd", 415, b"a;b 1", "text/plain")
    with open("docs/formats/head-page.md", encoding="utf-8") as f:  # the example, a page without batches
        page = bytes.fromhex("".join(re.findall(r"^00[0-9]0  ((?:[0-9a-f]{2} ){15}[0-9a-f]{2})", f.read(), re.MULTILINE)))
    record("POST", "/api/v1/node/batches", "", 200, page, "application/octet-stream")
    # One service makes no commits for others; grouped-commits.t has several.
    record("POST", "/api/v1/node/commits", "", 400, b"", "application/x-ndjson")
    about = "?holder=0123456789abcdef&tables=a&after=0&columns=0"
    record("POST", "/api/v1/node/commits", about, 404, b"", "application/x-ndjson")
    record("POST", "/api/v1/scrape/lease", "?name=shop&holder=host-1&action=check", 200, b"", "text/plain")
    record("POST", "/api/v1/scrape/lease", "?name=shop&holder=host-2&action=check", 200, b"", "text/plain")
    record("POST", "/api/v1/scrape/lease", "?name=shop&holder=host-2&action=steal", 400, b"", "text/plain")
    shared = record("POST", "/api/v1/share", "", 201, b"main;work 12\n", "text/plain")
    record("GET", "/share/{id}", shared["url"])
    record("GET", "/share/{id}", shared["url"] + "?format=json")
    record("GET", "/share/{id}/profile", shared["url"] + "/profile")
    record("POST", "/share/{id}/symbolz", shared["url"] + "/symbolz", 200, b"0x10")
    record("GET", "/share/{id}", "/share/" + "0" * 32, 404)


def record_connect():
    template = "/querier.v1.QuerierService/{method}"
    for method, body in (("ProfileTypes", {}), ("LabelNames", {}), ("LabelValues", {"name": "version"}), ("GetProfileStats", {})):
        record("POST", template, template.replace("{method}", method), 200, body)
    record("POST", template, template.replace("{method}", "Series"), 400, {"start": "x"})
    cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
    for prefix in ("/pyroscope", ""):
        record("GET", prefix + "/render", f"?query={cpu}&groupBy=version")
        record("GET", prefix + "/render", "?query=x", 400)
        record("GET", prefix + "/render-diff", f"?leftQuery={cpu}&rightQuery={cpu}")
        record("GET", prefix + "/label-values", "?label=version")
        record("GET", prefix + "/label-names", "")
    rules = "/settings.v1.RecordingRulesService/"
    record("POST", rules + "ListRecordingRules", rules + "ListRecordingRules", 200, {})
    added = record("POST", rules + "UpsertRecordingRule", rules + "UpsertRecordingRule", 200, {"metricName": "cores"})
    rule = {"id": added["rule"]["id"]}
    record("POST", rules + "GetRecordingRule", rules + "GetRecordingRule", 200, rule)
    record("GET", "/api/v1/recorded", "")
    record("GET", "/api/v1/recorded/changes", "")
    record("POST", rules + "DeleteRecordingRule", rules + "DeleteRecordingRule", 200, rule)
    for service in ("vcs.v1.VCSService", "settings.v1.SettingsService",
                    "adhocprofiles.v1.AdHocProfileService", "capabilities.v1.FeatureFlagsService"):
        record("POST", f"/{service}/{{method}}", f"/{service}/Any", 501, {})


def record_store():
    tables = record("GET", "/store/", "")["tables"]
    record("GET", "/store/{table}/", "/store/samples/")
    record("GET", "/store/{table}/", "/store/odd/", 404)
    for table in tables:
        for file in table["files"][:1]:
            record("GET", "/store/{table}/{path}", file["path"])
    record("GET", "/cairn", "?list-type=2")
    record("GET", "/cairn/", "?list-type=2")
    record("PUT", "/cairn/{key}", "/cairn/samples/x", 403, b"")
    record("POST", "/api/v1/store/expire", "", 200, {"dry_run": True, "rules": ["age=1d", "{version=\"1\"},age=1d"]})
    record("POST", "/api/v1/store/expire", "", 400, {"odd": 1})
    record("POST", "/api/v1/store/compact", "", 200, {})
    record("POST", "/api/v1/store/expire", "", 200, {"rules": ["size=1"]})


def record_status():
    for path in ("/healthz", "/readyz", "/ready", "/metrics", "/"):
        record("GET", path, "")
    record("GET", "/api/v1/session", "")
    for more in ("", "/senders", "/service"):
        record("GET", "/api/v1/status" + more, "")
    record("GET", "/api/v1/status/senders", "?limit=x", 400)
    record("POST", "/login", "", 400, {"token": "x"})
    record("GET", "/assets/{name}", "/assets/odd.js", 404)


check_file()
check_routes()
check_members()
for part in (record_queries, record_debuginfo, record_symbols, record_ingest, record_connect, record_status, record_store):
    part()
json_routes = {(method, path) for method, path, operation in operations() for response in operation["responses"].values()
               if "schema" in resolve(response).get("content", {}).get("application/json", {}) and "Error" not in str(response)}
for (method, path), mistakes in sorted(recorded.items()):
    says(f"answers of {method} {path} are as the file has them", mistakes)
says("an answer of each route with a schema was recorded",
     sorted(json_routes - recorded.keys() - {("POST", "/logout"), ("DELETE", "/api/v1/debuginfo/{id}/{kind}")}))
