#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cairn store snapshot, concurrently with a service that ingests samples, flushes and re-symbolizes: a service on the
# copy has every batch acknowledged before, each exactly once, with symbols and objects.
. tests/e2e/lib.sh
for tool in curl jq xz python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

id=00000000000000000000000000000000000042ab
sum() { "$cairn" top --from 2020-01-01T00:00:00Z --to now+1d --json "$@" | jq 'map(.flat) | add // 0'; }
snapshot() { "$cairn" store snapshot "$@" >"$tmp/out" 2>&1; }
inode() { stat -c %i "$1"; }

# ---- a queue that was not flushed, an index and objects ----
tar -C "$tmp" -xf tests/corpus/data_directory/0.1.0-queue.tar.xz || bail_out "the data directory does not unpack"
start_server --flush-interval 3600
printf 'main;work 100\n' >"$tmp/folded"
request -H 'X-Cairn-Batch: 00000000000000000000000000000099' --data-binary "@$tmp/folded" \
        "$url/ingest?name=more&format=folded"
is "$code" 200 "a batch is in the queue"
chmod 750 "$data"
ok "a snapshot with the service running" snapshot "$tmp/copy" --data "$data"
like "$(cat "$tmp/out")" "^$tmp/copy: 5 samples in [0-9]+ files?; [0-9]+ files? linked, [0-9]+ copied" \
        "  says what it did"
part=$(cd "$data" && find profiles/tables/samples -name '*.parquet' | head -1)
is "$(inode "$tmp/copy/$part")" "$(inode "$data/$part")" "  files of the tables are hard links"
segment=$(cd "$data" && find profiles/queue -name '*.queue' | sort | tail -1)
unlike "$(inode "$tmp/copy/$segment")" "^$(inode "$data/$segment")\$" "  the queue is copied"
is "$(stat -c %a "$tmp/copy")" 750 "  the copy has the permissions of the original"
ok "  no other files are left" test ! -e "$tmp/copy.incomplete"
snapshot "$tmp/copy" --data "$data"
is $? 1 "a second one of the same name fails"
like "$(cat "$tmp/out")" "'$tmp/copy' exists" "  the message says that the copy exists"
mkdir "$tmp/other.incomplete"
snapshot "$tmp/other" --data "$data"
is $? 1 "a snapshot beside an interrupted one fails"
like "$(cat "$tmp/out")" "'$tmp/other.incomplete' is left from an interrupted snapshot" "  naming what is to be removed"
snapshot "$tmp/none" --data "$tmp/nothing"
is $? 1 "a directory without tables fails"
ok "  and leaves nothing" test ! -e "$tmp/none" -a ! -e "$tmp/none.incomplete"
cpu=$(sum --type process_cpu:cpu:nanoseconds:cpu:nanoseconds --server "$url")
request --data-binary "@$tmp/folded" "$url/ingest?name=later&format=folded"
stop_server

original=$data
data=$tmp/copy
ok "the copy's tables have no problem" "$cairn" store verify --data "$data"
start_server --flush-interval 3600
is "$(sum --type process_cpu:cpu:nanoseconds:cpu:nanoseconds --server "$url")" "$cpu" "the copy has the same sums"
is "$(sum --server "$url" --type samples:samples:count:: '{service_name="more"}')" 100 "  queued batches too"
is "$(sum --server "$url" --type samples:samples:count:: '{service_name="later"}')" 0 "  no later samples"
like "$("$cairn" top --server "$url" --from 2020-01-01T00:00:00Z --type process_cpu:cpu:nanoseconds:cpu:nanoseconds)" \
        'inlined_part .*program.c' "  the samples of the copy have names and files"
curl -sS -o "$tmp/program" "$url/buildid/$id/debuginfo"
is "$(build_id_of "$tmp/program")" $id "  the stored object"
body=$("$cairn" symbolize --server "$url" --build-id $id "$(nm "$tmp/program" | awk '$3 == "other_part" { print $1 }')")
like "$body" '^other_part' "  the copy has the index of symbols"
request -H 'X-Cairn-Batch: 00000000000000000000000000000099' --data-binary "@$tmp/folded" \
        "$url/ingest?name=more&format=folded"
is "$(metric cairn_ingest_duplicate_batches_total)" 1 "  the copy has the ids of batches"
stop_server
is "$("$cairn" store status --json --data "$original" | jq -c '[.sample_rows, .queued_batches]')" '[9,0]' \
        "the original is unchanged"

# ---- while batches are ingested and flushed ----
data=$tmp/busy
start_server --flush-interval 1
python3 tests/e2e/store/store-snapshot.py "$url" 1 1000000 "$tmp/acked" "$tmp/stop" 2>"$tmp/sender.err" &
sender=$!
for i in 1 2; do
        wait_metric cairn_flushes_total $((i * 2))
        before=$(cat "$tmp/acked")
        ok "snapshot $i while samples come" snapshot "$tmp/busy-$i" --data "$data"
        echo "$before $(($(cat "$tmp/acked") + 1))" >"$tmp/range-$i"
done
: >"$tmp/stop"
wait $sender
is $? 0 "every batch was taken"
stop_server
for i in 1 2; do
        read -r before after <"$tmp/range-$i"
        data=$tmp/busy-$i
        ok "the tables of copy $i have no problem" "$cairn" store verify --data "$data"
        start_server --flush-interval 3600
        got=$(sum --server "$url")
        ok "  it has what was acknowledged before ($before <= $got <= $after)" \
                test "$before" -le "$got" -a "$got" -le "$after"
        python3 tests/e2e/store/store-snapshot.py "$url" $((before > 200 ? before - 200 : 1)) "$after" "$tmp/again"
        is "$(sum --server "$url")" "$after" "  batches of that time, sent again, count once"
        stop_server
done
done_testing
