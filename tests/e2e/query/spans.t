#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The most expensive spans and traces: by the command and the API, from the head and from the tables, compared with sums
# computed here.
. tests/e2e/lib.sh
for tool in curl jq python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
start_server --flush-interval 3600
now=$(date +%s)
count=3000
python3 tests/browser/make_spans.py $((now - 60)) $count >"$tmp/spans.json"
ok "a profile with linked spans is accepted" test \
        "$(curl -sS -o "$tmp/answer" -w '%{http_code}' -H 'Content-Type: application/json' \
        --data-binary "@$tmp/spans.json" "$url/v1development/profiles")" = 200
printf 'main;old 5000000\n' >"$tmp/old.folded"
ok "  and one with ids as labels" "$cairn" import --server "$url" --time $((now - 60)) \
        --type process_cpu:cpu:nanoseconds:cpu:nanoseconds \
        --label trace_id=ffffffffffffffffffffffffffffffff --label profile_id=77 "$tmp/old.folded"
{
        echo trace_id,span_id,service_name,span_name,value,samples
        python3 -c "
for k in range($count, 0, -1):
    print(f'ab{(k + 1) // 2:030x},ab{k:014x},{\"cart\" if k % 3 == 0 else \"shop\"},{\"GET /x\" if k % 2 else \"POST /buy\"},{k * 10**6},{k}')"
} >"$tmp/want.csv"
spans() { "$cairn" query --server "$url" --spans "$@"; }

# A sample is a millisecond; the one of the shortest span was sent in two stacks.
# hold WHEN
hold() {
        spans --json >"$tmp/all.json"
        is "$(jq -c '[.unit, .total, .samples, .with_id]' "$tmp/all.json")" \
                "[\"nanoseconds\",$(((count * (count + 1) / 2 + 15) * 1000000)),$((count * (count + 1) / 2 + 11)),{\"total\":$(((count * (count + 1) / 2 + 5) * 1000000)),\"samples\":$((count * (count + 1) / 2 + 1)),\"spans\":$((count + 1))}]" \
                "all samples are summed, and those with an id, $1"
        spans --csv '{trace_id!="ffffffffffffffffffffffffffffffff"}' | tr -d '\r' >"$tmp/all.csv"
        is "$(diff "$tmp/want.csv" "$tmp/all.csv" | head -5)" "" "  each span has its cost, the most expensive first"
        is "$(jq -c '.rows[0]' "$tmp/all.json")" \
                '{"labels":{"trace_id":"ab0000000000000000000000000005dc","span_id":"ab00000000000bb8"},"service_name":"cart","span_name":"POST /buy","value":3000000000,"samples":3000}' \
                "  each span has its service and name"
        is "$(spans --by trace_id --limit 1 --csv | tr -d '\r' | tail -1)" \
                "ab0000000000000000000000000005dc,cart,POST /buy,5999000000,5999" \
                "  traces have their cost, service and name"
        is "$(spans --by profile_id --csv | tr -d '\r' | tail -1)" "77,,,5000000,1" \
                "  values of any label have their cost"
        like "$(spans --limit 2 '{trace_id="ab0000000000000000000000000005dc"}')" \
                '^ +3\.00 s  50\.01% +3000  trace_id="ab0{27}5dc", span_id="ab0{11}bb8"  cart  POST /buy$' \
                "  the costliest spans are shown as text"
        is "$(curl -sS \
                "$url/api/v1/query/folded?by=span_id&selector=%7Btrace_id%3D%22ab0000000000000000000000000005dc%22%7D" \
                | sort)" \
                'span_id=ab00000000000bb7;handle;encode 2999000000
span_id=ab00000000000bb8;handle;query 3000000000' "  and stacks of a trace are told apart by span"
}
hold "from the head"
stop_server
start_server
ok "stopping has flushed them to the tables" test -n "$(find "$data/profiles/tables/samples" -name "*.parquet")"
hold "from the tables"

answers 400 'focus is not a parameter of spans' "filters of stacks are refused" "$url/api/v1/query/spans?focus=x"
"$cairn" query --server "$url" --spans --series >/dev/null 2>"$tmp/err"
is "$?" 64 "--spans and --series exclude each other"
stop_server
done_testing
