# SPDX-License-Identifier: Apache-2.0
# A small debug file with 250 nested inlined calls over 400,000 bytes of code, and a profile with 350,000 addresses in
# it: flushes and re-symbolizations use bounded memory, other objects get their symbols, and queries finish.
# Time limit: 600 s.
. tests/e2e/lib.sh
cairn=$CAIRN_BUILD/cairn # memory is measured, so without sanitizers

code_bytes=400000
address_count=350000
python3 - "$tmp" $code_bytes <<'EOF2'
import sys
where, size = sys.argv[1], sys.argv[2]
with open(where + "/deep.c", "w") as f:
    f.write("static inline __attribute__((always_inline)) void f0(void) { __asm__ volatile(\".skip %s, 0x90\"); }\n" % size)
    for i in range(1, 250):
        f.write("static inline __attribute__((always_inline)) void f%d(void) { f%d(); }\n" % (i, i - 1))
    f.write("__attribute__((noinline)) void deep(void) { f249(); }\nint main(void) { deep(); return 0; }\n")
with open(where + "/plain.c", "w") as f:
    f.write("__attribute__((noinline)) void plain_part(void) { __asm__ volatile(\"nop\"); }\nint main(void) { plain_part(); return 0; }\n")
EOF2
build() { gcc -g -O1 -Wl,--build-id="0x00000000000000000000000000000000000000$2" -o "$tmp/$1-$2" "$tmp/$1.c"; }
address() { nm "$tmp/$1" | awk -v name="$2" '$3 == name { print $1 }'; }
build deep 01
build plain 11
build deep 02
build plain 12

# send FILE FUNCTION COUNT: one sample of value 1 for each stack of 2,000 addresses from the function on.
send() {
        PYTHONPATH=tests/e2e python3 - "$tmp/$1.pprof" "$(build_id_of "$tmp/$1")" "$(address "$1" "$2")" "$3" "$1" \
                <<'EOF2'
import sys, time
from profiles import blob, num, packed
path, build_id, start, count, name = sys.argv[1], sys.argv[2], int(sys.argv[3], 16), int(sys.argv[4]), sys.argv[5]
out = [blob(1, num(1, 1) + num(2, 2))]
out.append(blob(3, num(1, 1) + num(2, 0) + num(3, 1 << 32) + num(5, 3) + num(6, 4)))
for first in range(0, count, 2000):
    out.append(blob(2, packed(1, range(first + 1, min(count, first + 2000) + 1)) + packed(2, [1])))
out += [blob(4, num(1, 1 + i) + num(2, 1) + num(3, start + i)) for i in range(count)]
out += [blob(6, t) for t in ("", "cpu", "nanoseconds", "/bin/" + name, build_id)]
out.append(num(9, time.time_ns()))
open(path, "wb").write(b"".join(out))
EOF2
        request --data-binary "@$tmp/$1.pprof" "$url/ingest?name=$1&format=pprof"
        is "$code" 200 "samples of $1 are taken"
}
query() {
        curl -sS -m 120 -o "$tmp/answer" -w '%{http_code}' -G "$url/api/v1/query/$1" \
                --data-urlencode "selector={service_name=\"$2\"}" \
                --data-urlencode from=now-1h --data-urlencode to=now
}
folded() { query folded "$1" >/dev/null; cat "$tmp/answer"; }
bounded() { ok "$1 has bounded memory" test "$(peak_memory_kb)" -lt 1500000; }
# Each is answered, or refused because of its size.
queries() {
        for form in top folded; do
                status=$(query $form "$1")
                case $status in 200 | 413) pass "$form is answered ($status)" ;; *) fail "$form is answered" \
                        "$status $(head -c 300 "$tmp/answer")" ;; esac
        done
}

# ---- symbols first: the head, and the flush ----

start_server --flush-interval 3600
put_object debuginfo "$tmp/deep-01"
is "$code" 201 "deep symbols come first"
put_object debuginfo "$tmp/plain-11"
wait_metric cairn_objects_indexed_total 2
send deep-01 deep $address_count
send plain-11 plain_part 1
queries deep-01
bounded "a query of the head"
stop_server
start_server --flush-interval 3600
becomes 0 "everything was flushed" metric cairn_queue_batches
like "$(folded plain-11)" 'plain_part' "another object of the flush has its symbols"
like "$(folded deep-01)" 'f249;f248.*;f0' "the deep object has its symbols as far as memory permitted"
queries deep-01
bounded "a query of the table"
stop_server

# ---- samples first: both objects wait for one round of re-symbolization ----

start_server --flush-interval 3600
send deep-02 deep 120000
send plain-12 plain_part 1
stop_server
start_server --flush-interval 3600
becomes 0 "samples without symbols were flushed" metric cairn_queue_batches
put_object debuginfo "$tmp/deep-02"
put_object debuginfo "$tmp/plain-12"
resolved() { folded plain-12 | grep -q plain_part; }
wait_for "the other object to get its symbols" resolved
wait_for "the queue of re-symbolization to be empty" metric_equals cairn_resymbolize_queue 0
is "$(metric cairn_resymbolize_failures_total)" 0 "no round failed"
like "$(folded deep-02)" 'f249;f248.*;f0' "the re-symbolized deep object has its symbols as far as memory permitted"
queries deep-02
bounded "a re-symbolization"
stop_server
done_testing
