#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Requests that a sender makes large in dimensions in which tables are limited: days, label keys, profiles. None of them
# may keep others out of the tables.
. tests/e2e/lib.sh

make_push() { python3 tests/e2e/ingest/ingest-limits.py "$tmp/push" "$@"; }
push() {
        curl -sS --max-time 60 -o "$tmp/answer" -w '%{http_code}' -H 'Content-Type: application/proto' \
                --data-binary @"$tmp/push" "$url/push.v1.PusherService/Push"
}
fold() {
        printf 'main;work 3\n' | curl -sS --max-time 60 -o "$tmp/answer" -w '%{http_code}' --data-binary @- \
                "$url/ingest?name=honest&format=folded&$1"
}
no_day() { ! find "$data/profiles/tables" -name "date=$1*" | grep -q .; }
rows_are() { [ "$(metric 'cairn_table_rows{table="samples"}')" = "$1" ]; }

start_server --max-age 30d --flush-interval 1

# ---- times ----
now=$(date +%s)
is "$(fold "from=$((now - 86400 * 29))")" 200 "29 days ago is accepted"
is "$(fold "from=$((now - 86400 * 31))")" 400 "31 days ago is not"
like "$(cat "$tmp/answer")" 'too long ago \(--max-age' "the refusal of an old sample names the option"
is "$(fold "from=$((now + 1200))")" 400 "in twenty minutes is not"
like "$(cat "$tmp/answer")" 'too far in the future .*check the clock of the sending host' \
        "the refusal of a future sample advises to check the clock"
is "$(fold "from=$((now + 300))")" 200 "in five minutes is accepted"
is "$(fold "from=7258118400")" 400 "a host in the year 2200 is not"
is "$(metric cairn_ingest_rejected_samples_total)" 3 "  all are counted"
is "$(metric 'cairn_ingest_rejections_total{reason="too_old"}')" 1 "rejections are counted by reason: too old"
is "$(metric 'cairn_ingest_rejections_total{reason="too_far_ahead"}')" 2 \
        "rejections are counted by reason: too far ahead"
python3 tests/e2e/profiles.py otlp "$tmp/skewed.otlp" service=skewed values=7 addresses=401000 at_ns=7258118400000000000
request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/skewed.otlp" "$url/v1development/profiles"
is "$code" 200 "OTLP samples of 2200 are a partial success"
like "$body" '1 sample rejected: the time 2200-01-01T00:00:00Z' "the partial success has count and time"
ok "  and make no partition" no_day 2200

# ---- many profiles in a push ----
batches=$(metric cairn_ingest_batches_total)
make_push 50 5 2 8
is "$(push)" 200 "fifty profiles of five days are accepted"
is "$(metric cairn_ingest_batches_total)" $((batches + 1)) "the pushed profiles are one batch"
wait_for "their rows" rows_are 52
make_push 400 400 2 8
is "$(push)" 200 "the last month of four hundred days is accepted"
rejected=$(metric cairn_ingest_rejected_samples_total)
ok "  the others are counted" test "$rejected" -ge 368
wait_for "their rows" rows_are $((52 + 404 - rejected))
days=$(find "$data/profiles/tables/samples" -name 'date=*' | wc -l)
ok "  there are no folders for days outside the window" test "$days" -le 32

# ---- label keys ----
make_push 10 1 120 4000
is "$(push)" 400 "keys of 4,000 bytes are rejected"
like "$(cat "$tmp/answer")" "label key 'k0000[^']*' has 4000 bytes, more than 256" "  naming the key"
make_push 20 1 120 240
is "$(push)" 200 "120 keys of 240 bytes are accepted"
python3 - "$tmp/push" <<'END_PYTHON'
import sys
sys.path.insert(0, "tests/e2e")
from profiles import Strings, blob, num, packed
import time
s = Strings()
b = blob(1, num(1, s("samples")) + num(2, s("count")))
for i in range(1100):
    b += blob(2, packed(1, [1]) + packed(2, [1]) + blob(3, num(1, s("key_%d" % i)) + num(2, s("v"))))
b += blob(4, num(1, 1) + blob(4, num(1, 1) + num(2, 7))) + blob(5, num(1, 1) + num(2, s("work"))) + num(9, time.time_ns())
b += b"".join(blob(6, t) for t in s.items)
open(sys.argv[1], "wb").write(blob(1, blob(2, blob(1, b))))
END_PYTHON
is "$(push)" 413 "1,100 different keys in a batch are refused"
like "$(cat "$tmp/answer")" 'more than 1024 label keys' "  naming the limit"

# ---- effect on other senders ----
before=$(metric cairn_flushes_total)
is "$(fold "from=$now")" 200 "an honest sender is answered"
flushed_since() { [ "$(metric cairn_flushes_total)" -gt "$before" ] && [ "$(metric cairn_queue_batches)" = 0 ]; }
wait_for "its samples in the tables" flushed_since
is "$(metric cairn_flush_failures_total)" 0 "no flush failed"
is "$(metric cairn_quarantined_batches)" 0 "nothing is in the quarantine"
began=$(date +%s)
stop_server
ok "the service ended promptly" test $(($(date +%s) - began)) -le 30

# ---- the quarantine's command ----
ok "an empty quarantine can be listed" "$cairn" store quarantine --data "$data"
is "$("$cairn" store quarantine list --json --data "$data")" "[]" "an empty quarantine is listed as JSON too"
mkdir -p "$data/profiles/queue/quarantine"
printf 'no batch' >"$data/profiles/queue/quarantine/00000000000000000099-00112233445566778899aabbccddeeff.batch"
like "$("$cairn" store quarantine --data "$data")" '^00112233445566778899aabbccddeeff' \
        "a damaged one is listed by its id"
