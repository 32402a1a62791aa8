#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An object store whose answers are not what was asked for, with headers that fit to them: too short, another range, a
# list that is cut. They are asked for again, and the store counts as away when that does not help.
. tests/e2e/lib.sh
for tool in jq python3 curl; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh
. tests/e2e/object-store.sh
address=s3://cairn-test/fleet
sum_of() { "$cairn" top --from now-1d --type process_cpu:cpu "$@" --json 2>"$tmp/top.log" | jq '[.[].flat] | add'; }
flushed() { [ "$(metric cairn_queue_batches)" -eq 0 ]; }
start_server --store "$address" --flush-interval 1
printf 'main;work 100\n' >"$tmp/in.folded"
"$cairn" import --server "$url" --time $(($(date +%s) - 3600)) --type process_cpu:cpu:nanoseconds:: "$tmp/in.folded" \
        >"$tmp/import.log" 2>&1
wait_for "the flush" flushed
stop_server

# start_replica NAME: sets $replica; its cache is empty.
start_replica() {
        "$cairn" serve --read-only --store "$address" --data "$tmp/$1" --listen 127.0.0.1:0 --port-file "$tmp/$1.port" \
                2>"$tmp/$1.log" &
        background_pids="$background_pids $!"
        wait_for "the replica $1" test -s "$tmp/$1.port"
        replica=http://127.0.0.1:$(cat "$tmp/$1.port")
}

for kind in short shifted; do
        start_replica $kind
        order mangle/$kind/1000 >"$tmp/order"
        is "$(curl -sS -D "$tmp/headers" -o "$tmp/body" -w '%{http_code}' \
                "$replica/api/v1/query/top?from=now-1d&type=process_cpu:cpu")" 503 \
                "$kind answers: a query is to be sent again"
        like "$(cat "$tmp/body")" 'the object store does not answer' "the answer names the object store"
        like "$(cat "$tmp/headers")" '^Retry-After: ' "a header says when"
        order mangle/$kind/2 >"$tmp/order"
        is "$(sum_of --server "$replica")" 100 "two of them are asked for again"
done

start_replica damaged
order mangle/damaged/1/samples >"$tmp/order"
is "$(sum_of --server "$replica")" 100 "what was damaged on its way is recognized by its checksum, and fetched again"
damaged=$(curl -sS "$replica/metrics" | awk '/^cairn_object_store_cache_damaged_total/ { print $2 }')
like "$damaged" '^[1-9]' "the damage is counted"

start_replica cold
explain() {
        "$cairn" top --from now-1d --type process_cpu:cpu --server "$replica" --explain 2>"$tmp/cost" >"$tmp/table"
        cat "$tmp/cost"
}
like "$(explain)" 'read [12] rows, .* MB of memory; asked the object store [1-9][0-9]* times, for 0\.0*[1-9][0-9]* MB' \
        "--explain says what an empty cache asked the object store for"
like "$(explain)" 'read [12] rows, .* asked the object store 0 times, for 0.000 MB' "the next query needs nothing of it"

order mangle/list/1000 >"$tmp/order"
like "$("$cairn" serve --read-only --store "$address" --data "$tmp/late" --listen 127.0.0.1:0 2>&1)" \
        'the object store does not answer' "lists that are cut: a replica ends with the reason"
order mangle/list/2 >"$tmp/order"
start_replica list
is "$(sum_of --server "$replica")" 100 "two of them are asked for again"
order mangle/list/0 >"$tmp/order"

order mangle/whole/1000 >"$tmp/order"
"$cairn" serve --store s3://cairn-test/other --data "$tmp/whole" --listen 127.0.0.1:0 >"$tmp/whole.log" 2>&1
is $? 2 "a store that answers ranges with whole objects is refused"
like "$(cat "$tmp/whole.log")" 'cannot hold tables: it does not answer ranges of objects' "the refusal says why"
order mangle/whole/0 >"$tmp/order"
done_testing
