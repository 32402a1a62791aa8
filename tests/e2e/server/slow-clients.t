#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Two thousand slow and idle clients: they are limited and eventually disconnected, and others are served in the
# meantime.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip_all "python3 is not installed"

# The test's own requests come from another address than the slow clients.
printf 'interface = 127.0.0.2\n' >"$tmp/.curlrc"
export CURL_HOME="$tmp"

# Each of twenty requests is answered.
twenty_are_answered() {
        for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
                curl -sS -f --max-time 120 -o /dev/null "$url/healthz" || return 1
        done
}
descriptors() { find "/proc/$server_pid/fd" -mindepth 1 | wc -l; }

# hold IDLE HEADERS BODIES READERS: keeps this many connections open until let_go.
hold() {
        mkfifo "$tmp/hold"
        python3 tests/e2e/server/slow-clients.py "$port" "$@" <"$tmp/hold" >"$tmp/held" &
        hold_pid=$!
        background_pids="${background_pids:-} $hold_pid"
        exec 9>"$tmp/hold"
        wait_for "the clients to come" came_or_gave_up
        grep -q ready "$tmp/held" || bail_out "the clients could not come"
}
came_or_gave_up() { grep -q ready "$tmp/held" || ! kill -0 "$hold_pid"; }
let_go() {
        exec 9>&-
        wait "$hold_pid"
        rm "$tmp/hold"
}

start_server --max-connections 400
before=$(descriptors)
hold 700 700 500 100
ok 'others are answered meanwhile' twenty_are_answered
ok 'descriptors are bounded' test "$(descriptors)" -le $((before + 400 + 120))
wait_metric 'cairn_http_connections_ended_total{reason="room"}' 500
pass 'idle connections are ended to make room'
answers 200 '^ok$' 'a new client of their own address is served too' --interface 127.0.0.1 --retry 10 \
        --retry-all-errors --retry-delay 1 "$url/healthz"
let_go
wait_for 'all to be closed' metric_equals cairn_http_connections 1
pass 'and when they leave nothing stays of them'
closed() { [ "$(descriptors)" -le $((before + 1)) ]; } # shortly after they are no longer counted
wait_for 'their descriptors to be closed' closed
pass 'no descriptor either'
stop_server

# One address may have half of the connections, which leaves the other half to others.
start_server --max-connections 100
hold 0 0 60 0
ok 'others are served despite an address that uses all its connections' \
        curl -sS -f --max-time 120 -o /dev/null "$url/healthz"
turned_away() {
        echo $(($(metric 'cairn_http_connections_refused_total{reason="address"}') + $(metric 'cairn_http_connections_ended_total{reason="room"}')))
}
ten_were() { [ "$(turned_away)" -ge 10 ]; }
wait_for 'the last ten to be met' ten_were
is "$(turned_away)" 10 'its ten further ones were refused or replaced others of its own, and counted'
let_go
stop_server
done_testing
