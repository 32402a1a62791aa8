#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Debian's stripped Python under load: profiled first, its debug files uploaded afterwards, read back in every way.
. tests/e2e/lib.sh
agent=$CAIRN_BUILD/cairn-agent
python=/usr/bin/python3.11

debug_file_of() {
        debug_id=$(build_id_of "$1")
        printf '/usr/lib/debug/.build-id/%.2s/%s.debug\n' "$debug_id" "${debug_id#??}"
}
[ -x $python ] || skip_all "$python is not installed"
python_debug=$(debug_file_of $python)
libc=$(ldd $python | sed -n 's/.* => \(.*libc\.so\.6\) .*/\1/p')
libc_debug=$(debug_file_of "$libc")
json=$($python -c 'import _json; print(_json.__file__)')
[ -f "$python_debug" ] || skip_all "python3.11-dbg is not installed for this python3.11"
[ -f "$(debug_file_of "$json")" ] || skip_all "python3.11-dbg is not installed for its modules"
[ -f "$libc_debug" ] || skip_all "libc6-dbg is not installed for this libc"
command -v eu-addr2line >/dev/null || skip_all "elfutils is not installed"
if ! missing=$("$agent" --doctor); then
        skip_all "the agent cannot profile here: $(echo "$missing" | grep '^error' | head -1 | tr -s ' ')"
fi
. tests/e2e/venv.sh
python_id=$(build_id_of $python)
libc_id=$(build_id_of "$libc")

selector='{workload="busy"}'
# look PHASE: saves the current output of `cairn top` and the samples.
look() { "$cairn" top --server "$url" --json "$selector" >"$tmp/top.$1" && jq -e 'length > 0' "$tmp/top.$1"; }
sum_of() { jq '[.[].flat] | add' "$tmp/top.$1"; }
# python_share PHASE: percentage of the interpreter's self time in functions with file and line.
python_share() {
        jq '[.[] | select((.object // "") | test("python3.11$"))] |
                100 * ([.[] | select(.line > 0 and .file != "" and .file != null) | .flat] | add // 0) / ([.[].flat] | add) | floor' "$tmp/top.$1"
}

# ---- the samples arrive first ----

start_server --flush-interval 1
is "$(curl -sS "$url/api/v1/debuginfo" | jq '.objects | length')" 0 "the service has no debuginfo"
$python tests/tools/busy.py 300 &
busy=$!
background_pids=$busy
"$agent" --server "$url" --no-upload --pid $busy --frequency 199 --interval 1 --duration 120 --label workload=busy \
        2>"$tmp/agent.log" &
agent_pid=$!
background_pids="$busy $agent_pid"
wait_for "the agent" grep -q sampling "$tmp/agent.log"
ticks() { awk '{ print $14 + $15 }' "/proc/$busy/stat"; } # CPU time, which is scarce on a busy machine
begun=$(ticks)
has_run() { [ "$(ticks)" -ge $((begun + 4 * $(getconf CLK_TCK))) ]; }
wait_for "four seconds of work" has_run
kill -TERM $agent_pid
wait $agent_pid
is $? 0 "the agent profiles the stripped python3.11"
kill $busy
wait $busy 2>/dev/null
background_pids=
flushed() { [ "$(metric cairn_queue_batches)" -eq 0 ] && [ "$(metric 'cairn_table_rows{table="samples"}')" -gt 0 ]; }
wait_for "everything to be in the tables" flushed

ok "cairn top shows the past" look before
ok "the interpreter was busy for half a second at least" test "$(sum_of before)" -ge 500000000
is "$(python_share before)" 0 "nothing in python3.11 has a file or line"
unlike "$(cat "$tmp/top.before")" 'pymalloc_alloc' "the name of the interpreter's allocator is not known"
ok "the cookbook's SQL gives the same numbers" "$PYTHON" tests/e2e/agent/real-python.py same "$data" "$tmp/top.before"
diag "$ok_out"
ok "deltalake opens the tables" "$PYTHON" tests/e2e/agent/real-python.py delta "$data"
delta_before=$ok_out
missing=$("$cairn" debuginfo missing --server "$url" --json)
like "$missing" "$python_id" "python3.11 is listed as missing"

# ---- the debug files arrive later ----

upload() { "$CAIRN_BUILD/cairn-upload" --server "$url" "$@" >"$tmp/upload.log" 2>&1; }
ok "the debug files of python3.11 and libc are uploaded" upload "$python_debug" "$libc_debug"
ok "and that of a module, found by cairn-upload from the module" upload "$json"
# An object may be indexed twice, before and after its dwz file arrives, so counting re-symbolizations is not
# sufficient.
settled() { metric_equals cairn_index_queue 0 && metric_equals cairn_resymbolize_queue 0; }
wait_for "indexing and re-symbolization to be done" settled
pass "the past is re-symbolized without a command"

ok "cairn top shows the same past" look after
is "$(sum_of after)" "$(sum_of before)" "the re-symbolized past has the same sum"
share=$(python_share after)
ok "the interpreter's time is in functions with file and line ($share%)" test "$share" -ge 98
# function NAME FILE: it is in the top functions, with file and line.
# file_has_time FILE: functions of FILE, with lines, have time of their own.
file_has_time() {
        jq -e --arg s "$1" 'any(.[]; (.file // "" | endswith($s)) and .line > 0 and .flat > 0)' "$tmp/top.after"
}
ok "its allocator is found" file_has_time Objects/obmalloc.c
ok "the time of its loop belongs to the functions of Python that it runs" file_has_time tests/tools/busy.py
ok "the regular expressions too" jq -e 'any(.[]; (.file // "" | test("Modules/_sre")) and .line > 0)' "$tmp/top.after"
ok "and the JSON module" jq -e 'any(.[]; (.file // "" | endswith("Modules/_json.c")) and .line > 0)' "$tmp/top.after"
ok "and functions of libc" jq \
        -e 'any(.[]; (.object // "" | endswith("libc.so.6")) and (.file // "") != "" and .line > 0)' "$tmp/top.after"
diag "$(jq -r '.[:12][] | "\(.flat / 1e9) s  \(.function)  \(.file):\(.line)"' "$tmp/top.after")"
ok "the cookbook's SQL gives the same numbers" "$PYTHON" tests/e2e/agent/real-python.py same "$data" "$tmp/top.after"
diag "$ok_out"
ok "deltalake opens the tables" "$PYTHON" tests/e2e/agent/real-python.py delta "$data"
is "$ok_out" "$delta_before" "the tables have as many samples and locations as before, and the same sum"
ok "the table agrees with eu-addr2line on python3.11" "$PYTHON" tests/e2e/agent/real-python.py places "$data" \
        "$python_id" "$python_debug"
diag "$ok_out"
ok "and on libc" "$PYTHON" tests/e2e/agent/real-python.py places "$data" "$libc_id" "$libc_debug"
diag "$ok_out"
is "$("$cairn" top --data "$data" --json "$selector" | jq -c '[.[] | {function, file, line, flat, cumulative}]' |
        sha256sum)" \
        "$(jq -c '[.[] | {function, file, line, flat, cumulative}]' "$tmp/top.after" | sha256sum)" \
        "the directory says what the service says"
ok "flame graphs have the allocator" \
        sh -c "'$cairn' flame --server '$url' '$selector' --output '$tmp/flame.html' && grep -q pymalloc_alloc '$tmp/flame.html'"
ok "the service is healthy" healthy
done_testing
