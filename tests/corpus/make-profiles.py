#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Regenerates the OTLP, pprof and folded corpora: make-profiles.py tests/corpus. Requires the opentelemetry-proto
# package (1.45 or later), an independent encoder. The go-*.pb.gz files come from Go's runtime/pprof,
# perf_script/good/busy from perf script --show-mmap-events.
import base64, gzip, json, os, struct, sys
from google.protobuf import json_format
from opentelemetry.proto.profiles.v1development import profiles_pb2 as p
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as svc
from opentelemetry.proto.common.v1 import common_pb2 as c
root = sys.argv[1]
def put(kind, name, data):
    os.makedirs(f"{root}/{kind}", exist_ok=True)
    open(f"{root}/{kind}/{name}", "wb").write(data)

def good():
    q = svc.ExportProfilesServiceRequest()
    d = q.dictionary
    strings = [""]
    def s(t):
        if t not in strings: strings.append(t)
        return strings.index(t)
    d.mapping_table.add(); d.location_table.add(); d.function_table.add(); d.link_table.add(); d.attribute_table.add(); d.stack_table.add()
    def attr(k, **v):
        a = d.attribute_table.add(); a.key_strindex = s(k)
        for f, x in v.items(): setattr(a.value, f, x)
        return len(d.attribute_table) - 1
    m = d.mapping_table.add(memory_start=0x1000, memory_limit=0x9000, file_offset=0x1000, filename_strindex=s("libwork.so"))
    m.attribute_indices.append(attr("process.executable.build_id.htlhash", string_value="00112233445566778899aabbccddeeff"))
    m.attribute_indices.append(attr("process.executable.build_id.gnu", string_value="5BD3EC2711B6971F6D2A611A719C73B36910DD78"))
    k = d.mapping_table.add(filename_strindex=s("vmlinux"))
    k.attribute_indices.append(attr("process.executable.build_id.gnu", string_value="4a5a9b0affb66c437abcd455d2738af879985fa9"))
    g = d.mapping_table.add(filename_strindex=s("goapp"))
    g.attribute_indices.append(attr("process.executable.build_id.go", string_value="x1/y2/z3"))
    d.function_table.add(name_strindex=s("do_syscall_64"))
    d.function_table.add(name_strindex=s("run(int)"), system_name_strindex=s("_Z3runi"), filename_strindex=s("run.cc"), start_line=4)
    kernel = attr("profile.frame.type", string_value="kernel"); native = attr("profile.frame.type", string_value="native")
    l = d.location_table.add(mapping_index=2, address=0x1234); l.lines.add(function_index=1); l.attribute_indices.append(kernel)
    l = d.location_table.add(mapping_index=1, address=0x2345); l.attribute_indices.append(native)
    l = d.location_table.add(mapping_index=1, address=0x3456); l.lines.add(function_index=1, line=3, column=9); l.lines.add(function_index=2, line=44)
    d.location_table.add(mapping_index=3, address=0x401000)
    d.stack_table.add(location_indices=[1, 2, 3, 4]); d.stack_table.add(location_indices=[2])
    d.link_table.add(trace_id=bytes(range(16)), span_id=bytes(range(8)))
    r = q.resource_profiles.add()
    for kk, v in (("service.name", c.AnyValue(string_value="api")), ("process.pid", c.AnyValue(int_value=77)), ("flag", c.AnyValue(bool_value=True)), ("load", c.AnyValue(double_value=0.1)),
                  ("args", c.AnyValue(array_value=c.ArrayValue(values=[c.AnyValue(string_value="x")])))):
        r.resource.attributes.add(key=kk, value=v)
    ref = r.resource.attributes.add(); ref.key_strindex = s("host.name"); ref.value.string_value_strindex = s("h1")
    sp = r.scope_profiles.add(); sp.scope.name = "test"; sp.scope.attributes.add(key="service.name", value=c.AnyValue(string_value="from scope"))
    pr = sp.profiles.add(time_unix_nano=1700000000000000000, duration_nano=5000000000, period=50000000, profile_id=bytes(16))
    pr.sample_type.type_strindex = s("samples"); pr.sample_type.unit_strindex = s("count"); pr.period_type.type_strindex = s("cpu"); pr.period_type.unit_strindex = s("nanoseconds")
    th = attr("thread.name", string_value="worker é"); ref2 = attr("thread.kind", string_value_strindex=s("ref"))
    pr.samples.add(stack_index=1, attribute_indices=[th, ref2], link_index=1, timestamps_unix_nano=[1700000000000000001, 1700000000000000002])
    pr.samples.add(stack_index=2, attribute_indices=[th], values=[7])
    pr2 = sp.profiles.add(time_unix_nano=1700000000000000000)
    pr2.sample_type.type_strindex = s("events"); pr2.sample_type.unit_strindex = s("nanoseconds")
    pr2.samples.add(stack_index=0, values=[5, 6], timestamps_unix_nano=[1, 2])
    d.string_table.extend(strings)
    return q
