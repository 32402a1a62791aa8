#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Instructions of two builds: those that differ by addresses only are in one row with the cost of both sides, compared
# with a diff of what objdump prints; missing code of a side; refused parameters.
. tests/e2e/lib.sh

for tool in gcc jq objdump diff; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
start_server
. tests/e2e/query/two_builds.sh
compare() {
        "$cairn" diff --server "$url" --disassembly --function work --base '{version="old"}' "$@" '{version="new"}'
}
compare --json >"$tmp/out" 2>"$tmp/err" || diag "$(cat "$tmp/err")"
like "$(jq -r '.base_missing.reason, .missing.reason' "$tmp/out")" "no executable of build-id .* is stored" \
        "without the executables the reason is reported"
ok "the executable before is uploaded" "$CAIRN_BUILD/cairn-upload" --server "$url" --executables "$tmp/old/app"
compare >"$tmp/text" 2>"$tmp/err"
like "$(cat "$tmp/err")" "no code after: no executable of build-id" "text of one side alone has a note of the other"
like "$(cat "$tmp/text")" ' - push     rbp$' "text of one side shows its instructions as removed"
ok "the executable after is uploaded" "$CAIRN_BUILD/cairn-upload" --server "$url" --executables "$tmp/new/app"

compare --json >"$tmp/out" 2>"$tmp/err" || diag "$(cat "$tmp/err")"
is "$(jq -c '[.ranges[] | .function]' "$tmp/out")" '["work"]' "the function is beside itself"
is "$(jq -r '.base_build_id, .build_id' "$tmp/out")" \
        "$(build_id_of "$tmp/old/app")
$(build_id_of "$tmp/new/app")" "the answer names both objects"

# The instructions of a function without addresses, one a line, as objdump has them.
plain_code() {
        objdump -d --no-show-raw-insn -M intel "$1" | awk '/<work>:$/ { on = 1; next } /^$/ { on = 0 } on' |
                sed -E 's/^ *[0-9a-f]+:\t//; s/ +#.*//; s/0x[0-9a-f]+|[0-9a-f]+ <.*>|rip\+.*\]/*/g; s/ +/ /g; s/ $//'
}
plain_code "$tmp/old/app" >"$tmp/old.code"
plain_code "$tmp/new/app" >"$tmp/new.code"
same=$(diff "$tmp/old.code" "$tmp/new.code" | grep -c '^<')
same=$(($(wc -l <"$tmp/old.code") - same))
ok "programs have instructions in common, and others" test "$same" -gt 10 -a "$same" -lt "$(wc -l <"$tmp/old.code")"
rows='[.ranges[].rows[] | select(.before)] | length, ([.[] | select(.after and (.is_changed | not))] | length)'
is "$(jq -r "$rows" "$tmp/out" | tr '\n' ' ')" "$(wc -l <"$tmp/old.code") $same " \
        "as many rows are equal as a diff of objdump's output has equal lines"
is "$(jq '[.ranges[].rows[] | select(.after)] | length' "$tmp/out")" "$(wc -l <"$tmp/new.code")" \
        "each instruction after is in one row"
for side in before after; do
        is "$(jq -c "[.ranges[].rows[].$side | select(.) | .address] | . == sort and length == (unique | length)" \
                "$tmp/out")" true "  in the order of addresses $side"
done
costs='[.ranges[].rows[] | select(.cumulative) | [.flat, .flat_after]] | sort'
is "$(jq -c "$costs" "$tmp/out")" "[[0,5],[0,44],[10,11],[20,0],[30,31],[40,0],[50,51]]" \
        "each instruction has its cost before and after"
is "$(jq -r '.ranges[].rows[] | select(.flat == 20) | [.before.mnemonic, .after] | @json' "$tmp/out")" '["mov",null]' \
        "the cost of code that was removed stays with it"
compare >"$tmp/text"
like "$(cat "$tmp/text")" '! xor +eax, edx  \(before: xor +eax, dword ptr \[rbp - 4\]\)$' \
        "text has a changed instruction as it was"
like "$(cat "$tmp/text")" '10.0 ns +11.0 ns +\+1.00 ns .* pp +[0-9a-f]+ +[0-9a-f]+ +mov ' \
        "text has costs before and after"
compare --csv >"$tmp/csv"
is "$(cut -d, -f2 "$tmp/csv" | grep -E '^(added|changed|removed)$' | sort -u | tr '\n' ' ')" \
        "added changed removed " "CSV says what happened to each"
is "$(compare --json --syntax att | jq -r '[.syntax, .ranges[].rows[0].after.operands] | @json')" '["att","%rbp"]' \
        "AT&T syntax is aligned, too"

# The same build on both sides: all in one row each, nothing changed.
"$cairn" diff --server "$url" --disassembly --function work --base '{version="new"}' --json '{version="new"}' \
        >"$tmp/out"
moved='[.ranges[].rows[] | select((.before.address == .after.address and (.is_changed | not)) | not)] | length'
is "$(jq -c "$moved" "$tmp/out")" 0 "one build is aligned with itself"

ask() { curl -sS -G "$url/api/v1/query/disassembly" --data-urlencode 'selector={version="new"}' "$@" | jq -r .error; }
like "$(ask -d start=0x1000 -d end=0x2000 -d build_id="$(build_id_of "$tmp/new/app")" -d base_from=now-1h)" \
        "a range of addresses is not compared" "a range of addresses is not compared"
like "$(ask -d function=work -d base_build_id=abcd)" "base_build_id requires base_selector" \
        "an object before needs a selection before"
like "$("$cairn" diff --lines --disassembly --base-from now-1h 2>&1)" "exclude each other" \
        "lines and disassembly are not asked for together"
stop_server
done_testing
