#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A gateway before a node: what it acknowledges reaches the node once, whichever of them is killed, with tenants and
# tokens kept apart.
# Time limit: 600 s.
. tests/e2e/lib.sh
for tool in jq python3 curl; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh
check() { PYTHONPATH='' "$PYTHON" tests/e2e/store/node-roles.py "$@"; }

# ---- what is refused ----

refuses() { # TEXT OPTION...
        refused_text=$1; shift
        out=$(timeout 60 "$cairn" serve --data "$tmp/refused" --listen 127.0.0.1:0 "$@" 2>&1)
        is $? 64 "$* is refused"
        like "$out" "$refused_text" "it says why"
}
refuses '--role gateway needs --forward' --role gateway
refuses '--forward is for --role gateway' --forward http://127.0.0.1:9
refuses 'a gateway has no other role' --role gateway,query --forward http://127.0.0.1:9
refuses '--store and --role gateway exclude each other' --role gateway --forward http://127.0.0.1:9 --store s3://b/x
refuses '--read-only and the role gateway exclude each other' --role gateway --forward http://127.0.0.1:9 --read-only
refuses '--ack=store needs the role ingest' --role gateway --forward http://127.0.0.1:9 --ack store
refuses "is not an address: give http://HOST:PORT" --role gateway --forward ftp://127.0.0.1

# ---- services ----

printf 'team\n' >"$tmp/tenants"
printf 'agent-token ingest\nteam-token ingest tenant=team\nstatus-token read\n' >"$tmp/gateway-tokens"
printf 'node-token node tenant=*\nstatus-token read\nteam-reader read tenant=team\n' >"$tmp/node-tokens"
for token in node-token status-token team-reader agent-token; do echo $token >"$tmp/$token"; done
for name in node gateway; do free_port >"$tmp/port-$name"; done
url_of() { echo "http://127.0.0.1:$(cat "$tmp/port-$1")"; }
start() { # NAME OPTION...
        start_name=$1; shift
        rm -f "$tmp/ready"
        "$cairn" serve --data "$tmp/data-$start_name" --listen "127.0.0.1:$(cat "$tmp/port-$start_name")" \
                --port-file "$tmp/ready" "$@" 2>>"$tmp/log-$start_name" &
        echo $! >"$tmp/pid-$start_name"
        wait_for "$start_name" test -s "$tmp/ready"
}
start_node() { start node --token-file "$tmp/node-tokens" --tenants "$tmp/tenants" --flush-interval 3600; }
start_gateway() {
        start gateway --role gateway --token-file "$tmp/gateway-tokens" --tenants "$tmp/tenants" \
                --forward "$(url_of node)" "$@"
}
stop() {
        kill -TERM "$(cat "$tmp/pid-$1")"
        wait "$(cat "$tmp/pid-$1")"
        is $? 0 "$1 stops cleanly"
        # Read by check_log.
        # shellcheck disable=SC2034
        server_log=$tmp/log-$1
        check_log
}
kill_service() {
        kill -9 "$(cat "$tmp/pid-$1")"
        wait "$(cat "$tmp/pid-$1")" 2>/dev/null
}
metric_of() { metric_at "$(url_of "$1")" "$2" -H 'Authorization: Bearer status-token'; }
sum_of() { # TOKEN
        "$cairn" top --server "$(url_of node)" --token-file "$tmp/$1" --from now-1d --json 2>"$tmp/top.log" |
                jq '[.[].flat] | add // 0'
}
send() { # SERVICE TOKEN BATCH VALUE
        printf 'main;work %d\n' "$4" >"$tmp/in.folded"
        request -H "Authorization: Bearer $2" -H "X-Cairn-Batch: $(printf '%032x' "$3")" \
                --data-binary "@$tmp/in.folded" "$(url_of "$1")/ingest?name=app&format=folded"
        [ "$code" = 200 ] || diag "batch $3: $code $body"
}
is_forwarded() { [ "$(metric_of gateway cairn_queue_batches)" -eq 0 ]; }

