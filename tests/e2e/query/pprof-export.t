# SPDX-License-Identifier: Apache-2.0
# Header of an exported pprof file: the first mapping is the program, the duration is that of the samples, the period is
# kept, and only mappings with symbols are marked as such.
. tests/e2e/lib.sh

cat >"$tmp/fields.py" <<'END'
import gzip, sys

def fields(b):
    i = 0
    while i < len(b):
        values = []
        for _ in range(2):
            v = shift = 0
            while True:
                v |= (b[i] & 127) << shift
                shift += 7
                i += 1
                if b[i - 1] < 128:
                    break
            values.append(v)
        if values[0] & 7 == 2:
            yield values[0] >> 3, b[i:i + values[1]]
            i += values[1]
        else:
            yield values[0] >> 3, values[1]

data = gzip.decompress(open(sys.argv[1], "rb").read())
strings = [v.decode() for k, v in fields(data) if k == 6]
mappings = {m[1]: m for m in (dict(fields(v)) for k, v in fields(data) if k == 3)}
for k, v in fields(data):
    if k == 4:
        l = dict(fields(v))
        m = mappings.get(l.get(2))
        if m and m.get(2, 0) <= l.get(3, 0) < m.get(3, 0):
            print("offset", strings[m.get(5, 0)], hex(l[3] - m.get(2, 0) + m.get(4, 0)))
        elif m:
            print("address", strings[m.get(5, 0)], hex(l.get(3, 0)))
    elif k == 3:
        m = dict(fields(v))
        print("mapping", strings[m.get(5, 0)], m.get(7, 0), m.get(9, 0))
    elif k == 2:
        labels = [dict(fields(w)) for n, w in fields(v) if n == 3]
        print("labels", sorted((strings[l[1]], strings[l.get(2, 0)], l.get(3, 0),
                                strings[l.get(4, 0)]) for l in labels))
    elif k == 1:
        print("type", *(strings[w] for n, w in fields(v)))
    elif k == 14:
        print("default", strings[v])
    elif k in (9, 10, 12):
        print({9: "time", 10: "duration", 12: "period"}[k], v)
END
start_server
now=$(date +%s)
# Samples of a kernel, of libc and of two programs; the shop's samples start 100 s ago and last a second each.
for at in 100 50; do
        python3 tests/e2e/profiles.py otlp "$tmp/a" service=shop build_id=11112233445566778899aabbccddeeff00112233 \
                mapping_file=/usr/bin/shop \
                addresses=1000,2000 sent=leaf:a.c:1:1,main:a.c:2:2 frame_type=native values=3,4 \
                at_ns=$((now - at))000000000
        request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/a" "$url/v1development/profiles"
done
python3 - "$tmp" "$now" <<'END'
import sys
sys.path.insert(0, "tests/e2e")
from profiles import Strings, blob, num, packed
s = Strings()
value = lambda a, b: num(1, s(a)) + num(2, s(b))
now = int(sys.argv[2]) - 40
cpu = value("cpu", "nanoseconds")
body = blob(1, cpu) + blob(11, cpu) + num(12, 10000000) + num(9, now * 10**9) + num(10, 5 * 10**9)
objects = (("vmlinux", "aa" * 20), ("/lib/x86_64-linux-gnu/libc.so.6", "bb" * 20), ("/usr/bin/shop", "cc" * 20))
for i, (name, build_id) in enumerate(objects, 1):
    body += blob(3, num(1, i) + num(5, s(name)) + num(6, s(build_id)))
body += blob(5, num(1, 1) + num(2, s("main.main")) + num(4, s("main.go")))
body += blob(4, num(1, 1) + num(2, 1) + num(3, 0xffffffff81000010)) + blob(4, num(1, 2) + num(2, 2) + num(3, 0x1234))
body += blob(4, num(1, 3) + num(2, 3) + num(3, 0x401000) + blob(4, num(1, 1) + num(2, 7)))
body += blob(2, packed(1, [1, 2, 3, 2]) + packed(2, [70])) + blob(2, packed(1, [1, 2]) + packed(2, [900]))
open(sys.argv[1] + "/b", "wb").write(body + b"".join(blob(6, t) for t in s.items))
END
request --data-binary "@$tmp/b" "$url/ingest?name=go-shop&format=pprof"
is "$code" 200 "a profile with a kernel and a library is accepted"

