# SPDX-License-Identifier: Apache-2.0
# Part of symbolize-http.t: the detailed checks.
import json
import random
import socket
import subprocess
import sys
import time
import urllib.request

what, url, tmp, python_id = sys.argv[1:5]
sys.path.insert(0, tmp)
import symbolize_pb2 as pb  # noqa: E402

API = url + "/api/v1/symbolize"


def post(to, body, kind="application/json", **headers):
    request = urllib.request.Request(to, body, {"Content-Type": kind, **headers})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return answer.read(), answer.headers


def as_json(objects):
    return json.dumps({"objects": [{"build_id": i, "addresses": [hex(a) for a in on]} for i, on in objects]}).encode()


def as_proto(objects):
    request = pb.SymbolizeRequest()
    for build_id, addresses in objects:
        request.objects.add(build_id=bytes.fromhex(build_id)).addresses.extend(addresses)
    return request.SerializeToString()


def merge(answer, objects):
    """Converts a protobuf response to the structure of the JSON one."""
    out = {}
    for o in answer.objects:
        merged = out.setdefault(o.index, {"build_id": o.build_id.hex(), "state": o.state, "quality": o.quality,
                                          "generation": o.generation, "results": []})
        at = 0
        for i, count in enumerate(o.frame_counts):
            frames = []
            for f in range(at, at + count):
                function = answer.functions[o.functions[f] - 1] if o.functions[f] else pb.SymbolizeAnswer.Function()
                frames.append({"function": function.name, "linkage_name": function.linkage_name,
                               "file": answer.files[o.files[f] - 1] if o.files[f] else "", "line": o.lines[f],
                               "inlined": f + 1 < at + count})
            at += count
            state = o.states[i] if o.states else 0
            merged["results"].append({"address": hex(objects[o.index][1][len(merged["results"])]),
                                      "state": answer.states[state - 1] if state else "resolved", "frames": frames})
        assert at == len(o.functions) == len(o.files) == len(o.lines)
    return [out[i] for i in sorted(out)]


def python_addresses(count):
    text = subprocess.run(["readelf", "-SW", "/usr/bin/python3.11"], capture_output=True, text=True).stdout
    line = next(l for l in text.splitlines() if " .text " in l).split("PROGBITS")[1].split()
    start, size = int(line[0], 16), int(line[2], 16)
    random.seed(1)
    return [start + random.randrange(size) for _ in range(count)]


def check_offsets():
    """Offsets into the file must give the same results as their addresses, in JSON and in protobuf."""
    text = subprocess.run(["readelf", "-SW", "/usr/bin/python3.11"], capture_output=True, text=True).stdout
    line = next(l for l in text.splitlines() if " .text " in l).split("PROGBITS")[1].split()
    shift = int(line[0], 16) - int(line[1], 16)
    assert shift, "addresses are offsets: the program does not tell them apart"
    addresses = python_addresses(500)
    offsets = [a - shift for a in addresses]
    fixed = symbols_of(tmp + "/fixed")["leaf"][0]
    body = {"objects": [{"build_id": python_id, "addresses": list(map(hex, addresses))},
                        {"addresses": list(map(hex, offsets)), "file_offsets": True, "build_id": python_id},
                        {"build_id": python_id, "addresses": [hex(2**40)], "file_offsets": True},
                        {"build_id": "e1e2e3e4d5d6c7c8a1a2a3a4a5a6a7a8b1b2b3b4", "addresses": [hex(fixed - 0x400000)],
                         "file_offsets": True}]}
    answer = json.loads(post(API, json.dumps(body).encode())[0])["objects"]
    assert [o.get("file_offsets", False) for o in answer] == [False, True, True, True]
    assert [r["address"] for r in answer[1]["results"]] == list(map(hex, offsets))
    assert [r["frames"] for r in answer[1]["results"]] == [r["frames"] for r in answer[0]["results"]]
    assert sum(r["state"] == "resolved" for r in answer[1]["results"]) > 450
    assert answer[2]["results"][0]["state"] == "not_in_object", answer[2]
    assert answer[3]["results"][0]["state"] == "outside", answer[3]
    request = pb.SymbolizeRequest()
    for o in body["objects"]:
        request.objects.add(build_id=bytes.fromhex(o["build_id"]), file_offsets=o.get("file_offsets", False),
                            addresses=[int(a, 16) for a in o["addresses"]])
    columns = pb.SymbolizeAnswer()
    columns.ParseFromString(post(API, request.SerializeToString(), "application/x-protobuf")[0])
    assert [o.file_offsets for o in columns.objects] == [False, True, True, True]
    assert columns.objects[1].functions == columns.objects[0].functions and columns.objects[1].lines == columns.objects[0].lines


def symbols_of(path):
    text = subprocess.run(["readelf", "-sW", path], capture_output=True, text=True).stdout
    return {f[7]: (int(f[1], 16), int(f[2], 0)) for f in map(str.split, text.splitlines()) if len(f) == 8 and f[3] == "FUNC"}


