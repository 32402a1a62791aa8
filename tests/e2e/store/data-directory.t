#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A command with a mistyped --data fails, reports the directory, and creates nothing in it.
. tests/e2e/lib.sh

id=00112233445566778899
printf '%s\n' "store status" "store files" "store verify" "store verify --json" "store snapshot $tmp/snapshot" \
        "store export --format csv" "store compact" "store expire --retain-samples age=1d" \
        "store expire --dry-run --retain-samples age=1d" "store quarantine" "store quarantine retry all" \
        "store quarantine remove all" "store quarantine export all --output $tmp/exported" "debuginfo list" \
        "debuginfo missing" "debuginfo show $id" "debuginfo get $id" "debuginfo rm $id" "debuginfo pin $id" \
        "debuginfo unpin $id" "debuginfo gc --retain age=1d" "debuginfo verify" "index stat $id" "index dump $id" \
        "index verify" "query --types" "top" "flame" "resymbolize" "resymbolize --dry-run" "why $id 0x10" \
        "serve --read-only --listen 127.0.0.1:0" >"$tmp/commands"
for kind in absent empty; do
        while read -r line; do
                rm -rf "$tmp/typo"
                [ $kind = absent ] || mkdir "$tmp/typo"
                # Words of a line are arguments.
                # shellcheck disable=SC2086
                "$cairn" $line --data "$tmp/typo" >"$tmp/out" 2>"$tmp/err" </dev/null
                is $? 1 "${line%% /*}, $kind directory: fails"
                like "$(cat "$tmp/err")" "'$tmp/typo[/']" "  naming the directory"
                is "$(find "$tmp/typo" -mindepth 1 2>/dev/null)" '' "  nothing is created in the directory"
        done <"$tmp/commands"
done
ok "nor elsewhere" test ! -e "$tmp/snapshot" -a ! -e "$tmp/snapshot.incomplete" -a ! -e "$tmp/exported"
done_testing
