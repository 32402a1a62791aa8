# SPDX-License-Identifier: Apache-2.0
"""Writes JFR recordings for tests, and reads the output of the JDK's reader for real ones.

    jfr.py make FILE [broken KIND]   a recording of one chunk with known samples, or a broken one
    jfr.py times FILE [NAME=VALUE]... [cpu-time] [native-lock] [none]
                                     3 execution and 5 wall clock samples with these settings of async-profiler (event=,
                                     interval=, wall=, nobatch=) or the JDK (period=); with 2 CPU time samples of 7 ms;
                                     with 4 events that are not used; without all samples
    jfr.py labels FILE               the labels of its contexts, as Pyroscope's Java agent sends them
    jfr.py slow FILE                 a compressed recording whose constants take seconds to read
    jfr.py corpus DIR                good/ and bad/ recordings for the fuzz target
    jfr.py stacks EVENT [FIELD]      from "jfr print --json" on standard input: folded stacks with counts, or sums of FIELD
    jfr.py lines EVENT               the same: "FUNCTION LINE" of every frame, sorted
"""
import json
import os
import re
import struct
import sys
from collections import Counter
from profiles import blob, num

PRIMITIVES = ["boolean", "byte", "char", "short", "int", "long", "float", "double", "java.lang.String"]
CLASSES = {name: 4 + i for i, name in enumerate(PRIMITIVES)}
TICKS_PER_S = 2000000000


def number(v):
    out = bytearray()
    for _ in range(8):
        if v < 0x80:
            return bytes(out) + bytes([v])
        out.append(v & 0x7F | 0x80)
        v >>= 7
    return bytes(out) + bytes([v & 0xFF])


def text(s):
    if s is None:
        return b"\0"
    if s == "":
        return b"\1"
    if all(ord(c) < 256 for c in s) and any(ord(c) > 127 for c in s):
        data = s.encode("latin-1")
        return b"\5" + number(len(data)) + data
    data = s.encode()
    return b"\3" + number(len(data)) + data


def chars(s):
    return b"\4" + number(len(s)) + b"".join(number(ord(c)) for c in s)


class Metadata:
    def __init__(self):
        self.texts, self.elements = [], []

    def i(self, s):
        if s not in self.texts:
            self.texts.append(s)
        return number(self.texts.index(s))

    def element(self, name, attributes, children=()):
        out = self.i(name) + number(len(attributes))
        for k, v in attributes.items():
            out += self.i(k) + self.i(v)
        return out + number(len(children)) + b"".join(children)

    def add(self, id, name, fields=()):
        """fields: (name, class id, "pool", "array" or "")."""
        children = []
        for field, of, how in fields:
            a = {"name": field, "class": str(of)}
            if how == "pool":
                a["constantPool"] = "true"
            if how == "array":
                a["dimension"] = "1"
            children.append(self.element("field", a, [self.element("annotation", {"class": "99"})]))
        self.elements.append(self.element("class", {"name": name, "id": str(id)}, children))

    def bytes(self):
        root = self.element("root", {}, [self.element("metadata", {}, self.elements), self.element("region", {"gmtOffset": "0"})])
        return number(1) + number(0) + number(1) + number(len(self.texts)) + b"".join(text(t) for t in self.texts) + root


def event(type, payload):
    for n in range(1, 6):
        size = len(payload) + len(number(type)) + n
        if len(number(size)) == n:
            return number(size) + number(type) + payload
    raise AssertionError


MS = TICKS_PER_S // 1000
TRACE, FRAME, METHOD, CLASS, SYMBOL, STATE, FRAMETYPE, THREAD, ODD = 30, 31, 32, 33, 34, 35, 36, 37, 38
EXEC, WALL, TLAB, OUTSIDE, ALLOC, LOCK, PARK, NATIVE, SETTING, OTHER, LIVE, MALLOC, CPU_TIME, NATIVE_LOCK = range(50, 64)


