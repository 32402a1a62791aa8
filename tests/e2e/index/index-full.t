#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The index's map, the map of the debuginfo records, and the disk below the index are full: profiles are accepted as
# before, no object is marked as failed, the log and the metrics suggest a remedy, and with free space all objects are
# indexed.
# Time limit: 600 s.
. tests/e2e/lib.sh
for tool in gcc as ld curl jq zstd python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

gcc -shared -fPIC -D_GNU_SOURCE -I. -o "$tmp/fault_fs.so" tests/faults/fault_fs.c tests/faults/fault_calls.c ||
        bail_out "the preload library does not build"

# symbols ID COUNT FILE: an ELF file with this many functions, whose names do not compress.
symbols() {
        python3 - "$2" >"$tmp/many.s" <<'END'
import random, sys
random.seed(sys.argv[1])
for n in range(int(sys.argv[1])):
    name = "f%d_%x" % (n, random.getrandbits(512))
    print(f".globl {name}\n.type {name}, @function\n{name}: nop\nret\n.size {name}, 2")
END
        as -o "$tmp/many.o" "$tmp/many.s" &&
                ld -shared --build-id="0x00000000000000000000000000000000000000$1" -o "$3" "$tmp/many.o"
}
symbols a1 20000 "$tmp/large.so"
symbols a2 10 "$tmp/small.so"
symbols a3 12 "$tmp/late.so"
id() { printf '%038d%s' 0 "$1"; }
sample() {
        python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" build_id="$(id a1)" service=full values=7 \
                mapping_file=large.so addresses=1000
        request -H 'Content-Type: application/x-protobuf' -H "X-Cairn-Batch: $(printf '%032x' "$1")" \
                --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
}
state() { "$CAIRN_BUILD/cairn" debuginfo show "$(id "$1")" --server "$url" --json | jq -r ".objects[0].index.state"; }
is_state() { [ "$(state "$1")" = "$2" ]; }

# ---- the index's map ----

export CAIRN_INDEX_MAP_MIB=1
start_server --flush-interval 1
put_object executable "$tmp/large.so"
is "$code" 201 "an object whose symbols do not fit into the index is stored"
wait_metric cairn_index_postponed 1
pass "its symbols wait"
is "$(metric cairn_objects_failed_total)" 0 "  the object has not failed"
is "$(state a1)" pending "  its state is pending"
wait_for "the log" grep -q 'index.* is full; set CAIRN_INDEX_MAP_MIB to more.*retrying in' "$server_log"
pass "the log says what to do"
put_object executable "$tmp/small.so"
wait_for "the small one" is_state a2 indexed
pass "an object that fits is indexed beside it"
sample 1
is "$code" 200 "a batch is accepted"
wait_metric cairn_flushes_total 1
pass "  and flushed"
wait_metric cairn_index_postponed_total 3
# one may be in progress
each_is_logged() { [ "$(grep -c 'is full; set' "$server_log")" = "$(metric cairn_index_postponed_total)" ]; }
wait_for "the log of the last attempt" each_is_logged
pass "each attempt is one line of the log"
ok "the service is healthy" healthy
stop_server
CAIRN_INDEX_MAP_MIB=64
start_server
wait_for "the large one" is_state a1 indexed
pass "with a larger map it is indexed at the start"
is "$(metric cairn_index_postponed)" 0 "nothing is pending any more"
stop_server
unset CAIRN_INDEX_MAP_MIB

# ---- the map of the records ----

many=$(i=0; while [ $i -lt 300 ]; do printf -- "--add-section .a_long_name_of_a_section.%d=$tmp/one.otlp " \
        $i; i=$((i + 1)); done)
export CAIRN_DEBUGINFO_MAP_MIB=1
rm -rf "$data"
start_server --flush-interval 1
printf 'int main(void) { return 0; }\n' >"$tmp/p.c"
gcc -Wl,--build-id="0x$(printf 'ab%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20)" -o "$tmp/plain" "$tmp/p.c"
# shellcheck disable=SC2086  # many options
objcopy $many "$tmp/plain" "$tmp/base"
n=0
code=201
while [ "$code" = 201 ] && [ $n -lt 150 ]; do
        n=$((n + 1))
        python3 -c 'import sys; f, t, n = sys.argv[1:]; open(t, "wb").write(open(f, "rb").read().replace(b"\xab" * 20, (int(n) + 4096).to_bytes(20, "big")))' \
                "$tmp/base" "$tmp/p" $n
        put_object executable "$tmp/p"
done
is "$code" 507 "an upload whose record does not fit is answered with 507"
like "$body" 'is full; set CAIRN_DEBUGINFO_MAP_MIB to more.*disk_full' "the refusal has a remedy"
sample 2
is "$code" 200 "a batch is accepted"
answers 200 . "what is stored is served" "$url/buildid/$(printf '%040x' 4097)/executable"
ok "the service is healthy" healthy
stop_server
unset CAIRN_DEBUGINFO_MAP_MIB
start_server
put_object executable "$tmp/p"
is "$code" 201 "an upload succeeds with a larger map"
stop_server

# ---- the disk below the index ----

cairn=$CAIRN_BUILD/cairn # a sanitizer's runtime would have to be preloaded first
rm -rf "$data"
FAULT_FS_DIR=$data FAULT_FS_FULL=$tmp/full LD_PRELOAD=$tmp/fault_fs.so
export FAULT_FS_DIR FAULT_FS_FULL LD_PRELOAD
start_server --flush-interval 1
unset FAULT_FS_DIR FAULT_FS_FULL LD_PRELOAD
put_object executable "$tmp/small.so"
wait_for "the small one" is_state a2 indexed
printf /index/ >"$tmp/full.new"
mv "$tmp/full.new" "$tmp/full"
put_object executable "$tmp/large.so"
is "$code" 201 "an upload is accepted while there is no space for the index"
put_object executable "$tmp/late.so"
wait_metric cairn_index_postponed 2
is "$(metric cairn_objects_failed_total)" 0 "its symbols are pending"
wait_for "the log" grep -q 'index.*the disk is full, make room.*retrying in\|index.*No space left.*retrying in' \
        "$server_log"
pass "the log says what to do"
sample 3
is "$code" 200 "a batch is accepted"
rm "$tmp/full"
wait_for "the large one" is_state a1 indexed
wait_for "the other one" is_state a3 indexed
pass "with room again both are indexed, without a restart"
stop_server
done_testing
