#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# serve --read-only: calling every route with every method leaves every byte of the directory unchanged, except for the
# reader tables that LMDB shares between processes (lock.mdb).
. tests/e2e/lib.sh
for tool in gcc curl python3 zstd; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

printf 'int main(void) { return 0; }\n' >"$tmp/program.c"
gcc -g -Wl,--build-id=0x00112233445566778899aabbccddeeff00112233 -o "$tmp/program" "$tmp/program.c"
id=$(build_id_of "$tmp/program")
start_server --flush-interval 3600
put_object debuginfo "$tmp/program"
wait_metric cairn_objects_indexed_total 1
python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" "build_id=$id" service=api values=7 addresses=401000 \
        mapping_file=program
request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
stop_server

python3 tests/e2e/read-only.py digest "$data" >"$tmp/before"
start_server --read-only
python3 tests/e2e/read-only.py call "$url" "$id" >"$tmp/calls" || fail "the calls" "the client failed"
report_tap "$tmp/calls"
is "$(curl -sS "$url/api/v1/query/folded?from=0&to=now" | grep -c ' 7$')" 1 "the service still answers queries"
stop_server
python3 tests/e2e/read-only.py digest "$data" >"$tmp/after"
is "$(diff "$tmp/before" "$tmp/after")" "" "every byte of the directory is unchanged"
done_testing
