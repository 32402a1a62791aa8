# SPDX-License-Identifier: Apache-2.0
"""Writes the profiles sent by the service's tests: valid ones, and each kind of malformed one.

    profiles.py DIR                     the fixed set
    profiles.py otlp FILE KEY=VALUE...  one OTLP request

Uses an independent protobuf encoder, no library.
"""
import gzip
import os
import sys
import time


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def num(field, n):
    return varint(field << 3) + varint(n)


def fixed64(field, n):
    return varint(field << 3 | 1) + n.to_bytes(8, "little")


def blob(field, data):
    if isinstance(data, str):
        data = data.encode()
    return varint(field << 3 | 2) + varint(len(data)) + data


def packed(field, numbers):
    return blob(field, b"".join(varint(n) for n in numbers))


class Strings:
    def __init__(self):
        self.items = [""]

    def __call__(self, text):
        if text not in self.items:
            self.items.append(text)
        return self.items.index(text)


def otlp(build_id="", addresses=(), function="", service="test", values=(1,), at_ns=None, stack=None, attribute=None,
         location_mapping=None, mapping_file="program", names=(), id_kind="gnu", label="", sent=(), frame_type="", host="", period=10**7):
    """One profile with one sample for each value, all with the same stack.

    sent: for each address the sender's frame, "FUNCTION:FILE:LINE:START_LINE". frame_type: of all addresses.
    names: frames known by name, leaf first, in place of addresses. stack, attribute, location_mapping: indices to put
    where right ones belong. label: "KEY=VALUE", one more. host: value of host.name.
    """
    s = Strings()
    attributes, functions, locations = b"", b"", []
    if build_id:
        value = blob(1, build_id)
        attributes += blob(6, num(1, s("process.executable.build_id." + id_kind)) + blob(2, value))
    mapping = num(1, 0) + num(2, 1 << 40) + num(4, s(mapping_file)) + (packed(5, [1]) if build_id else b"")
    if frame_type:
        attributes = attributes or blob(6, b"")
        attributes += blob(6, num(1, s("profile.frame.type")) + blob(2, blob(1, frame_type)))
    for i, address in enumerate(addresses):
        index = 1 if location_mapping is None else location_mapping
        location = num(1, index) + num(2, address)
        if sent:
            name, file, line, start_line = sent[i].split(":")
            functions += blob(3, num(1, s(name)) + num(3, s(file)) + num(4, int(start_line)))
            location += blob(3, num(1, i + 1) + num(2, int(line)))
        locations.append(location + (packed(4, [2]) if frame_type else b""))
    for i, name in enumerate(names):
        functions += blob(3, num(1, s(name)))
        locations.append(blob(3, num(1, i + 1) + num(2, 10 + i)))
    stacks = blob(7, b"") + blob(7, packed(1, range(1, len(locations) + 1)))
    sample_type = num(1, s("cpu")) + num(2, s("nanoseconds"))
    at_ns = at_ns or time.time_ns()
    samples = b""
    for value in values:
        samples += blob(2, num(1, 1 if stack is None else stack) + (packed(2, [attribute]) if attribute else b"") +
                        packed(4, [value]))
    profile = blob(1, sample_type) + samples + fixed64(3, at_ns) + num(4, 10**9) + blob(5, sample_type) + num(6, period)
    resource = blob(1, blob(1, "service.name") + blob(2, blob(1, service)))
    if host:
        resource += blob(1, blob(1, "host.name") + blob(2, blob(1, host)))
    if label:
        key, value = label.split("=", 1)
        resource += blob(1, blob(1, key) + blob(2, blob(1, value)))
    dictionary = blob(1, b"") + blob(1, mapping) + blob(2, b"") + b"".join(blob(2, l) for l in locations) + blob(3, b"")
    dictionary += functions + blob(4, b"") + b"".join(blob(5, t) for t in s.items) + blob(6, b"") + attributes + stacks
    return blob(1, blob(1, resource) + blob(2, blob(2, profile))) + blob(2, dictionary)


