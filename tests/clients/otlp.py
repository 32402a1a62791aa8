# SPDX-License-Identifier: Apache-2.0
"""Sends OTLP profiles with the messages of one version of opentelemetry-proto: otlp.py URL GRPC_ADDRESS PROTOCOL_VERSION.

A value that the service accepted has to be the one sent, with the labels sent; a refusal has to name the version to use."""
import json
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import grpc
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as service

URL, GRPC, VERSION = sys.argv[1], sys.argv[2], tuple(map(int, sys.argv[3].split(".")))
NOW = time.time_ns()
EXPORT = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"


def fill_dictionary(d, attributes, links):
    d.string_table.extend(["", "cpu", "nanoseconds", "leaf", "thread.name"])
    d.mapping_table.add()
    d.location_table.add()
    d.function_table.add()
    d.function_table.add(name_strindex=3)
    d.link_table.add()
    for i in range(1, links + 1):
        d.link_table.add(trace_id=bytes([i]) * 16, span_id=bytes([i]) * 8)
    d.attribute_table.add()
    for i in range(1, attributes + 1):
        a = d.attribute_table.add()
        if VERSION < (1, 8):
            a.key = "thread.name"
        else:
            a.key_strindex = 4
        a.value.string_value = f"worker-{i}"


def build(name, samples, attributes, links):
    request = service.ExportProfilesServiceRequest()
    d = request.dictionary
    fill_dictionary(d, attributes, links)
    resource = request.resource_profiles.add()
    resource.resource.attributes.add(key="service.name").value.string_value = name
    profile = resource.scope_profiles.add().profiles.add()
    if VERSION < (1, 8):
        d.location_table.add().line.add(function_index=1, line=3)
        profile.sample_type.add(type_strindex=1, unit_strindex=2)
        profile.time_nanos = NOW
        profile.location_indices.append(1)
        for s in samples:
            profile.sample.add(locations_length=1, value=s["values"])
        return request
    d.location_table.add().lines.add(function_index=1, line=3)
    d.stack_table.add()
    d.stack_table.add(location_indices=[1])
    profile.sample_type.type_strindex = 1
    profile.sample_type.unit_strindex = 2
    profile.time_unix_nano = NOW
    profile.duration_nano = 10**9
    for s in samples:
        profile.samples.add(stack_index=1, **s)
    return request


def post(request):
    try:
        http = urllib.request.Request(f"{URL}/v1development/profiles", request.SerializeToString(), {"Content-Type": "application/x-protobuf"})
        with urllib.request.urlopen(http) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def call(request):
    with grpc.insecure_channel(GRPC) as channel:
        try:
            channel.unary_unary(EXPORT, request_serializer=lambda r: r.SerializeToString(), response_deserializer=bytes)(request)
            return "OK", ""
        except grpc.RpcError as error:
            return error.code().name, error.details()


def stored(name):
    """Sums by thread name."""
    query = urllib.parse.urlencode({"selector": f'{{service.name="{name}"}}', "by": "thread.name", "from": "now-1h"})
    with urllib.request.urlopen(f"{URL}/api/v1/query/series?{query}") as response:
        groups = json.load(response)["groups"]
    return {g["labels"].get("thread.name", ""): g["total"] for g in groups if g["total"]}


def report(name, ok, *details):
    print(f"{'ok' if ok else 'not ok'} - OTLP {sys.argv[3]}: {name}" + ("" if ok else f": {details}"))


AT = [NOW]
# What is sent, what is stored, and with which sizes of the tables of attributes and links.
CASES = {
    "all fields": ([dict(values=[5], attribute_indices=[2], link_index=7, timestamps_unix_nano=AT)], {"worker-2": 5}, 8, 8),
    "a link and a time": ([dict(values=[5], link_index=7, timestamps_unix_nano=AT)], {"": 5}, 8, 8),
    "a link": ([dict(values=[5], link_index=7)], {"": 5}, 8, 8),
    "a time": ([dict(values=[5], timestamps_unix_nano=AT)], {"": 5}, 8, 8),
    "an attribute": ([dict(values=[5], attribute_indices=[2])], {"worker-2": 5}, 8, 8),
    "a small value": ([dict(values=[5])], {"": 5}, 8, 8),
    "a large value": ([dict(values=[10000000])], {"": 10000000}, 8, 8),
    "no attributes": ([dict(values=[1], timestamps_unix_nano=AT)], {"": 1}, 0, 0),
    "no values": ([dict(attribute_indices=[1], timestamps_unix_nano=AT)], {"worker-1": 1}, 1, 0),
    "several samples": ([dict(values=[3], timestamps_unix_nano=AT), dict(values=[4], attribute_indices=[1])], {"": 3, "worker-1": 4}, 1, 0),
}
# The same bytes could be of 1.10.
IN_DOUBT = ["a time"] if (1, 8) <= VERSION < (1, 10) else []

for name, (samples, expected, attributes, links) in CASES.items():
    if VERSION < (1, 8) and not all("values" in s for s in samples):
        continue
    request = build(f"{name} {sys.argv[3]}", samples, attributes, links)
    status, body = post(request)
    if VERSION < (1, 8) or name in IN_DOUBT:
        report(f"{name} is refused, naming 1.10.0", status == 400 and b"1.10.0 or later" in body, status, body)
        code, details = call(request)
        report("  over gRPC, too", code == "INVALID_ARGUMENT" and "1.10.0 or later" in details, code, details)
    else:
        report(name, (status, body) == (200, b"") and stored(f"{name} {sys.argv[3]}") == expected, status, body, stored(f"{name} {sys.argv[3]}"))
