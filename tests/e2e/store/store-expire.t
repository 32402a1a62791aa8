# SPDX-License-Identifier: Apache-2.0
# Retention of samples: a dry run reports what the real run removes, on a directory and with a service; the service's
# own rules.
. tests/e2e/lib.sh
for tool in curl jq python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

# A file with one sample from DAYS ago.
make_days_ago() {
        python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" service="days$1" values=7 mapping_file=program \
                addresses=401000 \
                at_ns="$(($(date +%s) - $1 * 86400))000000000"
}
# One batch of a service, with a sample from DAYS ago.
send_days_ago() {
        make_days_ago "$1"
        request -H 'Content-Type: application/x-protobuf' ${2:+-H "$2"} --data-binary "@$tmp/one.otlp" \
                "$url/v1development/profiles"
        is "$code" 200 "samples of $1 days ago are accepted"
}
expire() { "$cairn" store expire "$@"; }
days() { jq -c '[.removed[] | [.table, .reason, .files, .rows]]'; }

start_server --flush-interval 1 --max-age any
send_days_ago 0
send_days_ago 10
send_days_ago 20
wait_metric 'cairn_table_rows{table="samples"}' 3
answers 400 "'rules' is not an array" "rules that are not a list do not stand for those of the service" \
        -H 'Content-Type: application/json' --data '{"rules": "age=1d"}' "$url/api/v1/store/expire"
answers 400 "is not age=TIME" "a rule that is none is refused" -H 'Content-Type: application/json' \
        --data '{"rules": ["keep"]}' \
        "$url/api/v1/store/expire"
expire --server "$url" --dry-run --retain-samples age=5d --json >"$tmp/dry"
is "$(days <"$tmp/dry")" '[["samples","age",1,1],["stacks","age",1,1],["samples","age",1,1],["stacks","age",1,1]]' \
        "a dry run at the service names tables and days"
is "$(jq .dry_run <"$tmp/dry")" true "the report is marked as a dry run"
expire --data "$data" --dry-run --retain-samples age=5d --json >"$tmp/dry-directory"
ok "a dry run on the directory reports the same" cmp "$tmp/dry" "$tmp/dry-directory"
is "$("$cairn" store status --data "$data" --json | jq .sample_rows)" 3 "nothing was removed"
expire --data "$data" --retain-samples age=5d >"$tmp/out" 2>&1
is $? 1 "a directory with a running service is not changed"
like "$(expire --server "$url" --retain-samples age=15d)" 'removed 2 files, 2 rows, [0-9]* bytes' \
        "the oldest day is removed"
is "$("$cairn" store status --data "$data" --json | jq .sample_rows)" 2 \
        "the rows of the oldest day are not in the tables"
is "$(metric cairn_store_expired_rows_total)" 2 "the removed rows are counted"
like "$(cat "$server_log")" "info store: retention \(age\) removed 1 row, [0-9]+ bytes of samples of $(date -u \
        -d '20 days ago' +%F): 1 file " \
        "the removed day is logged"
expire --server "$url" >"$tmp/out"
is "$(cat "$tmp/out")" "removed 0 files, 0 rows, 0 bytes" "a service without rules removes nothing"
stop_server

expire --data "$data" >"$tmp/out" 2>&1
is $? 64 "in a directory a rule must be given"
like "$(expire --data "$data" --retain-samples age=5d)" 'age .* 1 files .* 1 rows' \
        "a directory without a service is changed"
start_server --read-only
answers 403 read-only "a read-only service removes nothing" -H 'Content-Type: application/json' --data '{}' \
        "$url/api/v1/store/expire"
stop_server
start_server --flush-interval 1 --max-age any --retain-samples age=5d --retain-samples size=10G
send_days_ago 7
like "$body" '1 sample rejected: the time .* is too long ago' \
        "samples that the service's rules would remove are rejected"
send_days_ago 7 'X-Cairn-History: 1'
wait_metric 'cairn_table_rows{table="samples"}' 2
answers 400 "'dry-run' is unknown" "a misspelt dry run is refused" -H 'Content-Type: application/json' \
        --data '{"dry-run": true}' "$url/api/v1/store/expire"
answers 400 'an object' "as is what is not an object" -H 'Content-Type: application/json' --data 'true' \
        "$url/api/v1/store/expire"
like "$(expire --server "$url")" 'removed 2 files, 2 rows' "a service removes by its own rules"
make_days_ago 8
like "$("$cairn" import --server "$url" --history "$tmp/one.otlp")" \
        '; sent; message of the service: 1 sample is older than the retention of 5d: the next maintenance removes them unless' \
        "an import of samples that retention removes says so"
