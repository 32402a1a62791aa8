#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A service that starts while its object store is away: it takes samples, says what is missing, and goes on by itself.
. tests/e2e/lib.sh
for tool in jq python3 curl gcc objcopy; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh
. tests/e2e/object-store.sh
address=s3://cairn-test/fleet
rows_and_sum() { "$PYTHON" tests/e2e/store/object-store.py sum "$store_port"; }
sum_of() { "$cairn" top --from now-1d --type process_cpu:cpu "$@" --json 2>"$tmp/top.log" | jq '[.[].flat] | add'; }
import_stacks() {
        printf 'main;work %d\nmain;wait 1\n' "$1" >"$tmp/in.folded"
        "$cairn" import --server "$url" --time $(($(date +%s) - 7200)) \
                --type process_cpu:cpu:nanoseconds:: "$tmp/in.folded" \
                >"$tmp/import.log" 2>&1
}
flushed() { [ "$(metric cairn_queue_batches)" -eq 0 ]; }
kill_service() {
        kill -9 "$server_pid"
        wait "$server_pid" 2>/dev/null
        server_pid=
}

# ---- the first start of a directory ----

order away >"$tmp/order"
start_server --store "$address" --flush-interval 1
like "$(cat "$server_log")" "cannot read the tables in $address/tables.*only what is queued" \
        "a service starts while its object store is away, and says so"
request "$url/readyz"
is "$code" 503 "it is not ready"
like "$body" '^error flush_failing: cannot flush: cannot use s3:.*the object store answers' \
        "/readyz names the object store"
is "$(metric cairn_store_absent_tables)" 1 "a metric says that tables have not been read"
ok "it takes samples" import_stacks 1000
is "$(sum_of --server "$url")" 1001 "a query has them"
like "$(cat "$tmp/top.log")" 'incomplete: the object store has not answered since the service was started' \
        "the answer says that it is incomplete"
order back >"$tmp/order"
wait_for "the flush" flushed
is "$(rows_and_sum)" "2 1001" "the samples are in the store when it is back"
like "$(cat "$server_log")" 'the object store is back' "the log says that the store is back"
like "$(cat "$server_log")" 'of 32 racing creates' "the store was probed before it was used"
is "$(metric cairn_store_absent_tables)" 0 "the tables are read"
is "$(sum_of --server "$url")" 1001 "a query has each sample once"
unlike "$(cat "$tmp/top.log")" incomplete "the answer is complete"
is_ready() { request "$url/readyz"; [ "$code" -eq 200 ]; } # when the flush has ended
wait_for "the service to be ready" is_ready
pass "the service is ready without a restart"

# ---- a service with a past ----

cat >"$tmp/program.c" <<'END'
int main(void) { return 0; }
END
gcc -g -Wl,--build-id=sha1 -o "$tmp/program" "$tmp/program.c"
id=$(build_id_of "$tmp/program")
put_object debuginfo "$tmp/program" >"$tmp/put.log" 2>&1
answers_id() { request "$url/buildid/$id/debuginfo" && [ "$code" -eq "$1" ]; }
ok "an object is stored" answers_id 200
ok "samples are taken just before the service dies" import_stacks 20
kill_service
order away >"$tmp/order"
start_server --flush-interval 1
ok "the service that comes back takes samples" import_stacks 300
like "$(sum_of --server "$url")" '^(301|322)$' "a query has what is queued here, once"
like "$(cat "$tmp/top.log")" incomplete "it says that it is incomplete"
ok "an object whose record is here is served from the cache" answers_id 200
request "$url/buildid/00112233445566778899aabbccddeeff00112233/debuginfo"
is "$code" 503 "whether an unknown object is in the store is not known"
like "$body" 'has not answered since the service was started' "the answer says why"
like "$("$cairn" store compact --server "$url" 2>&1)" \
        'tables have not been read since the start: .*the object store answers' \
        "work on the tables is refused with the reason"
kill_service
start_server --flush-interval 1
ok "it starts again, the store still being away" import_stacks 4000
like "$(sum_of --server "$url")" '^(4302|4323)$' "it has all that is queued"
order back >"$tmp/order"
wait_for "the flush" flushed
wanted=$((1001 + 21 + 301 + 4001))
is "$(rows_and_sum)" "8 $wanted" "nothing is lost and nothing double after two starts without the store"
is "$(sum_of --server "$url")" "$wanted" "a query has each sample once"
unknown_is_absent() {
        request "$url/buildid/00112233445566778899aabbccddeeff00112233/debuginfo" && [ "$code" -eq 404 ]
}
wait_for "the table of objects" unknown_is_absent
stop_server

# ---- a queue that becomes full ----

rows() { rows_and_sum | cut -d' ' -f1; }
base=$(($(date +%s) - 7200))
import_many() {
        "$cairn" import --server "$url" --time $((base - $1)) tests/browser/data/build.pb.gz \
                >"$tmp/import.log" 2>&1
}
mv "$data" "$tmp/lost"
start_server --store "$address" --flush-interval 1
before=$(rows)
ok "a large batch is taken" import_many 0
wait_for "the flush" flushed
each=$(($(rows) - before))
stop_server
order away >"$tmp/order"
start_server --flush-interval 1 --memory 256M
number=0
while [ $number -lt 1000 ] && import_many $((number + 1)); do number=$((number + 1)); done
like "$(cat "$tmp/import.log")" 'HTTP 429' "the queue refuses samples at its bound"
request "$url/readyz"
like "$body" '^error queue_full' "/readyz says that the queue is full"
curl -sS -D "$tmp/headers" -o /dev/null --data-binary 'main;work 1' "$url/ingest?name=app&format=folded"
like "$(cat "$tmp/headers")" '^HTTP/1.1 429 ' "a sender is told that the queue is full"
like "$(cat "$tmp/headers")" '^Retry-After: [0-9]+' "the answer says when to send again"
order back >"$tmp/order"
wait_for "the flush" flushed
is "$(rows)" $((before + each * (1 + number))) "each sample that it acknowledged is there once"
ok "the queue takes samples again" import_stacks 1
wanted=$(sum_of --server "$url")
stop_server

# ---- a service that flushes nothing ----

# ready_line CONDITION: of /readyz.
ready_line() { curl -sS "$url/readyz" | grep " $1: "; }
mv "$data" "$tmp/full"
order away >"$tmp/order"
start_server --store "$address" --role query
is "$(metric cairn_store_absent_tables)" 1 "a service with the role query starts while the store is away"
order back >"$tmp/order"
has_tables() { [ "$(metric cairn_store_absent_tables)" -eq 0 ]; }
wait_for "it to read the tables" has_tables
is_found() { ! ready_line flush_failing >"$tmp/line"; }
wait_for "it not to say any more that the store is away" is_found
is "$(sum_of --server "$url")" "$wanted" "a query has all samples"
order away >"$tmp/order"
is_failing() { sum_of --server "$url" >"$tmp/sum"; ready_line follow_failing >"$tmp/line"; }
wait_for "a query to find the store away" is_failing
is "$(cat "$tmp/sum")" "$wanted" "it is answered from the cache"
order back >"$tmp/order"
is_following() { ! ready_line follow_failing >"$tmp/line"; }
wait_for "the service to find the store back without a query" is_following
stop_server
done_testing
