#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Python and native frames in the order of their calls, with names, files and lines, of an unmodified program.
. tests/e2e/lib.sh
. tests/e2e/agent/profile-program.sh

agent=${CAIRN_BUILD:-$PWD/build}/cairn-agent
python=/usr/bin/python3.11
[ -x $python ] || skip_all "$python is not installed"
[ "$(uname -m)" = x86_64 ] || skip_all "Python frames are read on x86-64"
"$agent" --sampler bpf --doctor >"$tmp/doctor" 2>&1 ||
        skip_all "the agent cannot profile here: $(grep '^fail' "$tmp/doctor" | head -1 | tr -s ' ')"

# C functions call back into Python twice; the generator and the method are frames of one run.
mkdir "$tmp/src"
cat >"$tmp/src/größe.py" <<'PY'
import functools
import threading


class Arbeit:
    def methode(self, n):
        return summe(n)


def summe(n):
    x = 0
    for i in range(n):
        x += i * i % 7
    return x


def generator(n):
    for _ in range(3):
        yield Arbeit().methode(n)


def schlüssel(_):
    return sum(generator(20000))


def main():
    while True:
        functools.reduce(lambda a, b: sorted([2, 1], key=schlüssel), [1, 2])


thread = threading.Thread(target=main)
thread.start()
main()
PY

$python "$tmp/src/größe.py" &
program=$!
background_pids=$program
profile named
ok "samples were taken" test -s "$tmp/named.dump"
# Python frames have no mapping and no address; each native frame, or several, is one point.
cut -f 3 "$tmp/named.dump" | awk -F ';' '{
        out = ""
        for (i = 1; i <= NF; i++) {
                n = split($i, part, ":")
                python = part[1] == "" && part[2] == "" && part[3] == ""
                if (python || out !~ /\.$/)
                        out = out (out == "" ? "" : " ") (python ? part[4] : ".")
        }
        print out
}' >"$tmp/order"
whole='summe Arbeit\.methode generator \. schlüssel \. main\.<locals>\.<lambda> \. main'
all=$(grep -c summe "$tmp/order")
started='<module> \.|\. Thread\.run Thread\._bootstrap_inner Thread\._bootstrap'
good=$(grep -Ec "$whole ($started)" "$tmp/order")
ok "Python and native frames are in the order of calls ($good of $all stacks)" \
        test "$good" -ge 20 -a $((good * 100)) -ge $((all * 95))
like "$(cat "$tmp/order")" 'main \. Thread\.run Thread\._bootstrap_inner Thread\._bootstrap \.$' \
        "a thread's stack ends at its start"
"$cairn" top --profile "$tmp/named.otlp" --json >"$tmp/top.json" 2>/dev/null
is "$(jq -r '[.[] | select(.function == "summe") | .file] | unique | join(" ")' "$tmp/top.json")" \
        "$tmp/src/größe.py" "a frame has its file"
is "$(count 'cairn_agent_python_processes_total{result="read"}')" 1 "the process is counted"
ok "frames are counted" test "$(count 'cairn_agent_python_frames_total{result="named"}')" -gt 100
is "$(count 'cairn_agent_python_frames_total{result="unreadable"}')" 0 "every name was readable"

profile none --runtimes none
unlike "$(cat "$tmp/none.dump")" summe "--runtimes none leaves the native frames"
profile hidden --no-source-paths
like "$(cat "$tmp/hidden.dump")" 'Arbeit.methode' "--no-source-paths keeps names"
unlike "$(strings -a "$tmp/hidden.otlp")" '\.py' "--no-source-paths leaves out paths"
kill "$program"
# A program that ends long before the interval does: its code is named while it runs.
cat >"$tmp/short.py" <<'PYTHON'
import time


def short_work():
    return sum(i * i for i in range(1000))


input()
while time.process_time() < 4:
    short_work()
PYTHON
mkfifo "$tmp/go"
exec 8<>"$tmp/go"
"$python" "$tmp/short.py" <"$tmp/go" &
program=$!
"$agent" --sampler bpf --frequency 199 --interval 600 --duration 600 --pid "$program" --output "$tmp/short.otlp" \
        --metrics-file "$tmp/metrics" 2>"$tmp/agent.log" &
agent_pid=$!
background_pids="$program $agent_pid"
wait_for "the agent" grep -q sampling "$tmp/agent.log"
echo >&8
wait "$program"
kill -TERM "$agent_pid"
wait "$agent_pid"
python3 tests/support/otlp_dump.py "$tmp/short.otlp" >"$tmp/short.dump"
like "$(cat "$tmp/short.dump")" short_work "code of a program that has ended has its name"
ok "  nearly all of it" test "$(count 'cairn_agent_python_frames_total{result="named"}')" -gt \
        $((20 * $(count 'cairn_agent_python_frames_total{result="exited"}')))

# A program that looks like an interpreter of a version to come.
cat >"$tmp/later.c" <<'C'
const unsigned long Py_Version = 0x036300f0;
char _PyRuntime[64], PyCode_Type[64], PyUnicode_Type[64];
int main(void)
{
        for (volatile int i = 0;; i++)
                ;
}
C
${CC:-cc} -rdynamic -o "$tmp/later" "$tmp/later.c"
"$tmp/later" &
program=$!
profile refused
"$agent" --doctor >"$tmp/doctor"
kill "$program"
is "$(count 'cairn_agent_runtimes_refused_total{runtime="python",reason="version"}')" 1 \
        "an unknown version is refused, and counted with the reason"
like "$(cat "$tmp/doctor")" "process $program .later.: Python is not read: its version is not supported" \
        "--doctor names the process with the reason"
like "$(cat "$tmp/doctor")" 'start the service with --upstream https://debuginfod' \
        "--doctor says where the distribution has debuginfo"
"$agent" --runtimes ruby --output "$tmp/x" 2>"$tmp/err"
is $? 64 "an unknown runtime is a usage error"
done_testing
