#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each query of docs/sql-cookbook.md runs in DuckDB over a recorded profile and samples without names, and agrees with cairn.
. tests/e2e/lib.sh
. tests/e2e/venv.sh

start_server --flush-interval 1
for version in 1 2; do
        "$cairn" import --server "$url" --time "$(($(date +%s) - 60 * version))" --label version=$version tests/browser/data/build.pb.gz \
                >"$tmp/log" 2>&1 || bail_out "the recorded profile cannot be imported: $(cat "$tmp/log")"
done
python3 tests/e2e/profiles.py otlp "$tmp/raw.otlp" addresses=401000 "build_id=$(printf '%040d' 7)" mapping_file=/usr/bin/raw service=raw values=5
answers 200 '' "samples without names are taken" -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/raw.otlp" "$url/v1development/profiles"
flushed() { [ "$(metric cairn_queue_batches)" -eq 0 ] && [ "$(metric 'cairn_table_rows{table="samples"}')" -gt 0 ]; }
wait_for "everything to be in the tables" flushed
"$cairn" top --server "$url" --from 0 --json >"$tmp/top.json"
"$cairn" query --server "$url" --from 0 --missing --json >"$tmp/missing.json"
"$cairn" flame --server "$url" --from 0 --format folded >"$tmp/cairn.folded"
stop_server
report_checks "$PYTHON" tests/e2e/sql-cookbook.py "$data" "$tmp"
done_testing
