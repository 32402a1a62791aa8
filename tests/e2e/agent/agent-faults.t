#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unusual and hostile processes and files: the agent keeps running, mixes nothing up, and counts everything that it
# could not do.
. tests/e2e/lib.sh

for tool in python3 cc readelf; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
[ "$(uname -m)" = x86_64 ] || skip_all "the machine code is of x86-64"
[ "$(id -u)" = 0 ] || skip_all "needs root"
here=$PWD
agent=${CAIRN_BUILD:-$PWD/build}/cairn-agent
"$agent" --sampler bpf --doctor >"$tmp/doctor" 2>&1 ||
        skip_all "the agent cannot profile here: $(grep '^error' "$tmp/doctor" | head -1 | tr -s ' ')"
cc -O2 -o "$tmp/faults" tests/e2e/agent/agent-faults.c || bail_out "cannot build"
cd "$tmp" || exit 1
chmod 755 .

build_id() { readelf -n "$1" | sed -n 's/.*Build ID: //p'; }
# value METRIC: from ./metrics; 0 if absent
value() { awk -v name="$1" '$1 == name { v = $2 } END { print v + 0 }' metrics; }
background() { "$@" & background_pids="${background_pids:-} $!"; pid=$!; }

kill_all() {
        for p in ${background_pids:-}; do kill -9 "$p" 2>/dev/null; done
        background_pids=
}

# start_agent PROCESSES OPTION...: samples the processes of that name; its pid is in $agent_pid
start_agent() {
        rm -f metrics
        only=$1
        shift
        "$agent" --sampler bpf --only-process "$only" --metrics-file metrics "$@" 2>agent.log &
        agent_pid=$!
        background_pids="${background_pids:-} $agent_pid"
        wait_for "the agent" grep -q 'sampling' agent.log
}
stop_agent() {
        kill -TERM "$agent_pid"
        wait "$agent_pid"
}
# whole NAME: percentage of the program's time in ./dump with a complete stack
whole() {
        awk -F '\t' -v name="process.executable.name=$1" '
                index(";" $2 ";", ";" name ";") { all += $1; if ($2 ~ /stack.end=complete/) good += $1 }
                END { printf "%d\n", all ? 100 * good / all : 0 }' dump
}
objects_of() { awk -F '\t' -v name="process.executable.name=$1" 'index(";" $2 ";", ";" name ";") { print $3 }' dump; }

# ---- reused pids, processes that exit, files that change ----

cat >life.c <<'C'
#include <time.h>
static __attribute__((noinline)) int deep(int n) { volatile char room[ROOM]; room[n % ROOM] = 1; if (n) return deep(n - 1) + room[0];
        while (clock() < CLOCKS_PER_SEC / 10) ; return room[0]; }
int main(void) { return deep(9) == -1; }
C
cat >work.c <<'C'
void work(void) { for (volatile long n = 0;; n++) ; }
C
for name in one two; do
        cc -O2 -fomit-frame-pointer -fno-optimize-sibling-calls -no-pie -Wl,--build-id \
                -DROOM="$([ $name = one ] && echo 40 || echo 4000)" \
                -o $name life.c || bail_out "cannot build"
done
for name in cut zeroed replaced other; do
        cc -O2 -fomit-frame-pointer -shared -fPIC -Wl,--build-id -Wl,-z,separate-code -Dwork=work -D"unused=\"$name\"" \
                -o $name.so work.c \
                -Wl,-soname,$name || bail_out "cannot build"
done
replaced_id=$(build_id replaced.so)
for name in cut zeroed replaced; do
        cp faults lib-$name
        background ./lib-$name library ./$name.so $name.ready
        wait_for "$name" test -e $name.ready
done
text_end=$(readelf -lW cut.so | awk '$1 == "LOAD" && / E / { print $2, $5 }' | head -1)
# shellcheck disable=SC2086  # two words
set -- $text_end
truncate -s $(($1 + $2)) cut.so
dd if=/dev/zero of=zeroed.so bs=64 count=1 conv=notrunc 2>/dev/null
mv other.so replaced.so

start_agent '[flot]*' --frequency 199 --duration 60 --output out.otlp --stack-end-label --log-level info
./faults storm 15
if ./faults reuse 30 ./one ./two 2>reuse.err; then reused=1; else reused=0; fi
stop_agent
is $? 0 "the agent ends well"
python3 "$here/tests/support/otlp_dump.py" out.otlp >dump
if [ $reused = 1 ]; then
        unlike "$(objects_of one)" "^$(build_id two):|;$(build_id two):" \
                "the first of two programs with one number has no frame of the second"
        unlike "$(objects_of two)" "^$(build_id one):|;$(build_id one):" \
                "the second of two programs with one number has no frame of the first"
        ok "and their stacks are complete ($(whole one)%, $(whole two)%)" \
                test "$(whole one)" -ge 80 -a "$(whole two)" -ge 80