def metadata():
    m = Metadata()
    c = CLASSES
    for name, id in c.items():
        m.add(id, name)
    m.add(TRACE, "jdk.types.StackTrace", [("truncated", c["boolean"], ""), ("frames", FRAME, "array")])
    m.add(FRAME, "jdk.types.StackFrame", [("method", METHOD, "pool"), ("lineNumber", c["int"], ""), ("bytecodeIndex", c["int"], ""), ("type", FRAMETYPE, "pool")])
    m.add(METHOD, "jdk.types.Method", [("type", CLASS, "pool"), ("name", SYMBOL, "pool"), ("descriptor", SYMBOL, "pool"), ("modifiers", c["int"], ""), ("hidden", c["boolean"], "")])
    m.add(CLASS, "java.lang.Class", [("name", SYMBOL, "pool"), ("modifiers", c["int"], "")])
    m.add(SYMBOL, "jdk.types.Symbol", [("string", c["java.lang.String"], "")])
    m.add(STATE, "jdk.types.ThreadState", [("name", c["java.lang.String"], "")])
    m.add(FRAMETYPE, "jdk.types.FrameType", [("description", c["java.lang.String"], "")])
    m.add(THREAD, "java.lang.Thread", [("osName", c["java.lang.String"], ""), ("odd", ODD, "")])
    m.add(ODD, "test.Odd", [("floats", c["float"], "array"), ("d", c["double"], ""), ("s", c["short"], "")])
    common = [("startTime", c["long"], ""), ("eventThread", THREAD, "pool"), ("stackTrace", TRACE, "pool")]
    timed = [("startTime", c["long"], ""), ("duration", c["long"], ""), ("eventThread", THREAD, "pool"), ("stackTrace", TRACE, "pool")]
    context = [("contextId", c["long"], "")]
    m.add(EXEC, "jdk.ExecutionSample", common + [("state", STATE, "pool")] + context + [("spanId", c["long"], ""), ("spanName", c["long"], "")])
    m.add(WALL, "profiler.WallClockSample", common + [("state", STATE, "pool"), ("samples", c["int"], "")])
    m.add(TLAB, "jdk.ObjectAllocationInNewTLAB", common + [("objectClass", CLASS, "pool"), ("allocationSize", c["long"], ""), ("tlabSize", c["long"], "")] + context)
    m.add(OUTSIDE, "jdk.ObjectAllocationOutsideTLAB", common + [("objectClass", CLASS, "pool"), ("allocationSize", c["long"], "")] + context)
    m.add(ALLOC, "jdk.ObjectAllocationSample", common + [("objectClass", CLASS, "pool"), ("weight", c["long"], "")])
    m.add(LOCK, "jdk.JavaMonitorEnter", timed + [("monitorClass", CLASS, "pool"), ("address", c["long"], "")] + context)
    m.add(NATIVE_LOCK, "profiler.NativeLock", timed + [("address", c["long"], "")])
    m.add(PARK, "jdk.ThreadPark", timed + [("parkedClass", CLASS, "pool"), ("timeout", c["long"], "")])
    m.add(NATIVE, "jdk.NativeMethodSample", common + [("state", STATE, "pool")])
    m.add(SETTING, "jdk.ActiveSetting", timed + [("id", c["long"], ""), ("name", c["java.lang.String"], ""), ("value", c["java.lang.String"], "")])
    m.add(OTHER, "jdk.GarbageCollection", [("startTime", c["long"], ""), ("name", c["java.lang.String"], "")])
    m.add(LIVE, "profiler.LiveObject", common + [("objectClass", CLASS, "pool"), ("allocationSize", c["long"], "")])
    m.add(CPU_TIME, "jdk.CPUTimeSample", common + [("failed", c["boolean"], ""), ("samplingPeriod", c["long"], ""), ("biased", c["boolean"], "")])
    m.add(MALLOC, "profiler.Malloc", common + [("address", c["long"], ""), ("size", c["long"], "")])
    return m.bytes()


def pool(type, entries):
    return number(type) + number(len(entries)) + b"".join(number(k) + v for k, v in entries.items())


def constants():
    symbols = ["shop/Cart", "main", "add", "checkout", "shop/Cart$$Lambda$14+0x00007f00c0ffee00", "run", "libc.so.6", "read", "()V", "do_syscall_64", "", "naïve"]
    s = {name: i + 1 for i, name in enumerate(symbols)}
    classes = {1: number(s["shop/Cart"]) + number(1), 2: number(s["shop/Cart$$Lambda$14+0x00007f00c0ffee00"]) + number(1), 3: number(s["libc.so.6"]) + number(0), 4: number(s[""]) + number(0)}
    method = lambda cls, name: number(cls) + number(s[name]) + number(s["()V"]) + number(8) + b"\0"
    methods = {1: method(1, "main"), 2: method(1, "add"), 3: method(1, "checkout"), 4: method(2, "run"), 5: method(3, "read"), 6: method(4, "do_syscall_64"), 7: method(1, "naïve")}
    frame = lambda m, line, kind: number(m) + number(line) + number(3) + number(kind)
    trace = lambda *frames: b"\0" + number(len(frames)) + b"".join(frames)
    traces = {
        1 << 40: trace(frame(2, 12, 3), frame(3, 30, 2), frame(1, 5, 1)),            # add inlined into checkout
        2: trace(frame(6, 0, 6), frame(5, 0, 4), frame(4, 8, 2), frame(1, 6, 1)),    # kernel below libc below a lambda
        3: trace(frame(7, 1, 1), frame(1, 5, 1)),
    }
    kinds = {1: text("Interpreted"), 2: text("JIT compiled"), 3: text("Inlined"), 4: text("Native"), 5: text("C++"), 6: text("Kernel")}
    strings = {i: text(n) for n, i in s.items()}
    strings[s["add"]] = chars("add")
    threads = {9: text("main") + number(2) + b"\0" * 8 + b"\0" * 8 + number(7)}
    pools = [pool(FRAMETYPE, kinds), pool(STATE, {1: text("STATE_RUNNABLE"), 2: text("STATE_SLEEPING"), 3: text("STATE_DEFAULT")}), pool(TRACE, traces), pool(METHOD, methods)]
    more = [pool(CLASS, classes), pool(SYMBOL, strings), pool(THREAD, threads), pool(CLASSES["java.lang.String"], {0: text(None), 1: text("pooled")})]
    return [b"".join([number(1), number(0), number(0), b"\1", number(len(p)), b"".join(p)]) for p in (pools, more)]


