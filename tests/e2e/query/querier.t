# SPDX-License-Identifier: Apache-2.0
# querier.v1.QuerierService as called by Grafana: every method in JSON, compared with /api/v1/query, on the head and on
# the tables. make check-clients CLIENTS=grafana calls them with a generated client, also in protobuf.
. tests/e2e/lib.sh

cpu=process_cpu:cpu:nanoseconds:cpu:nanoseconds
heap=memory:inuse_space:bytes:space:bytes
now=$(($(date +%s) / 3600 * 3600 - 1800))
import() { "$cairn" import --server "$url" "$@" >>"$tmp/import.log" 2>&1; }
hold() {
        python3 tests/e2e/query/querier.py "$url" $(((now - 900) * 1000)) $(((now + 900) * 1000)) "$1" >"$tmp/report" \
                2>"$tmp/report.err"
        is $? 0 "all answers are right, $1"
        while read -r line; do
                case $line in
                'ok - '*) pass "${line#ok - }" ;;
                'not ok - '*) fail "${line#not ok - }" ;;
                *) diag "$line" ;;
                esac
        done <"$tmp/report"
        sed 's/^/# /' "$tmp/report.err"
}

start_server --flush-interval 3600
printf 'main;work;leaf 5000000000\nmain;work 1000000000\nmain;read;sys_read_[k] 500000000\n' >"$tmp/a.folded"
printf 'main;work;leaf 9000000000\nmain;rest;leaf 7\n' >"$tmp/b.folded"
printf 'main;work;leaf;main;work 3\n[no stack] 2\n' >"$tmp/c.folded"
printf 'main;make 600\nmain 400\n' >"$tmp/heap1.folded"
printf 'main;make 2000\n' >"$tmp/heap2.folded"
ok "profiles are accepted" import --time $now --type $cpu --label service.name=api --label version=1 "$tmp/a.folded"
ok "  and others" import --time $((now + 120)) --type $cpu --label service.name=api --label version=2 "$tmp/b.folded"
ok "  of another service" import --time $((now + 130)) --type $cpu --label service.name=worker "$tmp/b.folded"
ok "  without a service" import --time $((now + 60)) --type $cpu --label span_id=00f067aa0ba902b7 \
        --label trace_id=4bf92f3577b34da6a3ce929d0e0e4736 "$tmp/c.folded"
ok "  of another type" import --time $now --type $heap --label service.name=api --label version=1 "$tmp/heap1.folded"
ok "  twice" import --time $((now + 10)) --type $heap --label service.name=api --label version=1 "$tmp/heap2.folded"
hold "from the head"
stop_server
start_server
ok "stopping has flushed them to the tables" test -n "$(find "$data/profiles/tables/samples" -name "*.parquet")"
hold "from the tables"
stop_server

# ---- protobuf ----

start_server --listen-otlp-grpc 127.0.0.1:0 --flush-interval 3600

querier() { method=$1; shift; request "$@" "$url/querier.v1.QuerierService/$method"; }
hex() { od -An -v -tx1 "$tmp/body" | tr -d ' \n'; }
printf '' >"$tmp/message"
querier GetProfileStats -H 'Content-Type: application/proto' -D "$tmp/headers" --data-binary "@$tmp/message"
like "$code $(hex)" '^200 080110' "protobuf in, protobuf out"
like "$(cat "$tmp/headers")" '^Content-Type: application/proto' "  the response has the type of protobuf"
printf '\012\001x\032\000' >"$tmp/message"
querier LabelValues -H 'Content-Type: application/proto' -D "$tmp/headers" --data-binary "@$tmp/message"
is "$code" 400 "a field of another type is refused"
printf '\012\001x' >"$tmp/message"
querier LabelValues -H 'Content-Type: application/proto' -D "$tmp/headers" --data-binary "@$tmp/message"
is "$code $(hex)" '200 ' "an empty message has length zero"
like "$(cat "$tmp/headers")" '^Content-Type: application/proto' "  the empty message has the type of protobuf"
querier Series -H 'Content-Type: application/json' -d '{}'
cp "$tmp/body" "$tmp/plain"
querier Series -H 'Content-Type: application/json' -H 'Accept-Encoding: gzip' -D "$tmp/headers" -d '{}'
like "$(cat "$tmp/headers")" '^Content-Encoding: gzip' "an answer of more than 1 KiB is compressed"
ok "  and is the same" sh -c 'gzip -dc "$1" | cmp - "$2"' sh "$tmp/body" "$tmp/plain"

