# SPDX-License-Identifier: Apache-2.0
# CPUs that come after the agent's start, and ones that go and come back. Takes CPU 1 of this host away for a moment,
# so only where that was asked for: CAIRN_TEST_HOTPLUG=1.
. tests/e2e/lib.sh
agent=$CAIRN_BUILD/cairn-agent
cairn=$CAIRN_BUILD/cairn
cpu=/sys/devices/system/cpu/cpu1/online
[ -n "${CAIRN_TEST_HOTPLUG:-}" ] || skip_all "takes a CPU away; CAIRN_TEST_HOTPLUG=1 asks for it"
for tool in cc jq taskset; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
"$agent" --doctor --sampler bpf >"$tmp/doctor" || skip_all "the agent cannot profile here: $(grep '^fail' "$tmp/doctor" | head -1 | tr -s ' ')"
{ [ -w $cpu ] && echo 0 >$cpu 2>/dev/null; } || skip_all "CPU 1 cannot be taken away here"
restore() { echo 1 >$cpu; cleanup; }
trap restore EXIT

cat >"$tmp/burn.c" <<'EOC'
#include <unistd.h>
volatile unsigned long sink;
int main(void) { alarm(60); for (;;) sink++; }
EOC
cc -O1 -o "$tmp/new-cpu" "$tmp/burn.c"
cp "$tmp/new-cpu" "$tmp/back-cpu"
start_server
"$agent" --sampler bpf --server "$url" --frequency 99 --interval 1 2>"$tmp/log" & agent_pid=$!
background_pids=$agent_pid
wait_for "the agent" grep -q 'sampling' "$tmp/log"
is "$(sed -n 's/.*sampling \([0-9]*\) CPUs.*/\1/p' "$tmp/log")" "$(($(nproc --all) - 1))" "at the start one CPU is away"
seen() { [ "$("$cairn" top --server "$url" --json "{process.executable.name=\"$1\"}" | jq 'map(.flat) | add // 0')" -gt 200000000 ]; }

echo 1 >$cpu
taskset -c 1 "$tmp/new-cpu" & pid=$!
background_pids="$background_pids $pid"
wait_for "samples of a CPU that came after the start" seen new-cpu
pass "a CPU that comes after the start is sampled"
kill $pid

echo 0 >$cpu
echo 1 >$cpu
taskset -c 1 "$tmp/back-cpu" & pid=$!
background_pids="$background_pids $pid"
wait_for "samples of a CPU that came back" seen back-cpu
pass "a CPU that went and came back is sampled"
kill $pid $agent_pid
done_testing
