#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Parca's query API: the requests of Grafana's Parca data source over gRPC-Web, and the same over gRPC.
. tests/e2e/lib.sh
. tests/e2e/venv.sh

start_grpc() {
        : >"$server_log"
        start_server --listen-otlp-grpc 127.0.0.1:0 --flush-interval 1 "$@"
        grpc_port=$(sed -n 's/.*OTLP over gRPC on 127\.0\.0\.1:\([0-9]*\).*/\1/p' "$server_log" | tail -1)
}
parca() { "$PYTHON" tests/e2e/parca.py "$grpc_port" "$@" 2>&1; }
over() { if [ "$way" = web ]; then parca query "$@" web="$url"; else parca query "$@"; fi; }

start_grpc
python3 tests/e2e/profiles.py "$tmp/p" || bail_out 'profiles.py failed'
is "$(parca write "$tmp/p/good.pprof" label=job=batch)" 'OK -' 'a profile is accepted'
type=process_cpu:cpu:nanoseconds::
for way in web grpc; do
        like "$(over ProfileTypes)" "$(printf '%s' process_cpu | od -An -tx1 | tr -d ' \n')" "$way: the types"
        is "$(over Labels)" 0a036a6f620a0c736572766963655f6e616d65 '  labels'
        is "$(over Values label=job)" 0a056261746368 '  values of one'
        like "$(over QueryRange query="$type{job=\"batch\"}" sum_by=job)" \
                '^0a[0-9a-f]{2}0a0e0a0c0a036a6f6212056261746368.*1007' '  a series with its label and value'
        is "$(over Query query="$type{job=\"batch\"}")" 'total 7 nanoseconds 7 diff 0  main=7' \
                "  Grafana's flame graph, which may also be a table"
        is "$(over Query query="$type{job=\"none\"}")" 'total 0 nanoseconds 0 diff 0 ' '  without samples it has a root'
        is "$(over Query query="${type}:delta{}" report=4)" 'total 7 nanoseconds 7 diff 0  main=7' \
                '  a type with :delta is equivalent'
        is "$(over Query query="$type" report=2)" 'top main 7 7' '  the top table'
        is "$(over Query query="$type" report=1)" 'pprof 1f8b' '  a pprof file'
        is "$(over Query mode=1 base="$type{job=\"none\"}" query="$type{job=\"batch\"}")" \
                'total 7 nanoseconds 7 diff 7  main=7' '  a diff'
done
like "$(parca query Query query="$type" report=3 web="$url")" \
        '^12 report type 3 is not supported: flame graph table, pprof and top are' 'another report is unimplemented'
like "$(parca query Query query="$type" inverted=1 web="$url")" '^12 inverted call stacks' 'and so are inverted stacks'
like "$(parca query Query query='{job="batch"}' web="$url")" '^3 the query .* does not begin with a profile type' \
        'a query needs a type'
like "$(parca query Query query="$type{job=" web="$url")" '^3 ' 'a malformed selector is refused'
like "$(parca query Query bytes=abc web="$url")" '^3 the body is not one message' 'and a malformed message'
like "$(parca query Nothing web="$url")" \
        "^12 method 'Nothing' of parca.query.v1alpha1.QueryService is not implemented" 'another method'
is "$(parca query ProfileTypes kind=application/json web="$url")" 'HTTP 415' 'another content type'
like "$(parca query Series)" '^UNIMPLEMENTED Series is not implemented' 'Series is, as in Parca, not implemented'
like "$(parca query Query query="$type" report=3)" '^UNIMPLEMENTED report type 3' 'gRPC has the code of an error'
is "$(metric cairn_parca_calls_total)" 20 'calls that were answered are counted'
ok '  and timed, as are others' test "$(metric 'cairn_query_duration_seconds_bucket{kind="parca",le="300"}')" -gt 20
stop_server

printf '%s\n' 'the-sender ingest' 'the-reader read' >"$tmp/tokens"
start_grpc --token-file "$tmp/tokens"
is "$(parca query ProfileTypes web="$url")" 'HTTP 401' 'without a token'
is "$(parca query ProfileTypes web="$url" token=the-sender)" 'HTTP 403' 'with one of another scope'
like "$(parca query ProfileTypes web="$url" token=the-reader)" '^0a' 'with the right one'
like "$(parca query ProfileTypes token=the-sender)" "^PERMISSION_DENIED the token does not carry the scope 'read'" \
        'and over gRPC'
stop_server
done_testing
