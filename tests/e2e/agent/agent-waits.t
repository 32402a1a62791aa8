#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Off-CPU samples of a program that waits for known reasons: times, reasons and stacks, beside perf sched timehist.
. tests/e2e/lib.sh
. tests/e2e/agent/perf-switches.sh

for tool in python3 cc mkfifo; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
agent=${CAIRN_BUILD:-$PWD/build}/cairn-agent
"$agent" --sampler bpf --off-cpu --doctor >"$tmp/doctor" 2>&1 ||
        skip_all "the agent cannot sample waits here: $(grep '^error' "$tmp/doctor" | head -1 | tr -s ' ')"

# ---- options ----

"$agent" --off-cpu --sampler perf --output "$tmp/none" >"$tmp/err" 2>&1
is "$?" 64 "perf events cannot sample waits"
like "$(cat "$tmp/err")" "option '--off-cpu' needs BPF" "the error for perf events says that BPF is needed"
"$agent" --off-cpu-threshold 500 --output "$tmp/none" >"$tmp/err" 2>&1
is "$?" 64 "a threshold alone is refused"
like "$(cat "$tmp/err")" "option '--off-cpu-threshold' needs '--off-cpu'" \
        "the error for the threshold names the option it belongs to"

# ---- known waits ----

cc -O1 -g -o "$tmp/agent-waits" tests/e2e/agent/agent-waits.c -lpthread || bail_out "cannot build"
mkfifo "$tmp/go"
"$tmp/agent-waits" 8 "$tmp/file" <"$tmp/go" >"$tmp/out" &
waits_pid=$!
exec 4<>"$tmp/go"
wait_for "the program" test -s "$tmp/out"
read -r pid futex <"$tmp/out"

# Many samples, so that their number does not limit the accuracy.
"$agent" --off-cpu --off-cpu-threshold 4000 --frequency 1000 --pid "$pid" --duration 300 --output "$tmp/waits.otlp" \
        --metrics-file "$tmp/metrics" 2>"$tmp/agent.log" &
agent_pid=$!
wait_for "the agent" grep -q sampling "$tmp/agent.log"

record_switches "$waits_pid" sched:sched_switch,sched:sched_wakeup,sched:sched_wakeup_new
kill -TERM "$agent_pid"
wait "$agent_pid"
is "$?" 0 "the agent ends cleanly"

value() { awk -v name="$1" '$1 == name { v = $2 } END { print v + 0 }' "$tmp/metrics"; }
ok "waits were sampled" [ "$(value cairn_agent_off_cpu_samples_total)" -gt 500 ]
is "$(value cairn_agent_off_cpu_user_stacks_missing_total)" 0 "each sample has the user stack of the thread that waited"
untraced=$(value cairn_agent_off_cpu_waits_untracked_total)
[ "$untraced" = 0 ] || diag "$untraced ends of waits were not traced"
python3 tests/support/otlp_dump.py "$tmp/waits.otlp" >"$tmp/waits.dump"

set -- "$tmp/out" "$tmp/waits.dump" "$untraced"
if has_all_switches &&
        perf sched timehist -i "$tmp/perf.data" -p "$pid" >"$tmp/timehist" 2>/dev/null; then
        set -- "$@" "$tmp/timehist"
else
        diag "perf sched did not record everything: not compared"
fi
report_checks python3 tests/e2e/agent/agent-waits.py "$@"

# ---- as a profile ----

show() { "$cairn" flame --profile "$tmp/waits.otlp" "$@" 2>/dev/null; }
is "$(show --type off_cpu --format json '{cairn.wait.reason="futex"}' | sed -n 's/.*"type":"\([^"]*\)".*/\1/p')" \
        off_cpu:off_cpu:nanoseconds:: "the type is that of other profilers"
like "$(show --type off_cpu --format folded "{cairn.wait.futex=\"$futex\"}")" ';wait_futex;' \
        "the waits for one lock are found by its address"
is "$(show --type process_cpu --format folded '{cairn.wait.reason=~".+"}')" "" "no wait is counted as CPU time"
done_testing
