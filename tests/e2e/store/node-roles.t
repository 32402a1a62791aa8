#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Nodes of one role each: they have the threads, databases and routes that docs/internals/several-nodes.md lists, and
# together they do what one node does.
# Time limit: 900 s.
. tests/e2e/lib.sh
for tool in jq python3 curl gcc; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh
. tests/e2e/object-store.sh
. tests/e2e/several-nodes.sh
# Read by several-nodes.sh.
# shellcheck disable=SC2034
address=s3://cairn-test/roles
roles="ingest query symbolize debuginfod maintain"
check() { PYTHONPATH='' "$PYTHON" tests/e2e/store/node-roles.py "$@"; }
report_checks check table

# ---- what is refused ----

refuses() { # TEXT OPTION...
        refused_text=$1; shift
        out=$(timeout 60 "$cairn" serve --data "$tmp/refused" --listen 127.0.0.1:0 "$@" 2>&1)
        is $? 64 "$* is refused"
        like "$out" "$refused_text" "it says why"
}
refuses "'indexer' is none of ingest, query, symbolize, debuginfod, maintain" --role query,indexer
refuses "'query' is given twice" --role query,query
refuses "'' is none of" --role query,
refuses '--role needs tables in an object store' --role query
refuses '--read-only and the role ingest,maintain exclude each other' --read-only --role ingest,query,maintain
refuses '--scan needs the role debuginfod, which --role query does not have' --role query --scan "$tmp"
refuses '--ack=store needs the role ingest' --role query --ack store
refuses '--self-profile needs the role ingest' --role maintain --self-profile
refuses '--listen-otlp-grpc needs the role ingest,query,debuginfod' --role maintain --listen-otlp-grpc 127.0.0.1:0
refuses '--recording-rules needs the role query' --role ingest --recording-rules "$tmp/rules"

# ---- threads, databases and routes ----

mkdir "$tmp/tree"
for role in $roles; do eval "port_$role=$(free_port) grpc_$role=$(free_port)"; done
start() { # ROLE [OPTION]...
        start_role=$1; shift
        eval "set -- \"\$@\" --listen 127.0.0.1:\$port_$start_role"
        start_node "$start_role" --role "$start_role" "$@"
}
# shellcheck disable=SC2154
{
        start ingest --flush-interval 3600 --listen-otlp-grpc "127.0.0.1:$grpc_ingest"
        start query --peer "http://127.0.0.1:$port_ingest" --peer "http://127.0.0.1:$port_query" \
                --listen-otlp-grpc "127.0.0.1:$grpc_query" --peer-timeout 5000
        start symbolize
        start debuginfod --scan "$tmp/tree" --upstream http://127.0.0.1:9 \
                --listen-otlp-grpc "127.0.0.1:$grpc_debuginfod"
}
start maintain --flush-interval 1
for role in $roles; do
        wait_for "the threads and databases of $role: $(check runs $role "$(pid_of $role)")" \
                check runs $role "$(pid_of $role)"
        pass "$role has the threads and databases of the page"
        report_checks check routes $role "$(url_of $role)"
        is "$(curl -sS "$(url_of $role)/metrics" | awk '/^cairn_node_role/ && $2 { print $1 }')" \
                "cairn_node_role{role=\"$role\"}" "its metric has the role $role"
        like "$(curl -sS -D - "$(url_of $role)/readyz")" "X-Cairn-Roles: $role" "/readyz has the role $role"
        is "$(curl -sS "$(url_of $role)/api/v1/status" | jq -c .roles)" "[\"$role\"]" "its status has the role $role"
done
# shellcheck disable=SC2154
for role in ingest query debuginfod; do eval "report_checks check methods $role \$grpc_$role"; done

# ---- together ----

id=abcdef0123456789
printf 'int work(int argc) { return argc + 1; }\nint main(int argc, char **argv) { (void)argv; return work(argc); }\n' \
        >"$tmp/program.c"
gcc -g -O0 -no-pie -Wl,--build-id=0x$id -o "$tmp/program" "$tmp/program.c"
work=$(nm "$tmp/program" | awk '$3 == "work" { print $1 }')
url=$(url_of debuginfod)
put_object debuginfo "$tmp/program"
is "$code" 201 "the node for debuginfo takes an object"
frames() {
        curl -sS -H 'Content-Type: application/json' "$(url_of symbolize)/api/v1/symbolize" \
                -d "{\"objects\": [{\"build_id\": \"$id\", \"addresses\": [\"0x$work\"]}]}"
}
has_symbols() { frames | grep -q '"work"'; }
wait_for "the node for symbols to index it: $(frames)" has_symbols
# The lookup after the change of the index would name the sample, too, if it ran after the flush.
is_looked_up() {
        [ "$(metric_of symbolize cairn_resymbolize_rounds_total)" -ge 1 ] &&
                [ "$(metric_of symbolize cairn_resymbolize_queue)" = 0 ]
}
wait_for "the lookup of stored locations after it" is_looked_up

python3 tests/e2e/profiles.py otlp "$tmp/sample.otlp" build_id=$id service=api values=7 "addresses=$work" \
        mapping_file=/opt/program
request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/sample.otlp" \
        "$(url_of ingest)/v1development/profiles"
is "$code" 200 "the node for ingest takes a sample"
names_of() { "$cairn" top --server "$(url_of "$1")" --from now-1d --json 2>"$tmp/top.log" | jq -r '.[].function'; }
is "$(sum_of query)" 7 "the node for queries has it before it is flushed"
like "$(names_of query)" "0x" "without a name"
stop_node ingest
is_named() { names_of query | grep -qx work; }
wait_for "the name" is_named
pass "after the flush it gets its name from the node for symbols"
is "$(sum_of query)" 7 "it counts once"
becomes 1 "that node counts the object" metric_of symbolize cairn_unnamed_objects_total
is_maintained() { [ "$(holder_of maintenance)" = "$(identity_of maintain)" ]; }
wait_for "the lease of the maintenance" is_maintained
is "$(keys | grep -c /leases/maintenance/)" 1 "only the node for maintenance ever had its lease"

# ---- another role for the same directory ----

start ingest --flush-interval 3600
send ingest "" "main;left 100"
is "$(metric_of ingest cairn_queue_batches)" 1 "a batch is queued"
kill_node ingest
start_node ingest --role query --flush-interval 1
has_batch() { [ "$(sum_of query --type samples:samples:count::)" = 100 ]; }
wait_for "the flush" has_batch
pass "a node that lost the role ingest flushes what it has queued"
request --data-binary @/dev/null "$(url_of ingest)/ingest?name=app&format=folded"
is "$code" 421 "it takes no others"

ok "cairn status works without the role debuginfod" "$cairn" status --server "$(url_of query)" --interval 1
for role in $roles; do stop_node $role; done

# ---- readers of a local directory ----

data=$tmp/local
start_server
stop_server
start_server --read-only --role query
is "$(grep -c 'data\.mdb' "/proc/$server_pid/maps")" 0 "a reader with the role query maps no database"
request "$url/api/v1/why?build_id=$id"
is "$code" 421 "a reader with the role query answers no route of symbolize"
request -X POST --data-binary x "$url/ingest?name=app&format=folded"
is "$code $(echo "$body" | jq -r .reason)" "403 read_only" "a change is refused since it is read-only"
stop_server
done_testing
