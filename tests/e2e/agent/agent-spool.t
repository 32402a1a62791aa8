#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The agent's batches with a service that is unavailable, slow or misbehaving, and after the agent is killed.
. tests/e2e/lib.sh
agent=$CAIRN_BUILD/cairn-agent
here=$PWD/tests

for tool in python3 cc curl; do
        command -v $tool >/dev/null || skip_all "$tool is not installed"
done
"$agent" --doctor >/dev/null || skip_all "the agent cannot profile here"
cd "$tmp" || exit 1

echo 'int main(void) { for (volatile unsigned long i = 0;; i++); }' >hot.c
cc -O1 -Wl,--build-id -o hot hot.c
./hot &
hot=$!
background_pids=$hot

free_port >port # of all services in turn
# start_service [ANSWER]...: see agent-server.py
start_service() {
        rm -f ready
        python3 "$here/e2e/agent/agent-server.py" "$tmp" "$@" 2>service.err &
        service=$!
        background_pids="$background_pids $service"
        wait_for "the service to listen" [ -e ready ]
}
stop_service() { kill -9 "$service"; wait "$service" 2>/dev/null; }
# start_agent LOG [OPTION]...
start_agent() {
        log=$1; shift
        "$agent" --server "http://127.0.0.1:$(cat port)" --interval 1 --frequency 199 --pid $hot --spool spool \
                --log-level debug --metrics-file metrics "$@" 2>"$log" &
        agent_pid=$!
        background_pids="$background_pids $agent_pid"
}
kill_agent() { kill -9 "$agent_pid"; wait "$agent_pid" 2>/dev/null; }
# Complete ones: a kill leaves incomplete files.
find_batches() { find spool -name '[0-9]*.batch' | sort; }
batches() { find_batches | wc -l; }
logged() { [ "$(grep -c "$2" "$1")" -ge "$3" ]; }
spool_is_empty() { [ "$(batches)" -eq 0 ]; }
ids_logged() { cat "$@" | sed -n 's/.*batch \([0-9a-f]\{32\}\) waits: \([0-9]*\) samples*\>.*/\1 \2/p' | sort; }
# lost LOG...: batches that were logged but did not arrive with the same number of samples
lost() { ids_logged "$@" | python3 lost.py "$here/support"; }
cat >lost.py <<'END'
import contextlib, io, os, sys
sys.path.insert(0, sys.argv[1])
import otlp_dump
for line in sys.stdin:
    batch, samples = line.split()
    if not os.path.exists(f"body.{batch}"):
        print(f"{batch} did not arrive")
        continue
    with contextlib.redirect_stdout(io.StringIO()) as text:
        otlp_dump.main(f"body.{batch}")
    arrived = text.getvalue().count("\n")
    if arrived != int(samples):
        print(f"{batch}: {samples} samples were counted, {arrived} arrived")
END

# ---- unavailable at the start, and the agent is killed in the meantime ----
start_service
stop_service
start_agent away.log
two_batches() { [ "$(batches)" -ge 2 ]; }
wait_for "two batches in the spool" two_batches
"$agent" --server http://127.0.0.1:9 --spool spool --duration 1 2>second.log
is $? 1 "a second agent with this spool ends"
like "$(cat second.log)" "spool 'spool' is in use by another process" "the second agent says that the spool is in use"
"$agent" --server http://127.0.0.1:9 --pid $hot --interval 1 --duration 2 2>third.log
is $? 1 "an agent that cannot send fails"
unsent=$(sed -n 's/.* batches: 0 sent, 0 dropped, \([1-9][0-9]*\) not sent, 0 in the spool$/\1/p' third.log)
like "$(cat third.log)" "^cairn-agent: $unsent batch(es)? could not be sent: " \
        "what it could not send is counted, as neither sent nor dropped"
kill_agent
waiting=$(batches)
ok "batches survive a kill" [ "$waiting" -ge 2 ]
first=$(find_batches | head -1)
: >"$first"
echo mine >spool/notes
start_service
start_agent back.log --metrics-listen 127.0.0.1:0
wait_for "the metrics' address" logged back.log 'metrics at' 1
metrics_url=$(sed -n 's|.*metrics at \(.*\)/metrics$|\1|p' back.log)
served() { curl -sS --max-time 20 "$metrics_url/metrics" | grep -q '^cairn_agent_batches_sent_total [1-9]'; }
wait_for "the metrics to say that batches were sent" served
is "$(curl -sS --max-time 20 "$metrics_url/healthz")" ok "the agent reports that it is healthy"
is "$(curl -sS --max-time 20 -o /dev/null -w '%{http_code}' -X POST -d x "$metrics_url/metrics")" 405 \
        "the metrics address accepts no data"