def pprof(strings=("", "cpu", "nanoseconds", "main", "main.c"), location_ids=(1,), values=(7,), locations=None,
          functions=None, extra=b""):
    """A profile with one sample."""
    if locations is None:
        locations = [num(1, 1) + num(3, 0x1000) + blob(4, num(1, 1) + num(2, 3))]
    if functions is None:
        functions = [num(1, 1) + num(2, 3) + num(4, 4)]
    out = blob(1, num(1, 1) + num(2, 2)) + blob(2, packed(1, location_ids) + packed(2, values))
    out += b"".join(blob(4, l) for l in locations) + b"".join(blob(5, f) for f in functions)
    out += b"".join(blob(6, t) for t in strings) + num(9, time.time_ns())
    return out + extra


def fixed_set(where):
    def put(name, data):
        with open(os.path.join(where, name), "wb") as f:
            f.write(data)

    good = otlp(names=("leaf", "root"), values=(5, 6))
    put("good.otlp", good)
    put("good.otlp.gz", gzip.compress(good))
    put("empty.otlp", b"")
    put("bad-stack-index.otlp", otlp(names=("leaf",), stack=99))
    put("bad-negative-index.otlp", otlp(names=("leaf",), stack=-1))
    put("bad-attribute-index.otlp", otlp(names=("leaf",), attribute=1000))
    put("bad-mapping-index.otlp", otlp(addresses=(1,), location_mapping=77))
    put("bad-cut.otlp", good[:-7])
    put("bad-text.otlp", b"this is no protobuf")
    put("bad-length.otlp", blob(1, b"")[:1] + varint(1 << 62) + b"x")
    put("bomb.gz", gzip.compress(bytes(256 << 20), 9))
    put("cut.gz", gzip.compress(good)[:-9])
    put("noise.gz", b"\x1f\x8b\x08\x00" + bytes(range(200)))

    put("good.pprof", gzip.compress(pprof()))
    put("plain.pprof", pprof())
    put("bad-location-id.pprof", pprof(location_ids=(2,)))
    put("bad-function-id.pprof", pprof(functions=[]))
    put("bad-cycle.pprof", pprof(locations=[num(1, 1) + blob(4, num(1, 1)), num(1, 1) + blob(4, num(1, 1))]))
    put("bad-string-index.pprof", pprof(functions=[num(1, 1) + num(2, 1 << 40)]))
    put("bad-value-count.pprof", pprof(values=(1, 2, 3)))
    put("giant-count.pprof", pprof(extra=varint(2 << 3 | 2) + varint((1 << 63) - 1)))
    put("giant-stack.pprof", gzip.compress(pprof(location_ids=[1] * 20_000_000)))
    put("many-samples.pprof", gzip.compress(pprof(extra=blob(2, packed(1, (1,)) + packed(2, (1,))) * 5_000_000)))
    put("bad-text.pprof", b"this is no profile")
    put("push.proto", blob(1, blob(1, blob(1, "__name__") + blob(2, "process_cpu")) +
                           blob(1, blob(1, "service_name") + blob(2, "pushed")) +
                           blob(2, blob(1, gzip.compress(pprof())))))
    put("good.folded", b"main;work;leaf 12\nmain;idle 3\n")


def main():
    if sys.argv[1] != "otlp":
        os.makedirs(sys.argv[1], exist_ok=True)
        fixed_set(sys.argv[1])
        return
    args = {}
    for word in sys.argv[3:]:
        key, value = word.split("=", 1)
        if key == "addresses":
            value = [int(v, 16) for v in value.split(",")]
        elif key == "values":
            value = [int(v) for v in value.split(",")]
        elif key in ("names", "sent"):
            value = value.split(",")
        elif key in ("at_ns", "period"):
            value = int(value)
        args[key] = value
    with open(sys.argv[2], "wb") as f:
        f.write(otlp(**args))


if __name__ == "__main__":
    main()
