#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the samples of an OTLP profiles request, of all types or of one ("cpu"), one line each:

    otlp_dump.py FILE [TYPE]

    VALUE TAB KEY=VALUE;... TAB FRAME;FRAME;...      (leaf first)

A sample with a link has the labels trace_id and span_id too. A frame is BUILD_ID:FILE:ADDRESS:NAME, with unset parts empty.
An independent reader of the protobuf wire format that shares no code with Cairn's decoder.
"""
import struct
import sys


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data):
    """{number: [values]}: integers, or bytes for length-delimited fields."""
    out, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<Q", data, at)[0], at + 8
        elif kind == 2:
            size, at = varint(data, at)
            if at + size > len(data):
                raise ValueError("a field is cut off")
            value, at = data[at:at + size], at + size
        elif kind == 5:
            value, at = struct.unpack_from("<I", data, at)[0], at + 4
        else:
            raise ValueError(f"wire type {kind}")
        out.setdefault(key >> 3, []).append(value)
    return out


def one(message, number, default=0):
    return message.get(number, [default])[-1]


def numbers(message, number):
    out = []
    for value in message.get(number, []):
        if isinstance(value, int):
            out.append(value)
            continue
        at = 0
        while at < len(value):
            v, at = varint(value, at)
            out.append(v)
    return out


def any_text(data, strings):
    value = fields(data)
    if 1 in value:
        return one(value, 1).decode()
    if 8 in value:
        return strings[one(value, 8)]
    return str(one(value, 3)) if 3 in value else ""


class Dictionary:
    def __init__(self, data):
        d = fields(data)
        self.strings = [s.decode() for s in d.get(5, [])]
        self.mappings, self.locations, self.functions, self.links, self.attributes, self.stacks = (
            [fields(x) for x in d.get(n, [])] for n in (1, 2, 3, 4, 6, 7))

    def attribute(self, index):
        a = self.attributes[index]
        return self.strings[one(a, 1)], any_text(one(a, 2, b""), self.strings)

    def frame(self, index):
        location = self.locations[index]
        mapping = self.mappings[one(location, 1)]
        attributes = dict(self.attribute(i) for i in numbers(mapping, 5))
        names = [self.strings[one(self.functions[one(fields(l), 1)], 1)] for l in location.get(3, [])]
        address = one(location, 2)
        return ":".join([attributes.get("process.executable.build_id.gnu", ""), self.strings[one(mapping, 4)],
                         f"{address:x}" if address else "", "/".join(names)])


def main(path, wanted_type=None):
    with open(path, "rb") as f:
        request = fields(f.read())
    dictionary = Dictionary(one(request, 2, b""))
    for resource_profiles in map(fields, request.get(1, [])):
        resource = {}
        for kv in fields(one(resource_profiles, 1, b"")).get(1, []):
            kv = fields(kv)
            key = dictionary.strings[one(kv, 3)] if 3 in kv else one(kv, 1).decode()
            resource[key] = any_text(one(kv, 2, b""), dictionary.strings)
        for scope in map(fields, resource_profiles.get(2, [])):
            for profile in map(fields, scope.get(2, [])):
                if wanted_type and dictionary.strings[one(fields(one(profile, 1, b"")), 1)] != wanted_type:
                    continue
                for sample in map(fields, profile.get(2, [])):
                    labels = dict(resource)
                    labels.update(dictionary.attribute(i) for i in numbers(sample, 2))
                    if one(sample, 3):
                        link = dictionary.links[one(sample, 3)]
                        labels.update(trace_id=one(link, 1).hex(), span_id=one(link, 2).hex())
                    stack = dictionary.stacks[one(sample, 1)]
                    frames = ";".join(dictionary.frame(i) for i in numbers(stack, 1))
                    text = ";".join(f"{k}={v}" for k, v in sorted(labels.items()))
                    print(sum(numbers(sample, 4)), text, frames, sep="\t")


if __name__ == "__main__":
    main(*sys.argv[1:3])
