#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# JavaScript and native frames in the order of their calls, with names, files and lines, of unmodified programs.
# NODES: paths of further builds of Node.js to run, separated by blanks.
. tests/e2e/lib.sh
. tests/e2e/agent/profile-program.sh

agent=${CAIRN_BUILD:-$PWD/build}/cairn-agent
[ "$(uname -m)" = x86_64 ] || skip_all "JavaScript frames are read on x86-64"
node=$(command -v node) || skip_all "node is not installed"
"$agent" --sampler bpf --doctor >"$tmp/doctor" 2>&1 ||
        skip_all "the agent cannot profile here: $(grep '^fail' "$tmp/doctor" | head -1 | tr -s ' ')"

# Each function is called in one line of another: node-stacks.py has the table. Some are compiled and inlined, some are
# called too rarely for that; callbacks are called by built-in functions and by C++ (toJSON).
mkdir "$tmp/src"
cat >"$tmp/src/größe.js" <<'JS'
'use strict';
function arbeit(n) {
        let x = 0;
        for (let i = 0; i < n; i++) {
                x += teil(i);
        }
        return x;
}
function teil(i) {
        return Math.sqrt(i * i + 1) % 7;
}
class Lager {
        summe(list) {
                return list.map((n) => {
                        return arbeit(n);
                });
        }
        toJSON() {
                return this.summe([2000, 3000]);
        }
}
function schlüssel語(a, b) {
        return arbeit(3000 + a) - arbeit(3000 + b);
}
function tief(n) {
        if (n > 0)
                return tief(n - 1) + 1;
        return [3, 1, 2].sort(schlüssel語)[0];
}
const lager = new Lager();
function runde() {
        JSON.stringify(lager);
        tief(20);
}
function immer() {
        const end = Date.now() + 100;
        while (Date.now() < end) {
                runde();
        }
        setImmediate(immer);
}
immer();
JS

# check_build NODE
check_build() {
        version=$("$1" --version)
        "$1" "$tmp/src/größe.js" &
        program=$!
        background_pids=$program
        profile named
        python3 tests/e2e/agent/node-stacks.py "$tmp/named.otlp" "$tmp/src/größe.js" >"$tmp/stacks"
        sed 's/^/# /' "$tmp/stacks"
        ok "$version: samples have JavaScript frames" test "$(value samples)" -ge 100
        is "$(value wrong)" 0 "$version: no frame has a wrong function, line or caller"
        ok "$version: stacks begin at the script" test "$(value whole)" -ge $(($(value samples) * 99 / 100))
        ok "$version: callers have lines" test "$(value without_line)" -le $(($(value callers) / 5))
        is "$(count 'cairn_agent_node_processes_total{result="read"}')" 1 "$version: the process is counted"
        ok "$version: frames are counted" test "$(count 'cairn_agent_node_frames_total{result="named"}')" -gt 100
        is "$(count 'cairn_agent_node_frames_total{result="unreadable"}')" 0 "$version: every name was readable"
}

for build in ${NODES:-}; do
        check_build "$build"
        kill "$program"
done
check_build "$node"

profile none --runtimes python
unlike "$(cat "$tmp/none.dump")" arbeit "--runtimes python leaves the native frames"
profile hidden --no-source-paths --runtimes node
like "$(cat "$tmp/hidden.dump")" arbeit "--no-source-paths keeps names"
unlike "$(strings -a "$tmp/hidden.otlp")" '\.js' "--no-source-paths leaves out paths"
kill "$program"
# A program that looks like one with V8 of a layout that is not known: Smis of 31 bits.
cat >"$tmp/other.c" <<'C'
const int v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE = 160, v8dbg_SmiShiftSize = 1;
int main(void)
{
        for (volatile int i = 0;; i++)
                ;
}
C
${CC:-cc} -rdynamic -o "$tmp/other" "$tmp/other.c"
"$tmp/other" &
program=$!
profile refused
"$agent" --doctor >"$tmp/doctor"
kill "$program"
is "$(count 'cairn_agent_runtimes_refused_total{runtime="node",reason="build"}')" 1 \
        "an unknown layout is refused, and counted with the reason"
like "$(cat "$tmp/doctor")" "process $program .other.: JavaScript is not read: this version or build" \
        "--doctor names the process with the reason"
done_testing