else
        for name in first second whole; do pass "$name # SKIP $(cat reuse.err)"; done
fi
like "$(objects_of faults)" . "processes of a few milliseconds are sampled"
like "$(objects_of lib-cut)" "/cut.so" "a truncated file has samples"
like "$(objects_of lib-zeroed)" "/zeroed.so" "a file whose header was overwritten has samples"
like "$(objects_of lib-replaced)" "$replaced_id:" "samples of a replaced file belong to the running one"
kill_all

# ---- malformed perf maps, very many mappings ----

cc -O2 -I"$here/tests/known" -o made "$here/tests/known/made.c" || bail_out "cannot build"
secret=cairn_secret_of_root
echo "0 ffffffffffffffff $secret" >secret
maps=
for kind in link binary huge pipe; do
        cp made made-$kind
        background ./made-$kind
        map=/tmp/perf-$pid.map
        maps="$maps $map"
        case $kind in
        link) ln -s "$tmp/secret" "$map" ;;
        binary) head -c 3000000 /dev/urandom >"$map" ;;
        huge) truncate -s 20G "$map" ;;
        pipe) mkfifo "$map" ;;
        esac
done
background ./faults mappings 50000 mapped
many=$pid
wait_for "the mappings" test -e mapped
"$agent" --sampler bpf --log-level error --only-process "made-*" --frequency 199 --duration 3 --output jit.otlp
is $? 0 "strange perf maps: the agent ends well"
python3 "$here/tests/support/otlp_dump.py" jit.otlp >dump
for kind in link binary huge pipe; do like "$(objects_of made-$kind)" . "$kind: it has samples"; done
unlike "$(cat dump)" "$secret" "a link is not followed"
start_agent '[fm]a*' --frequency 99 --interval 1 --server http://127.0.0.1:1 --no-upload --log-level info
unmapped() { [ "$(value 'cairn_agent_processes_unmapped_total{reason="no_room"}')" -ge 1 ]; }
wait_for "the process with 50000 mappings" unmapped
drained() { [ "$(value cairn_agent_user_stacks_total)" -gt "$1" ]; }
wait_for "an interval" drained 0
wait_for "more intervals" drained "$(($(value cairn_agent_user_stacks_total) + 5))"
uptime_ms() { awk '{ print int(1000 * $1) }' /proc/uptime; }
before=$(awk '{ print $14 + $15 }' /proc/$agent_pid/stat)
start_ms=$(uptime_ms)
stacks=$(value cairn_agent_user_stacks_total)
five_seconds() { [ "$(uptime_ms)" -ge $((start_ms + 5000)) ]; }
wait_for "five seconds" five_seconds
wait_for "an interval after them" drained "$stacks"
passed_ms=$(($(uptime_ms) - start_ms))
used_ms=$((($(awk '{ print $14 + $15 }' /proc/$agent_pid/stat) - before) * 1000 / $(getconf CLK_TCK)))
rss=$(awk '/^VmRSS/ { print int($2 / 1024) }' /proc/$agent_pid/status)
diag "50000 mappings that change 20 times a second: $used_ms ms of CPU time in $passed_ms ms, $rss MiB"
ok "50000 mappings cost no more than a fifth of a CPU ($used_ms ms of $passed_ms)" \
        test $((5 * used_ms)) -le "$passed_ms"
ok "and memory is bounded ($rss MiB)" test "$rss" -le 400
ok "the process keeps running" kill -0 "$many"
stop_agent
kill_all

# ---- files with thousands of unwind rules that no compiler generates ----

for file in 1 2; do
        awk -v first=$((file * 100000)) 'BEGIN {
                print ".globl work\n.type work,@function\nwork: .cfi_startproc"
                for (i = 0; i < 12000; i++) printf "nop\n.cfi_def_cfa_offset %d\n", first + 8 * i
                print ".cfi_def_cfa_offset 8\n1: jmp 1b\n.cfi_endproc\n.size work, .-work\n.section .note.GNU-stack,\"\",@progbits" }' >strange$file.s
        cc -shared -Wl,--build-id -o strange$file.so strange$file.s || bail_out "cannot build"
        chown 65534 strange$file.so
        cp faults user$file
        background ./user$file library ./strange$file.so strange$file.ready
        wait_for "strange$file" test -e strange$file.ready
done
start_agent 'user*' --frequency 199 --interval 1 --server http://127.0.0.1:1 --no-upload --log-level info
refused() { [ "$(value 'cairn_agent_unwind_rules_refused_total{reason="owner_full"}')" -ge 1000 ]; }
wait_for "the user's part of the rules to be full" refused
rules=$(value cairn_agent_unwind_rules)
ok "a user's files have a quarter of the rules ($rules)" test "$rules" -lt 30000
is "$(value 'cairn_agent_unwind_rules_refused_total{reason="no_room"}')" 0 "no rules of other users are refused"
stop_agent
# shellcheck disable=SC2086
rm -f $maps
done_testing
