#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# HAProxy with deploy/haproxy/haproxy.cfg in front of two services on one object store.
# Time limit: 900 s.
. tests/e2e/lib.sh
for tool in jq python3 curl gcc haproxy; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh
. tests/e2e/object-store.sh
. tests/e2e/several-nodes.sh
# Read by several-nodes.sh.
# shellcheck disable=SC2034
address=s3://cairn-test/fleet

ok "HAProxy accepts the example" haproxy -c -q -f deploy/haproxy/haproxy.cfg
start_node a --flush-interval 1 --allow-host cairn.example
start_node b --flush-interval 1 --allow-host cairn.example
port=$(free_port)
sed -e "s/bind :7700/bind 127.0.0.1:$port/" -e "s/192\.0\.2\.1:7700/127.0.0.1:$(cat "$tmp/port-a")/" \
        -e "s/192\.0\.2\.2:7700/127.0.0.1:$(cat "$tmp/port-b")/" deploy/haproxy/haproxy.cfg >"$tmp/haproxy.cfg"
haproxy -f "$tmp/haproxy.cfg" >"$tmp/haproxy.log" 2>&1 &
background_pids="$background_pids $!"
url=http://127.0.0.1:$port
# node_of CURL-ARGUMENT...: the service that answers a request.
node_of() { curl -sS -o "$tmp/body" -D - -H 'Host: cairn.example' "$@" | tr -d '\r' | sed -n 's/^x-cairn-node: //p'; }
answers() { [ "$(curl -s -o /dev/null -w '%{http_code}' -H 'Host: cairn.example' "$url/readyz")" = 200 ]; }
wait_for "HAProxy" answers

# ---- samples ----

# send_as SENDER VALUE: prints the service that took it.
send_as() {
        printf 'main;work %d\n' "$2" >"$tmp/in.folded"
        node_of -H "X-Cairn-Sender: $1" --data-binary "@$tmp/in.folded" "$url/ingest?name=app&format=folded"
}
wanted=0
: >"$tmp/sent"
for i in 1 2 3; do
        for sender in 1 2 3 4 5 6 7 8 9 10 11 12; do
                value=$((i * 100 + sender))
                wanted=$((wanted + value))
                echo "$sender $(send_as "host-$sender" $value)" >>"$tmp/sent"
        done
done
is "$(sort -u "$tmp/sent" | wc -l)" 12 "all batches of a sender go to one service"
is "$(cut -d' ' -f2 "$tmp/sent" | sort -u | tr '\n' ' ')" "node1 node2 " "the senders are spread over the services"
wait_flushed a b
is "$(rows_and_sum)" "36 $wanted" "each batch counts once"
wait_for_sum "$wanted" a b
pass "each service answers for both"

# ---- debuginfo ----

printf 'int main(void) { return 0; }\n' >"$tmp/program.c"
served=
for i in 1 2 3 4 5 6; do
        gcc -g -Wl,--build-id=0xabcdef012345678$i -o "$tmp/program-$i" "$tmp/program.c"
        put_object debuginfo "$tmp/program-$i" -H 'Host: cairn.example'
        served="$served $code $(curl -sS -o "$tmp/body" -w '%{http_code}' -H 'Host: cairn.example' \
                "$url/buildid/abcdef012345678$i/debuginfo")"
done
is "$served" " 201 200 201 200 201 200 201 200 201 200 201 200" "an object is served as soon as it was stored"

# ---- a browser ----

first=$(node_of -c "$tmp/cookies" "$url/api/v1/status")
others=$(for i in 1 2 3 4 5; do node_of -b "$tmp/cookies" "$url/api/v1/status"; done | sort -u)
is "$others" "$first" "requests with the cookie of a service go to it"

# ---- a service is lost ----

kill_node a
is_alone() { send_as "$1" "$2" | grep -qx node2; }
for sender in 1 2 3 4 5 6 7 8 9 10 11 12; do
        wait_for "the other service to take sender $sender" is_alone "host-$sender" $((1000 + sender))
done
wait_flushed b
is "$(rows_and_sum)" "48 $((wanted + 12078))" "the other service takes all senders, each batch once"
stop_node b
done_testing
