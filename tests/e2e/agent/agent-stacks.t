#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs without frame pointers whose stacks are known: the agent's stacks must be complete, down to _start or to the
# start of a thread or context.
. tests/e2e/lib.sh
agent=$CAIRN_BUILD/cairn-agent
tests=$PWD/tests

for tool in python3 readelf nm cc c++; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
"$agent" --doctor --sampler bpf >"$tmp/doctor" ||
        skip_all "the agent cannot profile here: $(grep '^error' "$tmp/doctor" | head -1 | tr -s ' ')"
cd "$tmp" || exit 1
"$tests/known/build" "$tmp" >build.log 2>&1 || bail_out "the programs do not build: $(tail -3 build.log)"

field() { awk -F '\t' -v line="$1" -v number="$2" 'NR == line { print $number }' list; }
ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
have_run() { # TICKS PID...: each of these since it had its count in start.PID
        wanted=$1; shift
        for p; do [ "$(ticks "$p")" -ge $(($(cat "start.$p") + wanted)) ] || return 1; done
}

# sample SECONDS PID...: until each has used this much CPU time; the samples are appended to ./dump.
sample() {
        seconds=$1; shift
        pid_options=
        for p; do pid_options="$pid_options --pid $p"; done
        # shellcheck disable=SC2086  # a list of words on purpose
        "$agent" --sampler bpf --frequency 199 --duration 120 $pid_options --output otlp --metrics-file metrics 2>log &
        agent_pid=$!
        background_pids="$background_pids $agent_pid"
        wait_for "the agent" grep -q sampling log
        for p; do ticks "$p" >"start.$p"; done
        wait_for "CPU time" have_run $((seconds * $(getconf CLK_TCK))) "$@"
        kill -TERM $agent_pid
        wait $agent_pid
        python3 "$tests/support/otlp_dump.py" otlp >>dump
}

# judge LINE: whether enough of the time of that line's program has a stack as specified in the list; the share is in
# got.LINE
judge() {
        # shellcheck disable=SC2046  # a list of words on purpose
        python3 "$tests/known/judge.py" dump "$(field "$1" 1)" "$(field "$1" 3)" "$(field "$1" 1)" $(field "$1" 4) \
                >"got.$1" 2>"bad.$1"
        is_enough "$1"
}
is_enough() { awk -v g="$(cat "got.$1")" -v w="$(field "$1" 2)" 'BEGIN { exit !(g >= w) }'; }

# profile LINE...: the programs of those lines of the list, concurrently. A few ticks matter in two seconds, so programs
# below the threshold are sampled for longer.
profile() {
        pids=
        for line; do
                "./$(field "$line" 1)" >/dev/null 2>&1 &
                pids="$pids $!"
                background_pids="${background_pids:-} $!"
        done
        : >dump
        for round in 1 2 3; do
                # shellcheck disable=SC2086  # a list of words on purpose
                kill -CONT $pids
                # shellcheck disable=SC2086
                sample $((2 * round)) $pids
                # shellcheck disable=SC2086
                kill -STOP $pids
                short=
                for line; do judge "$line" || short=1; done
                [ -n "$short" ] || break
        done
        # shellcheck disable=SC2086  # a list of words on purpose
        kill -9 $pids
        for line; do
                ok "$(field "$line" 1): $(cat "got.$line")% of the time has its whole stack" is_enough "$line"
                cat "bad.$line"
        done
}

# Two at a time, each with a CPU of its own.
line=1
while [ $line -le "$(wc -l <list)" ]; do
        next=$line
        [ $line -ge "$(wc -l <list)" ] || next="$next $((line + 1))"
        # shellcheck disable=SC2086  # a list of words on purpose
        profile $next
        line=$((${next##* } + 1))
done
like "$(cat metrics)" '^cairn_agent_unwind_tables [1-9]' "tables are counted"
done_testing
