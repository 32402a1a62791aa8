#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Samples taken before the agent knows their process, or the code that it runs: the agent walks a copy of the stack.
. tests/e2e/lib.sh

for tool in python3 cc; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
[ "$(uname -m)" = x86_64 ] || skip_all "the machine code is of x86-64"
agent=${CAIRN_BUILD:-$PWD/build}/cairn-agent
"$agent" --sampler bpf --doctor >"$tmp/doctor" 2>&1 ||
        skip_all "the agent cannot profile here: $(grep '^error' "$tmp/doctor" | head -1 | tr -s ' ')"

# Its CFA is below the stack pointer, as in parts of OpenSSL.
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

# Other processes started at the same time would use up the space for copies.
"$agent" --sampler bpf --log-level info --frequency 499 --duration 60 --only-process below --stack-end-label \
        --output "$tmp/late.otlp" \
        --metrics-file "$tmp/metrics" 2>"$tmp/agent.log" &
agent_pid=$!
background_pids=$agent_pid
wait_for "the agent" grep -q sampling "$tmp/agent.log"
for round in 1 2 3 4 5 6 7 8 9 10; do
        "$tmp/below"
        "$tmp/below" 100
done
kill -TERM "$agent_pid"
wait "$agent_pid"
python3 tests/support/otlp_dump.py "$tmp/late.otlp" | grep 'process.executable.name=below' >"$tmp/below.dump"
ok "it was sampled" test -s "$tmp/below.dump"
late=$(awk '$1 == "cairn_agent_samples_late_total" { print $2 }' "$tmp/metrics")
ok "and samples were deferred ($late)" test "${late:-0}" -ge 20
unlike "$(cat "$tmp/below.dump")" 'cairn.stack.end=not_copied' \
        "copies hold all that rules read, below the stack pointer too"
ok "deep stacks are complete" awk -F '\t' '
        $2 ~ /stack.end=complete/ && split($3, frame, ";") >= 100 { deep++ }
        END { exit !deep }' "$tmp/below.dump"

# A known process that then runs code of its own in writable pages: the kernel does not report these, only a deferred
# sample does, queued in the ring buffer behind others that have waited since the process was new. The agent must be
# woken by it, although it has not read the earlier ones.
cat >"$tmp/maker.c" <<'C'
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static const unsigned char code[] = { 0xff, 0xcf, 0x75, 0xfc, 0xc3 }; /* again: dec edi; jnz again; ret */

static double cpu_seconds(void)
{
        struct timespec t;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return t.tv_sec + t.tv_nsec / 1e9;
}

int main(void)
{
        void *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        double start;

        getchar();
        start = cpu_seconds();
        while (cpu_seconds() < start + 1)
                for (volatile int i = 0; i < 1000000; i++)
                        ;
        memcpy(page, code, sizeof code);
        mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
        while (cpu_seconds() < start + 3)
                ((void (*)(int))page)(10000000);
        return 0;
}
C
cc -O2 -o "$tmp/maker" "$tmp/maker.c" || bail_out "cannot build"
mkfifo "$tmp/go"
"$tmp/maker" <"$tmp/go" & maker_pid=$!
exec 9>"$tmp/go"
"$agent" --sampler bpf --frequency 997 --interval 60 --duration 60 --pid $maker_pid --output "$tmp/maker.otlp" \
        --metrics-file "$tmp/maker.metrics" 2>"$tmp/maker.log" &
agent_pid=$!
background_pids="$maker_pid $agent_pid"
wait_for "the agent" grep -q sampling "$tmp/maker.log"
echo >&9
wait "$maker_pid"
kill -TERM "$agent_pid"
wait "$agent_pid"
exec 9>&-
all=$(awk '$1 == "cairn_agent_samples_total" { print $2 }' "$tmp/maker.metrics")
late=$(awk '$1 == "cairn_agent_samples_late_total" { print $2 }' "$tmp/maker.metrics")
# A busy host takes CPU time away; the failure to be detected is a part of the samples that never arrives.
ok "three seconds were sampled ($all)" test "$all" -ge 1000
ok "and few of them deferred ($late): the agent was woken" test "$late" -ge 2 -a "$late" -le 300

# The copy contains only one stack, so a deferred sample in a handler with an alternate stack has only the handler's:
# this is reported and counted. Each process is new, runs only its handler for 100 ms, and has code that the agent has
# not seen before.
cat >"$tmp/other.c" <<'C'
#include <signal.h>
#include <stdlib.h>
#include <time.h>

