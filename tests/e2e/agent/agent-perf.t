#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The agent without privileges: an ordinary user's programs are profiled with perf events only.
built=${CAIRN_BUILD:-$PWD/build}/cairn-agent
here=$PWD/tests

# shellcheck source=tests/e2e/lib.sh
. tests/e2e/lib.sh

for tool in python3 readelf nm cc setpriv; do
        command -v $tool > /dev/null || skip_all "$tool is not installed"
done
user=
[ "$(id -u)" -ne 0 ] || user="setpriv --reuid 65534 --regid 65534 --clear-groups"

cp "$built" "$tmp/cairn-agent" # in a directory accessible to any user
chmod 755 "$tmp/cairn-agent"
chmod 777 "$tmp"
cd "$tmp" || exit 1
agent=$tmp/cairn-agent
if ! $user "$agent" --doctor --sampler perf > doctor; then
        skip_all "no perf events here: $(grep '^error.*perf sampler' doctor | tr -s ' ')"
fi

cat > hot.c << 'END'
#include <stdlib.h>
#include <time.h>
volatile unsigned long sink;
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
cc -O1 -g -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -Wl,--build-id -pie -fPIE -o hot hot.c
cp hot child
cp hot later

build_id() { readelf -n "$1" 2> /dev/null | sed -n 's/.*Build ID: //p'; }
range() { # FILE FUNCTION: start and end address
        nm -S "$1" | awk -v f="$2" '$4 == f { print $1, $2 }' | while read -r start size; do
                printf '%x %x\n' $((0x$start)) $((0x$start + 0x$size))
        done
}
dump() { python3 "$here/support/otlp_dump.py" "$1" > "$1.dump"; }
ask() { python3 "$here/e2e/agent/agent-check.py" "$@"; }
metric() { awk -v m="$2" '$1 == m { print $2 }' "$1"; }
id=$(build_id hot)

# ---- a program that is already running ---------------------------------------------------
$user ./hot 60 &
hot=$!
background_pids="${background_pids:-} $hot"
$user "$agent" --sampler perf --frequency 199 --duration 2 --output run.otlp --metrics-file metrics 2> log
kill $hot
dump run.otlp
# shellcheck disable=SC2046
got=$(ask run.otlp.dump leaf-share "$id" $(range hot hot_leaf))
ok "the hot function dominates ($got%)" test "$got" -ge 90
# shellcheck disable=SC2046
got=$(ask run.otlp.dump reach "$id" $(range hot hot_leaf) $(range hot middle) $(range hot main))
ok "its stacks reach main ($got%)" test "$got" -ge 90
ok "the log says which sampler runs" grep -q 'info agent: sampling .* by perf' log
ok "and what it does not cover" grep -q "warn agent: not covered: .*processes" log
ok "a metric says which sampler runs" test "$(metric metrics 'cairn_agent_sampler{kind="perf"}')" = 1
ok "and not the other" test "$(metric metrics 'cairn_agent_sampler{kind="bpf"}')" = 0
ok "no record is lost" test "$(metric metrics 'cairn_agent_samples_lost_total{reason="ring_full"}')" = 0

# ---- children, new processes, and each tick once ------------------------------------------
mkfifo begin
chmod 666 begin
# shellcheck disable=SC2016  # for the inner shell
$user sh -c 'read -r go < begin; i=0; while [ $i -lt 8 ]; do ./child 0.2; i=$((i + 1)); done; times > used' &
children=$!
background_pids="${background_pids:-} $children"
$user "$agent" --sampler perf --frequency 499 --duration 120 --output tree.otlp 2> tree.log &
agent_pid=$!
background_pids="${background_pids:-} $agent_pid"
wait_for "the agent samples" grep -q 'by perf' tree.log
echo go > begin
$user ./later 3 # of a parent that may not be sampled
wait $children
kill -TERM $agent_pid
wait $agent_pid
ok "the children ended" test -s used
dump tree.otlp
# Detects ticks that are counted twice or not at all; on a busy host timers are late and CPU time is taken away.
used=$(awk 'NR == 2 { split($1, t, "[ms]"); print t[1] * 60 + t[2] }' used)
got=$(ask tree.otlp.dump seconds child)
ok "children of a followed process are sampled from their start, each tick once ($got s of $used s)" \
        awk -v s="$got" -v u="$used" 'BEGIN { exit !(s >= 0.6 * u && s <= 1.5 * u) }'
got=$(ask tree.otlp.dump known child "$id")
ok "and their mappings are known ($got%)" test "$got" -ge 90
if [ -n "$user" ]; then
        got=$(ask tree.otlp.dump seconds later)
        ok "a process of another parent is found within a second or so ($got s of 3 s)" \
                awk -v s="$got" 'BEGIN { exit !(s >= 1 && s <= 4.5) }'
else
        pass "a process of another parent # SKIP needs root"
fi

# ---- selection of the sampler, and errors -------------------------------------------------------
status=0
$user "$agent" --sampler neither --output x.otlp 2> err || status=$?
ok "an unknown sampler is a usage error" test $status -eq 64
if [ -n "$user" ]; then
        $user "$agent" --duration 1 --output auto.otlp 2> auto.log
        ok "auto takes perf events where BPF is not possible" grep -q 'sampling .* by perf' auto.log
        ok "and says why" grep -q 'using perf events instead of BPF: .*Operation not permitted' auto.log
        status=0
        $user "$agent" --sampler bpf --duration 1 --output x.otlp 2> err || status=$?
        ok "BPF without rights fails" test $status -eq 1
        status=0
        $user "$agent" --doctor --sampler bpf > doctor || status=$?
        ok "doctor says that BPF is not possible" test $status -eq 1
        $user "$agent" --doctor --json > doctor.json
        ok "and which sampler auto takes" python3 -c "
import json
d = json.load(open('doctor.json'))
assert d['can_profile'] is True and d['sampler'] == 'perf', d
states = {i['name']: i['state'] for i in d['items']}
assert states['perf sampler'] == 'ok' and states['BPF program'] == 'error', states"
        status=0
        $user "$agent" --sampler perf --pid 1 --duration 1 --output x.otlp 2> err || status=$?
        ok "a selected process of another user is refused" test $status -eq 1
        ok "and named ($(cat err))" grep -q 'cannot sample thread 1' err
else
        for name in auto why bpf doctor json other named; do pass "$name # SKIP needs root"; done
fi
done_testing
