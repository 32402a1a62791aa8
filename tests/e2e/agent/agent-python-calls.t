#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Stacks of Python programs whose calls are known, in the interpreters at hand: an executable, a virtual environment, a
# program that embeds libpython, and those of CAIRN_PYTHONS.
. tests/e2e/lib.sh

agent=${CAIRN_BUILD:-$PWD/build}/cairn-agent
python=/usr/bin/python3.11
[ -x $python ] || skip_all "$python is not installed"
[ "$(uname -m)" = x86_64 ] || skip_all "Python frames are read on x86-64"
"$agent" --sampler bpf --doctor >"$tmp/doctor" 2>&1 ||
        skip_all "the agent cannot profile here: $(grep '^fail' "$tmp/doctor" | head -1 | tr -s ' ')"

ran() { awk '{ print $14 + $15 }' "/proc/$program/stat"; }
has_threads() { [ "$(ls "/proc/$program/task" | wc -l)" -ge 3 ]; } # those of the program, which start last
has_run() { [ "$(ran)" -ge $((begun + 3 * $(getconf CLK_TCK))) ]; }

# check_calls NAME VERSION COMMAND...: samples of the program that the command runs.
check_calls() {
        name=$1 version=$2
        shift 2
        "$@" &
        program=$!
        background_pids=$program
        wait_for "the program" has_threads # its stacks are not known while the interpreter starts
        "$agent" --sampler bpf --frequency 199 --interval 1 --duration 120 --pid "$program" --output "$tmp/otlp" \
                --metrics-file "$tmp/metrics" 2>"$tmp/agent.log" &
        agent_pid=$!
        background_pids="$program $agent_pid"
        wait_for "the agent" grep -q sampling "$tmp/agent.log"
        begun=$(ran)
        wait_for "three seconds of work" has_run
        kill -TERM "$agent_pid"
        wait "$agent_pid"
        kill -9 "$program"
        # shellcheck disable=SC2046
        set -- $(python3 tests/known/judge_python.py "$tmp/otlp" "$version" 2>"$tmp/wrong")
        ok "$name: samples have Python frames" test "$1" -gt 500000000
        ok "$name: at least 99.5% of the stacks are in the order of the calls ($2%)" \
                awk -v share="$2" 'BEGIN { exit share < 99.5 }'
        is "$3" 0 "$name: no line is wrong"
        is "$(grep -E '^cairn_agent_python_frames_total.*(freed|unreadable|limit)' "$tmp/metrics" |
                awk '{ n += $2 } END { print n }')" 0 "$name: every frame has a name"
}

check_calls "executable" 3.11 $python tests/known/python_calls.py
if $python -m venv --without-pip "$tmp/venv" 2>/dev/null; then
        check_calls "virtual environment" 3.11 "$tmp/venv/bin/python" tests/known/python_calls.py
else
        pass "virtual environment # SKIP python3.11-venv is not installed"
fi

cat >"$tmp/embed.c" <<'C'
#include <Python.h>

int main(int argc, char **argv)
{
        return Py_BytesMain(argc, argv);
}
C
# shellcheck disable=SC2046
if cc -o "$tmp/service" "$tmp/embed.c" $(python3.11-config --includes --ldflags --embed) 2>"$tmp/cc.log"; then
        check_calls "libpython in a program of another name" 3.11 "$tmp/service" tests/known/python_calls.py
else
        pass "libpython # SKIP libpython3.11-dev is not installed"
fi
for python in ${CAIRN_PYTHONS:-}; do
        check_calls "$python" "$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')" \
                "$python" tests/known/python_calls.py
done
done_testing
