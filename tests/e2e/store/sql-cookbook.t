#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each query of docs/sql-cookbook.md runs in DuckDB over a recorded profile, gauges and samples without names, and
# agrees with cairn.
. tests/e2e/lib.sh
. tests/e2e/venv.sh

start_server --flush-interval 1
for version in 1 2; do
        "$cairn" import --server "$url" --time "$(($(date +%s) - 60 * version))" --label version=$version \
                tests/browser/data/build.pb.gz \
                >"$tmp/log" 2>&1 || bail_out "the recorded profile cannot be imported: $(cat "$tmp/log")"
done
python3 tests/e2e/profiles.py otlp "$tmp/raw.otlp" addresses=401000 "build_id=$(printf '%040d' 7)" \
        mapping_file=/usr/bin/raw service=raw values=5
now=$(date +%s)
# snapshot TYPE SECONDS-AGO LABELS FOLDED: samples of one time; the labels are separated by spaces.
snapshot() {
        printf '%b' "$4" >"$tmp/$1-$2.folded"
        set -- "$1" "$2" "$(printf -- '--label %s ' $3)"
        # shellcheck disable=SC2086
        "$cairn" import --server "$url" --type "$1" --time $((now - $2)) $3 "$tmp/$1-$2.folded" >"$tmp/log" 2>&1 ||
                bail_out "a snapshot cannot be imported: $(cat "$tmp/log")"
}
# Two processes; the label "bytes" is of samples.
heap=memory:inuse_space:bytes:space:bytes
snapshot $heap 10 "instance=a bytes=16" 'main;x 12\n'
snapshot $heap 10 "instance=a bytes=32" 'main;y 24\n'
snapshot $heap 70 "instance=a bytes=16" 'main;x 36\n'
snapshot $heap 10 "instance=b bytes=16" 'main;x 100\n'
# Two processes without a label that describes them.
goroutines=goroutine:goroutine:count:goroutine:count
snapshot $goroutines 10 run=1 'main;a 3\n'
snapshot $goroutines 70 run=1 'main;b 3\n'
snapshot $goroutines 130 run=1 'main;c 3\n'
snapshot $goroutines 190 run=2 'main;a 7\n'
leaked=goroutineleak:goroutineleak:count:goroutineleak:count
snapshot $leaked 10 run=1 'main;a 5\n'
snapshot $leaked 70 run=1 'main;a 3\n'
answers 200 '' "samples without names are taken" -H 'Content-Type: application/x-protobuf' \
        --data-binary "@$tmp/raw.otlp" "$url/v1development/profiles"
flushed() { [ "$(metric cairn_queue_batches)" -eq 0 ] && [ "$(metric 'cairn_table_rows{table="samples"}')" -gt 0 ]; }
wait_for "everything to be in the tables" flushed
"$cairn" top --server "$url" --from 0 --json >"$tmp/top.json"
for type in inuse_space goroutine goroutineleak; do
        "$cairn" top --server "$url" --from 0 --type $type --json >"$tmp/$type.json"
        "$cairn" query --server "$url" --from now-10m --type $type --series --step 1m --json >"$tmp/$type.series.json"
done
"$cairn" query --server "$url" --from 0 --missing --json >"$tmp/missing.json"
"$cairn" flame --server "$url" --from 0 --format folded >"$tmp/cairn.folded"
stop_server
report_checks "$PYTHON" tests/e2e/store/sql-cookbook.py "$data" "$tmp"
done_testing