# ---- gRPC and gRPC-Web: the message of Connect, after a flag and its length ----

grpc_port=$(sed -n 's/.*OTLP over gRPC on 127\.0\.0\.1:\([0-9]*\).*/\1/p' "$server_log" | tail -1)
# frame FILE: a message without compression.
frame() { python3 -c 'import struct, sys; m = open(sys.argv[1], "rb").read(); sys.stdout.buffer.write(struct.pack(">BI", 0, len(m)) + m)' "$1"; }
# answers_equally METHOD MESSAGE: over Connect, gRPC and gRPC-Web.
answers_equally() {
        printf "$2" >"$tmp/message" # the message has escapes
        frame "$tmp/message" >"$tmp/framed"
        querier "$1" -H 'Content-Type: application/proto' --data-binary "@$tmp/message"
        cp "$tmp/body" "$tmp/plain"
        frame "$tmp/plain" >"$tmp/want"
        is "$code" 200 "$1 over Connect"
        request --http2-prior-knowledge -D "$tmp/headers" -H 'Content-Type: application/grpc+proto' -H 'TE: trailers' \
                --data-binary "@$tmp/framed" "http://127.0.0.1:$grpc_port/querier.v1.QuerierService/$1"
        ok "  over gRPC" cmp "$tmp/body" "$tmp/want"
        like "$(cat "$tmp/headers")" 'grpc-status: 0' "  the response over gRPC has status 0"
        querier "$1" -H 'Content-Type: application/grpc-web+proto' --data-binary "@$tmp/framed"
        printf '\200\000\000\000\020grpc-status: 0\r\n' >>"$tmp/want"
        ok "  and over gRPC-Web" cmp "$tmp/body" "$tmp/want"
}
calls=$(metric cairn_querier_calls_total)
answers_equally ProfileTypes ''
answers_equally LabelValues '\012\014service_name'
answers_equally SelectMergeStacktraces "\\012\\053$cpu\\022\\002{}"
answers_equally AnalyzeQuery "\\042\\002{}"
is "$(metric cairn_querier_calls_total)" $((calls + 12)) "each is counted"
printf '\012\001x\032\000' >"$tmp/message"
frame "$tmp/message" >"$tmp/framed"
querier LabelValues -H 'Content-Type: application/grpc-web' --data-binary "@$tmp/framed"
like "$code $(tr -d '\r\n' <"$tmp/body" | cat -v)" '^200 .*grpc-status: 3' \
        "a field of another type is refused in a trailer"
querier Anything -H 'Content-Type: application/grpc-web+proto' --data-binary "@$tmp/framed"
like "$code $(tr -d '\r\n' <"$tmp/body" |
        cat -v)" "^200 .*grpc-status: 12.*method 'Anything' of querier.v1.QuerierService is not implemented" \
        "an unknown method is refused in a trailer"

# ---- Pyroscope's HTTP API: what is wrong is said ----

answers 400 "'query' does not begin with a profile type, such as" "render needs a type" -G "$url/pyroscope/render" \
        --data-urlencode 'query={service_name="api"}'
answers 400 "the parameter 'query' is missing" "and a query" "$url/pyroscope/render"
answers 400 "the format 'dot' is not supported; use json" "another format is refused" -G "$url/pyroscope/render" \
        --data-urlencode "query=$cpu{}" --data-urlencode format=dot
answers 400 "'until'" "an empty range too" -G "$url/pyroscope/render" --data-urlencode "query=$cpu{}" \
        --data-urlencode from=now --data-urlencode until=now-1h
answers 400 "'tomorrow' is not a time" "the end of a range of labels is read without a start, too" \
        "$url/pyroscope/label-names?until=tomorrow"