def recording(chunks=1, start_ns=None, wall=False, head=None, broken=None):
    out = b""
    for _ in range(chunks):
        common = lambda trace: number(1000) + number(9) + number(trace)
        timed = lambda trace, ticks: number(1000) + number(ticks) + number(9) + number(trace)
        exec = lambda trace, state, context=0, span=0, name=0: event(EXEC, common(trace) + number(state) + number(context) + number(span) + number(name))
        first = 1 << 40
        setting = lambda id, name, value: event(SETTING, timed(0, 0) + number(id) + text(name) + text(value))
        events = [setting(EXEC, "period", "20 ms"), setting(0, "event", "wall" if wall else "cpu"), setting(OTHER, "period", "everyChunk")]
        pools = [event(1, c) for c in constants()]
        events += [pools[0]]
        events += [exec(first, 1)] * 3 + [exec(2, 1, 7, 0xABCDEF, 3)] + [exec(first, 2)] + [exec(2, 1, 8)] * 2 + [exec(0, 1)]
        events += [event(WALL, common(3) + number(1) + number(5))] + [event(NATIVE, common(3) + number(1))] * 2
        events += [event(TLAB, common(first) + number(1) + number(24) + number(1000) + number(7))] * 2
        events += [event(OUTSIDE, common(first) + number(1) + number(5000) + number(0))]
        events += [event(ALLOC, common(2) + number(1) + number(77))] + [event(LIVE, common(2) + number(1) + number(99))]
        events += [event(MALLOC, common(2) + number(4096) + number(300))]
        events += [event(LOCK, timed(3, 2 * TICKS_PER_S) + number(1) + number(64) + number(7))]
        events += [event(PARK, timed(3, TICKS_PER_S // 1000) + number(1) + number(0))]
        events += [event(OTHER, number(5) + b"\2" + number(1))]
        events += [pools[1]]
        if broken == "event":
            events += [event(TLAB, number(1000) + number(9))]
        if broken == "pool":
            events += [event(1, number(1) + number(0) + number(0) + b"\1" + number(1) + number(777) + number(1) + number(0))]
        if broken == "array":
            events += [event(1, number(1) + number(0) + number(0) + b"\1" + number(1) + pool(TRACE, {77: b"\0" + number(1 << 50)}))]
        meta = event(0, metadata() if broken != "metadata" else metadata()[:-9] + b"\xff" * 9)
        body = b"".join(events)
        size = 68 + len(body) + len(meta)
        start = start_ns or 1700000000 * 10**9
        version = 3 if broken == "version" else 2
        out += b"FLR\0" + struct.pack(">HHQQQQQQQI", version, 1, size + (1000 if broken == "cut" else 0), 68, 68 + len(body), start, 10 * 10**9, 0, TICKS_PER_S, 0 if broken == "plain" else 1) + body + meta
    return out


def chunk(events, start_ns):
    body, meta = b"".join(events), event(0, metadata())
    return b"FLR\0" + struct.pack(">HHQQQQQQQI", 2, 1, 68 + len(body) + len(meta), 68, 68 + len(body), start_ns, 10 * 10**9, 0, TICKS_PER_S, 1) + body + meta


def times(start_ns, options):
    settings = dict(o.split("=") for o in options if "=" in o)
    common = number(1000) + number(9) + number(2)
    setting = lambda name, value: event(SETTING, number(1000) + number(0) + number(9) + number(2) + number(EXEC) + text(name) + text(value))
    events = [event(1, c) for c in constants()] + [setting(*s) for s in settings.items()] + [event(OTHER, number(5) + b"\2" + number(1))] * 3
    if "none" not in options:
        events += [event(EXEC, common + number(state) + number(0) * 3) for state in (3, 1, 2)]
        events += [event(WALL, common + number(2) + number(5))]
    if "cpu-time" in options:
        events += [event(CPU_TIME, common + b"\0" + number(7 * MS) + b"\0")] * 2
    if "native-lock" in options:
        events += [event(NATIVE_LOCK, number(1000) + number(7) + number(9) + number(2) + number(0))] * 4
    return chunk(events, start_ns)


def slow(n=40000000):
    """Constants that are arrays of n values of a class without fields, which are encoded in no bytes."""
    m = Metadata()
    m.add(70, "test.Empty")
    m.add(71, "test.Arrays", [("all", 70, "array")])
    m.add(EXEC, "jdk.ExecutionSample", [("startTime", CLASSES["long"], "")])
    arrays = event(1, number(1) + number(0) + number(0) + b"\1" + number(1) + pool(71, {i: number(n) for i in range(15)}) + bytes(n))
    meta = event(0, m.bytes())
    size = 68 + len(arrays) + len(meta)
    return b"FLR\0" + struct.pack(">HHQQQQQQQI", 2, 1, size, 68, 68 + len(arrays), 1700000000 * 10**9, 0, 0, TICKS_PER_S, 1) + arrays + meta


def labels():
    entry = lambda key, value: num(1, key) + value
    strings = {1: "endpoint", 2: "/buy", 3: "span one", 4: "/sell"}
    out = b"".join(blob(2, entry(k, blob(2, v))) for k, v in strings.items())
    out += blob(1, entry(7, blob(2, blob(1, num(1, 1) + num(2, 2)))))
    return out + blob(1, entry(8, blob(2, blob(1, num(1, 1) + num(2, 4)) + blob(1, num(1, 1000) + num(2, 4)))))


def make_corpus(directory):
    for kind, files in {
        "good": {"samples": recording(), "two-chunks-wall": recording(2, wall=True)},
        "bad": {b: recording(broken=b) for b in ("event", "pool", "array", "metadata", "version", "cut", "plain")},
    }.items():
        os.makedirs(f"{directory}/{kind}", exist_ok=True)
        for name, data in files.items():
            with open(f"{directory}/{kind}/{name}", "wb") as f:
                n = len(labels()) if kind == "good" else 0
                f.write(struct.pack("<H", n) + (labels() if n else b"") + data)


# ---- output of jfr print ----

def function(frame):
    m = frame["method"]
    if not m:
        return "[unknown]"
    name = m["type"]["name"]
    name = re.sub(r"[/+.]0x[0-9a-fA-F]+$", "", name)
    name = re.sub(r"(\$\$Lambda\$|Generated(Method|Constructor)Accessor)\d+$", r"\1", name)
    return name + "." + m["name"]


def printed(type):
    for e in json.load(sys.stdin)["recording"]["events"]:
        if e["type"] == type:
            trace = e["values"]["stackTrace"]
            yield e["values"], [(function(f), f["lineNumber"]) for f in trace["frames"]] if trace and trace["frames"] else [("[no stack]", 0)]


def put_stacks(type, field=None):
    sums = Counter()
    for values, frames in printed(type):
        amount = 1
        if field == "duration":
            amount = round(float(values[field][2:-1]) * 1e9)
        elif field:
            amount = int(values[field])
        sums[";".join(f for f, _ in reversed(frames))] += amount
    for stack, n in sorted(sums.items()):
        if n:
            print(stack, n)


def put_lines(type):
    print("\n".join(sorted({f"{f} {max(line, 0)}" for _, frames in printed(type) for f, line in frames})))


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "make":
        import time
        broken = arguments[2] if len(arguments) > 2 else None
        with open(arguments[0], "wb") as f:
            f.write(recording(start_ns=time.time_ns() - 10**9 * 20, broken=broken))
    elif command == "times":
        import time
        with open(arguments[0], "wb") as f:
            f.write(times(time.time_ns() - 10**9 * 20, arguments[1:]))
    elif command == "slow":
        import gzip
        with gzip.open(arguments[0], "wb", compresslevel=1) as f:
            f.write(slow())
    elif command == "labels":
        with open(arguments[0], "wb") as f:
            f.write(labels())
    elif command == "corpus":
        make_corpus(arguments[0])
    else:
        {"stacks": put_stacks, "lines": put_lines}[command](*arguments)
