#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs without frame pointers whose stacks are known: the agent must have all of each, down to _start or to where
# a thread or a context began.
set -eu
agent=${CAIRN_BUILD:-$PWD/build}/cairn-agent
tests=$PWD/tests

count=0
check() { # NAME COMMAND...
        count=$((count + 1))
        name=$1
        shift
        if "$@"; then echo "ok $count - $name"; else echo "not ok $count - $name"; fi
}

for tool in python3 readelf nm cc c++; do
        command -v $tool > /dev/null || { echo "1..0 # SKIP $tool is not installed"; exit 0; }
done
if ! missing=$("$agent" --doctor --sampler bpf); then
        echo "1..0 # SKIP the agent cannot profile here: $(echo "$missing" | grep '^fail' | head -1 | tr -s ' ')"
        exit 0
fi

dir=$(mktemp -d)
pid=
cleanup() {
        [ -z "$pid" ] || kill "$pid" 2> /dev/null || true
        rm -rf "$dir"
}
trap cleanup EXIT
cd "$dir"
"$tests/known/build" "$dir"

# One tick in a few hundred is much of two seconds, so what falls short is sampled for longer.
profile() { # NAME PERCENT PATTERN [FILE...]
        program=$1 wanted=$2 pattern=$3
        shift 3
        "./$program" > /dev/null 2>&1 &
        pid=$!
        : > "$program.dump"
        for round in 1 2 3; do
                "$agent" --sampler bpf --log-level error --frequency 199 --duration $((2 * round)) --pid "$pid" \
                        --output "$program.otlp"
                python3 "$tests/support/otlp_dump.py" "$program.otlp" >> "$program.dump"
                got=$(python3 "$tests/known/judge.py" "$program.dump" "$program" "$pattern" "$program" "$@" \
                        2> "$program.bad")
                if awk -v g="$got" -v w="$wanted" 'BEGIN { exit !(g >= w) }'; then break; fi
        done
        kill "$pid"
        wait "$pid" 2> /dev/null || true
        pid=
        cat "$program.bad"
        check "$program: $got% of the time has its whole stack" awk -v g="$got" -v w="$wanted" 'BEGIN { exit !(g >= w) }'
}

tab=$(printf '\t')
while IFS=$tab read -r name percent pattern files; do
        # shellcheck disable=SC2086  # a list of words on purpose
        profile "$name" "$percent" "$pattern" $files
done < list

./recursion &
pid=$!
"$agent" --sampler bpf --log-level error --duration 2 --pid $pid --output metrics.otlp --metrics-file metrics
check "tables are counted" grep -qE '^cairn_agent_unwind_tables [1-9]' metrics
echo "1..$count"