like "$("$cairn" store status --json --data "$data")" '"quarantined_batches": ?1' \
        "store status counts the batch in the quarantine"
"$cairn" store quarantine retry 00112233445566778899aabbccddeeff --data "$data" >"$tmp/out" 2>&1
is $? 2 "a damaged one cannot be retried"
ok "it can be removed" "$cairn" store quarantine remove 00112233445566778899aabbccddeeff --data "$data"
is "$("$cairn" store quarantine list --json --data "$data")" "[]" "the removed batch is not listed"
"$cairn" store quarantine retry 00112233445566778899aabbccddeeff --data "$data" >"$tmp/out" 2>&1
is $? 1 "one that is not there is said to be not there"

# ---- export of several batches ---- A quarantined batch is a segment of the queue with one record: one batch of each
# of two services.
aside=$data/profiles/queue/quarantine
for n in 1 2; do
        data=$tmp/one-$n
        start_server --flush-interval 3600
        printf 'main;work%d %d\n' $n $n >"$tmp/folded"
        request -H "X-Cairn-Batch: $(printf '%032d' $n)" --data-binary "@$tmp/folded" \
                "$url/ingest?name=aside$n&format=folded"
        kill_server
        segment=$(echo "$data"/profiles/queue/*.queue)
        position=$(od -A n -t u8 -j 16 -N 8 "$segment" | tr -d ' ')
        cp "$segment" "$aside/$(printf '%020d-%032d' "$position" $n).batch"
done
data=$tmp/data
is "$("$cairn" store quarantine list --json --data "$data" | jq -c 'map([.batch_id, .samples, .damaged]) | sort')" \
        '[["00000000000000000000000000000001",1,false],["00000000000000000000000000000002",1,false]]' \
        "two batches are in the quarantine"
quarantine_export() { "$cairn" store quarantine export "$1" --output "$2" --data "$data" >"$tmp/out" 2>&1; }
quarantine_export all "$tmp/exported"
is $? 64 "a file does not take both"
like "$(cat "$tmp/out")" "2 batches need an existing directory: '$tmp/exported' is not one" \
        "the message asks for an existing directory"
ok "  and nothing is written" test ! -e "$tmp/exported"
ok "one goes into a file" quarantine_export 00000000000000000000000000000002 "$tmp/second.otlp"
mkdir "$tmp/exported"
printf 'no batch' >"$aside/00000000000000000099-00112233445566778899aabbccddeeff.batch"
quarantine_export all "$tmp/exported"
is $? 2 "an export of three batches fails for the damaged one"
like "$(cat "$tmp/out")" '^cairn store: 00112233445566778899aabbccddeeff: .*damaged' "the damaged batch is named"
is "$(cd "$tmp/exported" && for f in *; do "$cairn" import --dry-run "$f"; done)" \
        "$(for n in "1 sample" "2 samples"; do echo "$(cd "$tmp/exported" &&
        ls -- *-*${n% *}.otlp): otlp, $n, 2 stacks, 2 locations; not sent"; done)" \
                "the other batches are files of their own"
cmp -s "$tmp/second.otlp" "$tmp/exported/"*2.otlp
is $? 0 "the file of a batch is the same as when exported alone"

# ---- profiles of the past ----
data=$tmp/history
printf '%s\n' 'token-of-import ingest,history' 'token-of-agent ingest' 'token-of-reader read' >"$tmp/tokens"
for name in import agent reader; do printf 'token-of-%s\n' $name >"$tmp/$name"; done
start_server --max-age 30d --token-file "$tmp/tokens"
python3 tests/e2e/profiles.py otlp "$tmp/old.otlp" service=old values=7 addresses=401000 at_ns=1500000000000000000
send_old() { "$cairn" import --server "$url" --token-file "$tmp/$1" "$tmp/old.otlp" ${2:+"$2"} >"$tmp/out" 2>&1; }
send_old import
is $? 2 "cairn import fails when all samples are too old"
like "$(cat "$tmp/out")" 'time 2017-07-14T02:40:00Z is too long ago .*cairn import --history' \
        "the message says how to send samples that are too old"
send_old agent --history
is $? 64 "a token without the scope history may not send them"
like "$(cat "$tmp/out")" "a token with the scopes ingest and history" \
        "the message names the scopes that the token needs"
ok "with the scope they are accepted" send_old import --history
like "$(cat "$tmp/out")" '; sent$' "cairn import says that the old samples were sent"
ok "sent once more they are accepted" send_old import --history
like "$(cat "$tmp/out")" '; sent; message of the service: this batch was received before: no samples were added$' \
        "a batch that is sent again is reported as not added"
like "$(curl -sS -H 'Authorization: Bearer token-of-import' -H 'X-Cairn-Batch: 000000000000000000000000000000aa' \
        -H 'Content-Type: application/json' \
        -d '{"resourceProfiles":[]}' "$url/v1development/profiles")" '"rejectedProfiles":"0".*has no samples' \
        "an empty batch is accepted, with a remark"
request -H 'Authorization: Bearer token-of-import' -H 'X-Cairn-History: yes' -d 'main 1' "$url/ingest?name=x"
is "$code" 400 "a malformed X-Cairn-History is refused"
stop_server
ok "they are in the tables" test -d "$data/profiles/tables/samples/date=2017-07-14"
done_testing
