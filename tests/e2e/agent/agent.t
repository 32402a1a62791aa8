#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The agent on this kernel: known programs are profiled and the samples compared with the compiler's output.
agent=${CAIRN_BUILD:-$PWD/build}/cairn-agent
here=$PWD/tests

# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

for tool in python3 readelf nm objdump cc; do
        command -v $tool > /dev/null || skip_all "$tool is not installed"
done
if ! missing=$("$agent" --doctor --sampler bpf); then
        skip_all "the agent cannot profile here: $(echo "$missing" | grep '^error' | head -1 | tr -s ' ')"
fi

cd "$tmp" || exit 1

cat > hot.c << 'END'
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
volatile unsigned long sink;
/* Its volatile local keeps the frame: gcc leaves it out of leaf functions that do not touch the stack. */
__attribute__((noinline)) void hot_leaf(void) { volatile int i; for (i = 0; i < 1000000; i++) sink += i; }
__attribute__((noinline)) void middle(void) { for (int i = 0; i < 20; i++) hot_leaf(); __asm__ volatile(""); }
int main(int argc, char **argv)
{
        double seconds = argc > 1 ? atof(argv[1]) : 10;
        clock_t end = (clock_t)(seconds * CLOCKS_PER_SEC);
        while (clock() < end) middle();
        return 0;
}
END
cat > calls.c << 'END'
#include <fcntl.h>
#include <unistd.h>
static char bytes[65536];
int main(void)
{
        int fd = open("/dev/zero", O_RDONLY);
        alarm(60);
        for (;;) if (read(fd, bytes, sizeof bytes) < 0) return 1;
}
END
cc -O1 -g -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -Wl,--build-id -pie -fPIE -o hot-pie hot.c
cc -O1 -g -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -Wl,--build-id -no-pie -fno-pie -o hot-exec hot.c
cc -O1 -g -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -Wl,--build-id -static -o calls calls.c

build_id() { readelf -n "$1" 2> /dev/null | sed -n 's/.*Build ID: //p'; }
range() { # FILE FUNCTION: start and end address
        nm -S "$1" | awk -v f="$2" '$4 == f { print $1, $2 }' | while read -r start size; do
                printf '%x %x\n' $((0x$start)) $((0x$start + 0x$size))
        done
}
dump() { python3 "$here/support/otlp_dump.py" "$1" > "$1.dump"; }
ask() { python3 "$here/e2e/agent/agent-check.py" "$@"; }
start() { # PROGRAM...: its pid in $pid, once the shell has become it
        "$@" > /dev/null 2>&1 &
        pid=$!
        background_pids="${background_pids:-} $pid"
        wait_for "a program in place of the shell" is_no_shell
}
is_no_shell() { [ "$(readlink "/proc/$pid/exe")" != "$(readlink /proc/$$/exe)" ]; }
begin() { # OPTION...: starts an agent and waits until it samples; stopped by end_it
        "$agent" --sampler bpf --frequency 199 --duration 120 "$@" 2> begin.log &
        agent_pid=$!
        background_pids="${background_pids:-} $agent_pid"
        wait_for "the agent samples" grep -q sampling begin.log
}
end_it() { kill -TERM $agent_pid && wait $agent_pid; }

# profile OPTION...: the program started last, until it has used a second of CPU time, however busy the host is
profile() {
        begin --pid "$pid" "$@"
        before=$(cpu_seconds "$pid")
        wait_for "CPU time of the program" has_run "$before" 1
        end_it
}

has_run() { awk -v now="$(cpu_seconds "$pid")" -v from="$1" -v s="$2" 'BEGIN { exit !(now >= from + s) }'; }
cpu_seconds() { awk -v hz="$(getconf CLK_TCK)" '{ print ($14 + $15) / hz }' "/proc/$1/stat"; }

