# SPDX-License-Identifier: Apache-2.0
# Frames resolved by the sender, like the OpenTelemetry eBPF profiler's: kernel addresses relative to _text and to a
# module's .text get lines, and the symbols of a native object replace the sender's frames, which lack inlined calls.
# Its samples have neither a service nor a time.
. tests/e2e/lib.sh

# frames SERVICE: one folded stack, with file names and lines from the locations table.
frames() {
        curl -sS -G "$url/api/v1/query/pprof" --data-urlencode from=now-1h \
                --data-urlencode "selector={service_name=\"$1\"}" >"$tmp/pprof"
        python3 - "$tmp/pprof" <<'END'
import gzip, sys
sys.path.insert(0, "tests/e2e")
data = gzip.decompress(open(sys.argv[1], "rb").read())
def fields(b):
    i = 0
    while i < len(b):
        def number():
            nonlocal i
            v = shift = 0
            while True:
                v |= (b[i] & 127) << shift; shift += 7; i += 1
                if b[i - 1] < 128: return v
        key = number()
        if key & 7 == 2:
            n = number(); yield key >> 3, b[i:i + n]; i += n
        else:
            yield key >> 3, number()
strings, functions, found = [], {}, []
for k, v in fields(data):
    if k == 6: strings.append(v.decode())
for k, v in fields(data):
    if k == 5:
        f = dict(fields(v)); functions[f[1]] = f
for k, v in fields(data):
    if k == 4:
        for j, w in fields(v):
            if j == 4:
                line = dict(fields(w)); f = functions[line[1]]
                name = strings[f.get(2, 0)]
                found.append("%s:%s:%d:%d" % (name, strings[f.get(4, 0)].split("/")[-1], line.get(2, 0), f.get(5, 0)))
print(" ".join(found))
END
}
send_frame() {
        python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" "$@"
        request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
        is "$code" 200 "$1 is accepted"
}
upload() {
        put_object debuginfo "$1"
        like "$code" '^20[01]$' "$(basename "$1") is uploaded"
        wait_for "the index queue to be empty" metric_equals cairn_index_queue 0
}
address() { nm "$1" | awk -v name="$2" '$3 == name { print $1 }'; }
# has_lines SERVICE FILE: its frames have this source file.
has_lines() { frames "$1" | grep -q ":$2:"; }

cat >"$tmp/kernel.c" <<'END'
__attribute__((section(".head.text"), used)) void first(void) { }
__attribute__((noinline)) int do_work(int n) {
        volatile int v = n;
        return v;
}
int _start(int n) { return do_work(n) + 1; }
END
gcc -g -O1 -nostdlib -static -fno-pie -no-pie -mcmodel=kernel -fcf-protection=none -Wl,--build-id=sha1 \
        -Wl,--section-start=.head.text=0xffffffff81000000 -Wl,-Ttext=0xffffffff81200000 -o "$tmp/vmlinux" \
        "$tmp/kernel.c" ||
        bail_out "no kernel could be made"
kernel=$(build_id_of "$tmp/vmlinux")
cat >"$tmp/module.c" <<'END'
__attribute__((section(".text.unlikely"), used, noinline)) int cold(int n) { return n + 2; }
int module_first(int n) { return n; }
__attribute__((noinline)) int module_work(int n) {
        volatile int v = n;
        return v;
}
int module_entry(int n) { return module_work(n) + 1; }
END
gcc -g -O1 -fcf-protection=none -c -o "$tmp/module.o" "$tmp/module.c"
ld -r --build-id=sha1 -o "$tmp/module.ko" "$tmp/module.o"
module=$(build_id_of "$tmp/module.ko")
cat >"$tmp/program.c" <<'END'
static inline __attribute__((always_inline)) int inner(int n) {
        volatile int v = n;
        return v + 1;
}
__attribute__((noinline)) int outer(int n) {
        return inner(n) * 2;
}
int main(int argc, char **argv) { (void)argv; return outer(argc); }
END
gcc -g -O1 -fcf-protection=none -Wl,--build-id=sha1 -o "$tmp/program" "$tmp/program.c"
program=$(build_id_of "$tmp/program")

start_server --flush-interval 1

# ---- kernel addresses relative to _text ----