# A program with a load address of its own: what is known of its addresses are offsets in the file.
python3 - "$tmp" "$now" <<'END'
import sys
sys.path.insert(0, "tests/e2e")
from profiles import Strings, blob, num, packed
s = Strings()
body = blob(1, num(1, s("cpu")) + num(2, s("nanoseconds"))) + num(9, (int(sys.argv[2]) - 40) * 10**9)
body += blob(3, num(1, 1) + num(2, 0x400000) + num(3, 0x500000) + num(4, 0x1000) + num(5, s("/usr/bin/fixed")) +
             num(6, s("dd" * 20)))
body += blob(5, num(1, 1) + num(2, s("main")))
body += blob(4, num(1, 1) + num(2, 1) + num(3, 0x401000) + blob(4, num(1, 1) + num(2, 7)))
body += blob(4, num(1, 2) + num(2, 1) + num(3, 0x401234)) + blob(2, packed(1, [2, 1]) + packed(2, [70]))
open(sys.argv[1] + "/fixed", "wb").write(body + b"".join(blob(6, t) for t in s.items))
END
request --data-binary "@$tmp/fixed" "$url/ingest?name=fixed&format=pprof"
is "$code" 200 "a profile of a program with a fixed load address is accepted"

# A heap profile: numbers with and without a unit, a text, and a default sample type that is not the last type.
python3 - "$tmp" "$now" <<'END'
import sys
sys.path.insert(0, "tests/e2e")
from profiles import Strings, blob, num, packed
s = Strings()
body = num(9, (int(sys.argv[2]) - 40) * 10**9) + num(14, s("alloc_space"))
for name in ("alloc_space", "inuse_space"):
    body += blob(1, num(1, s(name)) + num(2, s("bytes")))
body += blob(5, num(1, 1) + num(2, s("allocate"))) + blob(4, num(1, 1) + blob(4, num(1, 1)))
label = lambda key, *more: blob(3, num(1, s(key)) + b"".join(more))
for size in range(1, 21):
    labels = label("bytes", num(3, size << 10)) + label("request", num(3, size), num(4, s("kilobytes"))) + label("hint", num(2, s("hot")))
    body += blob(2, packed(1, [1]) + packed(2, [size << 21, size << 20]) + labels)
open(sys.argv[1] + "/heap", "wb").write(body + b"".join(blob(6, t) for t in s.items))
END
request --data-binary "@$tmp/heap" "$url/ingest?name=heap&format=pprof"
is "$code" 200 "a profile with numeric labels is accepted"

export_of() { "$cairn" flame --server "$url" --from now-1h --format pprof --output "$tmp/out" "{service_name=\"$1\"}" &&
        python3 "$tmp/fields.py" "$tmp/out" >"$tmp/fields"; }
check_exports() {
        export_of go-shop
        is "$(grep -m1 ^mapping "$tmp/fields")" "mapping /usr/bin/shop 1 1" \
                "$1: the first mapping is the program, with symbols"
        is "$(grep ^mapping "$tmp/fields" | sed 1d | sort | tr '\n' ' ')" \
                "mapping /lib/x86_64-linux-gnu/libc.so.6 0 0 mapping vmlinux 0 0 " \
                "$1: those without symbols do not say that they have some"
        is "$(grep -E '^(duration|period|time)' "$tmp/fields" | sort | tr '\n' ' ')" \
                "duration 5000000000 period 10000000 time $((now - 40))000000000 " \
                "$1: time, duration and period are the samples'"
        export_of fixed
        is "$(grep -E '^(offset|address)' "$tmp/fields" | sort | tr '\n' ' ')" \
                'offset /usr/bin/fixed 0x2000 offset /usr/bin/fixed 0x2234 ' \
                "$1: offsets in a file come back as such"
        export_of shop
        is "$(grep -E '^(offset|address)' "$tmp/fields" | sort | tr '\n' ' ')" \
                'address /usr/bin/shop 0x1000 address /usr/bin/shop 0x2000 ' "$1: addresses come back as addresses"
        is "$(grep -E '^(duration|time)' "$tmp/fields" | sort | tr '\n' ' ')" \
                "duration 51000000000 time $((now - 100))000000000 " \
                "$1: of several, from the start of the first to the end of the last"
}
# Numbers come back as numbers; they are neither listed nor part of a series, but can be selected by name.
check_numbers() {
        export_of heap
        is "$(grep -c ^labels "$tmp/fields")" 20 "$1: samples with different numbers remain apart"
        is "$(grep -F "'', 5120," "$tmp/fields")" \
                "labels [('bytes', '', 5120, ''), ('hint', 'hot', 0, ''), ('request', '', 5, 'kilobytes'), ('service_name', 'heap', 0, '')]" \
                "$1: numbers have their unit, texts are texts"
        is "$(grep ^default "$tmp/fields")" "default alloc_space" "$1: the sender's default sample type is kept"
        is "$("$cairn" query --server "$url" --labels | grep -c pprof)" 0 "$1: numbers are not listed as labels"
        is "$("$cairn" query --server "$url" --values __pprof_num_request | grep -c kilobytes)" 20 \
                "$1: a named number has its values"
        body='{"start": 0, "end": '$((now + 60))'000, "matchers": ["{service_name=\"heap\"}"]}'
        request -H 'Content-Type: application/json' --data-binary "$body" "$url/querier.v1.QuerierService/Series"
        is "$(grep -o '"labels":' "$tmp/body" | wc -l)" 2 "$1: and make no series: there is one of each type"
        is "$("$cairn" query --server "$url" --json --type inuse_space --series --step 1h \
                '{service_name="heap",__pprof_num_request="5 kilobytes"}' |
                grep -o '5242880' | head -n 1)" 5242880 "$1: a named number selects"
}
# Frames without addresses, of which only their mapping says that they are in the kernel.
printf 'main;read;sys_read_[k] 5\n' >"$tmp/kernel.folded"
ok "kernel frames without addresses are accepted" "$cairn" import --server "$url" --label service.name=kernel \
        "$tmp/kernel.folded"
