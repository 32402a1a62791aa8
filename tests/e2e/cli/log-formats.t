# SPDX-License-Identifier: Apache-2.0
# --log-format: every line of the service, the agent and the scraper is valid, whatever clients send.
. tests/e2e/lib.sh
command -v jq >/dev/null || skip_all "jq is not installed"
agent=$CAIRN_SAN/cairn-agent

lines_are() { python3 tests/e2e/cli/log-lines.py "$1" "$server_log"; }
# attack: requests whose targets and tokens contain characters that must be escaped in a log.
attack() {
        for target in '%22%7D%0A%7B%22level%22' '%1b%5b31m' '%ff%fe' '%e2%80%ae' 'a%20msg=%22x%22' '%5c%5c%22'; do
                curl -sS --max-time 60 -o "$tmp/answer" "$url/api/v1/query/$target?q=\"\\" || fail "$target is answered"
        done
}

refusals_are() { [ "$(grep -c 'audit' "$server_log")" -ge "$1" ]; }

printf 'the-admin admin,read,ingest,upload\n' >"$tmp/tokens"
printf 'serve:\n  log-format: json\n' >"$tmp/cairn.yaml"
export CAIRN_CONFIG="$tmp/cairn.yaml"
start_server --token-file "$tmp/tokens"
attack
wait_for "the last refusal" refusals_are 6
ok "JSON: each line is an object" lines_are json
is "$(jq -r 'select(.subsystem == "audit") | .method' "$server_log" | sort -u)" GET \
        "  each line of the audit has its fields"
is "$(jq -r 'select(.subsystem == "audit") | .code | type' "$server_log" | sort -u)" number \
        "  that are numbers where they count"

printf 'serve:\n  log-format: logfmt\n' >"$tmp/cairn.yaml"
kill -HUP "$server_pid"
wait_for "the other format" grep -q '^time=.*log-format' "$server_log"
: >"$server_log"
# ten per second are logged, and the first attack may have been in this second
attack_until_logged() { attack; refusals_are 6; }
wait_for "six refusals" attack_until_logged
ok "logfmt, after a reload: each line is pairs of names and values" lines_are logfmt
stop_server
export CAIRN_CONFIG=

: >"$server_log"
start_server --token-file "$tmp/tokens"
attack
like "$(cat "$server_log")" '^[0-9T:.-]+Z info audit: 401 GET .* from 127\.0\.0\.1$' "text is the default"
stop_server

CAIRN_LOG_FORMAT=json "$cairn" serve --data /proc/nowhere --listen 127.0.0.1:0 2>"$server_log"
ok "a service that cannot start" grep -q nowhere "$server_log"
ok "  says so in the format" lines_are json
"$cairn" serve --data "$tmp/x" --log-format xml 2>"$tmp/err"
is $? 64 "another format is refused"
like "$(cat "$tmp/err")" 'takes text, logfmt or json' "  the refusal lists the formats"

printf 'jobs: 7\n' >"$tmp/scrape.yaml"
"$cairn" scrape --log-format json "$tmp/scrape.yaml" 2>"$server_log"
ok "cairn scrape: an invalid configuration is reported" test -s "$server_log"
ok "  in the format" lines_are json
"$cairn" scrape --log-format xml "$tmp/scrape.yaml" 2>"$tmp/err"
is $? 64 "  another format is refused"
"$agent" --log-format json --token-file /nowhere/token --server http://127.0.0.1:9 2>"$server_log"
ok "cairn-agent: a missing token file is reported" grep -q nowhere "$server_log"
ok "  in the format" lines_are json
"$agent" --log-format xml 2>"$tmp/err"
is $? 64 "  another format is refused"
done_testing