wait_for "the spool to be empty" spool_is_empty
kill -TERM $agent_pid
wait $agent_pid
is $? 0 "the next agent ends well"
like "$(cat back.log)" "$waiting batch(es)? of an earlier run waits? in the spool" "it found the queued batches"
like "$(cat back.log)" "error sender: cannot read '$first': its header is truncated" "a truncated file is reported"
ok "and moved aside" [ -e "$first.damaged" ]
like "$(cat back.log)" "holds 'notes', which is not a batch" "a foreign file is reported"
is "$(cat spool/notes)" mine "the foreign file is unchanged"
like "$(cat metrics)" 'dropped_total\{reason="damaged"\} 1' "one batch is counted as damaged"
is "$(lost away.log back.log | wc -l)" 1 "all others arrived with all their samples"
is "$(awk '{ print $2 }' posts | sort | uniq -d | wc -l)" 0 "each batch arrived once"
rm -r spool

# ---- invalid responses, then a slow one; the agent is stopped while it waits for that ----
stop_service
rm -f posts body.*
start_service garbage html slow
start_agent strange.log
wait_for "the slow answer" grep -q '^slow' posts
is "$(awk '{ print $2 }' posts | uniq | wc -l)" 1 "the same batch is sent until it is accepted"
kill -INT $agent_pid
kill -INT $agent_pid
wait $agent_pid
is $? 0 "the end does not wait for a slow service, since nothing gets lost"
like "$(cat strange.log)" 'batch(es)? stays? in the spool' "the log says that batches stay in the spool"
touch go
start_agent after.log
wait_for "the spool to be empty" spool_is_empty
kill -TERM $agent_pid
wait $agent_pid
is "$(lost strange.log after.log)" "" "nothing is lost"
rm -r spool

# ---- killed repeatedly, while the service is busy and breaks connections ----
stop_service
rm -f posts body.* go
start_service busy
round=0
while [ $round -lt 4 ]; do
        start_agent "killed.$round.log"
        wait_for "a batch" logged "killed.$round.log" ' waits: ' $((round % 2 + 1))
        kill_agent
        round=$((round + 1))
done
stop_service
start_service
start_agent last.log
wait_for "the spool to be empty" spool_is_empty
kill -TERM $agent_pid
wait $agent_pid
is "$(lost killed.*.log last.log)" "" "every batch that was counted arrived"
like "$(ids_logged killed.*.log last.log | wc -l)" '^([5-9]|[1-9][0-9])$' "in all rounds"
posts=$(grep -c . posts)
arrived=$(find . -name 'body.*' | wc -l)
ok "some were sent again, under the same id ($posts posts, $arrived batches)" [ "$posts" -gt "$arrived" ]
is "$(awk '$1 == 200 && taken[$2]++ { again++ } END { print again + 0 }' posts | grep -cv '^[0-4]$')" 0 \
        "what was acknowledged is sent again at most once for each kill"
rm -r spool

# ---- a full disk ----
stop_service
rm -f posts body.*
mkdir spool
if unshare -m mount -t tmpfs -o size=4k none spool 2>/dev/null; then
        cat >full.sh <<'END'
mount -t tmpfs -o size=4k,mode=0700 none spool
exec "$@"
END
        agent_real=$agent
        agent_full() { exec unshare -m sh full.sh "$agent_real" "$@"; } # exec: agent_pid is the agent's own
        agent=agent_full
        start_agent full.log
        agent=$agent_real
        wait_for "two batches" logged full.log ' waits: ' 2
        wait_for "the metrics" grep -q 'batches_waiting{where="memory"} [1-9]' metrics
        like "$(cat metrics)" 'spool_failures_total\{reason="disk_full"\} [1-9]' "a full disk is counted"
        is "$(grep -c 'wait in memory until the spool works again' full.log)" 1 "a full disk is reported once"
        start_service
        kill -TERM $agent_pid
        wait $agent_pid
        is "$(lost full.log)" "" "nothing is lost when the disk is full"
else
        pass "a full disk is counted # SKIP no right to mount"
fi
done_testing