answers 200 '^\[\]' "  and limits it" "$url/pyroscope/label-values?label=service_name&until=now-1d"
answers 400 'leftQuery' "a diff needs both sides" "$url/pyroscope/render-diff"
answers 400 "'label' is missing" "values need a label" "$url/pyroscope/label-values"
printf 'main 9223372036854775807\n' >"$tmp/most.folded"
import --time $now --type $heap --label service.name=most "$tmp/most.folded"
answers 200 '"timeline":[{][^}]*9223372036854775807,' "the largest value remains one in a timeline" \
        -G "$url/pyroscope/render" \
        --data-urlencode "query=$heap{service_name=\"most\"}" --data-urlencode from=$((now - 60)) \
        --data-urlencode until=$((now + 60))
printf 'main 1500000\n' >"$tmp/slow.folded"
slow=process_cpu:cpu:microseconds:cpu:microseconds
import --time $now --type $slow --label service.name=slow "$tmp/slow.folded"
answers 200 '"numTicks":1500000,.*"sampleRate":1000000,"units":"samples"' \
        "CPU time in microseconds has as many samples a second" \
        -G "$url/pyroscope/render" --data-urlencode "query=$slow{}" \
        --data-urlencode from=$((now - 60)) --data-urlencode until=$((now + 60))
querier SelectSeries -H 'Content-Type: application/json' -d '{"profileTypeID": "'$heap'", "step": 60,
        "groupBy": ["service_name", "service_name"], "labelSelector": "{service_name=\"most\"}",
        "start": '$((now - 60))'000, "end": '$((now + 60))'000}'
is "$(jq -c '.series[].labels' "$tmp/body")" '[{"name":"service_name","value":"most"}]' \
        "a label that is asked for twice is there once"
answers 200 '^ready$' "/ready is Pyroscope's name of /readyz" "$url/ready"
stop_server

# ---- limits and tokens ----

printf 'reader-secret read\nsender-secret ingest\n' >"$tmp/tokens"
start_server --token-file "$tmp/tokens"
as() { who=$1; shift; \
        querier "$@" -H 'Content-Type: application/json' ${who:+-H "Authorization: Bearer $who"} -d '{}'; }
as '' ProfileTypes
is "$code $(printf '%s' "$body" | jq -r .code)" '401 unauthenticated' "a token is needed"
as sender-secret ProfileTypes
is "$code $(printf '%s' "$body" | jq -r .code)" '403 permission_denied' "  a token without the scope read is refused"
as reader-secret ProfileTypes
is "$code $(printf '%s' "$body" | jq '.profileTypes | length')" '200 3' "  then it is answered"
querier ProfileTypes -H 'Content-Type: application/json' -u x:reader-secret -d '{}'
is "$code" 200 "  a token is accepted as a password, as Grafana sends it"
stop_server
rm -rf "$data"
start_server --query-memory 1M --flush-interval 3600
python3 -c 'for i in range(30000): print("main;%s_%d 1" % ("name" * 40, i))' >"$tmp/long.folded"
ok "many names are accepted" import --time $now --type $cpu "$tmp/long.folded"
querier SelectMergeStacktraces -H 'Content-Type: application/json' -d "{\"profileTypeID\":\"$cpu\"}"
is "$code $(printf '%s' "$body" | jq -r .code)" '413 resource_exhausted' "a query that needs too much memory says so"
stop_server
rm -rf "$data"
# A clock that runs ahead in the threads of queries, so that each one that checks its time limit has exceeded it.
cairn=$CAIRN_BUILD/cairn
export FAULT_MONOTONIC='query 25'
with_clock start_server --flush-interval 3600
unset FAULT_MONOTONIC
ok "many stacks are accepted" import --time $now --type $cpu "$tmp/long.folded"
querier SelectMergeStacktraces -H 'Content-Type: application/json' -d "{\"profileTypeID\":\"$cpu\"}"
is "$code $(printf '%s' "$body" | jq -r .code)" '504 deadline_exceeded' "a query that takes too long says so"
is "$(metric 'cairn_queries_cancelled_total{reason="deadline"}')" 1 "  the query that takes too long is counted"
err=$("$cairn" query --server "$url" --from 0 2>&1)
is $? 1 "the command fails too"
is "$(metric 'cairn_queries_cancelled_total{reason="deadline"}')" 2 "  after one attempt"
like "$err" "^cairn query: .*choose fewer samples by their labels [(]HTTP 504, GET $url/api/v1/query/flame[)]$" \
        "  the command prints the whole message"
done_testing
