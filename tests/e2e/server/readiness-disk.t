#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# /readyz while syncs fail, while the queue is full, and while the file system hangs: the condition is reported, probes
# respond at once, and the service is ready again when the cause is removed, without a restart.
. tests/e2e/lib.sh
for tool in gcc curl python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

gcc -shared -fPIC -D_GNU_SOURCE -I. -o "$tmp/fault_fs.so" tests/faults/fault_fs.c tests/faults/fault_calls.c ||
        bail_out "the preload library does not build"
cairn=$CAIRN_BUILD/cairn # a sanitizer's runtime would have to be preloaded first
# start_faulty VARIABLE OPTION...: with faults while the file $tmp/fault exists
start_faulty() {
        variable=$1
        shift
        rm -rf "$data" "$tmp/fault"
        FAULT_FS_DIR=$data LD_PRELOAD=$tmp/fault_fs.so
        export "$variable=$tmp/fault" FAULT_FS_DIR LD_PRELOAD
        start_server "$@"
        unset FAULT_FS_DIR LD_PRELOAD "$variable"
}
# batch NUMBER [KIB]: one sample, in a batch of about that size
batch() {
        python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" service=ready values=7 names="f$1"
        if [ $# -gt 1 ]; then
                python3 -c 'import sys; print("\n".join("r;%06x%s %d" % (n, sys.argv[1], n + 1) for n in range(int(sys.argv[2]) * 4)))' \
                        "$(printf '%0240d' "$1")" "$2" >"$tmp/large.folded"
                request --data-binary "@$tmp/large.folded" \
                        "$url/ingest?name=ready&format=folded&from=$(date +%s)&until=$(($(date +%s) + 1))"
                return
        fi
        request -H 'Content-Type: application/x-protobuf' -H "X-Cairn-Batch: $(printf '%032x' "$1")" \
                --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
}
condition_is() {
        [ "$(metric "cairn_ready_condition{condition=\"$1\"}")" = "$2" ] || return 1
        [ "$(curl -sS --max-time 20 "$url/readyz" | grep -Ec "^(error|warning) $1: ")" = "$2" ]
}
is_well() { [ "$(curl -sS --max-time 20 "$url/readyz")" = ready ]; }
place_fault() {
        printf '%s' "$1" >"$tmp/fault.new"
        mv "$tmp/fault.new" "$tmp/fault"
}

# ---- a sync of the queue fails ----

start_faulty FAULT_FS_BAD_SYNC --flush-interval 1
place_fault /queue/
batch 1
is "$code" 503 "a batch whose sync fails is refused: its sender keeps it"
wait_for "sync_failing" condition_is sync_failing 1
answers 503 '^error sync_failing: the queue refuses batches: .*Input/output error' "/readyz says so" "$url/readyz"
batch 2
is "$code" 503 "later batches are refused while syncs fail"
rm "$tmp/fault"
wait_for "the next segment" is_well
pass "once syncs work again the service is ready, without a restart"
batch 1
is "$code" 200 "  the service accepts the batch"
stop_server

# ---- the queue is full, because nothing is flushed ----

start_faulty FAULT_FS_FULL --flush-interval 1 --memory 256M
place_fault /tables/
n=0
while [ "$n" -lt 200 ]; do
        n=$((n + 1))
        batch $n 2000
        [ "$code" = 200 ] || break
done
is "$code" 429 "batches are refused once the queue is full"
ok "  by its limit" condition_is queue_full 1
answers 503 '^error queue_full: [0-9]+ of [0-9]+ bytes are queued' "/readyz says so" "$url/readyz"
ok "the service is healthy" healthy
rm "$tmp/fault"
wait_for "the flush" is_well
batch 1
is "$code" 200 "after a flush batches are accepted"
stop_server

# ---- the file system hangs ----

start_faulty FAULT_FS_HANG --flush-interval 1
place_fault ''
wait_for "stalled" condition_is stalled 1
answers 200 '^warning stalled: the store has not answered for [0-9]+ s; ' "a file system that hangs is reported" \
        "$url/readyz"
ok "the service is healthy" healthy
rm "$tmp/fault"
wait_for "the file system" is_well
pass "once it answers, the service is well"
stop_server
done_testing