def debug_id(build_id):
    b = (bytes.fromhex(build_id) + bytes(16))[:16]
    return (b[3::-1] + b[5:3:-1] + b[7:5:-1] + b[8:]).hex().upper() + "0"


def check_shapes():
    addresses = python_addresses(20000)
    objects = [(python_id, addresses), ("00ff", [1, 2**64 - 1]), (python_id, []), (python_id, [0] + addresses[:5])]
    text, headers = post(API, as_json(objects))
    answer = json.loads(text)["objects"]
    assert headers["Transfer-Encoding"] == "chunked" and headers["Content-Type"] == "application/json"
    packed, headers = post(API, as_proto(objects), "application/x-protobuf")
    assert headers["Content-Type"] == "application/x-protobuf"
    columns = pb.SymbolizeAnswer()
    columns.ParseFromString(packed)
    assert merge(columns, objects) == answer, "JSON and protobuf differ"
    assert len({f.SerializeToString() for f in columns.functions}) == len(columns.functions), "a name came twice"
    print("JSON %d bytes, protobuf %d bytes" % (len(text), len(packed)))
    states = [r["state"] for o in answer for r in o["results"]]
    assert states.count("resolved") > 19000 and states[20000:20002] == ["no_debuginfo"] * 2 and states[20002] == "not_in_object"
    assert [len(o["results"]) for o in answer] == [20000, 2, 0, 6]
    assert answer[1]["state"] == "absent" and answer[3]["results"][1:] == answer[0]["results"][:5]
    again, _ = post(API, as_json(objects), Accept="application/x-protobuf")
    columns.ParseFromString(again)
    assert merge(columns, objects) == answer, "Accept is not heard"
    for coding, tool in (("gzip", ["gzip", "-dc"]), ("zstd", ["zstd", "-dcq"])):
        body, headers = post(API, as_json(objects), **{"Accept-Encoding": coding})
        assert headers["Content-Encoding"] == coding
        assert subprocess.run(tool, input=body, capture_output=True).stdout == text, coding
    local = json.loads(subprocess.run([sys.argv[5], "symbolize", "-e", "/usr/bin/python3.11", "--format=json",
                                       *map(hex, addresses[:500])], capture_output=True).stdout)
    for ours, theirs in zip(answer[0]["results"], local["results"]):
        for frame in theirs["frames"]:
            if frame["linkage_name"] == frame["function"]:
                frame["linkage_name"] = ""
        assert ours == theirs, "the service says %s, the file %s" % (ours, theirs)


def check_symbolicate():
    addresses = python_addresses(3000)
    fixed, short = symbols_of(tmp + "/fixed"), symbols_of(tmp + "/short")
    python = symbols_of("/usr/lib/debug/.build-id/%s/%s.debug" % (python_id[:2], python_id[2:]))
    fixed_id = "e1e2e3e4d5d6c7c8a1a2a3a4a5a6a7a8b1b2b3b4"
    assert debug_id(fixed_id) == "E4E3E2E1D6D5C8C7A1A2A3A4A5A6A7A80"
    job = {"memoryMap": [["python3.11", debug_id(python_id)], ["fi\u00e9\"xed", debug_id(fixed_id)], ["absent", debug_id("77" * 20)],
                         ["short", debug_id("a1b2c3d4e5f6")], ["odd", "XYZ"]],
           "stacks": [[[0, a - 0x400000] for a in addresses],
                      [[1, fixed["outer"][0] - 0x400000], [-1, 7], [2, 16], [4, 16],
                       [3, short["leaf"][0]], [1, fixed["leaf"][0] - 0x400000 + 1]], []]}
    for body in (json.dumps({"jobs": [job, {"stacks": [], "memoryMap": []}]}), json.dumps(job)):
        text, headers = post(url + "/symbolicate/v5", body.encode(), "text/plain;charset=UTF-8")
        results = json.loads(text)["results"]
        result = results[0]
        assert headers["Access-Control-Allow-Origin"] is None
        assert len(results) == (2 if "jobs" in body else 1) and len(result["stacks"]) == 3 and result["stacks"][2] == []
        assert result["found_modules"] == {n + "/" + i: n in ("python3.11", 'fi\u00e9"xed', "short") for n, i in job["memoryMap"]}
        python_frames, frames = result["stacks"][0], result["stacks"][1]
        assert [f["frame"] for f in frames] == list(range(6))
        assert frames[0]["module"] == 'fi\u00e9"xed' and int(frames[0]["module_offset"], 16) == fixed["outer"][0] - 0x400000
        assert frames[0]["function"] == "outer" and frames[0]["function_offset"] == "0x0", frames[0]
        assert frames[1] == {"frame": 1, "module": "<unknown>", "module_offset": "0x7"}
        assert frames[2] == {"frame": 2, "module": "absent", "module_offset": "0x10"}
        assert frames[3] == {"frame": 3, "module": "odd", "module_offset": "0x10"}
        assert frames[4]["function"] == "leaf" and frames[4]["function_offset"] == "0x0"
        assert frames[5]["function_offset"] == "0x1" and frames[5]["line"] == 1 and frames[5]["file"].endswith("fixed.c")
    plain = json.loads(post(API, as_json([(python_id, addresses)]))[0])["objects"][0]["results"]
    starts = {}
    for name, (start, size) in python.items():
        starts.setdefault(start, (name, size))
    checked = 0
    for address, frame, expected in zip(addresses, python_frames, plain):
        chain = [{k: f[k] for k in ("function", "file", "line") if f[k]} for f in expected["frames"]]
        got = frame.get("inlines", []) + ([{k: frame[k] for k in ("function", "file", "line") if k in frame}]
                                          if len(frame) > 3 else [])
        assert got == chain, (frame, chain)
        if "function" not in frame:
            continue
        start = address - int(frame["function_offset"], 16)
        name, size = starts.get(start, (None, 0))
        checked += name is not None and address < start + size
    print("%d of %d functions start where .symtab says" % (checked, len(addresses)))
    assert checked > 0.97 * sum(bool(r["frames"]) for r in plain)


