# SPDX-License-Identifier: Apache-2.0
# kill -9 repeatedly during ingest and flush: every acknowledged sample is stored, exactly once.
. tests/e2e/lib.sh

count=3000
kills=12
fixed_port=$(free_port)
start_server --flush-interval 1 --listen "127.0.0.1:$fixed_port"
echo 0 >"$tmp/progress"
python3 tests/e2e/store/crash-client.py "$port" $count "$tmp/progress" &
client=$!
background_pids=$client

acknowledged() { cat "$tmp/progress"; }
passed() { [ "$(acknowledged)" -ge "$1" ] || ! kill -0 $client 2>/dev/null; }

killed=0
while [ $killed -lt $kills ]; do
        # Not a round number, so that kills hit all phases of a flush.
        wait_for "more batches" passed $((($(acknowledged) + 37 + killed * 23)))
        kill_server
        killed=$((killed + 1))
        start_server --flush-interval 1 --listen "127.0.0.1:$fixed_port"
done
wait $client
is $? 0 "every batch was acknowledged in the end"
background_pids=
is "$(acknowledged)" $count "all $count of them, over $killed crashes"

folded() {
        curl -sS -G "$url/api/v1/query/folded" --data-urlencode 'selector={service_name="crash"}' \
                --data-urlencode from=now-1h \
                --data-urlencode to=now
}
once() {
        folded >"$tmp/folded"
        is "$(grep -c '^root;batch-[0-9]* 1$' "$tmp/folded")" $count "$1: each batch is stored with the value 1"
        is "$(wc -l <"$tmp/folded")" $count "$1: and nothing else"
}
once "after the last crash"
kill_server
start_server --flush-interval 1
once "after one more"
stop_server
start_server --flush-interval 3600
once "after a clean stop"
becomes $count "so the table has each sample once" metric 'cairn_table_rows{table="samples"}'
is "$(metric cairn_queue_batches)" 0 "  the queue is empty after a clean stop"
done_testing
