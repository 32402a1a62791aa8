#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Data directories of each release and of this version (tests/corpus/make-data-directories.sh): sums, names and objects
# are readable, further samples can be ingested, and everything persists across a restart.
. tests/e2e/lib.sh
for tool in curl jq xz python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

id=00000000000000000000000000000000000042ab
t0=1790000000
range="--from 2026-09-20T00:00:00Z --to 2026-09-25T00:00:00Z"
unpack() {
        data=$tmp/$1/data
        mkdir -p "$tmp/$1"
        tar -C "$tmp/$1" -xf "tests/corpus/data_directory/$1.tar.xz" || bail_out "$1 does not unpack"
}
# top OPTION... SELECTOR: lines of function, file and flat value.
top() {
        # The times consist of several words.
        # shellcheck disable=SC2086
        "$cairn" top $range "$@" --json | jq \
                -r '.[] | select(.flat > 0) | "\(.function) \(.file | sub(".*/"; "")) \(.flat)"' | sort | paste -sd ' '
}
status() { "$cairn" store status --data "$data" --json | jq -c "$1"; }
# more VALUE: a sample at an address of the stored program, a second after the others.
more() {
        python3 tests/e2e/profiles.py otlp "$tmp/more" build_id=$id mapping_file=/opt/program service=api "values=$1" \
                "addresses=$outer" "at_ns=$((t0 + 1))000000000"
        request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/more" "$url/v1development/profiles"
        is "$code" 200 "more samples are taken"
}
# The program's own address of outer_part, from the stored object.
find_address() {
        curl -sS -o "$tmp/program" "$url/buildid/$id/debuginfo"
        outer=$(nm "$tmp/program" | awk '$3 == "outer_part" { print $1 }')
        is "$(build_id_of "$tmp/program")" $id "the stored object is served"
}

# A queue that was never flushed.
check_queue() {
        unpack "$1-queue"
        cpu='inlined_part program.c 35 other_part program.c 5'
        is "$(status '[.sample_rows, .stack_rows, .location_rows, .queued_batches, .unresolved_locations]')" \
                '[5,5,7,2,0]' \
                "$1, queue: status before anything writes"
        is "$(top --data "$data" --type process_cpu:cpu:nanoseconds:cpu:nanoseconds)" "$cpu" \
                "  sums and names, from tables and queue"
        is "$(top --data "$data" --type samples:samples:count::)" 'idle  3 leaf  13 work  19' \
                "  folded stacks have their sums"
        is "$(top --data "$data" '{region="us"}')" 'work  19' "  samples are selected by labels"
        is "$("$cairn" debuginfo list --data "$data" --json 2>"$tmp/err" | jq -r '.objects[].build_id')" "$id" \
                "  the list of objects"
        start_server --flush-interval 3600
        is "$(top --server "$url" --type process_cpu:cpu:nanoseconds:cpu:nanoseconds)" "$cpu" \
                "  the same from the service"
        find_address
        more 100
        stop_server
        cpu='inlined_part program.c 135 other_part program.c 5'
        is "$(status '[.sample_rows, .queued_batches, .unresolved_locations]')" '[8,0,0]' \
                "  everything is in the tables"
        start_server --flush-interval 3600
        is "$(top --server "$url" --type process_cpu:cpu:nanoseconds:cpu:nanoseconds)" "$cpu" \
                "  sums and names after a restart"
        is "$(top --server "$url" '{region="us"}')" 'work  19' "  samples are selected by labels after a restart"
        stop_server
}

# A checkpoint, and locations that were rewritten.
check_resymbolized() {
        unpack "$1-resymbolized"
        ok "$1, re-symbolized: the log has a checkpoint" \
                test -e "$data/profiles/tables/samples/_delta_log/00000000000000000100.checkpoint.parquet"
        cpu='inlined_part program.c 156 other_part program.c 104'
        is "$(status '[.sample_rows, .queued_batches, .unresolved_locations]')" '[104,0,0]' \
                "  the status has all samples, without queue"
        is "$(top --data "$data")" "$cpu" "  sums and names"
        is "$(top --data "$data" '{service_name="web"}')" 'inlined_part program.c 156' \
                "  the sums of a label have names"
        start_server --flush-interval 3600
        is "$(top --server "$url")" "$cpu" "  the same from the service"
        find_address
        more 1000
        ok "  cairn resymbolize runs over them" "$cairn" resymbolize --server "$url"
        stop_server
        cpu='inlined_part program.c 1156 other_part program.c 104'
        start_server --flush-interval 3600
        is "$(top --server "$url")" "$cpu" "  sums and names after a restart"
        stop_server
        is "$(status '[.sample_rows, .queued_batches, .unresolved_locations]')" '[105,0,0]' \
                "  everything is in the tables"
        like "$("$cairn" store compact --data "$data")" ' 0 files skipped$' "  old and new files are merged"
        is "$(status '[.sample_rows, .sample_files, .stack_files, .location_files, .unresolved_locations]')" \
                '[105,2,2,1,0]' "  into one file for each table and day"
        is "$(top --data "$data")" "$cpu" "  the merged files have the same sums and names"
}

# The same directory with the format of a later release.
check_later() {
        unpack "$1-queue"
        sed -i 's/^data-format [0-9]* cairn .*/data-format 77 cairn 99.1.0/' "$data/format"
        sums=$(cd "$data" && find . -type f -exec sha256sum {} + | sort)
        "$cairn" serve --data "$data" --listen 127.0.0.1:0 2>"$tmp/err"
        is $? 2 "$1, of a later format: the service refuses it"
        like "$(cat "$tmp/err")" 'has format 77, of cairn 99\.1\.0; cairn .* reads up to 1: run that version' \
                "  the message names the version to run"
        is "$(cd "$data" && find . -type f -exec sha256sum {} + | sort)" "$sums" "  the refused directory is unchanged"
}

# Every version with stored directories.
checked=0
for archive in tests/corpus/data_directory/*-queue.tar.xz; do
        archive=${archive##*/}
        check_queue "${archive%-queue.tar.xz}"
        check_resymbolized "${archive%-queue.tar.xz}"
        check_later "${archive%-queue.tar.xz}"
        checked=$((checked + 1))
done
ok "$checked versions were opened" test "$checked" -ge 1
done_testing
