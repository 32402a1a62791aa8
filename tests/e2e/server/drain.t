#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A service that is stopped is taken out by HAProxy before it stops serving, and commits what it has acknowledged; if
# the object store hangs, it ends in time, and its batches stay in its queue.
# Time limit: 900 s.
. tests/e2e/lib.sh
for tool in jq python3 curl haproxy; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh
. tests/e2e/object-store.sh
. tests/e2e/several-nodes.sh
# Read by several-nodes.sh.
# shellcheck disable=SC2034
address=s3://cairn-test/fleet
port_a=$(free_port) port_b=$(free_port) port=$(free_port)
url=http://127.0.0.1:$port
# start NAME PORT [OPTION]...
start() {
        start_name=$1 start_port=$2; shift 2
        start_node "$start_name" --listen "127.0.0.1:$start_port" --allow-host cairn.example \
                --peer "http://127.0.0.1:$port_a" --peer "http://127.0.0.1:$port_b" --peer-timeout 10000 "$@"
}
start a "$port_a" --flush-interval 3600 --shutdown-delay 3600
start b "$port_b" --flush-interval 1
sed -e "s/bind :7700/bind 127.0.0.1:$port/" -e "s/192\.0\.2\.1:7700/127.0.0.1:$port_a/" \
        -e "s/192\.0\.2\.2:7700/127.0.0.1:$port_b/" deploy/haproxy/haproxy.cfg >"$tmp/haproxy.cfg"
haproxy -f "$tmp/haproxy.cfg" >"$tmp/haproxy.log" 2>&1 &
background_pids="$background_pids $!"

# send_as SENDER VALUE: prints status and service; the answer of a request that fails is in $tmp/failed.
send_as() {
        printf 'main;work %d\n' "$2" >"$tmp/in.folded"
        curl -sS -o "$tmp/body" -D "$tmp/headers" -H 'Host: cairn.example' -H "X-Cairn-Sender: $1" \
                --data-binary "@$tmp/in.folded" "$url/ingest?name=app&format=folded" || return
        awk 'NR == 1 { status = $2 } tolower($1) == "x-cairn-node:" { node = $2 }
                END { sub("\r", "", node); print status, node }' "$tmp/headers"
}
wanted=0 number=0
: >"$tmp/sent"
# send_round: one batch of each of 12 senders, each with another value.
send_round() {
        : >"$tmp/round"
        for sender in 1 2 3 4 5 6 7 8 9 10 11 12; do
                number=$((number + 1))
                wanted=$((wanted + number))
                send_as "host-$sender" $number | tee -a "$tmp/round" >>"$tmp/sent"
        done
}
used_both() { send_round && [ "$(cut -d' ' -f2 "$tmp/round" | sort -u | wc -l)" = 2 ]; }
answers() { [ "$(curl -s -o /dev/null -w '%{http_code}' -H 'Host: cairn.example' "$url/readyz")" = 200 ]; }
wait_for "HAProxy" answers
wait_for "HAProxy to use both services" used_both
: >"$tmp/sent" # what came before may have met a service that HAProxy had not checked yet
wait_for "each service to reach the other" eval 'reaches_all a && reaches_all b'
wanted_before=$(sum_of a)

# ---- HAProxy moves away ----

wanted=0
kill -TERM "$(pid_of a)"
is_unready() { [ "$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port_a/readyz")" = 503 ]; }
wait_for "the service to be unready" is_unready
uses_one() { send_round && [ "$(cut -d' ' -f2 "$tmp/round" | sort -u)" = node2 ]; }
wait_for "HAProxy to move away" uses_one
is "$(cut -d' ' -f1 "$tmp/sent" | sort -u)" 200 "no batch is refused meanwhile"
request "http://127.0.0.1:$port_a/api/v1/query/labels"
is "$code" 200 "the service answers queries until then"
stop_node a
wait_flushed b
becomes "$((wanted_before + wanted))" "it has committed what it acknowledged" sum_of b

# ---- the store hangs ----

start a "$port_a" --flush-interval 3600 --drain-timeout 2
send a "" "main;work 5000"
send a "" "main;work 6000"
stall_store
stop_node a
like "$(cat "$tmp/log-a")" "2 batches \([0-9]+ bytes of memory\) stay in the queue until the next start" \
        "the log says what stays in the queue"
resume_store
start a "$port_a" --flush-interval 3600
is "$(sum_of a)" "$((wanted_before + wanted + 11000))" "the service has it after its next start"
stop_node a
becomes "$((wanted_before + wanted + 11000))" "the next flush commits it" sum_of b
stop_node b
done_testing
