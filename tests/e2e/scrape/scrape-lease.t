#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Several `cairn scrape --lease` with the same targets, at two services on one object store: one scrapes, another takes
# over, and no event of a target counts twice, though the holder is paused during a scrape.
# Time limit: 900 s.
. tests/e2e/lib.sh
for tool in jq python3 curl; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh
. tests/e2e/object-store.sh
. tests/e2e/several-nodes.sh
# Read by several-nodes.sh.
# shellcheck disable=SC2034
address=s3://cairn-test/fleet

python3 tests/e2e/scrape/lease-target.py "$tmp/target-port" 2>"$tmp/target.log" &
background_pids="${background_pids:-} $!"
wait_for "the target" test -s "$tmp/target-port"
target=127.0.0.1:$(cat "$tmp/target-port")
target() { curl -sS --max-time 20 "http://$target/$1"; }
tell_target() { curl -sS --max-time 20 -X PUT "http://$target/$1"; }
has_answered() { [ "$(target answered)" -ge "$1" ]; }
# wait_answers MORE: so many more scrapes of whoever scrapes.
wait_answers() { wait_for "$1 more scrapes" has_answered $(($(target answered) + $1)); }
is_holding() { [ "$(target held)" = 1 ]; }

# config INTERVAL: the turns of the first scraper are rare, since its interval is also the longest time of a scrape.
config() {
        cat <<END
scrape_configs:
  - job_name: shop
    scrape_interval: $1
    scrape_timeout: $1
    static_configs: [{targets: ['$target']}]
    profiling_config:
      pprof_config:
        process_cpu: {enabled: false}
        memory: {enabled: false}
        goroutine: {enabled: false}
        block: {enabled: false}
        mutex: {enabled: false}
        events: {path: /events, cumulative: true}
END
}
config 30s >"$tmp/slow.yaml"
config 500ms >"$tmp/fast.yaml"
# start_scraper NAME NODE CONFIG
start_scraper() {
        "$cairn" scrape --server "$(url_of "$2")" --lease shop --metrics-listen 127.0.0.1:0 "$tmp/$3.yaml" \
                2>"$tmp/scrape-$1.log" &
        echo $! >"$tmp/scraper-$1"
        background_pids="${background_pids:-} $!"
        wait_for "the scraper $1 to listen" grep -q 'metrics at' "$tmp/scrape-$1.log"
}
stop_scraper() {
        kill -TERM "$(scraper_of "$1")"
        wait "$(scraper_of "$1")"
        is $? 0 "the scraper $1 ends well"
}
scraper_of() { cat "$tmp/scraper-$1"; }
scraper_url() { sed -n 's|.*metrics at \(.*\)/metrics$|\1|p' "$tmp/scrape-$1.log"; }
targets_of() { curl -sS --max-time 20 "$(scraper_url "$1")/targets" | jq -r "$2"; }
holds() { [ "$(targets_of "$1" .lease.held)" = true ]; }
waits() { [ "$(targets_of "$1" '.lease | "\(.held) \(.holder != null)"')" = "false true" ]; }
scraper_metric() { curl -sS --max-time 20 "$(scraper_url "$1")/metrics" | awk -v m="$2" '$1 == m { print $2 }'; }
# events FILTER: of the stored functions, a list of objects with `function` and `flat`.
events() {
        "$cairn" top --server "$(url_of "${reader:-a}")" --from now-1d --type events --limit 100000 --json \
                2>"$tmp/top.log" |
                jq -c "[.[] | select(.function | startswith(\"e\"))] | $1"
}
is_stored() { [ "$(events 'length')" -ge "$1" ]; }
check_once() { is "$(events '[.[] | select(.flat != 1)]')" "[]" "$1"; }

start_node a --lease-time 2 --flush-interval 1
start_node b --lease-time 2 --flush-interval 1
start_scraper 1 a slow
wait_for "the first scraper to have the lease" holds 1
start_scraper 2 b fast
wait_for "the second one to wait" waits 2
wait_for "the first scrape" has_answered 1
is "$(targets_of 2 '.profiles[0] | "\(.health) \(.scrapes)"')" "standby 0" "the second one scrapes nothing"
is "$(targets_of 2 .lease.holder)" "$(targets_of 1 .lease.scraper)" "it knows who does"
held='cairn_scrape_lease_held{lease="shop"}'
is "$(scraper_metric 1 "$held") $(scraper_metric 2 "$held")" "1 0" "metrics say which"