# Samples and stacks of the first removal and of this one.
expired_again() { expire --server "$url" >/dev/null; metric_reached cairn_store_expired_rows_total 4; }
wait_for "the imported sample to be removed" expired_again
pass "  and retention removes them"
make_days_ago 9
is "$("$cairn" import --server "$url" --history --json "$tmp/one.otlp" |
        jq -c '[.format, .sent, .samples, .rejected_samples, .expiring_samples, (.message | .[0:39])]')" \
        '["otlp",true,1,0,1,"1 sample is older than the retention of"]' \
        "cairn import reports expiring samples as JSON"
is "$("$cairn" import --server "$url" --history --json "$tmp/one.otlp" | jq -c '[.expiring_samples, .message]')" \
        '[0,"this batch was received before: no samples were added"]' \
        "a batch that was received before has no expiring samples"
make_days_ago 4
is "$("$cairn" import --server "$url" --history --json "$tmp/one.otlp" |
        jq -c '[.sent, .expiring_samples, .message]')" '[true,0,null]' \
        "samples that are kept are not reported as expiring"
is "$("$cairn" import --dry-run --json "$tmp/one.otlp" | jq -c '[.file == "'"$tmp/one.otlp"'", .sent, .samples]')" \
        '[true,false,1]' \
        "a dry run sends nothing"
stop_server
"$cairn" serve --data "$data" --retain-samples '{env="dev"},size=3G' >"$tmp/out" 2>&1
is $? 64 "a size of samples with certain labels is refused"
like "$(cat "$tmp/out")" "retention rule '{env=\"dev\"},size=3G' is not" "the message names the refused rule"

# Rules with labels. Batches of a restarted service are flushed together: the file of 12 days ago has samples of two
# services.
data=$tmp/labels
start_server --flush-interval 3600 --max-age any
send_days_ago 0
send_days_ago 11
send_days_ago 12
python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" service=days11 values=7 mapping_file=program addresses=401000 \
        at_ns="$(($(date +%s) - 12 * 86400))000000000"
request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
stop_server
start_server --flush-interval 1 --max-age any
wait_metric 'cairn_table_rows{table="samples"}' 4
rule='{service.name="days11"},age=5d'
expire --data "$data" --dry-run --retain-samples "$rule" --json >"$tmp/dry"
is "$(jq -c '[.removed[] | [.table, .reason, .files, .rewritten, .rows]]' <"$tmp/dry")" \
        '[["samples","labels",0,1,1],["samples","labels",1,0,1],["stacks","unused",1,0,1]]' \
        "a dry run says which files lose rows and which go"
is "$("$cairn" store status --data "$data" --json | jq .sample_rows)" 4 "a dry run removes nothing"
answers 400 "is not [{]LABELS[}],age=TIME" "a service refuses the same rules" -H 'Content-Type: application/json' \
        --data '{"rules": ["{env=\"dev\"},size=1G"]}' "$url/api/v1/store/expire"
like "$(expire --server "$url" --retain-samples "$rule")" 'removed 2 files, 3 rows, [0-9]* bytes, rewrote 1 file' \
        "a service removes the same samples"
is "$("$cairn" store status --data "$data" --json | jq .sample_rows)" 2 "a service removes no other samples"
is "$(metric cairn_store_rewritten_files_total)" 1 "a service counts the rewritten file"
stop_server
start_server --flush-interval 1 --max-age any --retain-samples '{service.name=~"days1.*"},age=5d'
ok "a service applies its own rules automatically" wait_metric cairn_store_expired_rows_total 1
send_days_ago 13
ok "  also to late samples" wait_metric cairn_store_expired_rows_total 2
is "$("$cairn" store status --data "$data" --json | jq .sample_rows)" 1 "a service's rules remove no other samples"
stop_server

# Locations that only removed stacks referred to.
data=$tmp/locations
start_server --flush-interval 1 --max-age any
send_days_ago 0
python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" service=old values=7 mapping_file=program \
        addresses=401000,402000,403000 \
        at_ns="$(($(date +%s) - 20 * 86400))000000000"
request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
wait_metric 'cairn_table_rows{table="samples"}' 2
is "$(metric 'cairn_table_rows{table="locations"}')" 3 "two days have three locations"
expire --server "$url" --retain-samples age=5d >"$tmp/out"
like "$(cat "$tmp/out")" 'locations *unused *[01] files *2 rows' \
        "what is removed includes the locations of no other day"
wait_metric 'cairn_table_rows{table="locations"}' 1
wait_metric cairn_location_sweep_removed_rows_total 2 # shortly after they are removed
is "$(metric cairn_location_sweep_removed_rows_total)" 2 "removed locations are counted"
ok "  and every remaining sample has its locations" "$cairn" store verify --data "$data"
python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" service=new values=7 mapping_file=program addresses=402000 \
        at_ns="$(date +%s)000000000"
request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
wait_metric 'cairn_table_rows{table="locations"}' 2
ok "  also one that is sent again" "$cairn" store verify --data "$data"
stop_server
done_testing
