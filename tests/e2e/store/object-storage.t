#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tables in an S3-compatible store: read where they lie, by another machine, and whole whatever requests fail.
. tests/e2e/lib.sh
for tool in jq python3 curl; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh

. tests/e2e/object-store.sh
address=s3://cairn-test/fleet
# rows_and_sum: as deltalake reads the table.
rows_and_sum() { "$PYTHON" tests/e2e/store/object-store.py sum "$store_port"; }
# sum_of ARGUMENT...: as cairn reads it.
sum_of() { "$cairn" top --from now-1d --type process_cpu:cpu "$@" --json 2>"$tmp/top.log" | jq '[.[].flat] | add'; }
# import_stacks VALUE: samples of two stacks, acknowledged.
import_stacks() {
        printf 'main;work %d\nmain;wait 1\n' "$1" >"$tmp/in.folded"
        "$cairn" import --server "$url" --time $(($(date +%s) - 7200)) \
                --type process_cpu:cpu:nanoseconds:: "$tmp/in.folded" \
                >"$tmp/import.log" 2>&1
}
flushed() { [ "$(metric cairn_queue_batches)" -eq 0 ]; }

# ---- the tables are in the store ----

start_server --store "$address/" --flush-interval 1
like "$(cat "$server_log")" "tables are in $address/tables, whose clock is [-+]0\.[0-9] s" \
        "the service says where its tables are"
is "$(keys | grep probe)" fleet/tables/probe/passed "the probe at the start leaves nothing but its result"
ok "samples are taken" import_stacks 1000
is "$(sum_of --server "$url")" 1001 "a query has them at once"
wait_for "the flush" flushed
like "$(keys)" '^fleet/tables/samples/date=[-0-9]+/part-' "the samples are in the store"
unlike "$(find "$data/profiles/tables" -type f)" 'parquet|json' "no file of the tables is on the disk"
is "$(rows_and_sum)" "2 1001" "deltalake reads them where they are"

# ---- the machine is lost ----

stop_server
mv "$data" "$tmp/first"
is "$(sum_of --data "$tmp/first")" 1001 "a command reads the tables that its directory names"
ok "cairn store verify finds no fault in them" "$cairn" store verify --data "$tmp/first"
is "$("$cairn" store status --data "$tmp/first" --json | jq .tables.samples.rows)" 2 \
        "cairn store status counts their rows"
like "$("$cairn" store files --data "$tmp/first" --json | jq -r '.[0].path')" "^$address/tables/[a-z]+/.*\.parquet\$" \
        "cairn store files has their addresses"
"$cairn" store export --output "$tmp/export.parquet" --from now-1d --data "$tmp/first" '{}' >"$tmp/export.log" 2>&1
is $? 0 "cairn store export reads them"
"$cairn" store compact --data "$tmp/first" >"$tmp/compact.log" 2>&1
is $? 0 "cairn store compact finds nothing to do without a service"
start_server --store "$address" --flush-interval 1
is "$(sum_of --server "$url")" 1001 "another machine with an empty disk has the same samples"
ok "it takes more" import_stacks 5000
wait_for "the flush" flushed
is "$(rows_and_sum)" "4 6002" "new samples join the others in the tables"
stop_server
start_server --flush-interval 1
like "$(cat "$server_log")" "tables are in $address/tables, .* passed the probe 0\.[0-9] hours ago" \
        "a store that passed the probe today is not probed again"
is "$(sum_of --server "$url")" 6002 "the directory remembers its store"
stop_server

# ---- requests fail ----

# A flush is repeated until it succeeds; a start is not, so it comes before.
start_server --flush-interval 1
order faults/20 >"$tmp/order"
wanted=6002
for i in 1 2 3 4; do
        import_stacks $i && wanted=$((wanted + i + 1))
        wait_for "flush $i" flushed
done
is "$wanted" $((6002 + 10 + 4)) "a service whose store fails one request of five takes all batches"
order faults/0 >"$tmp/order"
is "$(sum_of --server "$url")" "$wanted" "a query has each of them once"
kill -9 "$server_pid"
wait "$server_pid" 2>/dev/null
server_pid=
is "$(rows_and_sum)" "12 $wanted" "deltalake has each of them once after kill -9"
start_server --flush-interval 1
is "$(sum_of --server "$url")" "$wanted" "the service that comes back has each of them once"

# ---- the store is away ----

