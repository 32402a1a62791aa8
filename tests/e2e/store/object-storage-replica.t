#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A read-only service on another machine serves queries and debuginfo from the object store that a service writes.
. tests/e2e/lib.sh
for tool in jq python3 curl gcc; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh
. tests/e2e/object-store.sh
address=s3://cairn-test/fleet
sum_of() { "$cairn" top --from now-1d --type process_cpu:cpu "$@" --json 2>"$tmp/top.log" | jq '[.[].flat] | add'; }
# A query does not read the commits if that was done less than half a second ago.
replica_has() { [ "$(sum_of --server "$replica")" = "$1" ]; }
flushed() { [ "$(metric cairn_queue_batches)" -eq 0 ]; }
import_stacks() {
        printf 'main;work %d\n' "$1" >"$tmp/in.folded"
        "$cairn" import --server "$url" --time $(($(date +%s) - 3600)) \
                --type process_cpu:cpu:nanoseconds:: "$tmp/in.folded" \
                >"$tmp/import.log" 2>&1
        wait_for "the flush" flushed
}
printf 'int main(int argc, char **argv) { (void)argv; return argc; }\n' >"$tmp/program.c"
gcc -g -Wl,--build-id=0xabcdef0123456789 -o "$tmp/first" "$tmp/program.c"
gcc -g -Wl,--build-id=0xabcdef0123456780 -o "$tmp/second" "$tmp/program.c"

start_server --store "$address" --flush-interval 1
import_stacks 100
put_object debuginfo "$tmp/first"
is "$code" 201 "debuginfo is stored"

"$cairn" serve --read-only --store "$address" --data "$tmp/replica" --listen 127.0.0.1:0 \
        --port-file "$tmp/replica.port" --max-age any 2>"$tmp/replica.log" &
replica_pid=$!
"$cairn" serve --read-only --store "$address" --data "$tmp/idle" --listen 127.0.0.1:0 \
        --port-file "$tmp/idle.port" 2>"$tmp/idle.log" &
idle_pid=$!
background_pids="$background_pids $replica_pid $idle_pid"
wait_for "the replica to start" test -s "$tmp/replica.port"
wait_for "another one, which gets no queries" test -s "$tmp/idle.port"
replica=http://127.0.0.1:$(cat "$tmp/replica.port")

is "$(sum_of --server "$replica")" 100 "the replica has the samples"
curl -sS -o "$tmp/body" "$replica/buildid/abcdef0123456789/debuginfo"
ok "it serves the debuginfo" cmp "$tmp/body" "$tmp/first"
is "$(curl -sS "$replica/api/v1/debuginfo" | jq -c '[.objects[] | .build_id]')" '["abcdef0123456789"]' \
        "it lists the objects"

# ---- it follows ----

import_stacks 20
wait_for "the replica to read the commit" replica_has 120
put_object debuginfo "$tmp/second"
# status_of BUILD-ID: of its debuginfo at the replica.
status_of() { curl -sS -o "$tmp/body" -w '%{http_code}' "$replica/buildid/$1/debuginfo"; }
second_is_served() { [ "$(status_of abcdef0123456780)" = 200 ]; }
wait_for "the replica to have the second object" second_is_served
ok "it serves debuginfo that was stored since" cmp "$tmp/body" "$tmp/second"
ok "an object is removed" "$cairn" debuginfo rm --server "$url" abcdef0123456789 --kind debuginfo
first_is_gone() { [ "$(status_of abcdef0123456789)" = 404 ]; }
wait_for "the replica to miss the removed object" first_is_gone

# ---- the store is away for a while ----