def check_profiler():
    """A request like that of the Firefox Profiler, with the response read in the same way: a job per library, with one
    stack each.
    """
    addresses = python_addresses(300)
    libs = [("python3.11", debug_id(python_id), [a - 0x400000 for a in addresses] + [2**32 - 1]),
            ("[kernel.kallsyms]", "", [4096]), ("linux-vdso.so.1", "0" * 33, [16]), ("", debug_id(python_id), [])]
    body = json.dumps({"jobs": [{"memoryMap": [[name, breakpad_id]], "stacks": [[[0, a] for a in asked]]}
                                for name, breakpad_id, asked in libs]}, separators=(",", ":")).encode()
    text, headers = post(url + "/symbolicate/v5", body, "text/plain;charset=UTF-8", Origin="https://profiler.example",
                         **{"User-Agent": "FirefoxProfiler/1.0 (+https://profiler.example)"})
    assert headers["Access-Control-Allow-Origin"] == "https://profiler.example"
    results = json.loads(text)["results"]
    assert [r["found_modules"] for r in results] == [{"%s/%s" % (name, breakpad_id): name in ("python3.11", "")}
                                                     for name, breakpad_id, _ in libs]
    known = {"module_offset": str, "module": str, "frame": int, "function": str, "function_offset": str, "file": str,
             "line": int, "inlines": list}
    named = 0
    for result, (name, _, asked) in zip(results, libs):
        assert len(result["stacks"]) == 1 and len(result["stacks"][0]) == len(asked)
        for frame, address in zip(result["stacks"][0], asked):
            assert all(isinstance(v, known[k]) for k, v in frame.items()), frame
            assert frame["module"] == name and int(frame["module_offset"], 16) == address
            assert ("function" in frame) == ("function_offset" in frame)
            named += "function" in frame and int(frame["function_offset"][2:], 16) <= address
    print("%d of %d frames have a function and where it starts" % (named, len(addresses)))
    assert named > 0.9 * len(addresses)


def memory_kb(pid, key):
    return next(int(l.split()[1]) for l in open("/proc/%s/status" % pid) if l.startswith(key))


def raw(body):
    host, port = url[7:].split(":")
    s = socket.create_connection((host, int(port)))
    s.sendall(b"POST /api/v1/symbolize HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    return s


def check_large():
    pid = sys.argv[5]
    some = python_addresses(100000)
    objects = [(python_id, some * 10)]
    small = as_json([(python_id, some[:1000])])
    expected, _ = post(API, small)
    body = as_json(objects)
    s, size = raw(body), 0
    while n := len(s.recv(1 << 20)):
        size += n
    peak = memory_kb(pid, "VmHWM")
    print("1,000,000 addresses in JSON: %d bytes, the service's peak %d kB" % (size, peak))
    assert size > 200e6 and peak < 120000
    answer = pb.SymbolizeAnswer()
    answer.ParseFromString(post(API, as_proto(objects), "application/x-protobuf")[0])
    assert sum(len(o.frame_counts) for o in answer.objects) == 1000000
    slow = [raw(body) for _ in range(12)]
    for s in slow:
        assert s.recv(12) == b"HTTP/1.1 200"
    begin = time.monotonic()
    for _ in range(10):
        assert post(API, small)[0] == expected
    print("10 requests past 12 readers that don't read: %.2f s" % (time.monotonic() - begin))
    peak = memory_kb(pid, "VmHWM")
    print("the service's peak %d kB" % peak)
    assert peak < 400000
    for s in slow[:6]:
        s.close()
    rest = [len(s.recv(1 << 16)) for s in slow[6:]]
    assert all(rest)


if what == "answers":
    check_shapes()
    check_offsets()
    check_symbolicate()
    check_profiler()
else:
    check_large()