check_kernel() {
        export_of kernel
        is "$("$cairn" flame --profile "$tmp/out" --format folded 2>/dev/null)" "main;read;sys_read_[k] 5" \
                "$1: a frame of the kernel is one in the exported file"
}
# Types that have the same sample type, and CPU time in two units and as counts, with several periods.
printf 'main;f 1000000000\n' >"$tmp/mutex.folded"
request --data-binary "@$tmp/mutex.folded" "$url/ingest?name=locks&format=folded&units=lock_nanoseconds"
is "$code" 200 "a mutex profile is accepted"
printf 'main;f 3000000000\n' >"$tmp/block.folded"
request --data-binary "@$tmp/block.folded" "$url/ingest?name=locks.block_duration&format=folded"
is "$code" 200 "a block profile is accepted"
python3 - "$tmp" "$now" <<'END'
import sys
sys.path.insert(0, "tests/e2e")
from profiles import Strings, blob, num, packed
for name, sample_type, unit, period_unit, period, value in (
        ("ns", "cpu", "nanoseconds", "nanoseconds", 20000000, 1000000000),
        ("us", "cpu", "microseconds", "microseconds", 1000, 2000000),
        ("count", "samples", "count", "nanoseconds", 10000000, 50)):
    s = Strings()
    body = blob(1, num(1, s(sample_type)) + num(2, s(unit))) + blob(11, num(1, s("cpu")) + num(2, s(period_unit)))
    body += num(12, period) + num(9, (int(sys.argv[2]) - 40) * 10**9)
    body += blob(5, num(1, 1) + num(2, s("work"))) + blob(4, num(1, 1) + blob(4, num(1, 1)))
    body += blob(2, packed(1, [1]) + packed(2, [value]) + blob(3, num(1, s("sender")) + num(2, s(name))))
    open(sys.argv[1] + "/" + name, "wb").write(body + b"".join(blob(6, t) for t in s.items))
END
for sender in ns us count; do
        request --data-binary "@$tmp/$sender" "$url/ingest?name=mixed&format=pprof"
        is "$code" 200 "CPU time as $sender is accepted"
done
total_of() { "$cairn" top "$@" 2>/dev/null | sed -n '1s/ in .*//p'; }
check_types() {
        export_of locks
        is "$(grep ^type "$tmp/fields" | tr '\n' ' ')" 'type block_delay nanoseconds type mutex_delay nanoseconds ' \
                "$1: types with the same sample type have names of their own"
        is "$(total_of --profile "$tmp/out" --type block) $(total_of --profile "$tmp/out" --type mutex)" \
                '3.00 s 1.00 s' "$1: and come back as what they were"
        export_of mixed
        is "$(grep -E '^(type|period)' "$tmp/fields" | tr '\n' ' ')" \
                'type cpu nanoseconds type samples count period 20000000 ' "$1: CPU time is one type"
        is "$(total_of --profile "$tmp/out") $(total_of --profile "$tmp/out" --type samples)" \
                '3.50 s 50' "$1: it is that of all senders"
        is "$(total_of --server "$url" --from now-1h '{service_name="mixed"}')" '3.50 s' \
                "$1: as in other views"
}
check_exports "from memory"
check_numbers "from memory"
check_kernel "from memory"
check_types "from memory"
stop_server
start_server
check_exports "from files"
check_numbers "from files"
check_kernel "from files"
check_types "from files"
done_testing
