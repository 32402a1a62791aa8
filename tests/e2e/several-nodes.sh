# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: Apache-2.0
# Several services on one object store, by name. Sourced after lib.sh, venv.sh and object-store.sh; $address is the
# store.

# start_node NAME [OPTION]...: its directory is $tmp/data-NAME.
start_node() {
        node_name=$1; shift
        rm -f "$tmp/port-$node_name"
        "$cairn" serve --data "$tmp/data-$node_name" --listen 127.0.0.1:0 --port-file "$tmp/port-$node_name" \
                --max-age any --store "$address" "$@" 2>>"$tmp/log-$node_name" &
        echo $! >"$tmp/pid-$node_name"
        wait_for "node $node_name" test -s "$tmp/port-$node_name"
}
url_of() { echo "http://127.0.0.1:$(cat "$tmp/port-$1")"; }
pid_of() { cat "$tmp/pid-$1"; }
stop_node() {
        kill -TERM "$(pid_of "$1")"
        wait "$(pid_of "$1")"
        is $? 0 "node $1 stops cleanly"
        # Read by check_log.
        # shellcheck disable=SC2034
        server_log=$tmp/log-$1
        check_log
}
kill_node() {
        kill -9 "$(pid_of "$1")"
        wait "$(pid_of "$1")" 2>/dev/null
}
metric_of() { metric_at "$(url_of "$1")" "$2"; }

# send NODE LABELS LINE...: folded stacks, acknowledged. LABELS is "" or as "left=1". Equal requests are one batch.
send() {
        send_url="$(url_of "$1")/ingest?name=app{$2}&format=folded"; shift 2
        printf '%s\n' "$@" >"$tmp/in.folded"
        request -g --data-binary "@$tmp/in.folded" "$send_url"
        [ "$code" = 200 ] || diag "$send_url: $code $body"
}
# send_batch NODE ID VALUE: a batch with its id, as an agent sends it.
send_batch() {
        printf 'main;work %d\n' "$3" >"$tmp/in.folded"
        request -H "X-Cairn-Batch: $2" --data-binary "@$tmp/in.folded" "$(url_of "$1")/ingest?name=app&format=folded"
        is "$code" 200 "node $1 acknowledges the batch"
}

is_flushed() { [ "$(metric_of "$1" cairn_queue_batches)" -eq 0 ]; }
wait_flushed() { for node; do wait_for "the flush of node $node" is_flushed "$node"; done; }

# As deltalake reads the tables: rows and sum of the samples; rows of locations and stacks beyond the first of their
# key.
rows_and_sum() { "$PYTHON" tests/e2e/store/object-store.py sum "$store_port"; }
doubled() { "$PYTHON" tests/e2e/store/object-store.py doubled "$store_port"; }
# sum_of NODE OPTION...: of all samples, as a node answers.
sum_of() {
        sum_node=$1; shift
        "$cairn" top --server "$(url_of "$sum_node")" --from now-1d "$@" --json 2>"$tmp/top.log" |
                jq '[.[].flat] | add'
}
# wait_for_sum SUM NODE...: a query reads no commits of other nodes if that was done less than half a second ago.
has_sum() { [ "$(sum_of "$2")" = "$1" ]; }
wait_for_sum() {
        wanted_sum=$1; shift
        for node; do wait_for "a query of node $node to have $wanted_sum" has_sum "$wanted_sum" "$node"; done
}
note_of() { # NODE [CURL-ARGUMENT]...: of an answer; the answer is in $tmp/top.json
        note_url=$(url_of "$1")/api/v1/query/top; shift
        curl -sS -G --max-time 60 -o "$tmp/top.json" -D - -d from=now-1d "$@" "$note_url" | tr -d '\r' |
                sed -n 's/^X-Cairn-Note: //p'
}
# A node that found a peer not started yet asks it again a second later, and says until then that it is missing.
reaches_all() { note_of "$@" >"$tmp/note" && ! grep -q 'may be missing' "$tmp/note"; }
holder_of() { # LEASE: the identity of the node that has it
        "$PYTHON" tests/e2e/store/object-store.py read "$store_port" "$(keys | grep "/leases/$1/" | tail -1)" |
                jq -r .node
}
identity_of() { cat "$tmp/data-$1/profiles/node"; }
