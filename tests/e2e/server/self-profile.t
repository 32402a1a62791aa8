# SPDX-License-Identifier: Apache-2.0
# --self-profile: the service's CPU time is recorded in its own tables, with complete stacks, without privileges.
. tests/e2e/lib.sh
for tool in curl jq objcopy; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

# cpu_ticks: user and system time of the service, without that of its workers.
cpu_ticks() { sed 's/.*) //' "/proc/$server_pid/stat" | cut -d' ' -f12,13 | tr ' ' +; }
cpu_seconds() { awk -v t="$(($(cpu_ticks)))" -v hz="$(getconf CLK_TCK)" 'BEGIN { print t / hz }'; }

upload=$CAIRN_SAN/cairn-upload
start_server --self-profile
like "$(cat "$server_log")" "info self-profile: sampling this service into its tables, as service_name=\"cairn\"" \
        "the log says so"
is "$(metric cairn_self_profile_lost_samples_total)" 0 "no sample of the service's own is lost"
objcopy --strip-debug "$cairn" "$tmp/cairn"
"$upload" --server "$url" "$tmp/cairn" >/dev/null 2>"$tmp/err" || bail_out "$(cat "$tmp/err")"
wait_metric cairn_objects_indexed_total 1
began=$(cpu_seconds)
used_enough() {
        curl -sS -o "$tmp/metrics" "$url/metrics?n=[1-200]"
        awk -v a="$began" -v b="$(cpu_seconds)" 'BEGIN { exit !(b - a >= 3) }'
}
wait_for "the service to use three seconds" used_enough
spent=$(cpu_seconds)
stop_server

"$cairn" query --data "$data" --from now-1h --json '{service_name="cairn"}' >"$tmp/json" 2>"$tmp/err"
sampled=$(jq '[.sides[].total] | add / 1e9' "$tmp/json")
ok "the CPU time of the service is sampled: $sampled s of $spent s" \
        awk -v a="$sampled" -v b="$spent" 'BEGIN { exit !(a > 0.6 * b && a < 1.4 * b + 0.5) }'
"$cairn" flame --data "$data" --from now-1h --format folded '{service_name="cairn"}' >"$tmp/folded" 2>"$tmp/err"
like "$(cat "$tmp/folded")" ";run_pool_thread;run_request_handler;handle_metrics;metrics_write" \
        "stacks lead from the thread's start to what it does"
"$cairn" query --data "$data" --from now-1h --json '{service_name="cairn",thread_name=~"status.*"}' >"$tmp/json" \
        2>"$tmp/err"
ok "threads have their names" test "$(jq '[.sides[].total] | add' "$tmp/json")" -gt 0

"$cairn" serve --data "$data" --read-only --self-profile 2>"$tmp/err"
is "$?" 64 "a read-only service cannot store its profile"
like "$(cat "$tmp/err")" "self-profile and --read-only exclude each other" "  the message names both options"
done_testing
