#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The service's disk is full: clients get an error, no partial data remains, and everything resumes once there is space,
# without a restart.
. tests/e2e/lib.sh
for tool in gcc curl jq; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

gcc -shared -fPIC -D_GNU_SOURCE -I. -o "$tmp/fault_fs.so" tests/faults/fault_fs.c tests/faults/fault_calls.c ||
        bail_out "the preload library does not build"
printf 'int main(void) { return 0; }\n' >"$tmp/program.c"
gcc -g -Wl,--build-id=0x00000000000000000000000000000000000000aa -o "$tmp/program" "$tmp/program.c"
id=00000000000000000000000000000000000000aa
cairn=$CAIRN_BUILD/cairn # a sanitizer's runtime would have to be preloaded first

FAULT_FS_DIR=$data FAULT_FS_FULL=$tmp/full LD_PRELOAD=$tmp/fault_fs.so
export FAULT_FS_DIR FAULT_FS_FULL LD_PRELOAD
start_server --flush-interval 1
unset FAULT_FS_DIR FAULT_FS_FULL LD_PRELOAD
sample() {
        python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" build_id=$id service=full values=7 mapping_file=program \
                addresses=401000
        request -H 'Content-Type: application/x-protobuf' -H "X-Cairn-Batch: $(printf '%032x' "$1")" \
                --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
}
put() {
        request -T "$tmp/program" -H "X-Cairn-Size: $(stat -c %s "$tmp/program")" \
                -H "X-Cairn-SHA256: $(sha256sum "$tmp/program" | cut -d' ' -f1)" "$url/api/v1/debuginfo/$id/debuginfo"
}
sum() { "$cairn" top --server "$url" --json '{service_name="full"}' | jq 'map(.flat) | add // 0'; }

# First the tables are full: a flush might otherwise complete before, and leave none to fail.
printf /tables/ >"$tmp/full.new"
mv "$tmp/full.new" "$tmp/full"
sample 1
is "$code" 200 "a batch is accepted while there is space"
: >"$tmp/full"
failures=$(metric cairn_flush_failures_total)
put
is "$code" 507 "an upload to a full disk is answered with 507"
like "$body" "disk_full" "the response has the reason disk_full"
like "$body" "$data/debuginfo.*No space left on device; make room there" "the response has the path and a remedy"
like "$("$CAIRN_BUILD/cairn-upload" --server "$url" "$tmp/program" 2>&1)" 'No space left on device.*[(]HTTP 507, ' \
        "cairn-upload prints it"
sample 2
is "$code" 503 "a batch is answered with 503: its sender keeps it"
like "$body" "make room there" "the response to the batch says what to do"
is "$(find "$data/debuginfo/objects" "$data/debuginfo/incoming" "$data/debuginfo/partial" -type f)" '' \
        "no partial data remains"
wait_metric cairn_flush_failures_total $((failures + 1))
wait_for "the log" grep -q 'cannot flush: .*make room there' "$server_log"
pass "the log says why the flush waits"

rm "$tmp/full"
put
is "$code" 201 "the upload succeeds once there is free space"
sample 2
is "$code" 200 "the batch is accepted once there is free space"
total_is() { [ "$(sum)" = "$1" ]; }
wait_for "the flush" metric_reached cairn_flushes_total 1
wait_for "both batches" total_is 14
pass "each batch counts once"
stop_server
is "$("$cairn" debuginfo verify --data "$data" >/dev/null 2>&1; echo $?)" 0 "all stored objects are complete"
done_testing
