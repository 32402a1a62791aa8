#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The wall clock steps by days in both directions while the service runs: batches are accepted, flushed and counted
# once, nothing is expired because of a wrong age, and the service reports the steps.
. tests/e2e/lib.sh
for tool in gcc curl jq python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

printf 'int main(void) { return 0; }\n' >"$tmp/program.c"
gcc -g -Wl,--build-id=0x00000000000000000000000000000000000000aa -o "$tmp/program" "$tmp/program.c"
id=00000000000000000000000000000000000000aa
cairn=$CAIRN_BUILD/cairn
day=86400

start_it() {
        export FAULT_CLOCK="$tmp/clock"
        with_clock start_server --flush-interval 1 --max-age 12h --retain-samples age=12h
        unset FAULT_CLOCK
}
# step SECONDS: sets the service's clock ahead or back, and waits until the service has noticed.
step() {
        steps=$(metric cairn_clock_steps_total)
        printf '%d' "$1" >"$tmp/clock.new"
        mv "$tmp/clock.new" "$tmp/clock"
        wait_metric cairn_clock_steps_total $((steps + 1))
}
# sample BATCH: seven samples, with the sender's correct time.
sample() {
        python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" build_id=$id service=clock values=7 mapping_file=program \
                addresses=401000
        request -H 'Content-Type: application/x-protobuf' -H "X-Cairn-Batch: $(printf '%032x' "$1")" \
                --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
}
flushed() {
        flushes=$(metric cairn_flushes_total)
        sample "$1"
        is "$code" 200 "a batch is accepted $2"
        wait_metric cairn_flushes_total $((flushes + 1))
        pass "  and flushed"
}
sum() { "$cairn" top --server "$url" --from "$1" --to "$2" --json '{service_name="clock"}' |
        jq 'map(.flat) | add // 0'; }
# A host whose own clock is off by SECONDS.
skewed() {
        python3 tests/e2e/profiles.py otlp "$tmp/skewed.otlp" build_id=$id service=skewed values=7 \
                mapping_file=program \
                addresses=401000 at_ns=$(($(date +%s) + $1))000000000
        request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/skewed.otlp" \
                "$url/v1development/profiles"
}
put() {
        request -T "$tmp/program" -H "X-Cairn-Size: $(stat -c %s "$tmp/program")" \
                -H "X-Cairn-SHA256: $(sha256sum "$tmp/program" | cut -d' ' -f1)" "$url/api/v1/debuginfo/$id/debuginfo"
}
# Rows removed by sample retention with the service's rule.
expire() { "$cairn" store expire --server "$url" --json | jq -c .rows; }
collect() { "$cairn" debuginfo gc --server "$url" --retain "$1" --json | jq -c '[.removed[].build_id]'; }

start_it
put
is "$code" 201 "an object is stored"
wait_metric cairn_objects_indexed_total 1
# Half an upload, idle, as of a client that will resume it.
head -c 1000 "$tmp/program" >"$tmp/half"
other() {
        request -T "$tmp/$1" -H "X-Cairn-Offset: $2" -H "X-Cairn-Size: 2000" -H "X-Cairn-SHA256: $(printf '%064d' 7)" \
                "$url/api/v1/debuginfo/00000000000000000000000000000000000000bb/debuginfo"
}
other half 0
is "$code" 202 "half an upload waits for the rest"
leftover=$data/profiles/tables/samples/.tmp-being-read.parquet
: >"$leftover"
flushed 1 "before the clock is set"
skewed $((day * 365 * 100))
like "$body" '1 sample rejected: the time .* is too far in the future' "a host a century ahead gets an error"

for days in 1 3; do
        step $((days * day))
        flushed $((10 + days)) "with a clock $days days ahead"
        sample 1
        is "$code $(metric cairn_ingest_duplicate_batches_total)" "200 $((days / 2 + 1))" \
                "  a batch from before still counts once"
        is "$(collect age=12h)" '[]' "  an object that is a minute old is not removed"
        is "$(expire)" 0 "  a sample that is a minute old is not removed"
        is "$(collect unused=12h)" '[]' "  an object is not removed for not being used"
        [ "$days" != 1 ] || like "$(metric cairn_clock_held_seconds)" '^86(399|400)$' "  a metric reports it"
        [ "$days" != 1 ] || {
                wait_metric 'cairn_ready_condition{condition="clock_jump"}' 1
                answers 200 '^warning clock_jump: the clock stepped forward by 86(399|400) s' "  and so does /readyz" \
                        "$url/readyz"
        }
        step 0
        is "$(metric cairn_clock_held_seconds)" 0 "  the step back is detected"
done
step $((3 * day))
gcc -g -Wl,--build-id=0x00000000000000000000000000000000000000cc -o "$tmp/another" "$tmp/program.c"
request -T "$tmp/another" -H "X-Cairn-Offset: 0" -H "X-Cairn-Size: $(stat -c %s "$tmp/another")" \
        -H "X-Cairn-SHA256: $(sha256sum "$tmp/another" | cut -d' ' -f1)" \
        "$url/api/v1/debuginfo/00000000000000000000000000000000000000cc/debuginfo"
is "$code" 201 "another upload, three days ahead, is accepted"
is "$(find "$data/debuginfo/partial" -type f | wc -l)" 1 "  the half one still waits"
wait_for "the log, which is written after the metric" \
        grep \
        -q 'clock: the wall clock stepped forward by 259[12].. s; deletion by age ignores the step.*check the time' \
        "$server_log"
pass "the log says what happened and what to do"

step $((-day))
flushed 20 "with a clock a day behind"
sample 1
is "$code $(metric cairn_ingest_duplicate_batches_total)" "200 3" "  a batch from before still counts once"
is "$(collect age=12h) $(expire)" '[] 0' "  nothing is removed"
skewed $((day * 5))
like "$body" '1 sample rejected: the time .* is too far in the future' "  a host five days ahead gets an error"
is "$(metric cairn_ingest_rejected_samples_total)" 2 "  no sample of a host with the right time was rejected"
step 0
flushed 21 "with the right time again"
is "$(sum now-1h now)" $((5 * 7)) "each batch counts once"
ok "the service is healthy" healthy
stop_server
ok "an unreferenced file of the tables is kept for its readers" test -e "$leftover"
done_testing
