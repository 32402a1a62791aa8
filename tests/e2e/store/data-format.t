#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A data directory of a newer version is refused by every command before anything in it changes, with a remedy; the format
# file is created if missing, and is part of a snapshot.
. tests/e2e/lib.sh
for tool in curl xz; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

id=00000000000000000000000000000000000042ab
version=$("$cairn" --version | awk '{ print $2 }')
# Names, sizes, times and content of all files in the directory.
picture() \
        { (cd "$data" && find . -printf '%p %y %m %s %T@ %C@\n' | sort && find . -type f -exec sha256sum {} + | sort); }
unpack() {
        rm -rf "$data"
        tar -C "$tmp" -xf tests/corpus/data_directory/42ab7d3-queue.tar.xz || bail_out "the directory does not unpack"
}

# ---- newer, or damaged ----
printf '%s\n' "store status" "store files" "store verify" "store snapshot $tmp/snapshot" "store export --format csv" \
        "store compact" "store expire --retain-samples age=1d" "store quarantine" "store quarantine retry all" \
        "debuginfo list" "debuginfo missing" "debuginfo show $id" "debuginfo rm $id" "debuginfo pin $id" \
        "debuginfo gc --retain age=1d" "debuginfo verify" "index stat $id" "index verify" "index $cairn" "query --types" "top" \
        "flame" "resymbolize" "why $id 0x10" "serve --read-only --listen 127.0.0.1:0" "serve --listen 127.0.0.1:0" \
        >"$tmp/commands"
unpack
# check_refused CONTENT PATTERN: by all commands, and nothing changes.
check_refused() {
        printf '%s\n' "$1" >"$data/format"
        picture >"$tmp/before"
        while read -r line; do
                # Words of a line are arguments.
                # shellcheck disable=SC2086
                timeout 60 "$cairn" $line --data "$data" >"$tmp/out" 2>"$tmp/err" </dev/null
                code=$?
                like "$code $(cat "$tmp/err")" "^[12] .*$2" "'${line%% /*}' refuses '$1'"
                picture >"$tmp/after"
                ok "  and changes nothing" cmp "$tmp/before" "$tmp/after"
        done <"$tmp/commands"
        ok "  no snapshot was started" test ! -e "$tmp/snapshot" -a ! -e "$tmp/snapshot.incomplete"
}
check_refused 'format 2 cairn 99.1.0' \
        "'$data/format' has format 2, of cairn 99\.1\.0; cairn $version reads up to 1: run that version"
printf '%s\n' "serve --listen 127.0.0.1:0" "store status" >"$tmp/commands"
for content in '' 'format' 'format 0 cairn 1' 'format 1' 'format 99999999999999999999999 cairn 1' \
        'format -1 cairn 1'; do
        check_refused "$content" "'$data/format' is not the format of a data directory"
done

# ---- missing ----
unpack
ok "a directory from before the file is read" "$cairn" store status --data "$data"
ok "  which does not create it" test ! -e "$data/format"
start_server
stop_server
is "$(cat "$data/format")" "format 1 cairn $version" "the service creates it"
touch -d @1000000000 "$data/format"
start_server
stop_server
is "$(stat -c %Y "$data/format")" 1000000000 "  once"
ok "a snapshot is made" "$cairn" store snapshot "$tmp/snapshot" --data "$data"
ok "  and has it" cmp "$data/format" "$tmp/snapshot/format"
rm -rf "$data"
start_server
stop_server
is "$(cat "$data/format")" "format 1 cairn $version" "a new directory has it"
done_testing