q = good()
put("otlp/good", "official-message", q.SerializeToString())
# dictionary after and before: protobuf order is by field number already; move it first
body = q.SerializeToString(); dic = svc.ExportProfilesServiceRequest(); dic.dictionary.CopyFrom(q.dictionary); rest = svc.ExportProfilesServiceRequest(); rest.resource_profiles.extend(q.resource_profiles)
put("otlp/good", "dictionary-first", dic.SerializeToString() + rest.SerializeToString())
put("otlp/good", "empty", b"")
# OTLP's JSON is protobuf's JSON except for ids, which are hexadecimal, and enumerations, which are numbers.
def as_json(q):
    text = json_format.MessageToDict(q, use_integers_for_enums=True)
    for link in text["dictionary"]["linkTable"]:
        link.update({k: base64.b64decode(v).hex() for k, v in link.items()})
    return json.dumps(text, indent=1).encode()
put("otlp_json/good", "official-message.json", as_json(q))
put("otlp_json/good", "null-and-unknown.json", b'{"resourceProfiles": null, "later": [{"a": [1, {}]}], "dictionary": {"stringTable": [""], "stackTable": [null, {}]}}')
put("otlp_json/bad", "index-is-a-fraction.json", b'{"dictionary": {"stackTable": [{}, {"locationIndices": [1.5]}]}}')
put("otlp_json/bad", "id-is-base64.json", b'{"dictionary": {"linkTable": [{}, {"traceId": "AAECAwQFBgcICQoLDA0ODw=="}]}}')
put("otlp_json/bad", "time-past-64-bits.json", b'{"resourceProfiles": [{"scopeProfiles": [{"profiles": [{"timeUnixNano": "18446744073709551616"}]}]}]}')
put("otlp_json/bad", "string-index-past-table.json", as_json(q).replace(b'"keyStrindex": 2', b'"keyStrindex": 2000', 1))
put("otlp_json/bad", "deep.json", b'{"later": ' + b"[" * 100 + b"]" * 100 + b"}")
put("otlp_json/bad", "cut-in-escape.json", b'{"dictionary": {"stringTable": ["", "\\ud83d\\u')
def broken(name, f, kind="bad"):
    q = good(); f(q); put("otlp/" + kind, name, q.SerializeToString())
P = lambda q: q.resource_profiles[0].scope_profiles[0].profiles[0]
broken("stack-index-past-table", lambda q: setattr(P(q).samples[0], "stack_index", 3))
broken("stack-index-negative", lambda q: setattr(P(q).samples[0], "stack_index", -1))
broken("location-index-past-table", lambda q: q.dictionary.stack_table[1].location_indices.append(2**31 - 1))
broken("mapping-index-negative", lambda q: setattr(q.dictionary.location_table[1], "mapping_index", -2**31))
broken("string-index-past-table", lambda q: setattr(q.dictionary.function_table[1], "name_strindex", 10000))
broken("attribute-index-past-table", lambda q: P(q).samples[0].attribute_indices.append(99))
broken("link-index-past-table", lambda q: setattr(P(q).samples[0], "link_index", 2))
broken("string-0-not-empty", lambda q: q.dictionary.string_table.__setitem__(0, "x"))
broken("values-and-timestamps-differ", lambda q: P(q).samples[0].values.extend([1, 2, 3]), "good")
broken("no-stack-table", lambda q: q.dictionary.ClearField("stack_table"))
def vi(n):
    o = b""
    while True:
        b = n & 127; n >>= 7
        o += bytes([b | (128 if n else 0)])
        if not n: return o
