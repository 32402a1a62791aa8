# SPDX-License-Identifier: Apache-2.0
# After a start, the stacks of the newest days and the locations are loaded into memory before a query needs them.
. tests/e2e/lib.sh

python3 tests/e2e/profiles.py "$tmp/p" || bail_out "profiles.py failed"
start_server --flush-interval 1
request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/p/good.otlp" "$url/v1development/profiles"
wait_metric cairn_flushes_total 1
wait_metric 'cairn_table_rows{table="stacks"}' 1
stacks=$(metric 'cairn_table_rows{table="stacks"}')
ok "there are stacks in the tables" test "$stacks" -gt 0
stop_server

start_server
wait_metric cairn_stack_cache_stacks "$stacks"
is "$(metric cairn_stack_cache_stacks)" "$stacks" "a start reads them"
ok "  and the locations" wait_metric cairn_location_cache_bytes 1000
request -G "$url/api/v1/query/top" -d from=now-24h -d to=now
is "$code" 200 "the first query"
is "$(metric cairn_stack_cache_misses_total)" 0 "  finds all of them"
ok "  which are not zero" test "$(metric cairn_stack_cache_hits_total)" -gt 0
is "$(metric cairn_location_cache_misses_total)" 0 "  the first query finds all locations"
ok "  which are not zero" test "$(metric cairn_location_cache_hits_total)" -gt 0
stop_server
done_testing
