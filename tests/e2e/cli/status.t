#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cairn status: the state of a running service, on one screen and as JSON.
. tests/e2e/lib.sh
for tool in curl jq python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

# figure JQ: a value of the last `cairn status --json`.
figure() { jq -r "$1" "$tmp/status"; }
status() {
        "$cairn" status --json --server "$url" "$@" >"$tmp/status" 2>"$tmp/err"
        code=$?
}
python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" build_id=00000000000000000000000000000000000000a1 service=well \
        values=7 mapping_file=a.so addresses=1000
# sample N: another batch with seven samples.
sample() {
        curl -sS --max-time 60 -H 'Content-Type: application/x-protobuf' -H "X-Cairn-Batch: $(printf '%032x' "$1")" \
                --data-binary "@$tmp/one.otlp" "$url/v1development/profiles" >/dev/null
}

mkdir -p "$tmp/up/files"
python3 tests/e2e/upstream.py "$tmp/up" &
background_pids=$!
wait_for "the upstream" test -s "$tmp/up/port"
up=http://127.0.0.1:$(cat "$tmp/up/port")
start_server --flush-interval 1 --upstream "$up" --listen "127.0.0.1:$(free_port)" # which it uses again later

status
is "$code" 0 "a service that is ready gives 0"
is "$(figure .ready)" true "a ready service is reported as ready"
is "$(figure '.conditions | length')" 0 "a ready service has no conditions"
is "$(figure '.ingest.batches')" 0 "nothing was ingested"
sample 1
sample 2
wait_metric cairn_flushes_total 1
wait_metric 'cairn_table_rows{table="samples"}' 2
status
is "$(figure '.ingest.batches')" 2 "batches are counted"
is "$(figure '.ingest.samples')" "$(metric cairn_ingest_samples_total)" "samples are counted as in the metrics"
is "$(figure '.storage.sample_rows')" "$(metric 'cairn_table_rows{table="samples"}')" \
        "rows of a table are counted as in the metrics"
is "$(figure '.memory.limit_bytes')" "$(metric cairn_memory_limit_bytes)" "the limit of memory is that of the metrics"
is "$(figure '.upstreams[0].url')" "$up" "upstreams are listed"
is "$(figure '.upstreams[0].breaker')" closed "the state of an upstream is listed"
wait_for "the upstream's answer" sh -c "curl -sS '$url/api/v1/debuginfo/upstreams' | jq -e '.upstreams[0].missing >= 1'"
status
is "$(figure '.upstreams[0].missing')" "$(curl -sS "$url/api/v1/debuginfo/upstreams" | jq '.upstreams[0].missing')" \
        "the responses of an upstream are counted"
is "$(figure '[.queue, .compaction, .retention, .symbols, .resymbolization, .debuginfo, .requests]
        | map(type) | unique | join(" ")')" object \
        "each section is there"

# The rate is that of the interval: batches are sent during it, at least one during one of a few intervals.
(i=10; while [ ! -e "$tmp/enough" ]; do i=$((i + 1)); sample "$i"; done) &
background_pids="$background_pids $!"
has_rate() { status --interval 2; [ "$(figure '.ingest.batches_per_s > 0')" = true ]; }
wait_for "batches in an interval" has_rate
pass "batches of the interval are a rate"
: >"$tmp/enough"
ok "  over at least that time" test "$(figure '.interval_s >= 2')" = true

# Without an interval it is that of the last minutes, also while nothing arrives.
status
ok "without an interval, rates are of the last minutes" \
        test "$(figure '.ingest.batches_per_s > 0 and .ingest.samples_per_s > 0')" = true

# Rejected requests, from /api/v1/status.
is "$(figure '.refused | length')" 0 "nothing was refused"
unlike "$("$cairn" status --server "$url")" '^refused' "the text has no line for refused requests without any"
answers 400 '' "a batch that is none" -A 'broken/0.1' -H 'Content-Type: application/x-protobuf' \
        --data-binary 'not protobuf' "$url/v1development/profiles"
status
is "$(figure '[.refused[] | [.reason, .of, .count, .agent, .address]] | tojson')" \
        '[["bad_data","batches",1,"broken/0.1","127.0.0.1"]]' \
        "a refused batch is listed with its reason and sender"
is "$(figure '[.refused[] | (.text | length > 5), (.next_step | length > 10)] | unique | tojson')" '[true]' \
        "a refused batch has a text and a remedy"
out=$("$cairn" status --server "$url")
like "$out" '^refused +1 batch: bad_data, last of broken/0.1 from 127.0.0.1$' "the text lists the refused batch"
like "$out" '^ +the data violates its format' "the text has a remedy for the refused batch"
like "$out" '^ingest .*, 1 batch refused$' "one refused batch is no plural"
# An older service does not have this route.
python3 - "$url" "$tmp/older" <<'PYTHON' &
import http.server, os, sys, urllib.error, urllib.request
class Older(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        try:
            if self.path == "/api/v1/status":
                raise urllib.error.HTTPError(self.path, 404, "", {}, None)
            code, body = 200, urllib.request.urlopen(sys.argv[1] + self.path).read()
        except urllib.error.HTTPError as e:
            code, body = e.code, b"no such route"
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Older)
open(sys.argv[2] + ".new", "w").write(str(s.server_port))
os.rename(sys.argv[2] + ".new", sys.argv[2])
s.serve_forever()
PYTHON
background_pids="$background_pids $!"
wait_for "the older service" test -s "$tmp/older"
"$cairn" status --json --server "http://127.0.0.1:$(cat "$tmp/older")" >"$tmp/status"
is $? 0 "a service without /api/v1/status is shown from its metrics"
is "$(figure '[.refused, .ingest.failed_batches] | tojson')" '[[],1]' "  without the reasons of rejected requests"