# ---- threads, databases and routes ----

start gateway --role gateway --forward "$(url_of node)" --listen-otlp-grpc "127.0.0.1:$(free_port | tee "$tmp/grpc")"
wait_for "the threads and databases: $(check runs gateway "$(cat "$tmp/pid-gateway")")" \
        check runs gateway "$(cat "$tmp/pid-gateway")"
pass "a gateway has the threads and databases of the page"
report_checks check routes gateway "$(url_of gateway)"
report_checks check methods gateway "$(cat "$tmp/grpc")"
like "$(curl -sS -D - "$(url_of gateway)/readyz")" "X-Cairn-Roles: gateway" "/readyz has the role"
kill_service gateway
rm -rf "$tmp/data-gateway"

# ---- a gateway is killed ----

start_node
start_gateway --peer-token-file "$tmp/node-token" --flush-interval 3600
for i in 1 2 3 4 5 6 7 8 9 10; do
        send gateway agent-token $i 1
        is "$code" 200 "the gateway acknowledges a batch"
        send gateway team-token $((100 + i)) 10
done
is "$(metric_of gateway cairn_queue_batches)" 20 "it keeps them until its interval ends"
is "$(metric_of node cairn_ingest_batches_total)" 0 "the node has none"
kill_service gateway
start_gateway --peer-token-file "$tmp/node-token"
wait_for "the batches" is_forwarded
is "$(metric_of node cairn_ingest_batches_total)" 20 "after kill -9 and a start the node has all of them"
is "$(metric_of gateway cairn_forward_requests_total)" 2 "by one request for each tenant"
is "$(sum_of status-token)" 10 "the samples of the default tenant count once"
is "$(sum_of team-reader)" 100 "those of the other tenant are its own"

# ---- a sender repeats a batch, to both ----

send gateway agent-token 1 1
send gateway agent-token 11 1
wait_for "the batch" is_forwarded
send gateway agent-token 11 1
is "$code" 200 "a batch that is sent again is acknowledged"
is "$(sum_of status-token)" 11 "it counts once"

# ---- the node is killed ----

kill_service node
send gateway agent-token 12 1
is "$code" 200 "without the node the gateway acknowledges a batch"
has_failed() { curl -sS "$(url_of gateway)/readyz" | grep -q 'warning flush_failing'; }
wait_for "the failure" has_failed
request "$(url_of gateway)/readyz"
is "$code" 200 "it stays ready while its queue has room"
like "$body" 'warning flush_failing: .*cannot flush: POST' "/readyz has the reason why the flush fails"
start_node
wait_for "the batch" is_forwarded
is "$(sum_of status-token)" 12 "the node gets it when it is back, and has all that it acknowledged"
is "$(sum_of team-reader)" 100 "the other tenant lost none either"

# ---- a token that the node does not accept ----

stop gateway
start_gateway --peer-token-file "$tmp/status-token"
send gateway agent-token 13 1
wait_for "the failure" has_failed
like "$(curl -sS "$(url_of gateway)/readyz")" 'cannot flush: .*node' "a token without the scope node is reported"
is "$(metric_of gateway cairn_quarantined_batches_total)" 0 "the batch is not set aside"
kill_service gateway
start_gateway --peer-token-file "$tmp/node-token" --flush-interval 3600
send gateway agent-token 14 1
stop gateway
is "$(sum_of status-token)" 14 "a gateway that is stopped forwards its queue"
request -X POST -H 'Authorization: Bearer node-token' --data-binary 'CAIRNHP' "$(url_of node)/api/v1/node/batches"
is "$code $(echo "$body" | jq -r .reason)" "400 bad_data" "what is not a page is refused"
request -X POST -H 'Authorization: Bearer status-token' --data-binary 'CAIRNHP' "$(url_of node)/api/v1/node/batches"
is "$code" 403 "pages need the scope node"
stop node
done_testing
