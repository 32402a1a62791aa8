#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Sends random honest and hostile batches to the service, in rounds: after some it flushes, after others it is killed
# and replays its queue. Each acknowledged honest batch must be in the tables, and Cairn, DuckDB and pyarrow must read
# every file with equal results. CAIRN_PROPERTY_SEED sets the random seed, CAIRN_PROPERTY_BATCHES the number of batches
# per round.
. tests/e2e/venv.sh
. tests/e2e/lib.sh

seed=${CAIRN_PROPERTY_SEED:-20261122}
batches=${CAIRN_PROPERTY_BATCHES:-40}
sent=$tmp/sent

# send ROUND
send() {
        if python3 tests/e2e/store/store-property.py send "$url" "$seed" $(($1 * 100000)) "$batches" "$sent" \
                >"$tmp/out" 2>&1; then
                pass "round $1: honest batches are acknowledged, hostile ones are taken or refused as such"
                diag "$(cat "$tmp/out")"
        else
                fail "round $1 of seed $seed" "$(cat "$tmp/out")"
                healthy || bail_out "the service does not answer"
        fi
}
flushed() { wait_for "the queue to be in the tables" metric_equals cairn_queue_batches 0; }
# For each profile type, including those made up by hostile senders.
query() {
        curl -sS --max-time 60 -o "$tmp/answer" -w '%{http_code}' -G "$url/api/v1/query/folded" \
                --data-urlencode 'selector={service_name=~"honest-.*"}' --data-urlencode "type=$1" \
                --data-urlencode from=now-7d --data-urlencode to=now
}

start_server --flush-interval 1
send 1
flushed
stop_server
start_server --flush-interval 3600 # batches stay in the queue
send 2
kill_server
start_server --flush-interval 1
send 3
flushed
is "$(metric cairn_quarantined_batches)" 0 "nothing is in the quarantine"
is "$(metric cairn_flush_failures_total)" 0 "no flush failed"
: >"$tmp/folded"
"$cairn" query --server "$url" --types --from now-7d '{service_name=~"honest-.*"}' >"$tmp/types"
while read -r type _; do
        is "$(query "$type")" 200 "honest samples of $type are answered"
        cat "$tmp/answer" >>"$tmp/folded"
done <"$tmp/types"
stop_server
"$cairn" store status --json --data "$data" >"$tmp/status"

PYTHONPATH=tests/e2e "$PYTHON" tests/e2e/store/store-property.py check "$data" "$sent" "$tmp/folded" "$tmp/status" \
        >"$tmp/check" 2>&1
is $? 0 "tables, files and answers agree"
sed 's/^/# /' "$tmp/check"
done_testing
