#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Samples that come before the agent knows their process: the agent walks a copy of the stack.
. tests/e2e/lib.sh

for tool in python3 cc; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
[ "$(uname -m)" = x86_64 ] || skip_all "the machine code is of x86-64"
agent=${CAIRN_BUILD:-$PWD/build}/cairn-agent
"$agent" --sampler bpf --doctor >"$tmp/doctor" 2>&1 || skip_all "the agent cannot profile here: $(grep '^fail' "$tmp/doctor" | head -1 | tr -s ' ')"

# Its CFA lies below the stack pointer, as OpenSSL's does in places.
cat >"$tmp/below.c" <<'C'
#include <stdlib.h>

void burn(long);
__asm__(".globl burn\n.type burn,@function\nburn:\n.cfi_startproc\n"
        "movq %rsp, -8(%rsp)\n.cfi_escape 0x0f, 0x05, 0x77, 0x78, 0x06, 0x23, 0x08\n" /* *(rsp - 8) + 8 */
        "1: decq %rdi\njnz 1b\nret\n.cfi_endproc\n.size burn, .-burn\n");

static __attribute__((noinline)) int deep(int n, long turns)
{
        volatile char room[200];

        room[n % 200] = 1;
        if (n)
                return deep(n - 1, turns) + room[n % 200];
        burn(turns);
        return room[0];
}

/* Short stacks, and one that no copy of 8 KiB holds. */
int main(int argc, char **argv)
{
        return deep(argc > 1 ? atoi(argv[1]) : 0, 60000000) == -1;
}
C
cc -O2 -fomit-frame-pointer -fno-optimize-sibling-calls -o "$tmp/below" "$tmp/below.c" || bail_out "cannot build"

# Others that start programs meanwhile would use up the room for copies.
"$agent" --sampler bpf --log-level warn --frequency 499 --duration 60 --only-process below --stack-end-label --output "$tmp/late.otlp" \
        --metrics-file "$tmp/metrics" 2>"$tmp/agent.log" &
agent_pid=$!
background_pids=$agent_pid
for round in 1 2 3 4 5 6 7 8 9 10; do
        "$tmp/below"
        "$tmp/below" 100
done
kill -TERM "$agent_pid"
wait "$agent_pid"
python3 tests/support/otlp_dump.py "$tmp/late.otlp" | grep 'process.executable.name=below' >"$tmp/below.dump"
ok "it was sampled" test -s "$tmp/below.dump"
late=$(awk '$1 == "cairn_agent_samples_late_total" { print $2 }' "$tmp/metrics")
ok "and samples were late ($late)" test "${late:-0}" -ge 20
unlike "$(cat "$tmp/below.dump")" 'cairn.stack.end=not_copied' "copies hold all that rules read, below the stack pointer too"
ok "deep stacks are whole" awk -F '\t' '
        $2 ~ /stack.end=complete/ && split($3, frame, ";") >= 100 { deep++ }
        END { exit !deep }' "$tmp/below.dump"
done_testing
