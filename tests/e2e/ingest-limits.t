#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Requests that a sender makes large where the tables are small: days, label
# keys, profiles. None of them keeps others from the tables.
. tests/e2e/lib.sh

make_push() { python3 tests/e2e/ingest-limits.py "$tmp/push" "$@"; }
push() {
        curl -sS --max-time 60 -o "$tmp/answer" -w '%{http_code}' -H 'Content-Type: application/proto' \
                --data-binary @"$tmp/push" "$url/push.v1.PusherService/Push"
}
fold() {
        printf 'main;work 3\n' | curl -sS --max-time 60 -o "$tmp/answer" -w '%{http_code}' --data-binary @- \
                "$url/ingest?name=honest&format=folded&$1"
}
rows_are() { [ "$(metric 'cairn_table_rows{table="samples"}')" = "$1" ]; }

start_server --accept-past 30d --flush-interval 1

# ---- times ----
now=$(date +%s)
is "$(fold "from=$((now - 86400 * 29))")" 200 "29 days ago is accepted"
is "$(fold "from=$((now - 86400 * 31))")" 400 "31 days ago is not"
like "$(cat "$tmp/answer")" 'too long ago \(--accept-past' "  which names the option"
is "$(fold "from=$((now + 86400 * 2))")" 400 "in two days is not"
like "$(cat "$tmp/answer")" 'too far in the future' "  and says why"
is "$(metric cairn_ingest_rejected_samples_total)" 2 "  both are counted"

# ---- many profiles in a push ----
batches=$(metric cairn_ingest_batches_total)
make_push 50 5 2 8
is "$(push)" 200 "fifty profiles of five days are accepted"
is "$(metric cairn_ingest_batches_total)" $((batches + 1)) "  as one batch"
wait_for "their rows" rows_are 51
make_push 400 400 2 8
is "$(push)" 200 "of four hundred days the last month is accepted"
rejected=$(metric cairn_ingest_rejected_samples_total)
ok "  the others are counted" test "$rejected" -ge 368
wait_for "their rows" rows_are $((51 + 402 - rejected))
days=$(find "$data/profiles/tables/samples" -name 'date=*' | wc -l)
ok "  days make no more folders than the window has" test "$days" -le 32

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

# ---- and the others? ----
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
ok "an empty quarantine is listed" "$cairn" store quarantine --data "$data"
is "$("$cairn" store quarantine list --json --data "$data")" "[]" "  as JSON too"
mkdir -p "$data/profiles/queue/quarantine"
printf 'no batch' >"$data/profiles/queue/quarantine/00000000000000000099-00112233445566778899aabbccddeeff.batch"
like "$("$cairn" store quarantine --data "$data")" '^00112233445566778899aabbccddeeff' "a damaged one is listed by its id"
like "$("$cairn" store status --json --data "$data")" '"quarantined_batches": ?1' "store status counts it"
"$cairn" store quarantine retry 00112233445566778899aabbccddeeff --data "$data" >"$tmp/out" 2>&1
is $? 2 "a damaged one cannot be retried"
ok "it can be removed" "$cairn" store quarantine remove 00112233445566778899aabbccddeeff --data "$data"
is "$("$cairn" store quarantine list --json --data "$data")" "[]" "  and is gone"
"$cairn" store quarantine retry 00112233445566778899aabbccddeeff --data "$data" >"$tmp/out" 2>&1
is $? 1 "one that is not there is said to be not there"
done_testing
