#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SIGHUP makes the agent reload its configuration and its token; errors change nothing.
. tests/e2e/lib.sh
agent=$CAIRN_SAN/cairn-agent
for tool in curl cc; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
"$agent" --doctor >"$tmp/doctor" ||
        skip_all "the agent cannot profile here: $(grep '^error' "$tmp/doctor" | head -1 | tr -s ' ')"
export CAIRN_CONFIG="$tmp/cairn.yaml"

logged() { grep -Eq -e "$1" "$tmp/agent.log"; }
# reload: sends SIGHUP to the agent and waits until it is done; $log has the new lines of the log.
reload() {
        before=$(wc -l <"$tmp/agent.log")
        kill -HUP "$agent_pid"
        wait_for "the agent's reload" reload_is_done
        log=$(tail -n "+$((before + 1))" "$tmp/agent.log")
}
reload_is_done() { tail -n "+$((before + 1))" "$tmp/agent.log" | grep -Eq 'reload: done|stay in use'; }
failed_reloads() { awk '$1 == "cairn_agent_reload_failures_total" { print $2 }' "$tmp/metrics"; }
failures_are() { [ "$(failed_reloads)" = "$1" ]; }

echo 'int main(void) { for (volatile unsigned long i = 0;; i++); }' >"$tmp/hot.c"
cc -O1 -o "$tmp/hot" "$tmp/hot.c"
"$tmp/hot" &
hot=$!
background_pids=$hot
printf 'first-secret ingest,read,upload name=first\n' >"$tmp/tokens"
printf 'first-secret\n' >"$tmp/token"
printf 'agent:\n  token-file: %s\n' "$tmp/token" >"$CAIRN_CONFIG"
printf 'serve:\n  token-file: %s\n' "$tmp/tokens" >>"$CAIRN_CONFIG"
start_server
"$agent" --server "$url" --interval 1 --frequency 199 --pid $hot --metrics-file "$tmp/metrics" 2>"$tmp/agent.log" &
agent_pid=$!
background_pids="$background_pids $agent_pid"
batches_as() { [ "$(curl -sS -H "Authorization: Bearer $1" "$url/metrics" |
        awk '$1 == "cairn_ingest_batches_total" { print $2 }')" -gt "$2" ]; }
wait_for "a batch of the first token" batches_as first-secret 0

# ---- another token ----

printf 'second-secret ingest,read,upload name=second\n' >"$tmp/tokens"
kill -HUP "$server_pid"
wait_for "the agent to be refused" logged 'HTTP 401'
before=$(curl -sS -H 'Authorization: Bearer second-secret' "$url/metrics" |
        awk '$1 == "cairn_ingest_batches_total" { print $2 }')
taken=$before
printf 'second-secret\n' >"$tmp/token"
reload
like "$log" 'reload: done' "the agent reloads its token"
wait_for "batches with the new token" batches_as second-secret "$taken"
pass "  and sends with it, also what waited"

# ---- options ----

printf 'agent:\n  token-file: %s\n  log-level: debug\n  frequency: 20\n  label: [env=dev]\n' "$tmp/token" \
        >"$CAIRN_CONFIG"
reload
like "$log" 'reload: --log-level was changed and is applied' "another log level is applied"
like "$log" 'reload: --label was changed and takes effect at the next start' "labels need a restart"
unlike "$log" 'reload: --frequency' "  an option of the command line is not reported as changed"
wait_for "a debug message" logged ' debug '
pass "the new log level is in use"
printf 'agent:\n  token-file: %s\n  frequence: 20\n' "$tmp/token" >"$CAIRN_CONFIG"
reload
like "$log" "reload: .*cairn.yaml:3: 'agent' has no option 'frequence'.*; the previous settings stay in use" \
        "an error is reported with its line"
wait_for "the metric" failures_are 1
pass "  and counted"
printf 'agent:\n  token-file: %s\n  log-level: debug' "$tmp/token" >"$CAIRN_CONFIG"
reload
like "$log" "reload: '.*cairn.yaml' does not end with a line end: .*; the previous settings stay in use" \
        "a configuration that is cut off is refused"
: >"$CAIRN_CONFIG"
reload
like "$log" "reload: '.*cairn.yaml' is empty: .*; the previous settings stay in use" \
        "  a configuration without text is refused"
printf 'agent:\n  token-file: %s\n' "$tmp/absent" >"$CAIRN_CONFIG"
reload
like "$log" "reload: .*absent.*; the previous settings stay in use" "a missing token file is reported"
after=$(wc -l <"$tmp/agent.log")
debugs_after() { tail -n "+$((after + 1))" "$tmp/agent.log" | grep -q ' debug '; }
wait_for "another debug message" debugs_after
pass "  and the log level before is in use, not that of the file"
taken=$(curl -sS -H 'Authorization: Bearer second-secret' "$url/metrics" |
        awk '$1 == "cairn_ingest_batches_total" { print $2 }')
wait_for "further batches" batches_as second-secret "$taken"
pass "  while the token before is in use"

kill -TERM "$agent_pid"
wait "$agent_pid"
is $? 0 "the agent ends cleanly"
ok "  without a sanitizer's report" sh -c "! grep -E 'Sanitizer|runtime error:' '$tmp/agent.log'"
done_testing