# ---- user stacks by frame pointers -------------------------------------------------
for kind in pie exec; do
        start ./hot-$kind 60
        first=$(cpu_seconds "$pid")
        begin --pid "$pid" --output $kind.otlp
        before=$(cpu_seconds "$pid")
        wait_for "CPU time of the program" has_run "$before" 1.5
        after=$(cpu_seconds "$pid")
        end_it
        last=$(cpu_seconds "$pid")
        ok "$kind: the run exits with 0" test -s $kind.otlp
        kill "$pid"
        dump $kind.otlp
        id=$(build_id hot-$kind)
        # shellcheck disable=SC2046
        got=$(ask $kind.otlp.dump leaf-share "$id" $(range hot-$kind hot_leaf))
        ok "$kind: the hot function has most of the time ($got%)" test "$got" -ge 90
        # shellcheck disable=SC2046
        got=$(ask $kind.otlp.dump reach "$id" $(range hot-$kind hot_leaf) $(range hot-$kind middle) \
                $(range hot-$kind main))
        ok "$kind: its stacks reach main ($got%)" test "$got" -ge 90
        got=$(ask $kind.otlp.dump seconds "hot-$kind")
        # Between two readings inside the run, and two outside of it. Detects ticks that are counted twice or not at
        # all; on a busy host timers are late and CPU time is taken away.
        ok "$kind: values are CPU time ($got s of $before to $after, within $first to $last)" \
                awk -v s="$got" -v used="$first $before $after $last" 'BEGIN { split(used, t, " ");
                        exit !(s >= 0.6 * (t[3] - t[2]) && s <= 1.5 * (t[4] - t[1])) }'
done

# ---- kernel frames and the leaf below them ------------------------------------------
start ./calls
profile --output calls.otlp
kill "$pid"
dump calls.otlp
# shellcheck disable=SC2046
set -- $(ask calls.otlp.dump kernel)
frames=$1 named=$2
if "$agent" --doctor | grep -q '^ok.*kernel symbols'; then
        ok "there are kernel frames ($frames)" test "$frames" -ge 20
        ok "kernel frames have names ($named)" test $((named * 100)) -ge $((frames * 99))
else
        pass "kernel frames # SKIP the kernel hides its symbols"
        pass "kernel names # SKIP the kernel hides its symbols"
fi
ask calls.otlp.dump syscall-leaves "$(build_id calls)" | sort | uniq -c | sort -rn | awk 'NR == 1 { print $2 }' > leaf
leaf=$(cat leaf)
case $(uname -m) in
x86_64) instruction=syscall ;;
*) instruction=svc ;;
esac
# The address is inside the system call instruction, so that is the last one that starts at or before it.
found=$(objdump -d --start-address=$((0x$leaf - 16)) --stop-address=$((0x$leaf + 1)) calls | tail -1)
ok "a leaf in a system call is the call's instruction (0x$leaf)" sh -c "echo '$found' | grep -qw $instruction"

# ---- processes that start and exit ------------------------------------------------------
cp hot-pie brief
begin --output brief.otlp
i=0
while [ $i -lt 10 ]; do
        ./brief 0.3
        i=$((i + 1))
done
end_it
dump brief.otlp
got=$(ask brief.otlp.dump known brief "$(build_id brief)")
ok "processes of less than a third of a second are known ($got%)" test "$got" -ge 90

cp hot-pie gone
start ./gone 30
rm gone
profile --output gone.otlp
kill "$pid"
dump gone.otlp
got=$(ask gone.otlp.dump known gone "$(build_id hot-pie)")
ok "a program whose file was removed is known ($got%)" test "$got" -ge 95

