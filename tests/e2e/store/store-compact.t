# SPDX-License-Identifier: Apache-2.0
# Few files instead of many, with the same query results: cairn store compact with a service and on a directory, and a
# service's own compaction.
. tests/e2e/lib.sh
for tool in jq python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

start_server --flush-interval 1
# ingest N: one batch of two samples, in files of its own.
ingest() {
        python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" build_id=00112233445566778899aabbccddeeff00112233 \
                "values=$1,7" \
                addresses=4096 mapping_file=/opt/program "at_ns=$((1700000000000000000 + $1))"
        request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
        wait_metric cairn_flushes_total "$1"
}
top() { "$cairn" top --server "$url" --from 1970-01-02T00:00:00Z --json; }
status() { "$cairn" store status --data "$data" --json | jq -c "$1"; }

for i in 1 2 3; do ingest $i; done
before=$(top)
is "$(status '[.sample_rows, .sample_files, .compaction_backlog_files]')" '[6,3,0]' \
        "a file for each flush, none is due yet"
out=$("$cairn" store compact --server "$url" --json)
is "$(printf '%s' "$out" | jq -c '[.merges, .files_before, .files_after, .skipped_files]')" '[1,3,1,0]' \
        "the service merges the files of a day"
is "$(status '[.sample_rows, .sample_files]')" '[6,1]' "the samples of the day are in one file"
is "$(top)" "$before" "query results are the same"
is "$(metric cairn_compactions_total) $(metric cairn_compaction_merged_files_total)" "1 3" "metrics count it"
is "$(metric cairn_compaction_failures_total) $(metric cairn_compaction_skipped_files_total)" "0 0" \
        "metrics count no failure"
like "$("$cairn" store compact --server "$url")" '^0 merges: 0 files became 0, ' "there is nothing left to merge"
request -X POST -H 'Content-Type: text/plain' -d '{}' "$url/api/v1/store/compact"
is "$code" 415 "a page of another origin cannot request it"
"$cairn" store verify --data "$data" >"$tmp/verify" 2>&1 && pass "the files are what the log says" ||
        fail "the files are what the log says" "$(cat "$tmp/verify")"

ingest 4
ok_code=0; "$cairn" store compact --data "$data" >/dev/null 2>"$tmp/err" || ok_code=$?
is "$ok_code" 1 "not in a directory that a service writes"
stop_server
like "$("$cairn" store compact --data "$data")" '^1 merge: 2 files became 1, ' "in a directory without a service"
start_server
is "$(top | jq '[.[].flat] | add')" "$((1 + 2 + 3 + 4 + 4 * 7))" "nothing is lost or duplicated"
stop_server

# ---- without a request: nine flushes of a day are merged at the next check ----
data=$tmp/automatic
start_server --flush-interval 1
for i in 1 2 3 4 5 6 7 8; do ingest $i; done
is "$(status '[.sample_files, .compaction_backlog_files]') $(metric cairn_compactions_total)" '[8,0] 0' \
        "eight files are not due yet"
ingest 9
wait_metric cairn_compactions_total 1
pass "a service merges nine"
is "$(status '[.sample_rows, .sample_files, .compaction_backlog_files]')" '[18,1,0]' "  into one file of the day"
done_testing
