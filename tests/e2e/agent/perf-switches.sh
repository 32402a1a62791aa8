# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034,SC2154  # variables of the test that sources this
#
# To be sourced, after tests/e2e/lib.sh, by tests that compare the agent with perf's trace of switches.

# record_switches PID EVENTS: let the program that waits for its input, PID, run to its end while perf records events.
# $perf_pid is "" without perf, or if it fails; the trace is $tmp/perf.data.
record_switches() {
        perf_pid=
        mkfifo "$tmp/control" "$tmp/acknowledged"
        exec 5<>"$tmp/control" 6<>"$tmp/acknowledged"
        if command -v perf >/dev/null; then
                perf record -q -a -m 8M -D -1 --control "fifo:$tmp/control,$tmp/acknowledged" -o "$tmp/perf.data" \
                        -e "$2" 2>"$tmp/perf.log" &
                perf_pid=$!
                echo enable >&5
                head -n 1 <&6 >"$tmp/answer" &
                wait_for "perf" has_perf_answered
                if [ ! -s "$tmp/answer" ]; then
                        kill $!
                        perf_pid=
                        diag "perf: $(head -1 "$tmp/perf.log")"
                fi
        fi
        echo go >&4
        wait "$1"
        [ -n "$perf_pid" ] || return 0
        kill -INT "$perf_pid"
        wait "$perf_pid"
}

has_perf_answered() { [ -s "$tmp/answer" ] || ! kill -0 "$perf_pid"; }

# Whether perf recorded all events.
has_all_switches() {
        [ -n "$perf_pid" ] && ! perf report -i "$tmp/perf.data" --stats 2>/dev/null | grep -q 'LOST events'
}
