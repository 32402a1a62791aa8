# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034,SC2154  # variables of the test that sources this
#
# To be sourced, after tests/e2e/lib.sh, by tests of the frames of a runtime. They set $agent, and $program to the
# process that is sampled.

# profile NAME ARGUMENT...: the samples of the program that runs, in $tmp/NAME.otlp and as text in $tmp/NAME.dump.
profile() {
        name=$1
        shift
        "$agent" --sampler bpf --frequency 199 --interval 1 --duration 60 --pid "$program" --output "$tmp/$name.otlp" \
                --metrics-file "$tmp/metrics" "$@" 2>"$tmp/agent.log" &
        agent_pid=$!
        background_pids="$program $agent_pid"
        wait_for "the agent" grep -q sampling "$tmp/agent.log"
        begun=$(awk '{ print $14 + $15 }' "/proc/$program/stat")
        wait_for "the work" has_run
        kill -TERM "$agent_pid"
        wait "$agent_pid"
        python3 tests/support/otlp_dump.py "$tmp/$name.otlp" >"$tmp/$name.dump"
}
# Of $work_s seconds of CPU time, 3 by default.
has_run() {
        [ "$(awk '{ print $14 + $15 }' "/proc/$program/stat")" -ge $((begun + ${work_s:-3} * $(getconf CLK_TCK))) ]
}

# count METRIC, and value NAME: of the last profile, and of the last $tmp/stacks.
count() { awk -v name="$1" '$1 == name { print $2 }' "$tmp/metrics"; }
value() { awk -v name="$1" '$1 == name { print $2 }' "$tmp/stacks"; }