out=$("$cairn" status --server "$url")
is $? 0 "on a screen it is 0 too"
like "$out" "^$url is ready\$" "  it begins with the state"
like "$out" '^ingest +[0-9.]+ samples/s, [0-9.]+ batches/s, [0-9,]+ samples since the start' \
        "the text has a line for each section"
like "$out" "^upstreams +$up answers, 0 found, [1-9][0-9]* missing, 0 failed, mean [0-9]+ ms" \
        "the text has a line for each upstream"
unlike "$out" ' 0 merges failed| 0 requests refused' "the text has no failures where there are none"
ok "  on one screen" test "$(printf '%s\n' "$out" | wc -l)" -le 24

"$cairn" status --watch --server "$url" >"$tmp/watched" 2>"$tmp/watched.err" &
watch_pid=$!
background_pids="$background_pids $watch_pid"
is_shown() { [ "$(grep -c ' is ready$' "$tmp/watched")" -ge "$1" ]; }
wait_for "two screens" is_shown 2
pass "--watch shows it again and again"
stop_server
# the stop may be reported first
says_so() { grep -q '^cairn status: .*is the service running.*; retrying in 1 s$' "$tmp/watched.err"; }
wait_for "a failure to be said" says_so
pass "  says that the service is away"
shown=$(grep -c ' is ready$' "$tmp/watched")
start_server --flush-interval 1 --upstream "$up" --listen "127.0.0.1:$port"
wait_for "the service to be shown again" is_shown $((shown + 1))
pass "  and goes on when it is back"
kill "$watch_pid"
# A terminal is cleared before each screen, but not for JSON.
python3 - "$cairn" "$url" >"$tmp/terminal" <<'PYTHON'
import os, pty, re, sys
def watch(want, *options):
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(sys.argv[1], [sys.argv[1], "status", "--watch", "--server", sys.argv[2], *options])
    text = b""
    while text.count(want) < 2:
        text += os.read(fd, 65536)
    os.kill(pid, 15)
    os.waitpid(pid, 0)
    os.close(fd)
    return text.count(b"\033")
print("text:", watch(b" is ready"), "json:", watch(b'"ready":true', "--json"))
PYTHON
like "$(cat "$tmp/terminal")" '^text: [4-9] json: 0$' \
        "a terminal is cleared for text, and gets no escape sequences with JSON"

# ---- conditions, tokens, no service ----

stop_server
aside=$data/profiles/queue/quarantine/00000000000000000099-00112233445566778899aabbccddeeff.batch
mkdir -p "${aside%/*}"
printf 'no batch' >"$aside"
printf 'secret-of-all read\nsecret-of-ci upload\n' >"$tmp/tokens"
printf 'secret-of-all\n' >"$tmp/token"
printf 'secret-of-ci\n' >"$tmp/upload-token"
start_server --token-file "$tmp/tokens"
status --token-file "$tmp/token"
is "$code" 0 "a warning still gives 0"
is "$(figure '.conditions[0] | .severity + " " + .name')" 'warning quarantine' "the warning is listed by name"
like "$(figure '.conditions[0].text')" '^1 batch of 8 bytes is set aside; see .cairn store quarantine list' \
        "the warning has a remedy"
like "$("$cairn" status --server "$url" --token-file "$tmp/token")" '^  warning quarantine: ' \
        "the text lists the warning"
status --token-file "$tmp/upload-token"
is "$code" 64 "a token without the scope read is refused"
"$cairn" status --watch --server "$url" --token-file "$tmp/upload-token" >/dev/null 2>&1
is $? 64 "--watch does not wait for a refused token to be accepted"
status
is "$code" 64 "as is none"
stop_server
status
is "$code" 1 "an unreachable service gives 1"
like "$(cat "$tmp/err")" 'cairn status: .*is the service running' "the message asks whether the service is running"

gcc -shared -fPIC -D_GNU_SOURCE -I. -o "$tmp/fault_fs.so" tests/faults/fault_fs.c tests/faults/fault_calls.c ||
        bail_out "the preload library does not build"
cairn=$CAIRN_BUILD/cairn # a sanitizer's runtime would have to be preloaded first
FAULT_FS_DIR=$data FAULT_FS_FULL=$tmp/full LD_PRELOAD=$tmp/fault_fs.so
export FAULT_FS_DIR FAULT_FS_FULL LD_PRELOAD
start_server
unset FAULT_FS_DIR FAULT_FS_FULL LD_PRELOAD
: >"$tmp/full"
is_not_ready() { status; [ "$code" = 1 ]; }
wait_for "the full disk" is_not_ready
is "$(figure .ready)" false "a service that is not ready gives 1"
like "$(figure '.conditions[] | select(.severity == "error") | .name')" disk_full \
        "a service with a full disk has the condition disk_full"
like "$("$cairn" status --server "$url")" "^$url is not ready\$" "the text says that the service is not ready"
rm "$tmp/full"
done_testing
