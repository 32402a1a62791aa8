#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Services on one object store ask each other for samples that are not in the tables yet: an answer of any of them has
# every acknowledged sample once, or says of which service it may lack some.
# Time limit: 900 s.
. tests/e2e/lib.sh
for tool in jq python3 curl; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh
. tests/e2e/object-store.sh
. tests/e2e/several-nodes.sh
# Read by several-nodes.sh.
# shellcheck disable=SC2034
address=s3://cairn-test/fleet
port_a=$(free_port) port_b=$(free_port)
url_a=http://127.0.0.1:$port_a url_b=http://127.0.0.1:$port_b
printf 'reader-token read,ingest name=reader\nnode-token node name=node\n' >"$tmp/tokens"
echo node-token >"$tmp/node-token"
echo reader-token >"$tmp/reader-token"
# start NAME [OPTION]...: both have the same list of peers, with themselves in it.
start() {
        case $1 in a) listen=$port_a ;; *) listen=$port_b ;; esac
        start_node "$@" --listen "127.0.0.1:$listen" --peer "$url_a" --peer "$url_b" --peer-timeout 5000
}
wait_for_peers() { wait_for "node a to reach b" reaches_all a && wait_for "node b to reach a" reaches_all b; }

# ---- before any flush ----

start a --flush-interval 3600
start b --flush-interval 3600
wait_for_peers
send a "" "main;work 100"
send b "" "main;work 10"
is "$(sum_of a) $(sum_of b)" "110 110" "queries of both nodes have the samples of both"
is "$(keys | grep -c '/samples/date=')" 0 "no sample is in the tables"
send_batch a 00112233445566778899aabbccddeeff 1000
send_batch b 00112233445566778899aabbccddeeff 1000
is "$(sum_of a) $(sum_of b)" "1110 1110" "a batch that both nodes have counts once"
is "$(note_of a)" "" "an answer with the samples of all nodes has no note"
is "$(jq .missing_nodes "$tmp/top.json")" null "its JSON has no list of missing nodes"
is "$(metric_of a "cairn_peer_up{peer=\"$url_b\"}")" 1 "the node is up"
is "$(metric_of a cairn_peer_head_batches)" 2 "it keeps the batches of the other node"

now=$(($(date +%s) / 60 * 60 - 120))
seed=${NUMBERS_SEED:-$(date +%s)}
diag "NUMBERS_SEED=$seed"
numbers() { python3 tests/e2e/query/same-numbers.py "$1" "$2" "$cairn" "$seed" $now >"$tmp/report" 2>&1; }
stop_node a
stop_node b
is "$(rows_and_sum)" "3 1110" "the nodes flush what they have when they stop"
address=s3://cairn-test/numbers
rm -r "$tmp/data-a" "$tmp/data-b"
start a --flush-interval 3600
start b --flush-interval 3600
wait_for_peers
ok "random samples are accepted by both nodes" numbers fill "$url_a,$url_b"
ok "all interfaces of one node agree about the samples of both" numbers check "$url_a"
sed 's/^/# /' "$tmp/report"
ok "all interfaces of the other node agree, too" numbers check "$url_b"
sed 's/^/# /' "$tmp/report"
is "$(keys | grep -c 'numbers/tables/samples/date=')" 0 "no sample was in the tables"
stop_node b
ok "they agree about samples that one node has flushed" numbers check "$url_a"
sed 's/^/# /' "$tmp/report"
stop_node a

# ---- while the other node flushes ----

address=s3://cairn-test/race
rm -r "$tmp/data-a" "$tmp/data-b"
start a --flush-interval 1
start b --flush-interval 1
wait_for_peers
total=0 wrong="" i=0
until [ $i -ge 25 ] && [ "$(metric_of b cairn_flushes_total)" -ge 3 ] || [ $i -eq 1000 ]; do
        i=$((i + 1))
        send b "" "main;work $((i * 1000))"
        total=$((total + i * 1000))
        sum=$(sum_of a)
        [ "$sum" = $total ] || wrong="$wrong after batch $i: $sum instead of $total;"
done
is "$wrong" "" "each query has each sample once, though the other node commits meanwhile"
ok "the other node committed often" test "$(metric_of b cairn_flushes_total)" -ge 3
wait_flushed a b
is "$(sum_of a)" $total "the same after the last flush"
is "$(metric_of a cairn_peer_head_batches)" 0 "no batch is kept after its commit is read"

# ---- a node that does not answer ----

stop_node a
start a --flush-interval 3600
is "$(sum_of a)" $total "a node that is started again has all samples"
wait_for "node a to reach b" reaches_all a
kill -STOP "$(pid_of b)"
like "$(note_of a)" "^samples of $url_b since 20[-0-9]+ [:0-9]+ UTC may be missing: it does not answer$" \
        "the answer says which node is missing since when"
like "$("$cairn" top --server "$url_a" --from now-1d 2>&1)" "samples of $url_b since" "the command prints it"
is "$(jq -r '.missing_nodes[] | [.node, (.since_unix_s > 1700000000)] | join(" ")' "$tmp/top.json")" "$url_b true" \
        "its JSON says the same"
