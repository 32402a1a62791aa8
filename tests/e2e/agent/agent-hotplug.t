# SPDX-License-Identifier: Apache-2.0
# CPUs that are added after the agent's start, and CPUs that go offline and return. Takes CPU 1 of this host offline for
# a moment, so this requires CAIRN_TEST_HOTPLUG=1.
. tests/e2e/lib.sh
agent=$CAIRN_BUILD/cairn-agent
cairn=$CAIRN_BUILD/cairn
cpu=/sys/devices/system/cpu/cpu1/online
[ -n "${CAIRN_TEST_HOTPLUG:-}" ] || skip_all "takes a CPU away; CAIRN_TEST_HOTPLUG=1 asks for it"
for tool in cc jq taskset; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
"$agent" --doctor --sampler bpf >"$tmp/doctor" ||
        skip_all "the agent cannot profile here: $(grep '^error' "$tmp/doctor" | head -1 | tr -s ' ')"
{ [ -w $cpu ] && echo 0 >$cpu 2>/dev/null; } || skip_all "CPU 1 cannot be taken away here"
restore() { echo 1 >$cpu; cleanup; }
trap restore EXIT

cat >"$tmp/burn.c" <<'EOC'
#include <unistd.h>
volatile unsigned long sink;
int main(void) { alarm(60); for (;;) sink++; }
EOC
cc -O1 -o "$tmp/burn" "$tmp/burn.c"
start_server
seen() { [ "$("$cairn" top --server "$url" --json "{process.executable.name=\"$1\"}" |
        jq 'map(.flat) | add // 0')" -gt 200000000 ]; }

for sampler in bpf perf; do
        echo 0 >$cpu
        cp "$tmp/burn" "$tmp/new-$sampler"
        cp "$tmp/burn" "$tmp/back-$sampler"
        cp "$tmp/burn" "$tmp/old-$sampler"
        "$tmp/old-$sampler" & old_pid=$! # known before the CPU is added, and runs only on it
        kill -STOP $old_pid
        background_pids=$old_pid
        "$agent" --sampler $sampler --server "$url" --frequency 99 --interval 1 2>"$tmp/log" & agent_pid=$!
        background_pids="$background_pids $agent_pid"
        wait_for "the agent" grep -q 'sampling' "$tmp/log"
        is "$(sed -n 's/.*sampling \([0-9]*\) CPUs.*/\1/p' "$tmp/log")" "$(($(nproc --all) - 1))" \
                "$sampler: at the start one CPU is offline"

        echo 1 >$cpu
        taskset -c 1 "$tmp/new-$sampler" & pid=$!
        background_pids="$background_pids $pid"
        wait_for "samples of a CPU that came after the start" seen new-$sampler
        pass "$sampler: a CPU that comes after the start is sampled"
        kill $pid
        taskset -p -c 1 $old_pid >/dev/null
        kill -CONT $old_pid
        wait_for "samples of a process that was there before the CPU" seen old-$sampler
        pass "$sampler: and processes that were there before it are too"

        echo 0 >$cpu
        echo 1 >$cpu
        taskset -c 1 "$tmp/back-$sampler" & pid=$!
        background_pids="$background_pids $pid"
        wait_for "samples of a CPU that came back" seen back-$sampler
        pass "$sampler: a CPU that went and came back is sampled"
        kill $pid $old_pid $agent_pid
        wait $agent_pid
done
done_testing
