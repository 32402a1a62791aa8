#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cairn store verify: undamaged tables pass, and each kind of damage is found, with the file's name.
. tests/e2e/lib.sh
for tool in jq xz python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

unpack() {
        rm -rf "$data"
        tar -C "$tmp" -xf "tests/corpus/data_directory/$1.tar.xz" || bail_out "$1 does not unpack"
}
verify() { "$cairn" store verify --data "$data" "$@" >"$tmp/out" 2>"$tmp/err"; }

unpack 0.1.0-resymbolized
verify
is $? 0 "whole tables have no problem"
"$cairn" store status --data "$data" --json >"$tmp/status"
stored=$(jq -r '[.tables[] | [.files, .rows, .bytes]] | transpose | map(add) | join(" ")' "$tmp/status")
like "$(cat "$tmp/out")" "^${stored%% *} files, 111 rows, [0-9.]+ KiB checked: 0 problems\$" \
        "  all files and rows were read"
verify --json
is "$(jq -r '[.problem_count, .complete, .files, .rows, .bytes] | join(" ")' "$tmp/out")" "0 true $stored" \
        "  the numbers are given as JSON"
"$cairn" store verify --data "$tmp/nothing" >"$tmp/out" 2>&1
is $? 1 "a directory without tables fails"

# damaged KIND PATTERN: the check fails, and reports the file and the problem.
damaged() {
        unpack 0.1.0-queue
        file=$(python3 tests/e2e/store/store-verify.py "$1" "$data/profiles/tables") || bail_out "no damage: $1"
        verify
        is $? 2 "$1: the check fails"
        like "$(cat "$tmp/out")" "^$file.*$2" "  naming the file and the problem"
}
damaged missing ': is missing'
damaged cut ': has 552 bytes, the log says 562'
like "$(cat "$tmp/out")" 'truncated' "  the truncated file is reported as unreadable"
like "$(cat "$tmp/out")" \
        '^samples/date=2026-09-22.* name a stack_id that no readable file of stacks has, as [0-9a-f]{32}' \
        "  the rows that refer to the file are reported"
damaged flipped ': cannot read .*'
damaged size ": has [0-9]+ bytes, the log says"
damaged rows ': has 2 rows, the log says 3'
damaged nulls ": column 'period' has 2 nulls, the log says 7"
damaged bounds ": column 'time' has values outside of the bounds in the log"
damaged text ": column 'profile_type' has values outside of the bounds in the log"
damaged times ": column 'time' has values outside of the bounds in the log"
damaged twice ': 4 rows have a location_id that another row has already'
damaged stack 'date=.*name a stack_id that no readable file of stacks has'
damaged location 'date=.*name a location_id that no readable file of locations has, as -?[0-9]+'
verify --json
is "$(jq '.problem_count == (.problems | length) and .problem_count > 0 and
        (.problems[0] | keys == ["file","problem","table"])' "$tmp/out" 2>&1)" \
        true "  the problems are given as JSON"
done_testing
