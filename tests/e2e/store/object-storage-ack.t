#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --ack=store: a batch is acknowledged when its commit is in the object store, so the loss of the machine loses none.
. tests/e2e/lib.sh
for tool in jq python3 curl; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh
. tests/e2e/object-store.sh
address=s3://cairn-test/fleet
rows_and_sum() { "$PYTHON" tests/e2e/store/object-store.py sum "$store_port"; }
# send VALUE [CURL-ARGUMENT]...: one batch with the id of its value; sets $code and $body.
send() {
        printf 'main;work %d\n' "$1" >"$tmp/in.folded"
        batch_id=$(printf '%032x' "$1"); shift
        request --data-binary "@$tmp/in.folded" -H "X-Cairn-Batch: $batch_id" -D "$tmp/headers" "$@" \
                "$url/ingest?name=app&format=folded"
}
lose_machine() {
        kill -9 "$server_pid"
        wait "$server_pid" 2>/dev/null
        server_pid=
        mv "$data" "$tmp/lost-$1"
}

start_server --store "$address" --ack store --ack-interval 1 --flush-interval 3600
send 100
is "$code" 200 "a batch is acknowledged"
is "$(rows_and_sum)" "1 100" "its samples are in the store by then, long before a flush is due"
send 100
is "$code" 200 "the same batch is acknowledged again"
is "$(rows_and_sum)" "1 100" "it counts once"

# ---- answers of the store are lost ----

order faults/20 >"$tmp/order"
acknowledged=100
is_acknowledged() { send "$1"; [ "$code" -eq 200 ]; }
for value in 1 2 3 4 5 6; do
        wait_for "batch $value to be acknowledged" is_acknowledged $value
        acknowledged=$((acknowledged + value))
done
order faults/0 >"$tmp/order"
lose_machine 1
is "$(rows_and_sum)" "7 121" "each acknowledged sample is there once after kill -9 without the disk"
is "$acknowledged" 121 "all batches were acknowledged though one request of five failed"

# ---- the store is away ----

start_server --store "$address" --ack store --ack-interval 1
send 1000
is "$code" 200 "another machine with an empty disk takes batches"
order away >"$tmp/order"
began=$(date +%s)
send 2000
is "$code" 503 "a batch is refused while the store is away"
like "$body" 'send it again with the same id.*not_committed' "the answer says what to do"
like "$(cat "$tmp/headers")" '^Retry-After: [0-9]+' "the answer says when"
took=$(($(date +%s) - began))
ok "it comes after 8 seconds, not before ($took s)" test "$took" -ge 7
is "$(metric cairn_ingest_uncommitted_total)" 1 "a metric counts it"
order back >"$tmp/order"
send 2000
is "$code" 200 "it is acknowledged when it is sent again"
lose_machine 2
is "$(rows_and_sum)" "9 3121" "it counts once"
start_server --store "$address" --ack store --ack-interval 1
send 2000
is "$code" 200 "a third machine acknowledges a batch that the second one committed"
is "$(rows_and_sum)" "9 3121" "it still counts once"
stop_server

# ---- what is refused ----

"$cairn" serve --data "$tmp/local" --listen 127.0.0.1:0 --ack store >"$tmp/refused" 2>&1
like "$(cat "$tmp/refused")" '--ack=store needs tables in an object store: give --store' \
        "tables on the disk are refused"
done_testing
