# SPDX-License-Identifier: Apache-2.0
# Metrics of the service, the scraper and the agent have names, base units and help as promtool demands.
. tests/e2e/lib.sh
if ! promtool=$(scripts/promtool.sh "$CAIRN_BUILD" 2>"$tmp/err"); then
        [ -z "${CAIRN_NEED_ORACLES:-}" ] || bail_out "promtool is not available: $(tail -1 "$tmp/err")"
        skip_all "promtool is not available"
fi

# has_good_names NAME URL: NAME's metrics at URL.
has_good_names() {
        curl -sS -o "$tmp/metrics" "$2/metrics"
        ok "$1 has metrics" test "$(grep -c '^# TYPE' "$tmp/metrics")" -gt 5
        "$promtool" check metrics <"$tmp/metrics" >"$tmp/out" 2>&1
        is "$? $(cat "$tmp/out")" '0 ' "  promtool accepts the names of $1"
}

# An upstream, a tenant and a client of each protocol add theirs.
start_server --listen-otlp-grpc 127.0.0.1:0 --upstream "http://127.0.0.1:$(free_port)" --flush-interval 1
request "$url/buildid/00112233445566778899/debuginfo"
printf 'main;work 7\n' >"$tmp/a.folded"
ok "a profile is accepted" "$cairn" import --server "$url" --label service.name=a "$tmp/a.folded"
wait_metric cairn_flushes_total 1
answers 200 '' "a query is answered" "$url/api/v1/query/top?from=now-1h"
has_good_names "the service" "$url"

cat >"$tmp/scrape.yaml" <<END
scrape_configs:
  - job_name: nothing
    static_configs: [{targets: ["127.0.0.1:$(free_port)"]}]
END
"$cairn" scrape --server "$url" --metrics-listen 127.0.0.1:0 "$tmp/scrape.yaml" 2>"$tmp/scrape.log" &
scraper_pid=$!
background_pids=$scraper_pid
listens_or_ended() { grep -q 'metrics at' "$2" || ! kill -0 "$1"; }
wait_for "the scraper to listen" listens_or_ended "$scraper_pid" "$tmp/scrape.log"
has_good_names "the scraper" "$(sed -n 's|.*metrics at \(.*\)/metrics$|\1|p' "$tmp/scrape.log")"

# Without rights to sample, which --sampler does not change, the agent ends before it has metrics.
"$CAIRN_SAN/cairn-agent" --server "$url" --metrics-listen 127.0.0.1:0 --no-upload --pid $$ 2>"$tmp/agent.log" &
agent_pid=$!
background_pids="$background_pids $agent_pid"
wait_for "the agent to listen" listens_or_ended "$agent_pid" "$tmp/agent.log"
if grep -q 'metrics at' "$tmp/agent.log"; then
        has_good_names "the agent" "$(sed -n 's|.*metrics at \(.*\)/metrics$|\1|p' "$tmp/agent.log")"
else
        diag "the agent has no rights here: $(tail -1 "$tmp/agent.log")"
fi
stop_server
done_testing
