#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Frames of a BPF program that is loaded after the recording began, and is gone at its end: functions and source lines.
. tests/e2e/lib.sh
for tool in clang llvm-objcopy cc jq; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
"$CAIRN_BUILD/cairn-agent" --doctor --sampler bpf >"$tmp/doctor" ||
        skip_all "no BPF here: $(grep '^error' "$tmp/doctor" | head -1)"
export CAIRN_CACHE_DIR="$tmp/cache"
mkdir "$CAIRN_CACHE_DIR"
source=$PWD/tests/e2e/agent/bpf-frames.bpf.c
include=/usr/include/$(uname -m)-linux-gnu

clang -target bpf -O2 -g -I"$include" -c -o "$tmp/burn.o" "$source" &&
        llvm-objcopy --remove-section=.BTF.ext "$tmp/burn.o" "$tmp/no-lines.o" &&
        cc -O1 -o "$tmp/bpf-frames" tests/e2e/agent/bpf-frames.c -lbpf || bail_out "cannot build"
"$tmp/bpf-frames" "$tmp/burn.o" 0 2>"$tmp/err" || skip_all "the program cannot be loaded: $(tail -1 "$tmp/err")"

# burn OBJECT: records it as $tmp/out
burn() { "$CAIRN_BUILD/cairn" record -F 499 --json -- "$tmp/bpf-frames" "$1" 3 >"$tmp/out" 2>"$tmp/err"; }
# time_of EXPRESSION: CPU time, in microseconds, of the rows that satisfy it
time_of() { jq "(map(select($1).flat) | add // 0) / 1000 | floor" "$tmp/out"; }
own='.function | test("^bpf_prog_[0-9a-f]{16}_(inner_step|each_round|burn_packet)$")'
line_of() { grep -n "line of $1 " "$source" | cut -d: -f1; }

burn "$tmp/burn.o"
all=$(time_of "$own")
ok "the program was recorded" test "$all" -gt 100000
for function in inner_step each_round burn_packet; do
        of=".function | endswith(\"_$function\")"
        # each_round does nothing but call: it may have no sample.
        ok "$function: at least half of its samples have its line" test \
                $((2 * $(time_of "($of) and .line == $(line_of $function)"))) -ge "$(time_of "$of")"
done
is "$(jq -r "map(select($own).file | select(. != \"\")) | unique[]" "$tmp/out")" "$source" \
        "the file is that of the program"
# A busy machine may take the last samples after the program has ended: they have its symbol alone, or no name.
ok "nine of ten have a line" test $((10 * $(time_of "($own) and .line > 0"))) -ge $((9 * all))
ok "few frames of the kernel have no name" test \
        $((10 * $(time_of '.function | startswith("[kernel")'))) -lt "$all"

# The agent has given up CAP_SYS_ADMIN when it looks addresses up.
"$tmp/bpf-frames" "$tmp/burn.o" 600 &
burning=$!
"$CAIRN_BUILD/cairn-agent" --sampler bpf -F 199 --output "$tmp/agent.otlp" >"$tmp/err" 2>&1 &
agent=$!
wait_for "the agent" grep -q sampling "$tmp/err"
ticks() { awk '{ print $14 + $15 }' "/proc/$burning/stat"; }
begun=$(ticks)
has_run() { [ "$(ticks)" -ge $((begun + $(getconf CLK_TCK) / 2)) ]; }
wait_for "half a second of its CPU time" has_run
kill -TERM "$agent"
wait "$agent"
kill "$burning"
ok "the agent gives files of BPF programs, too" grep -aqF "$source" "$tmp/agent.otlp"

if "$tmp/bpf-frames" "$tmp/no-lines.o" 0 2>"$tmp/err"; then
        burn "$tmp/no-lines.o"
        ok "a program without lines: functions have names" test "$(time_of "$own")" -gt 100000
        is "$(time_of "($own) and .line > 0")" 0 "  they have no lines"
else
        pass "a program without lines # SKIP $(tail -1 "$tmp/err")"
fi
done_testing
