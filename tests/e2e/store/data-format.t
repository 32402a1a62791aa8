#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A data directory of a newer version, or from before the first release, is refused by every command before anything
# in it changes, with a remedy. The format file is created in a new directory, and is part of a snapshot.
. tests/e2e/lib.sh
for tool in curl xz; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

id=00000000000000000000000000000000000042ab
version=$("$cairn" --version | awk '{ print $2 }')
# Names, sizes, times and content of all files in the directory.
picture() \
        { (cd "$data" && find . -printf '%p %y %m %s %T@ %C@\n' | sort && find . -type f -exec sha256sum {} + | sort); }
unpack() {
        rm -rf "$data"
        tar -C "$tmp" -xf "tests/corpus/$1.tar.xz" || bail_out "$1 does not unpack"
}

# ---- newer, or damaged ----
printf '%s\n' "store status" "store files" "store verify" "store snapshot $tmp/snapshot" "store export --format csv" \
        "store compact" "store expire --retain-samples age=1d" "store quarantine" "store quarantine retry all" \
        "debuginfo list" "debuginfo missing" "debuginfo show $id" "debuginfo rm $id" "debuginfo pin $id" \
        "debuginfo gc --retain age=1d" "debuginfo verify" "index stat $id" "index verify" "index $cairn" \
        "query --types" "top" \
        "flame" "resymbolize" "why $id 0x10" "serve --read-only --listen 127.0.0.1:0" "serve --listen 127.0.0.1:0" \
        >"$tmp/commands"
# check_commands PATTERN WHAT: all commands refuse the directory, and change nothing in it.
check_commands() {
        picture >"$tmp/before"
        while read -r line; do
                # Words of a line are arguments.
                # shellcheck disable=SC2086
                timeout 60 "$cairn" $line --data "$data" >"$tmp/out" 2>"$tmp/err" </dev/null
                code=$?
                like "$code $(cat "$tmp/err")" "^[12] .*$1" "'${line%% /*}' refuses $2"
                picture >"$tmp/after"
                ok "  and changes nothing" cmp "$tmp/before" "$tmp/after"
        done <"$tmp/commands"
        ok "  no snapshot was started" test ! -e "$tmp/snapshot" -a ! -e "$tmp/snapshot.incomplete"
}
# check_refused CONTENT PATTERN: with this content of the format file.
check_refused() {
        printf '%s\n' "$1" >"$data/format"
        check_commands "$2" "'$1'"
}
unpack data_directory/0.1.0-queue
check_refused 'data-format 2 cairn 99.1.0' \
        "'$data/format' has format 2, of cairn 99\.1\.0; cairn $version reads up to 1: run that version"

# ---- from before the first release ----
unreleased="'$data' is from before cairn 0\.1\.0, and no release reads it: start with an empty directory"
for commit in 42ab7d3 c3c2a302; do
        unpack "unreleased_directory/$commit-data"
        check_commands "$unreleased" "a directory of $commit"
done
"$cairn" doctor --data "$data" >"$tmp/out" 2>&1
like "$(cat "$tmp/out")" "$unreleased" "'doctor' reports it"
picture >"$tmp/after"
ok "  and changes nothing" cmp "$tmp/before" "$tmp/after"

# ---- damaged ----
unpack data_directory/0.1.0-queue
printf '%s\n' "serve --listen 127.0.0.1:0" "store status" >"$tmp/commands"
for content in '' 'data-format' 'data-format 0 cairn 1' 'data-format 1' 'data-format 99999999999999999999999 cairn 1' \
        'data-format -1 cairn 1' 'format 2 cairn 1'; do
        check_refused "$content" "'$data/format' is not the format of a data directory"
done

# ---- missing ----
rm "$data/format"
check_commands "$unreleased" "a directory without the file"
for database in index debuginfo/meta; do
        rm -rf "$data"
        mkdir -p "$data/$database"
        : >"$data/$database/data.mdb"
        check_commands "$unreleased" "a directory with $database alone"
done
printf 'data-format 1 cairn %s\n' "$version" >"$tmp/expected"
for way in index serve; do
        rm -rf "$data"
        case $way in
        index) ok "'cairn index' creates a directory" "$cairn" index --data "$data" "$cairn" ;;
        serve)
                start_server
                stop_server
                ;;
        esac
        ok "$way: a new directory has the file" cmp "$tmp/expected" "$data/format"
done
touch -d @1000000000 "$data/format"
start_server
stop_server
is "$(stat -c %Y "$data/format")" 1000000000 "  the file format is written once"
ok "a snapshot is made" "$cairn" store snapshot "$tmp/snapshot" --data "$data"
ok "  and has it" cmp "$data/format" "$tmp/snapshot/format"
done_testing