cat > late.c << 'END'
#include <dlfcn.h>
#include <time.h>
volatile unsigned long sink;
static void burn(clock_t ms) { clock_t end = clock() + ms * (CLOCKS_PER_SEC / 1000); while (clock() < end) sink++; }
int main(void)
{
        void *library;
        burn(300);
        library = dlopen("./liblate.so", RTLD_NOW);
        ((void (*)(void))dlsym(library, "late_work"))();
        return 0;
}
END
cat > liblate.c << 'END'
#include <time.h>
volatile unsigned long late_sink;
void late_work(void) /* the larger part of the program's CPU time on every machine */
{
        for (clock_t end = clock() + 900 * (CLOCKS_PER_SEC / 1000); clock() < end;)
                for (unsigned long i = 0; i < 1000000; i++) late_sink += i;
}
END
cc -O1 -Wl,--build-id -o late late.c -ldl
cc -O1 -fPIC -shared -Wl,--build-id -o liblate.so liblate.c
begin --output late.otlp
./late
./late
end_it
dump late.otlp
got=$(ask late.otlp.dump known late "$(build_id liblate.so)")
ok "a library that was loaded shortly before the end is known ($got%)" test "$got" -ge 40

# ---- sending ---------------------------------------------------------------------------------
start python3 "$here/e2e/agent/agent-server.py" "$tmp" 2*503
wait_for "the receiver" test -e ready
start ./hot-pie 60
hot=$pid
"$agent" --server "http://127.0.0.1:$(cat port)" --interval 1 --frequency 99 --label env=test 2> agent.log &
agent_pid=$!
background_pids="${background_pids:-} $agent_pid"
two_arrived() { grep -cs '^200' posts | grep -qv '^[01]$'; }
wait_for "two batches" two_arrived
kill -TERM $agent_pid
status=0
wait $agent_pid || status=$?
kill "$hot"
ok "a signal ends the agent with status 0 ($status)" test $status -eq 0
ok "the first batch is sent until it is accepted" test "$(head -3 posts | cut -d' ' -f1 | tr '\n' ' ')" = "503 503 200 "
ok "it keeps its id of 128 bits" \
        sh -c "head -3 posts | cut -d' ' -f2 | uniq | grep -Eqx '[0-9a-f]{32}' && test \$(head -3 posts | cut -d' ' -f2 | uniq | wc -l) -eq 1"
ok "every batch has an id of its own" \
        test "$(grep -c '^200' posts)" -eq "$(grep '^200' posts | cut -d' ' -f2 | sort -u | wc -l)"
ok "batches are compressed and sent to the OTLP path" \
        test "$(cut -d' ' -f3,4 posts | sort -u)" = "gzip /v1development/profiles"
for body in body.*; do dump "$body"; done
cat body.*.dump >bodies
ok "samples have the requested label" grep -q 'env=test;.*process.executable.name=hot-pie' bodies
total=$(awk -F'\t' '{ s += $1 } END { printf "%d", s / (1000000000 / 99) + 0.5 }' bodies)
counted=$(sed -n 's/.*agent: \([0-9]*\) samples, 0 lost.*/\1/p' agent.log)
ok "all counted samples were sent ($counted, $total), including the last ones" test "$total" -eq "$counted"

# ---- errors --------------------------------------------------------------------------------------
status=0
"$agent" --frequency 5000 2> err || status=$?
ok "a frequency out of range is a usage error" test $status -eq 64
ok "and is named" grep -q "option '--frequency' takes a number, from 1 to 1000, not '5000'" err
if command -v setpriv > /dev/null; then
        status=0
        setpriv --reuid 65534 --regid 65534 --clear-groups "$agent" --sampler bpf --duration 1 2> err || status=$?
        ok "without rights it fails" test $status -eq 1
        ok "and says where to look ($(cat err))" grep -q -- --doctor err
        setpriv --reuid 65534 --regid 65534 --clear-groups "$agent" --doctor --sampler bpf --json > doctor.json || true
        ok "doctor names the missing rights" python3 -c "
import json
d = json.load(open('doctor.json'))
assert d['can_profile'] is False
item = next(i for i in d['items'] if i['name'] == 'rights to sample')
assert item['state'] == 'error' and 'CAP_BPF' in item['fix'], item"
else
        for name in fails says doctor; do pass "$name # SKIP setpriv is not installed"; done
fi
done_testing
