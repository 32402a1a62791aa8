#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cairn store with s3://BUCKET/PREFIX in place of a data directory: no service, no directory of one.
. tests/e2e/lib.sh
for tool in jq python3 curl gcc objcopy; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh
. tests/e2e/object-store.sh
address=s3://cairn-test/fleet
TMPDIR=$tmp/temporary
mkdir "$TMPDIR"
export TMPDIR
sum_of() { "$cairn" top --from now-3d --type process_cpu:cpu "$@" --json 2>"$tmp/top.log" | jq '[.[].flat] | add'; }
hour=$(($(date +%s) / 3600 * 3600))
# import_stacks VALUE HOURS: samples of two stacks, acknowledged and in the tables; equal hours are one time.
flushed() { [ "$(metric cairn_queue_batches)" -eq 0 ]; }
import_stacks() {
        printf 'main;work %d\nmain;wait 1\n' "$1" >"$tmp/in.folded"
        "$cairn" import --server "$url" --time $((hour - $2 * 3600)) \
                --type process_cpu:cpu:nanoseconds:: "$tmp/in.folded" \
                >"$tmp/import.log" 2>&1
        wait_for "the flush" flushed
}
store() { verb=$1; shift; "$cairn" store "$verb" --data "$address" "$@"; }

printf 'int main(int argc, char **argv) { (void)argv; return argc; }\n' >"$tmp/program.c"
gcc -g -Wl,--build-id=0xabcdef0123456789 -o "$tmp/program" "$tmp/program.c"
start_server --store "$address" --flush-interval 1
for value in 10 20 30; do import_stacks $value 1; done
import_stacks 1000 49
put_object debuginfo "$tmp/program"
is "$code" 201 "debuginfo is stored"
table_is_stored() { keys | grep -q '^fleet/symbols/'; }
wait_for "the symbol table" table_is_stored
stop_server
rm -rf "$data"

# ---- reading ----

is "$(store status --json | jq -c '[.sample_rows, .sample_files, .queued_batches]')" '[8,4,0]' \
        "cairn store status counts what is in the store"
is "$(store files --table samples --json | jq -r '.[].path' | grep -c "^$address/tables/samples/.*parquet\$")" 4 \
        "cairn store files lists its files"
ok "cairn store verify finds no problem" store verify
like "$(store verify --json)" '"problem_count":0,"files":9,' "it reads the table of objects, too"
store export --output "$tmp/all.csv" --format csv --from now-3d >"$tmp/export.log" 2>&1
is "$(grep -c 'main;work' "$tmp/all.csv")" 2 "cairn store export reads the tables"
store quarantine >"$tmp/refused" 2>&1
is $? 64 "cairn store quarantine is refused"
like "$(cat "$tmp/refused")" "on the disk of the service: give --data DIR" "the refusal says where it is"
"$cairn" store status --data s3://cairn-test/other >"$tmp/refused" 2>&1
is $? 1 "a prefix without tables is refused"
like "$(cat "$tmp/refused")" "'s3://cairn-test/other' has no tables: give the address" "the refusal says what to give"

# ---- a snapshot ----

ok "cairn store snapshot copies it to a directory" store snapshot "$tmp/snapshot"
is "$(sum_of --data "$tmp/snapshot")" 1064 "the snapshot has all samples"
"$cairn" debuginfo get abcdef0123456789 --data "$tmp/snapshot" --output "$tmp/got" >"$tmp/get.log" 2>&1
ok "the snapshot has the debuginfo" cmp "$tmp/got" "$tmp/program"

# ---- changing ----

stall_files
store compact >"$tmp/compact.log" 2>&1 &
compact_pid=$!
wait_for "the merge to ask for all of its files at once" stalled_at_least 3 paths
resume_store
wait $compact_pid
is $? 0 "cairn store compact succeeds"
like "$(cat "$tmp/compact.log")" '3 files became 1|4 files became 2' "it merges files of the store"
is "$(store status --json | jq .sample_rows)" 8 "no row is lost"
like "$(store expire --dry-run --retain-samples age=1d)" 'would remove 2 files' \
        "cairn store expire --dry-run says what would be removed"
ok "cairn store expire removes it" store expire --retain-samples age=1d
is "$(store status --json | jq .sample_rows)" 6 "the old samples are gone"
ok "cairn store verify finds no problem afterwards" store verify
is "$(ls "$TMPDIR")" '' "no command leaves a temporary directory"

# ---- damage ----

object=$(keys | grep '^fleet/objects/')
change DELETE "$object"
store verify >"$tmp/verify" 2>"$tmp/verify.err"
is $? 2 "a missing object is a problem"
like "$(cat "$tmp/verify")" "^object store/objects/ab/cdef.*: the object does not exist, but has a row" \
        "cairn store verify names it"
like "$(cat "$tmp/verify.err")" "'$address' has problems" "the message names the store"
change PUT "$object" -d short
like "$(store verify 2>&1)" 'it has [0-9] bytes, its row says [0-9]+' "an object of another size is a problem"
file=$(keys | grep '^fleet/tables/objects/part-' | tail -1)
change PUT "$file" -d damaged
like "$(store verify 2>&1)" "^object store/tables/objects/part-.*parquet: " "a damaged file of the table is a problem"
done_testing
