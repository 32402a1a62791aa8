#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# kill -9 while debuginfo is received, stored, indexed and used for re-symbolization, with samples arriving: nothing
# acknowledged is lost or duplicated. (server-crash.t does the same for samples.)
. tests/e2e/lib.sh

# Objects for which each phase takes a moment: this project's own program, under various build-ids.
rounds=10
base=$CAIRN_BUILD/cairn
base_id=$(build_id_of "$base")
id_of_round() { printf '%038d%02x\n' 0 "$1" | sed 's/^00/ca/'; }
object() {
        python3 - "$base" "$base_id" "$(id_of_round "$1")" "$tmp/object.$1" <<'END'
import sys
base, old, new, to = sys.argv[1:]
content = open(base, "rb").read()
assert content.count(bytes.fromhex(old)) == 1
open(to, "wb").write(content.replace(bytes.fromhex(old), bytes.fromhex(new)))
END
}
[ ${#base_id} -eq 40 ] || skip_all "$base has no build-id of 20 bytes"
address() { nm "$base" | awk -v name="$1" '$3 == name { print $1 }'; }
stack=$(address command_serve),$(address main)

# sample ROUND BATCH: one sample of value 7, sent until it is acknowledged, always as the same batch.
sample() {
        python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" "build_id=$(id_of_round "$1")" "service=round$1" values=7 \
                mapping_file=cairn "addresses=$stack"
        request -H 'Content-Type: application/x-protobuf' -H "X-Cairn-Batch: $(printf '%032x' $(($1 * 100 + $2)))" \
                --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
        [ "$code" = 200 ]
}
upload() { timeout 60 "$CAIRN_BUILD/cairn-upload" --server "$url" "$@" >>"$tmp/upload.log" 2>&1; }

# slow_upload FILE: so slow that it does not finish during the test.
slow_upload() {
        curl -sS --limit-rate 50k -o /dev/null -T "$1" -H "X-Cairn-Size: $(stat -c %s "$1")" \
                -H "X-Cairn-SHA256: $(sha256sum "$1" | cut -d' ' -f1)" \
                "$url/api/v1/debuginfo/$(id_of_round "$round")/debuginfo" 2>/dev/null
}

# Conditions to wait for before a kill. The work takes a fraction of a second, so a phase may already be over.
incoming() { find "/proc/$server_pid/fd" -lname "*/debuginfo/incoming/*" | grep -q .; }
stored() { find "$data/debuginfo/objects" -path "*$(id_of_round "$round" | cut -c3-)/debuginfo-*" | grep -q .; }
queued() { grep -q "$(id_of_round "$round")" "$data/resymbolize-queue"; }
expected() { queued || indexed; }
indexed() { "$cairn" index stat --data "$data" "$(id_of_round "$round")"; }
resymbolized() { indexed && ! queued; }

start_server --flush-interval 1
round=0
killed=
while [ $round -lt $rounds ]; do
        round=$((round + 1))
        object $round
        wait_for "samples of round $round" sample $round 1
        case $((round % 5)) in
        1) phase=incoming send=slow_upload ;;
        2) phase=stored send=upload ;;
        3) phase=expected send=upload ;;
        4) phase=indexed send=upload ;;
        0) phase=resymbolized send=upload ;;
        esac
        $send "$tmp/object.$round" &
        uploader=$!
        wait_for "$phase in round $round" $phase
        sample $round 2
        kill_server
        killed="$killed $phase"
        wait $uploader
        start_server --flush-interval 1
        # Batches acknowledged before are not counted again; others are counted now.
        wait_for "samples of round $round" sample $round 2
        wait_for "the upload of round $round" upload "$tmp/object.$round"
done
pass "the service was killed $round times:$killed"

# all_named: every sample of every round has its names, exactly once.
all_named() {
        for n in $(seq $rounds); do
                [ "$("$cairn" top --server "$url" --json "{service_name=\"round$n\"}" |
                        jq -c '[.[] | select(.cumulative > 0) | [.function, (.file // "" | split("/") | last),
                                .flat, .cumulative]]')" = \
                        '[["command_serve","serve_command.c",14,14],["main","main.c",0,14]]' ] || return 1
        done
}
wait_for "everything to be indexed" metric_equals cairn_index_queue 0
wait_for "the past to be re-symbolized" all_named
pass "every sample of all rounds is there once, with function and file"
all_there() {
        for n in $(seq $rounds); do
                request "$url/buildid/$(id_of_round "$n")/debuginfo"
                [ "$code" = 200 ] && [ "$(build_id_of "$tmp/body")" = "$(id_of_round "$n")" ] || return 1
        done
}
ok "every object is stored completely" all_there
# A flush may have found the names before.
wait_for "the re-symbolization queue to be empty" test ! -s "$data/resymbolize-queue"
stop_server
is "$(find "$data/debuginfo/incoming" "$data/tmp" -type f | wc -l)" 0 "interrupted work has left no files"
is "$(find "$data/debuginfo/objects" -type f | wc -l)" $rounds "no object has a second copy"
is "$(cat "$data/resymbolize-queue")" "" "no re-symbolization is pending"
start_server --flush-interval 3600
ok "everything is unchanged after a restart" all_named
becomes $((rounds * 2)) "with two samples a round" metric 'cairn_table_rows{table="samples"}'
is "$(metric cairn_unresolved_locations)" 0 "no location is without symbols"
done_testing
