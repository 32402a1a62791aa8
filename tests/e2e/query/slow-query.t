# SPDX-License-Identifier: Apache-2.0
# --slow-query logs one line for each slow query, whatever its result.
. tests/e2e/lib.sh
command -v jq >/dev/null || skip_all "jq is not installed"

python3 tests/e2e/profiles.py "$tmp/p" || bail_out "profiles.py failed"
line() { jq -r "select(.subsystem == \"slow-query\" and .request_id == \"$1\") | $2" "$server_log"; }
ask() { ask_id=$1; shift; request -H "X-Request-Id: $ask_id" "$@"; }

printf 'serve:\n  log-format: json\n  slow-query: 0.000001\n' >"$tmp/cairn.yaml"
export CAIRN_CONFIG="$tmp/cairn.yaml"
start_server --flush-interval 1
request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/p/good.otlp" "$url/v1development/profiles"
wait_metric cairn_flushes_total 1
is "$(metric cairn_slow_queries_total)" 0 "a batch is not a query"

ask top-1 -G "$url/api/v1/query/top" -d from=now-1h -d to=now --data-urlencode 'selector={service_name!="\"x\"\\ "}'
is "$code" 200 "a query is answered"
is "$(line top-1 .kind) $(line top-1 .level) $(line top-1 .outcome)" "top warn answered" \
        "  is logged if it takes longer"
is "$(line top-1 .selector)" '{service_name!="\"x\"\\ "}' "  the log has its selector"
is "$(line top-1 '((.to | fromdate) - (.from | fromdate))')" 3600 "  the log has its range"
becomes 2 "  of two rows" metric 'cairn_table_rows{table="samples"}'
is "$(line top-1 '.rows % 2')" 0 "  the rows read, in each pass"
ok "  which are not zero" test "$(line top-1 .rows)" -ge 2
ok "  their bytes" test "$(line top-1 .bytes)" -gt 0
ok "  its memory" test "$(line top-1 .memory_bytes)" -gt 0
is "$(line top-1 .tenant)" anonymous "  the log has its tenant"
like "$(line top-1 .msg)" '^top /api/v1/query/top took [0-9]+\.[0-9]{3} s, answered: .* rows, [0-9]+ bytes read' \
        "  the message has all of these"
is "$(metric cairn_slow_queries_total)" 1 "it is counted"

ask none-1 -G "$url/api/v1/query/top" -d from=now-1h -d to=now --data-urlencode 'selector={service_name="nothing"}'
ok "a query that selects nothing reads each row at most twice, to say why" \
        test "$(line none-1 .rows)" -le $((2 * $(metric 'cairn_table_rows{table="samples"}')))
ask bad-1 "$url/api/v1/query/top?from=never"
is "$code $(line bad-1 .outcome)" "400 failed" "a failed query is logged"
ask grafana-1 -H 'Content-Type: application/json' \
        --data '{"start": 1, "end": 2000, "labelSelector": "{a=\"b\"}", "profileTypeID": "process_cpu:cpu:nanoseconds:cpu:nanoseconds"}' \
        "$url/querier.v1.QuerierService/SelectMergeStacktraces"
is "$(line grafana-1 .kind) $(line grafana-1 .target) $(line grafana-1 .selector)" \
        'querier /querier.v1.QuerierService/SelectMergeStacktraces {a="b"}' "a slow query of Grafana is logged"

printf 'serve:\n  log-format: json\n  slow-query: 0\n' >"$tmp/cairn.yaml"
kill -HUP "$server_pid"
wait_for "the reload" grep -q 'reload: done' "$server_log"
slow=$(metric cairn_slow_queries_total)
ask top-2 "$url/api/v1/query/top?from=now-1h&to=now"
is "$code $(metric cairn_slow_queries_total) $(line top-2 .kind)" "200 $slow " "0, at a reload: none is"
stop_server
export CAIRN_CONFIG=
for bad in -1 1e3 '' 86401 1s nan 0x1; do
        "$cairn" serve --data "$tmp/none" --slow-query "$bad" 2>"$tmp/err"
        is "$?" 64 "--slow-query '$bad' is refused"
done
done_testing