# ready_line NAME: of the replica's /readyz.
ready_line() { curl -sS "$replica/readyz" | grep " $1: "; }
is_following() { ! ready_line follow_failing >"$tmp/line"; }
order away >"$tmp/order"
says_since_when() {
        replica_has 120 && grep -q 'commits of other nodes since .* could not be read' "$tmp/top.log"
}
wait_for "an answer of what it has read that says since when" says_since_when
pass "without the store the replica answers with what it has read, and says so"
is "$(curl -sS -o "$tmp/body" -w '%{http_code}' "$replica/readyz")" 200 "it is ready"
like "$(cat "$tmp/body")" '^warning follow_failing: cannot read new commits: .*object store' \
        "/readyz says what is missing, and why"
like "$(curl -sS "$replica/metrics")" 'cairn_ready_condition.condition="follow_failing".* 1' "the metrics say so, too"
is "$(sum_of --server "$replica")" 120 "further queries are answered, too"
idle=http://127.0.0.1:$(cat "$tmp/idle.port")
is "$(curl -sS -D "$tmp/headers" -o "$tmp/body" -w '%{http_code}' "$idle/api/v1/query/top?from=now-1d")" 503 \
        "a query whose files are not in the cache is to be sent again"
like "$(cat "$tmp/body")" 'object store' "the answer names the object store"
like "$(cat "$tmp/headers")" '^Retry-After: ' "a header says when"
like "$("$cairn" serve --read-only --store "$address" --data "$tmp/late" --listen 127.0.0.1:0 2>&1)" \
        'the object store answers' "a replica that is started meanwhile ends with the reason"
order back >"$tmp/order"
wait_for "the replica to read the commits" is_following
import_stacks 3
wait_for "the replica to read the newest commit" replica_has 123
unlike "$(cat "$tmp/top.log")" 'could not be read' \
        "the answer is complete"

# ---- files that no query has read ----

printf 'main;other 1000\n' >"$tmp/in.folded"
"$cairn" import --server "$url" --time $(($(date +%s) - 600)) --type process_cpu:cpu:nanoseconds:: "$tmp/in.folded" \
        >"$tmp/import.log" 2>&1
wait_for "the flush" flushed
committed=$(date +%s)
followed_at() { curl -sS "$replica/metrics" | awk '$1 == "cairn_store_followed_timestamp_seconds" { print $2 }'; }
has_followed() {
        "$cairn" top --from now-9d --to now-8d --type process_cpu:cpu --server "$replica" >"$tmp/empty" 2>&1
        [ "$(followed_at)" -gt "$committed" ]
}
wait_for "the replica to read a commit whose files no query needs" has_followed
order away >"$tmp/order"
is "$(sum_of --to now-30m --server "$replica")" 123 \
        "without the store a query is answered if the cache has what it needs"
top_of_all="$replica/api/v1/query/top?from=now-1d&type=process_cpu:cpu"
is "$(curl -sS -o "$tmp/body" -w '%{http_code}' "$top_of_all")" 503 \
        "a query of samples that the cache lacks is to be sent again"
order back >"$tmp/order"
wait_for "the replica to read the commits" is_following
wait_for "all samples" replica_has 1123

# ---- it changes nothing ----

writes() { curl -sS "$AWS_ENDPOINT_URL_S3/-/requests" | jq -c '[.PUT, .POST, .DELETE]'; }
stop_server
before=$(writes)
upload=$replica/api/v1/debuginfo/abcdef0123456780/debuginfo
is "$(curl -sS -o "$tmp/body" -w '%{http_code}' -T "$tmp/second" "$upload")" 403 "an upload is refused"
is "$(sum_of --server "$replica")" 1123 "it needs no service"
"$cairn" serve --data "$tmp/replica" --listen 127.0.0.1:0 >"$tmp/refused" 2>&1
unlike $? '^0$' "its directory cannot be used by a service meanwhile"
kill -TERM "$idle_pid" "$replica_pid"
wait "$replica_pid"
is $? 0 "the replica ends"
is "$(writes)" "$before" "the replica wrote nothing to the store"
unlike "$(cat "$tmp/replica.log" "$tmp/idle.log")" 'ERROR: |runtime error' "no sanitizer report of the replica"
done_testing
