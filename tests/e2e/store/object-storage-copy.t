#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cairn store copy: a data directory becomes an object store, and the reverse, also after interruptions.
. tests/e2e/lib.sh
for tool in jq python3 curl gcc; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh
. tests/e2e/object-store.sh
address=s3://cairn-test/fleet
TMPDIR=$tmp/temporary
mkdir "$TMPDIR"
export TMPDIR
sum_of() { "$cairn" top --from now-1d --type process_cpu:cpu "$@" --json 2>"$tmp/top.log" | jq '[.[].flat] | add'; }
rows_and_sum() { "$PYTHON" tests/e2e/store/object-store.py sum "$store_port"; }
listed() {
        curl -sS "$url/api/v1/debuginfo" |
                jq -c '[.objects[] | [.build_id, .kind, .quality, .name, .tag, .pinned]] | sort'
}
flushed() { [ "$(metric cairn_queue_batches)" -eq 0 ]; }
import_stacks() {
        printf 'main;work %d\n' "$1" >"$tmp/in.folded"
        "$cairn" import --server "$url" --time $(($(date +%s) - 3600)) \
                --type process_cpu:cpu:nanoseconds:: "$tmp/in.folded" \
                >"$tmp/import.log" 2>&1
}
printf 'int main(int argc, char **argv) { (void)argv; return argc; }\n' >"$tmp/program.c"
gcc -g -Wl,--build-id=0xabcdef0123456789 -o "$tmp/program" "$tmp/program.c"

# ---- from a directory ----

start_server --flush-interval 1
for value in 100 20 3; do
        import_stacks $value
        wait_for "the flush" flushed
done
put_object debuginfo "$tmp/program" -H 'X-Cairn-Tag: release'
ok "an object is pinned" "$cairn" debuginfo pin --server "$url" abcdef0123456789 --kind debuginfo
objects=$(listed)
stop_server
order writes/3 >"$tmp/order"
"$cairn" store copy "$data" "$address" >"$tmp/copy.log" 2>&1
is $? 1 "a copy fails when the store goes away"
like "$(cat "$tmp/copy.log")" "after [0-9]+ objects?, which a repetition finds: .*object store" \
        "it says what is left"
order back >"$tmp/order"
like "$("$cairn" store copy "$data" "$address" --json)" '"copied":[1-9][0-9]*,"copied_bytes":[0-9]+,"present":3' \
        "the repetition copies the rest"
like "$("$cairn" store copy "$data" "$address")" "^$address: 0 objects copied" "a second repetition copies nothing"
is "$(rows_and_sum)" "3 123" "deltalake reads the samples where they are"
ok "cairn store verify finds no problem in the copy" "$cairn" store verify --data "$address"
first_data=$data
data=$tmp/second start_server --store "$address" --flush-interval 1
is "$(sum_of --server "$url")" 123 "a service on the store has the samples"
is "$(listed)" "$objects" "it has the objects, with names, tags and pins"
request "$url/buildid/abcdef0123456789/debuginfo"
ok "it serves the debuginfo" cmp "$tmp/body" "$tmp/program"
import_stacks 4000
wait_for "the flush" flushed
stop_server

# ---- into a directory ----

ok "the store is copied to a directory" "$cairn" store copy "$address" "$tmp/third"
ok "cairn store verify finds no problem there" "$cairn" store verify --data "$tmp/third"
data=$tmp/third start_server --flush-interval 1
is "$(sum_of --server "$url")" 4123 "a service on the directory has the samples"
is "$(listed)" "$objects" "it has the objects, with names, tags and pins"
request "$url/buildid/abcdef0123456789/debuginfo"
ok "it serves the debuginfo" cmp "$tmp/body" "$tmp/program"
import_stacks 50000
wait_for "the flush" flushed
is "$(sum_of --server "$url")" 54123 "it takes more"
stop_server
ok "its files do not replace others" "$cairn" store verify --data "$tmp/third"

# ---- what is refused ----

"$cairn" store copy "$first_data" "$address" >"$tmp/refused" 2>&1
is $? 64 "a target that has gone on is refused"
like "$(cat "$tmp/refused")" "'$address/tables' has other tables: a copy needs an empty place" \
        "the refusal says what is needed"
data=$first_data start_server --flush-interval 3600
import_stacks 5
kill -9 "$server_pid"
wait "$server_pid" 2>/dev/null
server_pid=
"$cairn" store copy "$first_data" s3://cairn-test/other >"$tmp/refused" 2>&1
unlike $? '^0$' "a directory with queued samples is refused"
like "$(cat "$tmp/refused")" "has 1 batch in its queue" "the refusal says what is in the queue"
is "$(keys | grep -c '^other/')" 0 "nothing was copied"
is "$(ls "$TMPDIR")" '' "no temporary directory is left"
done_testing
