#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Twenty thousand processes that live for a moment each: what the agent holds of them, and what it tells of others.
# Time limit: 600 s.
. tests/e2e/lib.sh

command -v cc >/dev/null || skip_all "cc is not installed"
agent=${CAIRN_BUILD:-$PWD/build}/cairn-agent
"$agent" --sampler bpf --doctor >"$tmp/doctor" 2>&1 ||
        skip_all "the agent cannot profile here: $(grep '^error' "$tmp/doctor" | head -1 | tr -s ' ')"
cc -O2 -static -o "$tmp/churn" tests/e2e/agent/agent-churn.c || bail_out "cannot build agent-churn.c"
cp "$tmp/churn" "$tmp/bystander"

"$agent" --sampler bpf --log-level info --frequency 499 --interval 1 --duration 600 --stack-end-label \
        --only-process churn --only-process bystander --output "$tmp/churn.otlp" \
        --metrics-file "$tmp/metrics" 2>"$tmp/agent.log" &
agent_pid=$!
background_pids=$agent_pid
wait_for "the agent" grep -q sampling "$tmp/agent.log"
"$tmp/bystander" leaf 1000000000000 &
bystander=$!
background_pids="$agent_pid $bystander"
begun=$(date +%s%N)
ok "20,000 processes run" "$tmp/churn" 20000
diag "$((20000 * 1000000000 / ($(date +%s%N) - begun))) processes a second"
ok "the agent runs" kill -0 "$agent_pid"
ticks=$(awk '{ print $14 + $15 }' "/proc/$bystander/stat")
kill "$bystander"
peak=$(awk '/^VmHWM:/ { print $2 }' "/proc/$agent_pid/status")
ok "it used less than 150 MB ($peak kB)" test "$peak" -lt 150000
kill -TERM "$agent_pid"
wait "$agent_pid"
is $? 0 "it ends cleanly"

python3 tests/support/otlp_dump.py "$tmp/churn.otlp" >"$tmp/dump"
# Of the other process, in per cent: samples of its CPU time, and complete stacks of its samples.
awk -F '\t' -v ticks="$ticks" -v hz="$(getconf CLK_TCK)" -v path="process.executable.path=$tmp/bystander;" '
        index($2 ";", path) { all += $1 }
        index($2 ";", path) && $2 ~ /cairn.stack.end=complete/ { complete += $1 }
        END { printf "%.0f %.0f\n", 100 * all * hz / (ticks * 1e9), all ? 100 * complete / all : 0 }' \
        "$tmp/dump" >"$tmp/shares"
read -r sampled complete <"$tmp/shares"
ok "another process is sampled all the time ($sampled%)" test "$sampled" -ge 90 -a "$sampled" -le 110
ok "with complete stacks ($complete%)" test "$complete" -ge 99
ok "the short processes are sampled" grep -q 'process.executable.name=churn' "$tmp/dump"
done_testing
