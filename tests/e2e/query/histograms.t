# SPDX-License-Identifier: Apache-2.0
# Histograms in /metrics: each kind of work is timed, and cairn status evaluates them.
. tests/e2e/lib.sh
command -v gcc >/dev/null || skip_all "gcc is not installed"

python3 tests/e2e/profiles.py "$tmp/p" || bail_out "profiles.py failed"
printf 'int main(void) { return 0; }\n' >"$tmp/a.c"
gcc -g -Wl,--build-id -o "$tmp/a" "$tmp/a.c" || bail_out "gcc failed"

start_server --flush-interval 1
count() { metric "$1_duration_seconds_count"; }
is "$(count cairn_ingest) $(count cairn_flush) $(count cairn_upload) $(count cairn_symbolize)" "0 0 0 0" \
        "histograms are there before the first observation"

request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/p/good.otlp" "$url/v1development/profiles"
is "$code" 200 "a batch is accepted"
is "$(count cairn_ingest)" 1 "  the time of the batch is observed"
ok "  with its sync" test "$(metric 'cairn_fsync_duration_seconds_count{of="queue"}')" -ge 1
printf junk >"$tmp/junk"
request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/junk" "$url/v1development/profiles"
is "$code $(count cairn_ingest)" "400 1" "a batch that is refused is not"
wait_metric cairn_flushes_total 1
is "$(count cairn_flush)" 1 "a flush is observed"

request "$url/api/v1/query/top?from=now-1h&to=now"
is "$(metric 'cairn_query_duration_seconds_count{kind="top"}')" 1 "a query is observed with its kind"
request "$url/api/v1/query/top?from=yesterday"
is "$code $(metric 'cairn_query_duration_seconds_count{kind="top"}')" "400 2" "  a query that fails is observed too"
request "$url/api/v1/query/%22%7D%20x"
is "$code" 404 "an unknown kind"
is "$(curl -sS "$url/metrics" | grep -c 'query_duration.*x')" 0 "  does not become a label value"
request "$url/api/v1/query/types"
request -H 'Content-Type: application/json' --data '{}' "$url/querier.v1.QuerierService/ProfileTypes"
is "$code" 200 "a call of Grafana's is answered"

request -H 'Content-Type: application/json' --data '{"objects": []}' "$url/api/v1/symbolize"
is "$(count cairn_symbolize)" 1 "a request to symbolize is observed"
"$CAIRN_SAN/cairn-upload" --server "$url" "$tmp/a" >"$tmp/upload.out" 2>&1 || fail "the upload succeeds"
wait_metric 'cairn_uploads_total{outcome="stored"}' 1
is "$(count cairn_upload)" 1 "an upload is observed"

curl -sS "$url/metrics" >"$tmp/metrics"
report_checks python3 tests/e2e/query/histograms.py "$tmp/metrics" cairn_ingest_duration_seconds \
        cairn_flush_duration_seconds \
        'cairn_query_duration_seconds{kind="top"}' 'cairn_query_duration_seconds{kind="types"}' \
        'cairn_query_duration_seconds{kind="querier"}' 'cairn_fsync_duration_seconds{of="file"}' \
        'cairn_fsync_duration_seconds{of="directory"}' cairn_upload_duration_seconds cairn_symbolize_duration_seconds
ok "cairn status reads the metrics" "$cairn" status --server "$url"
is "$(curl -sS "$url/api/v1/status/service" | python3 -c '
import json, sys
print(sum("duration_seconds" in m["name"] and not m["name"].endswith("_total")
          for m in json.load(sys.stdin)["metrics"]))')" 0 "the status lists single values"
done_testing