is "$(jq '[.rows[].flat] | add' "$tmp/top.json")" $total "it has all other samples"
is "$(metric_of a "cairn_peer_up{peer=\"$url_b\"}")" 0 "the metric of the node is 0"
ok "incomplete scans are counted" test "$(metric_of a cairn_incomplete_scans_total)" -ge 1
is_reported() { curl -sS "$url_a/readyz" | grep -q "^warning peer_missing: $url_b does not answer since 20"; }
wait_for "the condition" is_reported
is "$(curl -sS -o /dev/null -w '%{http_code}' "$url_a/readyz")" 200 "the node is ready nevertheless"
request -D "$tmp/headers" "$url_a/api/v1/query/labels"
like "$(cat "$tmp/headers")" "X-Cairn-Note: samples of $url_b" "a list of labels has the note"
request "$url_a/api/v1/query/services?by=service_name"
like "$body" '^\{"missing_nodes":\[\{"node":"http' "a list of services has the member"
kill -CONT "$(pid_of b)"
wait_for "the node to answer again" reaches_all a
is "$(metric_of a "cairn_peer_up{peer=\"$url_b\"}")" 1 "the metric is 1 again"

# ---- access ----

stop_node a
stop_node b
start a --flush-interval 3600 --token-file "$tmp/tokens" --peer-token-file "$tmp/node-token"
start b --flush-interval 3600 --token-file "$tmp/tokens" --peer-token-file "$tmp/reader-token"
token="Authorization: Bearer reader-token"
wait_for "node a to reach b" reaches_all a -H "$token"
printf 'main;work 7\n' >"$tmp/in.folded"
request -H "$token" --data-binary "@$tmp/in.folded" "$url_b/ingest?name=app&format=folded"
is "$code" 200 "a batch is acknowledged"
is "$(sum_of a --token-file "$tmp/reader-token")" $((total + 7)) "a node with a token of the scope node gets it"
like "$(note_of b -H "$token")" "samples of $url_a" "a node with another token is refused, and says so"
request -H "$token" "$url_b/api/v1/node/head"
is "$code" 403 "the head needs the scope node"
request -H "Authorization: Bearer node-token" "$url_b/api/v1/query/labels"
is "$code" 403 "a token of that scope reads nothing else"
kill_node a
kill_node b

# ---- tenants ----

printf 'team-token read,ingest tenant=team\nall-token node,read,ingest tenant=*\n' >"$tmp/tenant-tokens"
printf 'team\nalone\n' >"$tmp/tenants-a"
echo team >"$tmp/tenants-b"
echo team-token >"$tmp/team-token"
echo all-token >"$tmp/all-token"
echo all-token >"$tmp/node-token"
for node in a b; do
        start $node --flush-interval 3600 --token-file "$tmp/tenant-tokens" --tenants "$tmp/tenants-$node" \
                --peer-token-file "$tmp/node-token"
done
token="Authorization: Bearer all-token"
wait_for "node a to reach b" reaches_all a -H "$token"
request -H "Authorization: Bearer team-token" --data-binary "@$tmp/in.folded" "$url_b/ingest?name=app&format=folded"
is "$code" 200 "a tenant's batch is acknowledged"
is "$(sum_of a --token-file "$tmp/team-token")" 7 "each tenant has its own samples of the other node"
is "$(sum_of a --token-file "$tmp/all-token")" $((total + 7)) "as the default one has"
like "$(note_of a -H "$token" -H 'X-Scope-OrgID: alone')" "samples of $url_b may be missing" \
        "a tenant that the other node does not have lacks its samples"
is "$(note_of a -H "$token" -H 'X-Scope-OrgID: team')" "" "the other tenants do not"
is "$(metric_at "$url_a" "cairn_peer_up{peer=\"$url_b\"}" -H "$token")" 0 "the metric says that a request failed"
stop_node a
stop_node b

# ---- an address that leads to this node, and later to another one ----

cat >"$tmp/relay.py" <<'END'
import socket, sys, threading
def copy(source, target):
    while data := source.recv(65536):
        target.sendall(data)
    target.shutdown(socket.SHUT_WR)
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    client, _ = listener.accept()
    server = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
    for ends in ((client, server), (server, client)):
        threading.Thread(target=copy, args=ends, daemon=True).start()
END
relay_port=$(free_port)
relay_to() { # PORT
        python3 "$tmp/relay.py" "$relay_port" "$1" 2>>"$tmp/relay.log" &
        relay_pid=$!
        background_pids="${background_pids:-} $relay_pid"
}
address=s3://cairn-test/relayed
rm -r "$tmp/data-a" "$tmp/data-b"
relay_to "$port_a"
start_node a --flush-interval 3600 --listen "127.0.0.1:$port_a" --peer "http://127.0.0.1:$relay_port" \
        --peer-timeout 5000
start_node b --flush-interval 3600 --listen "127.0.0.1:$port_b"
wait_for "node a to reach itself" reaches_all a
send b "" "main;work 100"
send a "" "main;work 10"
is "$(sum_of a)" 10 "a peer that leads to the node itself adds nothing"
kill "$relay_pid"
wait "$relay_pid" 2>/dev/null # its port is free then
relay_to "$port_b"
has_both() { [ "$(sum_of a)" = 110 ]; }
wait_for "the samples of the other node" has_both
pass "when it leads to another node later, the samples of that are found"
like "$(cat "$tmp/log-a")" "http://127.0.0.1:$relay_port was this node, and is another one now" "the log says so"
stop_node a
stop_node b
done_testing
