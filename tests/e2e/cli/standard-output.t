#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# If standard output cannot be written, every command reports it and fails.
. tests/e2e/lib.sh
for tool in jq xz; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
[ -w /dev/full ] || skip_all "there is no /dev/full"

tar -C "$tmp" -xf tests/corpus/data_directory/0.1.0-resymbolized.tar.xz || bail_out "the data directory does not unpack"
id=$("$cairn" debuginfo list --json --data "$data" | jq -r '.. | .build_id? // empty' | head -1)
program=$data/program
"$cairn" debuginfo get "$id" --output "$program" --data "$data" || bail_out "there is no object"
printf 'main;work 100\n' >"$tmp/folded"

# full PROGRAM ARGUMENT...: its output cannot be written.
full() {
        "$@" >/dev/full 2>"$tmp/err"
        full_code=$?
        full_name="${1##*/} $2 ${3:-}"
        is "$full_code" 1 "$full_name: fails when standard output is full"
        like "$(cat "$tmp/err")" "^${1##*/}.*(cannot write '?standard output|cannot write to standard output)" \
                "  the message says that standard output cannot be written"
        "$@" >"$tmp/out" 2>&1
        unlike "$(cat "$tmp/out")" 'cannot write' "  nothing is said when standard output can be written"
}
full "$cairn" --help
full "$cairn" --version
full "$cairn" import --help
full "$cairn" store status --data "$data"
full "$cairn" store status --json --data "$data"
full "$cairn" store files --data "$data"
full "$cairn" store verify --data "$data"
full "$cairn" store export --format csv --data "$data"
full "$cairn" store quarantine list --json --data "$data"
full "$cairn" store expire --dry-run --retain-samples age=1d --data "$data"
full "$cairn" debuginfo list --data "$data"
full "$cairn" debuginfo show "$id" --data "$data"
full "$cairn" debuginfo get "$id" --output - --data "$data"
full "$cairn" debuginfo gc --dry-run --retain age=1d --data "$data"
full "$cairn" index stat --data "$data" "$id"
full "$cairn" why "$program" 0x1139
full "$cairn" symbolize -e "$program" 0x1139
full "$cairn" query --types --from 0 --data "$data"
full "$cairn" top --from 0 --data "$data"
full "$cairn" flame --format folded --from 0 --data "$data"
full "$cairn" resymbolize --dry-run --data "$data"
full "$cairn" import --format folded --dry-run "$tmp/folded"
full "$cairn-upload" --help
full "$cairn-upload" --version
full "$cairn-agent" --help
full "$cairn-agent" unwind-table "$program"

# A closed standard descriptor is not reused for a file of the data directory.
"$cairn" store status --data "$data" >&- 2>"$tmp/err"
is $? 1 "a closed standard output fails too"
"$cairn" store quarantine remove all --data "$data" >&- 2>"$tmp/err"
is $? 1 "  a command that writes to the store fails too"
like "$(cat "$tmp/err")" 'cannot write standard output: Bad file descriptor' \
        "  the message says why it cannot be written"
ok "  the store is undamaged" "$cairn" store verify --data "$data"
done_testing
