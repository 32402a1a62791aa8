#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A number is the same in every interface: random samples, selections, types, ranges and filters, from the head and
# from the tables. NUMBERS_SEED repeats a failure.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip_all "python3 is not installed"
now=$(($(date +%s) / 60 * 60 - 120))
seed=${NUMBERS_SEED:-$(date +%s)}
diag "NUMBERS_SEED=$seed"
numbers() { python3 tests/e2e/query/same-numbers.py "$1" "$url" "$cairn" "$seed" $now >"$tmp/report" 2>&1; }

start_server --flush-interval 3600
ok "random samples are accepted" numbers fill
ok "all interfaces agree, from the head" numbers check
sed 's/^/# /' "$tmp/report"
stop_server
start_server
ok "stopping has flushed them to the tables" test -n "$(find "$data/profiles/tables/samples" -name "*.parquet")"
ok "all interfaces agree, from the tables" numbers check
sed 's/^/# /' "$tmp/report"
stop_server
done_testing
