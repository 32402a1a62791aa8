#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Latency of a program with known numbers of threads that run at a time, beside the switches that perf records.
. tests/e2e/lib.sh
. tests/e2e/agent/perf-switches.sh

for tool in python3 cc mkfifo; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
agent=${CAIRN_BUILD:-$PWD/build}/cairn-agent
"$agent" --sampler bpf --latency --doctor >"$tmp/doctor" 2>&1 ||
        skip_all "the agent cannot measure latency here: $(grep '^error' "$tmp/doctor" | head -1 | tr -s ' ')"
like "$(cat "$tmp/doctor")" "latency .*the tracepoint of '--latency' exists" "the doctor checks what latency needs"

# ---- options ----

"$agent" --latency --sampler perf --output "$tmp/none" >"$tmp/err" 2>&1
is "$?" 64 "perf events cannot measure latency"
like "$(cat "$tmp/err")" "option '--latency' needs BPF" "the error for perf events says that BPF is needed"

# ---- known numbers of threads ----

cc -O1 -g -o "$tmp/agent-latency" tests/e2e/agent/agent-latency.c -lpthread || bail_out "cannot build"
mkfifo "$tmp/go"
"$tmp/agent-latency" 2 <"$tmp/go" >"$tmp/out" &
program_pid=$!
exec 4<>"$tmp/go"
wait_for "the program" test -s "$tmp/out"
read -r pid <"$tmp/out"

# 997: not in step with the clock tick of the scheduler.
"$agent" --latency --frequency 997 --pid "$pid" --duration 300 --output "$tmp/latency.otlp" 2>"$tmp/agent.log" &
agent_pid=$!
# With off-CPU samples another program of the kernel notes the switches.
"$agent" --latency --off-cpu --frequency 997 --pid "$pid" --duration 300 --output "$tmp/both.otlp" 2>"$tmp/both.log" &
both_pid=$!
wait_for "the agent" grep -q sampling "$tmp/agent.log"
wait_for "the agent with off-CPU samples" grep -q sampling "$tmp/both.log"

record_switches "$program_pid" sched:sched_switch,cpu-clock/period=1010101/
kill -TERM "$agent_pid" "$both_pid"
wait "$agent_pid"
is "$?" 0 "the agent ends cleanly"
wait "$both_pid"
is "$?" 0 "the agent with off-CPU samples ends cleanly"

for type in cpu latency; do
        python3 tests/support/otlp_dump.py "$tmp/latency.otlp" $type >"$tmp/$type.dump"
        python3 tests/support/otlp_dump.py "$tmp/both.otlp" $type >"$tmp/both-$type.dump"
done
python3 tests/e2e/agent/agent-latency.py "$tmp/both-cpu.dump" "$tmp/both-latency.dump" >"$tmp/both"
is "$?" 0 "beside off-CPU samples, all checks were run"
sed 's/^\(not ok\|ok\) - /&beside off-CPU samples, /' "$tmp/both" >"$tmp/judgement"
report_tap "$tmp/judgement"
set -- "$tmp/cpu.dump" "$tmp/latency.dump"
if has_all_switches &&
        perf script -i "$tmp/perf.data" -F trace:comm,tid,cpu,event,trace -F sw:comm,tid,cpu,event >"$tmp/switches" \
                2>"$tmp/script.log"; then
        set -- "$@" "$tmp/switches"
else
        diag "perf did not record everything: not compared"
fi
report_checks python3 tests/e2e/agent/agent-latency.py "$@"

# ---- as a profile ----

show() {
        "$cairn" flame --profile "$tmp/latency.otlp" --format json "$@" 2>/dev/null |
                sed -n 's/^{"version":[0-9]*,"type":"\([^"]*\)".*/\1/p'
}
is "$(show)" process_cpu:cpu:nanoseconds:cpu:nanoseconds "CPU time is what is shown without a type"
is "$(show --type process_cpu)" process_cpu:cpu:nanoseconds:cpu:nanoseconds "both types' name finds CPU time"
is "$(show --type latency)" process_cpu:latency:nanoseconds:cpu:nanoseconds "latency is found by its sample type"
like "$("$cairn" flame --profile "$tmp/latency.otlp" --type latency --format folded 2>/dev/null)" ';compute_until' \
        "latency has the stacks of CPU time"

# ---- without a service ----

set --
for suffix in otlp folded json pb.gz; do set -- "$@" -o "$tmp/record.$suffix"; done
echo go | "$cairn" record --latency -F 499 "$@" -- "$tmp/agent-latency" 0.5 >"$tmp/out" 2>"$tmp/err"
is "$?" 0 "cairn record measures latency"
add_up() { awk -v type="$1" '{ n += type == "folded" ? $NF : $1 } END { printf "%.0f\n", n }'; }
latency=$(python3 tests/support/otlp_dump.py "$tmp/record.otlp" latency | add_up otlp)
cpu=$(python3 tests/support/otlp_dump.py "$tmp/record.otlp" cpu | add_up otlp)
ok "raw samples have latency and CPU time" [ "${latency:-0}" -gt 0 -a "$latency" -le "$cpu" ]
is "$(add_up folded <"$tmp/record.folded")" "$latency" "folded stacks have latency"
sum_rows='import json, sys; print(sum(row["flat"] for row in json.load(open(sys.argv[1]))))'
is "$(python3 -c "$sum_rows" "$tmp/record.json")" "$latency" "the table has latency"
python3 tests/e2e/pprof.py rest "$tmp/record.pb.gz" >"$tmp/rest"
like "$(cat "$tmp/rest")" "latency" "pprof has both values"
"$cairn" record --latency --sampler perf -- true >"$tmp/out" 2>"$tmp/err"
is "$?" 64 "recording latency by perf events is refused"
done_testing