order away >"$tmp/order"
ok "samples are taken while the store is away" import_stacks 9
is "$(sum_of --server "$url")" $((wanted + 10)) "a query finds samples that are not in the store yet"
failed_flush() { [ "$(metric cairn_flush_failures_total)" -gt 0 ]; }
wait_for "a flush to fail" failed_flush
like "$("$cairn" status --server "$url" 2>&1)" 'cannot flush: .*object store' \
        "cairn status says that the store does not answer"
is "$(find "$data/profiles/tables/cache" -type f ! -name lock ! -name '*.data' ! -name '*.blocks')" '' \
        "an upload that is tried again has no file that a crash would leave"
order back >"$tmp/order"
wait_for "the flush after the store came back" flushed
is "$(rows_and_sum)" "14 $((wanted + 10))" "they are in the store when it is back"
ok "compaction succeeds there" "$cairn" store compact --server "$url"
is "$(rows_and_sum)" "14 $((wanted + 10))" "compaction keeps the sum"
ok "a snapshot is made of them" "$cairn" store snapshot "$tmp/snapshot" --data "$data"
is "$(sum_of --data "$tmp/snapshot")" $((wanted + 10)) "the snapshot has the sum, on the disk"
ok "the tables of the snapshot are files" test -d "$tmp/snapshot/profiles/tables/samples/_delta_log"
stop_server

# ---- the cache outlives the service ----

cache=$data/profiles/tables/cache
start_server --flush-interval 1
is "$(sum_of --server "$url")" $((wanted + 10)) "a query reads the tables"
kill -9 "$server_pid"
wait "$server_pid" 2>/dev/null
server_pid=
ok "the cache has files after kill -9" test -n "$(find "$cache" -name '*.data')"
start_server --flush-interval 1
like "$(metric cairn_object_store_cache_kept_total)" '^[1-9]' "the next service has them"
is "$(sum_of --server "$url")" $((wanted + 10)) "the sum is right"
is "$(metric cairn_object_store_cache_damaged_total)" 0 "nothing is damaged"
stop_server
for file in "$cache"/*.data; do
        printf 'damaged bytes' | dd of="$file" bs=1 seek=100 conv=notrunc status=none
done
start_server --flush-interval 1
is "$(sum_of --server "$url")" $((wanted + 10)) "the sum is right when each file of the cache is damaged"
like "$(metric cairn_object_store_cache_damaged_total)" '^[1-9]' "what is damaged is fetched again"
stop_server

# ---- what is refused ----

refused() {
        "$cairn" serve --listen 127.0.0.1:0 "$@" >"$tmp/refused" 2>&1
        [ $? -ne 0 ]
}
ok "another store than that of the directory is refused" refused --data "$data" --store s3://cairn-test/other
like "$(cat "$tmp/refused")" "are in $address, not in s3://cairn-test/other: give" \
        "the refusal has both addresses"
cp -a tests/corpus/data_directory "$tmp/corpus"
tar -C "$tmp/corpus" -xf tests/corpus/data_directory/0.1.0-resymbolized.tar.xz
ok "a directory with tables on its disk is refused" refused --data "$tmp/corpus/data" --store "$address"
like "$(cat "$tmp/refused")" "are in files of this directory" "the refusal says where the tables are"
ok "a bucket that does not exist is refused" refused --data "$tmp/new" --store s3://no-such-bucket/a
like "$(cat "$tmp/refused")" "bucket 'no-such-bucket' does not exist" "the refusal names the bucket"
ok "an address that is none is refused" refused --data "$tmp/new2" --store cairn-test/fleet
like "$(cat "$tmp/refused")" 'give s3://BUCKET/PREFIX' "the refusal says how an address is written"
unset AWS_SECRET_ACCESS_KEY
ok "half of the keys is refused" refused --data "$tmp/new3" --store "$address"
like "$(cat "$tmp/refused")" 'AWS_ACCESS_KEY_ID is set, but not AWS_SECRET_ACCESS_KEY' \
        "the refusal names the absent variable"
unset AWS_ACCESS_KEY_ID
AWS_EC2_METADATA_DISABLED=true HOME=$tmp
export AWS_EC2_METADATA_DISABLED HOME
ok "no keys at all is refused" refused --data "$tmp/new4" --store "$address"
like "$(cat "$tmp/refused")" 'no keys for the object store: set AWS_ACCESS_KEY_ID' "the refusal says where keys may be"
done_testing