def tlv(n, b): return vi(n << 3 | 2) + vi(len(b)) + b
v = b""
for i in range(5000): v = tlv(1, tlv(5, v)) if len(v) < 200000 else v
put("otlp/good", "any-value-nesting-bomb", tlv(2, tlv(6, b"") + tlv(6, tlv(2, v))))
put("otlp/bad", "truncated-varint", tlv(2, b"\x3a\x02\x0a\xff"))
put("otlp/bad", "length-past-end", b"\x0a\xff\xff\xff\xff\x0f")
put("otlp/bad", "varint-over-64-bits", b"\x08" + b"\xff" * 12 + b"\x01")
put("otlp/good", "empty-entries-many", tlv(2, b"\x3a\x00" * 5000))
old = tlv(1, tlv(2, tlv(2, tlv(1, tlv(1, b"")) + tlv(2, vi(2 << 3) + vi(1) + tlv(3, b"\x05")) + tlv(3, b"\x01")))) + tlv(2, tlv(5, b""))
put("otlp/bad", "sender-before-1.8", old)

def vf(n, x): return vi(n << 3) + vi(x & (2**64 - 1))
def pp(sample=b"", loc=b"", extra=b""):
    return tlv(1, vf(1, 1) + vf(2, 2)) + sample + loc + extra + b"".join(tlv(6, x) for x in (b"", b"cpu", b"ns", b"fn"))
put("pprof/good", "plain-two-frames", pp(tlv(2, tlv(1, vi(1) + vi(2)) + tlv(2, vi(5))), tlv(4, vf(1, 1) + vf(3, 0x10)) + tlv(4, vf(1, 2) + tlv(4, vf(1, 1)))+ tlv(5, vf(1, 1) + vf(2, 3))))
def fn(i, name, system): return tlv(5, vf(1, i) + vf(2, name) + vf(3, system))
def loc(i, *functions): return tlv(4, vf(1, i) + b"".join(tlv(4, vf(1, f)) for f in functions))
def label(key, *more): return tlv(3, vf(1, key) + b"".join(more))
put("pprof/good", "dropped-frames-and-numbers", pp(
    tlv(2, tlv(1, vi(4) + vi(3) + vi(2) + vi(1)) + tlv(2, vi(5)) + label(6, vf(3, 512)) + label(6, vf(3, 1), vf(4, 7))) +
    tlv(2, tlv(1, vi(2) + vi(3) + vi(1)) + tlv(2, vi(6)) + label(7, vf(2, 6))),
    loc(1, 1) + loc(2, 3, 2, 1) + loc(3, 2) + loc(4, 3), fn(1, 3, 3) + fn(2, 4, 4) + fn(3, 5, 3) + vf(7, 8) + vf(8, 9) + vf(14, 1)) +
    b"".join(tlv(6, x) for x in (b"a<int>::malloc(int)", b"leaf", b"bytes", b"kilobytes", b"a::m.*|leaf", b"l.*")))
put("pprof/bad", "location-id-unknown", pp(tlv(2, tlv(1, vi(77)) + tlv(2, vi(5)))))
put("pprof/bad", "location-id-twice", pp(b"", tlv(4, vf(1, 1)) + tlv(4, vf(1, 1))))
put("pprof/bad", "location-refers-to-itself-as-mapping-and-function", pp(tlv(2, tlv(1, vi(1)) + tlv(2, vi(1))), tlv(4, vf(1, 1) + vf(2, 1) + tlv(4, vf(1, 1)))))
put("pprof/bad", "string-index-negative", pp(b"", b"", tlv(5, vf(1, 1) + vf(2, -1))))
put("pprof/bad", "values-without-types", b"".join((tlv(2, tlv(2, vi(1))), tlv(6, b""))))
put("pprof/bad", "giant-value-count", pp(tlv(2, tlv(2, b"\x01" * 3000))))
put("pprof/bad", "many-empty-locations", pp(b"", b"\x22\x00" * 5000))
put("pprof/bad", "gzip-bomb", gzip.compress(b"\0" * (65 << 20), 9, mtime=0))
put("pprof/bad", "gzip-cut", gzip.compress(pp(), mtime=0)[:-9])
put("pprof/bad", "no-string-table", tlv(1, b""))
put("folded/good", "two-stacks", b"main;work;do_syscall_64_[k] 7\nmain;idle 3\n")
put("folded/bad", "no-count", b"main;work\n")
put("folded/bad", "count-over-64-bits", b"main 99999999999999999999999\n")
put("folded/good", "only-semicolons", b";;;;;;;; 4\n; 1\n")
put("folded/good", "nul-and-bad-utf8", b"a\0b;\xff\xfe 3\n")
