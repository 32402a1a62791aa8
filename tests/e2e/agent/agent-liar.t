# SPDX-License-Identifier: Apache-2.0
# A program that claims another program's build-id spoils only its own stacks; two copies of a file share one unwind
# table.
. tests/e2e/lib.sh
agent=$CAIRN_BUILD/cairn-agent
for tool in python3 cc readelf nm strip; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
"$agent" --doctor --sampler bpf >"$tmp/doctor" ||
        skip_all "the agent cannot profile here: $(grep '^error' "$tmp/doctor" | head -1 | tr -s ' ')"

# The frames of the malicious program have other sizes than the honest program's at the same addresses.
cat >"$tmp/calls.c" <<'EOC'
#include <unistd.h>
volatile unsigned long sink;
#define FUNCTION __attribute__((noinline, noclone, noipa))
FUNCTION void burn(int n) { for (int i = 0; i < n; i++) sink += i; }
FUNCTION int down(int n)
{
        volatile char room[ROOM];
        room[0] = (char)n;
        if (n == 0) { burn(100000); return room[0]; }
        return down(n - 1) + room[0];
}
int main(void) { alarm(120); for (;;) sink += down(20); }
EOC
flags="-O2 -fomit-frame-pointer -Wl,--build-id=0x00112233445566778899aabbccddeeff00112233"
# shellcheck disable=SC2086
cc $flags -DROOM=64 -o "$tmp/honest" "$tmp/calls.c" && cc $flags -DROOM=40 -o "$tmp/liar" "$tmp/calls.c"
cp "$tmp/honest" "$tmp/copy"
is "$(build_id_of "$tmp/liar")" "$(build_id_of "$tmp/honest")" "both claim one build-id"
is "$(nm "$tmp/liar" | grep ' down$')" "$(nm "$tmp/honest" | grep ' down$')" \
        "both have their functions at the same addresses"

start() { "$tmp/$1" & pid=$!; background_pids="${background_pids:-} $pid"; }
ticks() { awk '{ print $14 }' "/proc/$pid/stat"; } # of CPU time
ran_until() { [ "$(ticks)" -ge "$1" ]; }
# The agent runs until the program started last has used a second of CPU time, however busy the host is.
agent_start() {
        : >"$tmp/log"
        "$agent" --sampler bpf --frequency 499 --duration 120 --only-process liar --only-process honest \
                --only-process copy \
                --output "$tmp/otlp" --metrics-file "$tmp/metrics" 2>"$tmp/log" & agent_pid=$!
        background_pids="$background_pids $agent_pid"
        wait_for "the agent" grep -q sampling "$tmp/log"
}
agent_stop() {
        wait_for "samples" ran_until $(($(ticks) + 100))
        kill -TERM $agent_pid
        wait $agent_pid || fail "the agent ends well"
        python3 tests/support/otlp_dump.py "$tmp/otlp" >"$tmp/dump"
}
# With a spoiled table no stack is complete; the dynamic linker's part of a short run is not in the pattern.
whole() { python3 tests/known/judge.py "$tmp/dump" "$1" '(burn;)?(down;){1,21}main;~;~;_start;' "$tmp/$1" 2>/dev/null |
        cut -d. -f1; }
tables() { awk '$1 == "cairn_agent_unwind_tables" { print $2 }' "$tmp/metrics"; }

start liar
agent_start
wait_for "the liar to be met first" ran_until $(($(ticks) + 30))
start honest
agent_stop
got=$(whole honest)
ok "the honest program's stacks are complete ($got%)" test "${got:-0}" -ge 80
agent_start
agent_stop
before=$(tables)
start copy
agent_start
agent_stop
got=$(whole copy)
ok "so are those of its copy ($got%)" test "${got:-0}" -ge 80
is "$(tables)" "$before" "the copy needs no table of its own"
done_testing
