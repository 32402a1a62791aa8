#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# HAProxy with deploy/haproxy/haproxy-roles.cfg in front of services with roles: clients need no other address.
# Time limit: 900 s.
. tests/e2e/lib.sh
for tool in jq python3 curl gcc haproxy; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh
. tests/e2e/object-store.sh
. tests/e2e/several-nodes.sh
# Read by several-nodes.sh.
# shellcheck disable=SC2034
address=s3://cairn-test/fleet

ok "HAProxy accepts the example" haproxy -c -q -f deploy/haproxy/haproxy-roles.cfg
start() { start_node "$@" --allow-host cairn.example; }
start 1 --role ingest --flush-interval 1
start 2 --role ingest --flush-interval 1
start 3 --role query,symbolize,debuginfod --peer "$(url_of 1)" --peer "$(url_of 2)" --peer-timeout 5000
start 4 --role symbolize,debuginfod,maintain
port=$(free_port)
script="s/bind :7700/bind 127.0.0.1:$port/"
for i in 1 2 3 4; do script="$script;s/192\.0\.2\.$i:7700/127.0.0.1:$(cat "$tmp/port-$i")/"; done
sed "$script" deploy/haproxy/haproxy-roles.cfg >"$tmp/haproxy.cfg"
haproxy -f "$tmp/haproxy.cfg" >"$tmp/haproxy.log" 2>&1 &
background_pids="$background_pids $!"
url=http://127.0.0.1:$port
node_of() { curl -sS -o "$tmp/body" -D - -H 'Host: cairn.example' "$@" | tr -d '\r' | sed -n 's/^x-cairn-node: //p'; }
answers() { [ "$(curl -s -o /dev/null -w '%{http_code}' -H 'Host: cairn.example' "$url$1")" = 200 ]; }
# The checks of all backends have passed once.
wait_for "HAProxy" answers /readyz
wait_for "the nodes for queries" answers /api/v1/query/labels
wait_for "the nodes for symbols" answers /api/v1/resymbolize
wait_for "the nodes for debuginfo" answers /api/v1/debuginfo
printf 'main;work 1\n' >"$tmp/in.folded"
takes() { # SENDER
        node_of -H "X-Cairn-Sender: $1" -H 'X-Cairn-Batch: 00112233445566778899aabbccddeeff' \
                --data-binary "@$tmp/in.folded" "$url/ingest?name=app&format=folded"
}
is_taken() { takes host-1 | grep -q '^node'; }
wait_for "the nodes for ingest" is_taken

for i in 1 2 3 4 5 6 7 8 9 10 11 12; do takes "host-$i"; done | sort -u >"$tmp/nodes"
like "$(tr '\n' ' ' <"$tmp/nodes")" '^(node1 )?(node2 )?$' "samples go to the nodes for ingest"
is "$(node_of -X POST -H 'Content-Type: application/json' -d '{}' "$url/api/v1/store/compact")" node4 \
        "compaction goes to the node for maintenance"
is "$(node_of "$url/api/v1/query/labels")" node3 "queries go to the node for queries"
like "$(node_of "$url/api/v1/why?build_id=ab")" '^node[34]$' "lookups go to a node for symbols"

for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
        node_of "$url/api/v1/debuginfo/abcdef012345678$i" >>"$tmp/nodes-without"
        node_of -b cairn=session "$url/api/v1/debuginfo/abcdef012345678$i" >>"$tmp/nodes-with"
done
is "$(sort -u "$tmp/nodes-without" | tr '\n' ' ')" "node3 node4 " "pages about debuginfo are of two nodes"
is "$(sort -u "$tmp/nodes-with")" node3 "a browser that signed in stays at the node for queries"

id=abcdef0123456789
printf 'int work(int argc) { return argc + 1; }\nint main(int argc, char **argv) { (void)argv; return work(argc); }\n' \
        >"$tmp/program.c"
gcc -g -O0 -no-pie -Wl,--build-id=0x$id -o "$tmp/program" "$tmp/program.c"
work=$(nm "$tmp/program" | awk '$3 == "work" { print $1 }')
put_object debuginfo "$tmp/program" -H 'Host: cairn.example'
is "$code" 201 "an upload is stored"
python3 tests/e2e/profiles.py otlp "$tmp/sample.otlp" build_id=$id service=api values=7 "addresses=$work" \
        mapping_file=/opt/program
request -H 'Host: cairn.example' -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/sample.otlp" \
        "$url/v1development/profiles"
is "$code" 200 "a sample is taken"
is_named() {
        curl -sS -H 'Host: cairn.example' "$url/api/v1/query/top?from=now-1d&selector=service.name%3Dapi" |
                grep -q '"work"'
}
wait_for "the name of the sample" is_named
pass "the sample of one node has the name that another one found"
is "$(curl -sS -H 'Host: cairn.example' -o "$tmp/body" -w '%{http_code}' "$url/buildid/$id/debuginfo")" 200 \
        "the debuginfo is served"
for i in 1 2 3 4; do stop_node $i; done
done_testing