text_offset=$(python3 -c "print('%x' % (0x$(address "$tmp/vmlinux" do_work) - 0xffffffff81000000))")
send_frame service=kernel build_id="$kernel" mapping_file=vmlinux addresses="$text_offset" sent=do_work::0:0 \
        frame_type=kernel
wait_metric cairn_flushes_total 1
is "$(frames kernel)" "do_work::0:0" "a kernel frame has the name from kallsyms"
upload "$tmp/vmlinux"
wait_for "lines of the kernel" has_lines kernel kernel.c
is "$(frames kernel)" "do_work:kernel.c:3:2" \
        "a kernel frame gets its line and start line, although its address is relative to _text"
is "$("$cairn" symbolize --server "$url" --build-id "$kernel" "0x$(address "$tmp/vmlinux" do_work)" | head -1)" \
        do_work "a link-time address is looked up unchanged"

# ---- modules ----

work=$(address "$tmp/module.ko" module_work)
send_frame service=module build_id="$module" mapping_file=module addresses="$work" sent=module_work.isra.0::0:0 \
        frame_type=kernel
send_frame service=other build_id="$module" mapping_file=module addresses="$work" sent=cold_elsewhere::0:0 \
        frame_type=kernel
wait_metric cairn_flushes_total 2
upload "$tmp/module.ko"
wait_for "lines of the module" has_lines module module.c
is "$(frames module)" "module_work:module.c:4:3" "a module's address is relative to its .text"
is "$(frames other)" "cold_elsewhere::0:0" "a frame that differs from the module's file is unchanged"

# ---- native objects ----

outer=$(address "$tmp/program" outer)
flushed=$(metric cairn_flushes_total)
send_frame service=native build_id="$program" addresses="$outer" sent=outer:/wrong/inner.go:77:40 frame_type=native
wait_metric cairn_flushes_total $((flushed + 1))
is "$(frames native)" "outer:inner.go:77:40" "a native frame is unchanged while the object is unknown"
upload "$tmp/program"
wait_for "lines of the program" has_lines native program.c
like "$(frames native)" '(^| )outer:program.c:[5-7]:5$' "then its symbols are used, including their start line"
send_frame service=again build_id="$program" addresses="$outer" sent=outer:/wrong/inner.go:77:5 frame_type=native
wait_for "the batch to be flushed" has_lines again program.c
pass "  also of a sample that comes later"

# ---- service and time ----

past=$(($(date +%s) - 60))
curl -sS -f -o "$tmp/body" -H 'Content-Type: application/json' --data-binary @- "$url/v1development/profiles" <<END
{"resourceProfiles": [{"resource": {"attributes": [{"key": "process.executable.name",
    "value": {"stringValue": "shopd"}}]},
  "scopeProfiles": [{"profiles": [{"sampleType": {"typeStrindex": 1, "unitStrindex": 2},
      "timeUnixNano": "${past}000000000",
    "periodType": {"typeStrindex": 3, "unitStrindex": 4}, "period": "50000000",
    "samples": [{"stackIndex": 1, "timestampsUnixNano": ["${past}000000000", "${past}500000000"]}]}]}]}],
 "dictionary": {"stringTable": ["", "samples", "count", "cpu", "nanoseconds", "leaf"],
     "functionTable": [{}, {"nameStrindex": 5}],
  "locationTable": [{}, {"lines": [{"functionIndex": 1}]}], "stackTable": [{}, {"locationIndices": [1]}]}}
END
like "$("$cairn" query --server "$url" --from now-1h --values service_name)" '(^|\n)unknown_service:shopd(\n|$)' \
        "a process without a service has its own"
is "$(curl -sS -H 'Content-Type: application/json' -d '{"name":"service_name"}' \
        "$url/querier.v1.QuerierService/LabelValues" |
        jq -c '.names | index("unknown_service:shopd") != null, index("unknown_service") != null')" "true
false" "  in querier.v1, too"
is "$("$cairn" flame --server "$url" --from now-1h --type process_cpu:cpu:nanoseconds:cpu:nanoseconds --format folded \
        '{service_name="unknown_service:shopd"}')" \
        'leaf 100000000' "  the two counts of the leaf are the time of two periods"
done_testing