# The first one is paused during a scrape, whose answer has what the second one counts meanwhile. It gets the answer
# while its service is paused, so before it can learn that it has lost the lease.
tell_target hold
wait_for "a scrape that waits" is_holding
scrapes_of() { targets_of "$1" '.profiles[0].scrapes'; }
scrapes=$(scrapes_of 1)
kill -STOP "$(scraper_of 1)" "$(pid_of a)"
reader=b
wait_for "the second scraper to have the lease" holds 2
wait_answers 4
wait_for "events of the second one to be stored" is_stored 2
tell_target release
kill -CONT "$(scraper_of 1)"
has_scraped() { [ "$(scrapes_of 1)" -gt "$1" ]; }
wait_for "the first one to have the answer" has_scraped "$scrapes"
# A request about the lease without an answer takes ten times as long as a batch is filled: it would be on its way.
failures=cairn_scrape_lease_failures_total
failures_before=$(scraper_metric 1 $failures)
has_failed() { [ "$(scraper_metric 1 $failures)" -ge $((failures_before + 2)) ]; }
wait_for "two requests about the lease to fail" has_failed
discarded=cairn_scrape_samples_discarded_total
is "$(scraper_metric 1 $discarded)" 0 "it does not know yet"
kill -CONT "$(pid_of a)"
reader=a
wait_for "the first one to learn that it has lost the lease" waits 1
like "$(scraper_metric 1 $discarded)" '^[1-9]' "it has not sent what it got, and discards it"
like "$(cat "$tmp/scrape-1.log")" "lease 'shop': .* so this scraper stops" "it logs that"
wait_answers 2
check_once "a holder that is paused during a scrape counts nothing that the next one counts"
stop_scraper 1

# The second one is paused between scrapes, and has the lease again after the third one was killed.
start_scraper 3 a fast
wait_for "the third scraper to wait" waits 3
kill -STOP "$(scraper_of 2)"
wait_for "the third scraper to have the lease" holds 3
wait_answers 4
kill -CONT "$(scraper_of 2)"
wait_for "the second one to learn that it has lost the lease" waits 2
kill -9 "$(scraper_of 3)"
wait "$(scraper_of 3)" 2>/dev/null
wait_for "the second scraper to have the lease again" holds 2
before=$(events length)
wait_answers 4
wait_for "events of the second one to be stored" is_stored $((before + 2))
check_once "a holder that has the lease again does not count from its old totals"

# The store is away: what is scraped is stored afterwards. No other scraper is there, which could take the lease then.
stall_store
answered=$(target answered)
wait_answers 4
resume_store
has_event() { [ "$(events "map(.function) | index(\"e$1\") != null")" = true ]; }
wait_for "what was scraped while the store was away to be stored" has_event $((answered + 3))
check_once "what waits for the store counts once"

start_scraper 4 b fast
wait_for "the fourth one to wait" waits 4

# The holder ends; the other one need not wait for the end of the lease.
holder=2 other=4
holds 2 || { holder=4 other=2; }
stop_scraper $holder
wait_for "the other one to have the lease" holds $other
before=$(events length)
wait_answers 4
wait_for "its events to be stored" is_stored $((before + 2))
check_once "nothing counts twice after it ended"
stop_scraper $other
unlike "$(cat "$tmp"/scrape-*.log)" 'Sanitizer|runtime error' "no sanitizer reports anything"

request -X POST "$(url_of a)/api/v1/scrape/lease?name=shop&holder=x&action=steal"
is "$code" 400 "an unknown action is refused"
request -X POST "$(url_of a)/api/v1/scrape/lease?name=Shop&holder=x&action=check"
like "$code $body" '^400 .*name is not' "a wrong name is refused"
"$cairn" scrape --lease shop --once "$tmp/fast.yaml" 2>"$tmp/err"
is $? 64 "--once has no lease"
stop_node a
stop_node b
done_testing