static __attribute__((noinline)) void handler(int signal)
{
        (void)signal;
        while (clock() < CLOCKS_PER_SEC / 10)
                ;
        _Exit(0);
}

int main(void)
{
        static char room[65536];
        stack_t other = { .ss_sp = room, .ss_size = sizeof room };
        struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };

        sigaltstack(&other, NULL);
        sigaction(SIGUSR1, &action, NULL);
        raise(SIGUSR1);
        return 1;
}
C
"$agent" --sampler bpf --log-level info --frequency 997 --duration 60 --only-process 'other*' --stack-end-label \
        --output "$tmp/other.otlp" --metrics-file "$tmp/other.metrics" 2>"$tmp/other.log" &
agent_pid=$!
background_pids=$agent_pid
wait_for "the agent" grep -q sampling "$tmp/other.log"
for round in 1 2 3 4 5 6; do
        cc -O2 -DROUND=$round "-Wl,--build-id=0x$(printf %040d "$round$$")" -o "$tmp/other$round" "$tmp/other.c" &&
                "$tmp/other$round"
done
kill -TERM "$agent_pid"
wait "$agent_pid"
python3 tests/support/otlp_dump.py "$tmp/other.otlp" | grep 'cairn.stack.end=not_copied' >"$tmp/other.dump"
ended=$(awk '$1 == "cairn_agent_user_stacks_ended_total{end=\"not_copied\"}" { print $2 }' "$tmp/other.metrics")
ok "deferred samples in a handler with an alternate stack are counted as not_copied ($ended)" test "${ended:-0}" -gt 0
ok "and have the label" test -s "$tmp/other.dump"
is "$(awk -F '\t' \
        '{ sub(/;$/, "", $3); n = split($3, frame, ";"); if (frame[n] ~ /libc.so.6:/) trampoline++; else others++ }
        END { print (trampoline > 0), others + 0 }' "$tmp/other.dump")" "1 0" "and end at the trampoline"

# Without space for copies, stacks of a process that is not known yet are walked by frame pointers. A thread has none in
# its first functions, and a frame pointer of 0 is no proof that they have no callers.
cat >"$tmp/thread.c" <<'C'
#include <pthread.h>

static volatile long sink;

static __attribute__((noinline)) void burn(void)
{
        for (long i = 0; i < 1000000; i++)
                sink++;
}

static void *run(void *unused)
{
        for (;;) {
                burn();
                sink++;
        }
        return unused;
}

int main(void)
{
        pthread_t thread;

        pthread_create(&thread, 0, run, 0);
        pthread_join(thread, 0);
        return 0;
}
C
cc -O2 -fomit-frame-pointer -o "$tmp/thread" "$tmp/thread.c" -lpthread || bail_out "cannot build"
"$tmp/thread" & thread_pid=$!
kill -STOP "$thread_pid"
"$agent" --sampler bpf --frequency 997 --interval 60 --duration 600 --pid $thread_pid --stack-end-label \
        --output "$tmp/thread.otlp" --metrics-file "$tmp/thread.metrics" 2>"$tmp/thread.log" &
agent_pid=$!
background_pids="$thread_pid $agent_pid"
wait_for "the agent" grep -q sampling "$tmp/thread.log"
kill -STOP "$agent_pid"
kill -CONT "$thread_pid"
has_run() { [ "$(awk '{ print $14 }' "/proc/$thread_pid/stat")" -ge $((2 * $(getconf CLK_TCK))) ]; }
wait_for "the work" has_run
kill -CONT "$agent_pid"
kill -TERM "$agent_pid"
wait "$agent_pid"
kill -9 "$thread_pid"
python3 tests/support/otlp_dump.py "$tmp/thread.otlp" >"$tmp/thread.dump"
full=$(awk '$1 == "cairn_agent_samples_late_full_total" { print $2 }' "$tmp/thread.metrics")
ok "copies had no more space ($full)" test "${full:-0}" -ge 20
like "$(cat "$tmp/thread.dump")" 'cairn.stack.end=new_process' "such stacks are marked"
is "$(awk -F '\t' '$2 ~ /stack.end=complete/ && split($3, frame, ";") < 4' "$tmp/thread.dump")" "" \
        "stacks without the thread's start are not complete"
done_testing
