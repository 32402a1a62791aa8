#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The table function_history agrees with the service's tables of functions in each hour: after random batches, late
# ones, kills during its derivation, and debuginfo that arrives later. CAIRN_PROPERTY_SEED sets the random seed.
. tests/e2e/venv.sh
. tests/e2e/lib.sh

seed=${CAIRN_PROPERTY_SEED:-20261129}
now=$(date +%s)
hour=$((now - now % 3600))
hours="$((hour - 3600)) $((hour - 2 * 3600)) $((hour - 26 * 3600)) $((hour - 51 * 3600))"
export CAIRN="$cairn"

# shellcheck disable=SC2086 # hours are words
send() {
        python3 tests/e2e/store/function-history.py send "$url" "$1" "$2" $hours || fail "random batches are sent"
}
flushed() { wait_for "the queue to be in the tables" metric_equals cairn_queue_batches 0; }
update() {
        "$cairn" store compact --server "$url" >"$tmp/out" 2>&1 || fail "the history is updated" "$(cat "$tmp/out")"
}
# shellcheck disable=SC2086
agrees() {
        "$PYTHON" tests/e2e/store/function-history.py check "$url" "$data" $hours >"$tmp/check" 2>&1
        is $? 0 "$1"
        sed 's/^/# /' "$tmp/check"
}

start_server --flush-interval 1
send "$seed" 40
flushed
update
agrees "hours are derived from their samples"
derived=$(metric cairn_history_derivations_total)
update
is "$(metric cairn_history_derivations_total)" "$derived" "an unchanged hour is not derived again"

send $((seed + 1)) 10
flushed
update
agrees "samples that arrive late are added"

# ---- kills ----

for round in 1 2 3 4 5 6; do
        send $((seed + 1 + round)) 5
        flushed
        "$cairn" store compact --server "$url" >"$tmp/out" 2>&1 &
        compaction=$!
        kill_server
        wait "$compaction"
        start_server --flush-interval 1
done
update
agrees "after kills each hour counts once"
is "$("$cairn" store verify --data "$data" | sed 's/.*: //')" "0 problems" "cairn store verify"

# ---- late debuginfo ----

cat >"$tmp/program.c" <<'EOF'
volatile int sink;
__attribute__((noinline)) void late_function(int n) { sink += n; }
int main(int argc, char **argv) { (void)argv; late_function(argc); return 0; }
EOF
gcc -g -O1 -Wl,--build-id=0x0000000000000000000000000000000000000001 -o "$tmp/program" "$tmp/program.c"
address() { nm "$tmp/program" | awk -v name="$1" '$3 == name { print $1 }'; }
python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" "build_id=$(build_id_of "$tmp/program")" service=late values=7 \
        "addresses=$(address late_function),$(address main)" mapping_file=program "at_ns=$((hour - 3600))000000000"
request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
is "$code" 200 "samples of a program without debuginfo are accepted"
flushed
update
rows_of_late() {
        "$PYTHON" - "$data" <<'EOF'
import json, os, subprocess, sys
import pyarrow.parquet as pq
command = [os.environ["CAIRN"], "store", "files", "--json", "--table", "function_history", "--data", sys.argv[1]]
for f in json.loads(subprocess.check_output(command)):
    for r in pq.ParquetFile(f["path"]).read().to_pylist():
        if r["service"] == "late":
            print(r["function"], r["build_id"][-2:], r["self"], r["total"])
EOF
}
is "$(rows_of_late)" "None 01 7 7" "its locations are summed without a name, by build-id"
put_object debuginfo "$tmp/program"
wait_metric cairn_resymbolize_locations_total 2
kill_server
start_server --flush-interval 1
update
is "$(rows_of_late | sort)" "late_function 01 7 7
main 01 0 7" "late debuginfo renames the hour, also after a kill"

# ---- trends ----

# trend SELECTOR [TYPE]: the series of all functions by hour and version, without the sources of the answer.
trend() {
        curl -sS -G "$url/api/v1/query/trend" --data-urlencode "selector=$1" --data-urlencode 'function=.*' \
                -d "type=${2:-}" -d by=service_version -d limit=100 -d step=1h \
                -d "from=$((hour - 60 * 3600))" -d "to=$hour" >"$tmp/trend"
        jq -S 'del(.history_hours, .sample_hours)' "$tmp/trend"
}
update
from_history=$(trend '{service_name="api"}')
is "$(jq .sample_hours "$tmp/trend")" 0 "whole hours are read from the history"
is "$(jq '.series | length > 20' "$tmp/trend")" true "  each function and version has a series"
is "$(trend '{service_name="api"}' samples:samples)" "$from_history" "the first parts of a type are enough"
is "$(trend '{service_name="api",other=""}')" "$from_history" "the samples of the hours give the same trends"
is "$(jq .history_hours "$tmp/trend")" 0 "  without the history"
"$cairn" query --server "$url" --trend late_function --from "$((hour - 3600))" --to "$hour" --csv \
        '{service_name="late"}' >"$tmp/csv"
like "$(tr -d '\r' <"$tmp/csv")" 'late_function,.*program.c,7,7,1,7$' "cairn query --trend"
send $((seed + 20)) 5
like "$(trend '{service_name="api",other=""}')" points "samples in the queue"
is "$(trend '{service_name="api"}')" "$(trend '{service_name="api",other=""}')" "  are in trends at once"
flushed

# ---- retention ----

update
before=$(trend '{service_name="api"}')
stop_server
expire() {
        "$cairn" store expire --retain-samples "$1" --data "$data" >"$tmp/out" 2>&1 ||
                fail "rows expire" "$(cat "$tmp/out")"
}
expire age=1d
like "$(cat "$tmp/out")" samples "days of samples are removed"
unlike "$(cat "$tmp/out")" function_history "  while their history stays"
start_server --flush-interval 1
is "$(trend '{service_name="api"}')" "$before" "  from which trends have the hours"
is "$(trend '{service_name="api"}' samples:samples)" "$before" "the first parts of a type find hours without samples"
ok "  that samples lack" test "$(trend '{service_name="api",other=""}')" != "$before"
stop_server
expire history=1d
like "$(cat "$tmp/out")" function_history "days of the history past its own retention are removed"
is "$("$cairn" store verify --data "$data" | sed 's/.*: //')" "0 problems" "cairn store verify"
done_testing
