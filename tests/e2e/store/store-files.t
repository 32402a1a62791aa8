#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cairn store status and files: the files referred to by the logs, also as read by DuckDB.
. tests/e2e/lib.sh
for tool in jq xz python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh

tar -C "$tmp" -xf tests/corpus/data_directory/0.1.0-resymbolized.tar.xz || bail_out "the data directory does not unpack"
tables=$data/profiles/tables
store() { "$cairn" store "$@" --data "$data"; }

# ---- status ----
store status --json >"$tmp/status"
is "$(jq '.tables | [.samples, .stacks, .locations | .rows] == [104, 4, 3] and .samples.files > 1' "$tmp/status")" \
        true \
        "status has rows and files of each table"
is "$(jq '.tables.samples | [.oldest_unix_ns, .newest_unix_ns - 999000]' -c "$tmp/status")" \
        '[1790000600000000000,1790062400000000000]' "  the times of samples"
is "$(jq '.tables.locations.log_files' "$tmp/status")" "$(find "$tables/locations/_delta_log" -type f | wc -l)" \
        "  files of a log"
is "$(jq '.tables.samples.log_bytes' "$tmp/status")" \
        "$(($(find "$tables/samples/_delta_log" -type f -printf '%s\n' | paste -sd+)))" \
        "  the status has the bytes of a log"
is "$(jq '[.sample_files, .stack_files, .location_files] ==
        (.tables | [.samples.files, .stacks.files, .locations.files])' "$tmp/status")" \
        true "  the members of a table agree with the older ones"

# ---- files ----
store files --json >"$tmp/files"
is "$(jq -c 'group_by(.table) | map([.[0].table, length, (map(.rows) | add), (map(.bytes) | add)])' "$tmp/files")" \
        "$(jq -c '.tables | to_entries | sort_by(.key) | map(select(.value.files > 0)) |
                map([.key, .value.files, .value.rows, .value.bytes])' "$tmp/status")" \
        "files has the files of each table"
is "$(jq -r '.[] | "\(.bytes) \(.path)"' "$tmp/files" | sort)" \
        "$(jq -r '.[].path' "$tmp/files" | xargs stat -c '%s %n' | sort)" \
        "  each file has the path and size that it has on disk"
ok "  not those that were replaced" test \
        "$(find "$tables/locations" -name '*.parquet' | wc -l)" -gt "$(store files --table locations --json |
        jq length)"
is "$(jq '[.[] | select(.table == "samples")] | [(map(.oldest_unix_us) | min), (map(.newest_unix_us) | max - 999)]' \
        -c "$tmp/files")" \
        '[1790000600000000,1790062400000000]' "  the times of samples"
like "$(store files --table stacks | head -1)" \
        '^stacks +[0-9]+ rows +[0-9]+ bytes .*  date=2026-09-2[12]/part-.*\.parquet$' \
        "  files of a table are shown as text"
store files --table stack >"$tmp/out" 2>&1
is $? 64 "a table that does not exist is wrong usage"
like "$(cat "$tmp/out")" "'stack' is not one of samples, stacks, locations, function_history" "  the tables that exist are listed"
"$cairn" store files --data "$tmp/nothing" >"$tmp/out" 2>&1
is $? 1 "a directory that does not exist fails"
like "$(cat "$tmp/out")" "no store in '$tmp/nothing'" "  the missing directory is named"

# ---- DuckDB ----
store files --sql >"$tmp/files.sql"
"$PYTHON" tests/e2e/store/store-files.py "$tables" "$tmp/files.sql" 260 >"$tmp/out" 2>&1
is "$(sed -n 1p "$tmp/out")" 'files log' "duckdb.sql accepts a list of files, or reads the log"
is "$(sed -n 2p "$tmp/out")" equal "  both ways give equal sums and files"
is "$(sed -n 3p "$tmp/out")" bounded "  the log is read only from its checkpoint on"
done_testing
