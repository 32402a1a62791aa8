# SPDX-License-Identifier: Apache-2.0
"""make_spans.py TIME SPANS: an OTLP profile in JSON whose samples are linked to spans, on standard output.

Span k (from 1) belongs to trace (k + 1) / 2, has k milliseconds of CPU in two samples, and belongs to the service
"shop" or, every third, "cart". One sample of 10 milliseconds has no link. Ids are "ab" followed by k in hexadecimal.
"""
import json
import sys

time, count = int(sys.argv[1]), int(sys.argv[2])
strings, attributes = [""], [{}]


def string(text):
    if text not in strings:
        strings.append(text)
    return strings.index(text)


def attribute(key, value):
    entry = {"keyStrindex": string(key), "value": {"stringValue": value}}
    if entry not in attributes:
        attributes.append(entry)
    return attributes.index(entry)


functions = ["handle", "query", "encode", "idle"]
links, services = [{}], {"shop": [], "cart": []}


def sample(service, stack, ms, link=0, name=None):
    services[service].append({"stackIndex": stack, "values": [str(ms * 500000)] * 2, "linkIndex": link,
                              "timestampsUnixNano": [str(time * 10**9), str(time * 10**9 + 10**6)],
                              "attributeIndices": [attribute("span_name", name)] if name else []})


for k in range(1, count + 1):
    links.append({"traceId": f"ab{(k + 1) // 2:030x}", "spanId": f"ab{k:014x}"})
    sample("cart" if k % 3 == 0 else "shop", 1 + k % 2, k, k, "GET /x" if k % 2 else "POST /buy")
sample("shop", 3, 10)
profiles = [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]},
             "scopeProfiles": [{"profiles": [{
                 "sampleType": {"typeStrindex": string("cpu"), "unitStrindex": string("nanoseconds")},
                 "periodType": {"typeStrindex": string("cpu"), "unitStrindex": string("nanoseconds")}, "period": "1000000",
                 "timeUnixNano": str(time * 10**9), "durationNano": "1000000000", "samples": samples}]}]}
            for service, samples in services.items()]
json.dump({"resourceProfiles": profiles, "dictionary": {
    "mappingTable": [{}], "linkTable": links,
    "locationTable": [{}] + [{"lines": [{"functionIndex": i + 1, "line": str(10 * i + 5)}]} for i in range(len(functions))],
    "functionTable": [{}] + [{"nameStrindex": string(f), "filenameStrindex": string("shop.c")} for f in functions],
    "stackTable": [{}, {"locationIndices": [2, 1]}, {"locationIndices": [3, 1]}, {"locationIndices": [4]}],
    "attributeTable": attributes, "stringTable": strings}}, sys.stdout)
