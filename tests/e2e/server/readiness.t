#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# /readyz and cairn_ready_condition report problems of the service while they last.
. tests/e2e/lib.sh
for tool in gcc as ld curl zstd python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

gcc -shared -fPIC -D_GNU_SOURCE -I. -o "$tmp/fault_fs.so" tests/faults/fault_fs.c tests/faults/fault_calls.c ||
        bail_out "the preload library does not build"
# An ELF file whose names do not compress: its symbols exceed the map of 1 MiB.
python3 - >"$tmp/many.s" <<'END'
import random
random.seed(1)
for n in range(20000):
    name = "f%d_%x" % (n, random.getrandbits(512))
    print(f".globl {name}\n.type {name}, @function\n{name}: nop\nret\n.size {name}, 2")
END
as -o "$tmp/many.o" "$tmp/many.s" &&
        ld -shared --build-id=0x00000000000000000000000000000000000000a1 -o "$tmp/large.so" "$tmp/many.o"
sample() {
        python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" build_id=00000000000000000000000000000000000000a1 \
                service=ready \
                values=7 mapping_file=large.so addresses=1000
        request -H 'Content-Type: application/x-protobuf' -H "X-Cairn-Batch: $(printf '%032x' "$1")" \
                --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
}
# condition_is NAME 0|1: checks the metric and the line in /readyz.
condition_is() {
        [ "$(metric "cairn_ready_condition{condition=\"$1\"}")" = "$2" ] || return 1
        [ "$(curl -sS --max-time 20 "$url/readyz" | grep -Ec "^(error|warning) $1: ")" = "$2" ]
}
is_well() { [ "$(curl -sS --max-time 20 "$url/readyz")" = ready ] && ! curl -sS --max-time 20 "$url/metrics" |
        grep -q '^cairn_ready_condition.* 1$'; }

# ---- warnings: batches in the quarantine, an index that is full ----

aside=$data/profiles/queue/quarantine/00000000000000000099-00112233445566778899aabbccddeeff.batch
mkdir -p "${aside%/*}"
printf 'no batch' >"$aside"
CAIRN_INDEX_MAP_MIB=1
export CAIRN_INDEX_MAP_MIB
start_server --flush-interval 1
ok "a batch in the quarantine is a condition" condition_is quarantine 1
answers 200 '^warning quarantine: 1 batch of 8 bytes .*cairn store quarantine' \
        "  that leaves the service ready and says what to do" "$url/readyz"
is "$(metric 'cairn_ready_condition{condition="index_failing"}')" 0 "the index has room"
put_object executable "$tmp/large.so"
wait_for "the full index" condition_is index_failing 1
pass "symbols that the index has no room for are a condition"
answers 200 '^warning index_failing: .*is full; set CAIRN_INDEX_MAP_MIB to more' \
        "  that leaves the service ready and says what to do" "$url/readyz"
like "$body" '^ready' "  in its first line"
sample 1
is "$code" 200 "  batches are accepted while the index is full"
stop_server
CAIRN_INDEX_MAP_MIB=64
ok "the quarantine is emptied" "$cairn" store quarantine remove all --data "$data"
start_server
wait_for "neither condition" is_well
pass "with a larger map and an empty quarantine nothing is reported"
stop_server
unset CAIRN_INDEX_MAP_MIB

# ---- errors: the tables cannot be written, the disk is full ----

cairn=$CAIRN_BUILD/cairn # a sanitizer's runtime would have to be preloaded first
rm -rf "$data"
FAULT_FS_DIR=$data FAULT_FS_FULL=$tmp/full LD_PRELOAD=$tmp/fault_fs.so
export FAULT_FS_DIR FAULT_FS_FULL LD_PRELOAD
start_server --flush-interval 1
unset FAULT_FS_DIR FAULT_FS_FULL LD_PRELOAD
is_well_now() { if is_well; then pass "$1"; else fail "$1" "$(curl -sS "$url/readyz")"; fi; }
is_well_now "an empty store is ready"
printf /tables/ >"$tmp/full.new"
mv "$tmp/full.new" "$tmp/full"
sample 2
is "$code" 200 "a batch is accepted"
wait_for "the flush that fails" condition_is flush_failing 1
answers 503 '^error flush_failing: cannot flush: .*No space left' "a failing flush makes the service not ready" \
        "$url/readyz"
like "$body" '^not ready' "  in its first line"
is "$(metric 'cairn_ready_condition{condition="disk_full"}')" 0 "the disk has room elsewhere"
ok "it is healthy" healthy
: >"$tmp/full"
wait_for "the full disk" condition_is disk_full 1
answers 503 '^error disk_full: 0 MiB are free in .*; free disk space' "a full disk makes the service not ready" \
        "$url/readyz"
sample 3
is "$code" 503 "  batches are refused while the disk is full"
rm "$tmp/full"
wait_for "nothing to report" is_well
pass "with room again the service is ready, without a restart"
sample 3
is "$code" 200 "  batches are accepted again"
stop_server
done_testing
