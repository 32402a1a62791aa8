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

"$agent" --sampler bpf --log-level info --frequency 499 --interval 1 --duration 600 --only-process churn --only-process bystander \
        --stack-end-label --output "$tmp/churn.otlp" --metrics-file "$tmp/metrics" 2>"$tmp/agent.log" &
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
awk -F '\t' -v ticks="$ticks" -v hz="$(getconf CLK_TCK)" '
        $2 !~ /process.executable.name=bystander/ { next }
        { all += $1 }
        $2 ~ /cairn.stack.end=complete/ { complete += $1 }
        END {
                cpu = ticks / hz * 1e9
                printf "%.0f s of CPU time, %.1f%% of it sampled, %.1f%% of that with complete stacks\n", cpu / 1e9, \
                        100 * all / cpu, all ? 100 * complete / all : 0
                exit !(all > 0.9 * cpu && all < 1.1 * cpu && complete > 0.99 * all)
        }' "$tmp/dump" >"$tmp/bystander.txt"
is $? 0 "another process is sampled as without them: $(cat "$tmp/bystander.txt")"
ok "the short processes are sampled" grep -q 'process.executable.name=churn' "$tmp/dump"
done_testing
