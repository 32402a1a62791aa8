#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Objects that were not uploaded are fetched from upstreams, including elfutils' debuginfod, and past samples are
# re-symbolized.
. tests/e2e/lib.sh
for tool in debuginfod debuginfod-find gcc python3 jq; do
        command -v $tool >/dev/null || skip_all "$tool is not installed"
done

metric_at_reached() { [ "$(metric_at "$1" "$2")" -ge "$3" ]; }

# start_upstream DIR [VARIABLE=VALUE]...: elfutils' debuginfod over DIR; sets $upstream, $upstream_pid.
start_upstream() {
        upstream_dir=$1; shift
        upstream_port=$(free_port)
        env "$@" DEBUGINFOD_CACHE_PATH="$tmp/upstream-cache" debuginfod -F -p "$upstream_port" -d :memory: -t 0 -g 0 \
                "$upstream_dir" \
                >>"$tmp/upstream.log" 2>&1 &
        upstream_pid=$!
        background_pids="${background_pids:-} $upstream_pid"
        upstream=http://127.0.0.1:$upstream_port
        wait_for "debuginfod to have scanned its files" \
                metric_at_reached "$upstream" scanned_files_total\{source=\"file\"\} \
                "$(find "$upstream_dir" -type f | wc -l)"
        wait_for "debuginfod to be ready" metric_at_reached "$upstream" ready 1
}
asked() { metric_at "$upstream" "http_requests_total{type=\"$1\"}"; }
fetches() { metric "cairn_federation_fetches_total{outcome=\"$1\"}"; }

cat >"$tmp/program.c" <<'END'
volatile int sink;
static inline __attribute__((always_inline)) void inlined_part(int n) { sink += n * 3; }
__attribute__((noinline)) void outer_part(int n) { inlined_part(n); }
int main(int argc, char **argv) { (void)argv; outer_part(argc); return 0; }
END
mkdir "$tmp/files"
for n in 1 2 3; do
        gcc -g -O1 -DPROGRAM=$n -Wl,--build-id="0xcafe00000000000000000000000000000000000$n" -o "$tmp/files/program$n" \
                "$tmp/program.c"
done
id=$(build_id_of "$tmp/files/program1")
address() { nm "$tmp/files/program1" | awk -v name="$1" '$3 == name { print $1 }'; }
unknown=00112233445566778899aabbccddeeff00112233
# sample BUILD-ID: one sample of outer_part called by main.
sample() {
        python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" "build_id=$1" service=federated values=7 \
                mapping_file=program \
                "addresses=$(address outer_part),$(address main)"
        request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
}
store_value() { "$cairn" store status --data "$data" --json | jq "$1"; }
stored() { curl -sS "$url/api/v1/debuginfo" | jq -c "[.objects[] | select(.build_id == \"$1\") | $2]"; }

# ---- in the background ----

start_upstream "$tmp/files"
start_server --flush-interval 1 --upstream "$upstream"
sample "$id"
is "$code" 200 "samples of a program that was not uploaded are accepted"
wait_metric 'cairn_federation_fetches_total{outcome="found"}' 1
pass "its debuginfo is fetched without being asked for"
wait_metric cairn_resymbolize_locations_total 2
pass "and the past is re-symbolized"
is "$(stored "$id" '[.kind, .source, .quality, .index.state]')" '[["debuginfo","upstream","dwarf","indexed"]]' \
        "it is stored and indexed"
is "$(store_value .unresolved_locations)" 0 "no location is without symbols"
is "$("$cairn" symbolize --server "$url" --build-id "$id" "$(address outer_part)" | head -1)" inlined_part \
        "its addresses have names"
like "$("$cairn" top --data "$data" --json '{service_name="federated"}')" '"function": *"inlined_part"' \
        "its past samples have names too"
like "$("$cairn" top --data "$data" --json '{service_name="federated"}')" 'program\.c' \
        "  its past samples have their file"
is "$(asked debuginfo)" 1 "the upstream got one request"
sample "$id"
wait_metric cairn_flushes_total 2
is "$(asked debuginfo)" 1 "more samples of it cause no requests"

# ---- a client, through the service ----

find_it() { DEBUGINFOD_URLS=$url DEBUGINFOD_CACHE_PATH=$tmp/cache.$1 debuginfod-find "$2" "$3" 2>"$tmp/find.err"; }
id2=$(build_id_of "$tmp/files/program2")
ok "a client gets an upstream's object through the service" cmp "$(find_it 1 debuginfo "$id2")" "$tmp/files/program2"
ok "executables too" cmp "$(find_it 1 executable "$id2")" "$tmp/files/program2"
is "$(stored "$id2" .kind)" '["debuginfo","executable"]' "both are stored"
before="$(asked debuginfo) $(asked executable)"
ok "the second client gets the stored object" cmp "$(find_it 2 debuginfo "$id2")" "$tmp/files/program2"
is "$(asked debuginfo) $(asked executable)" "$before" "  without a request to the upstream"
id3=$(build_id_of "$tmp/files/program3")
before=$(asked debuginfo)
for n in 1 2 3 4 5 6; do
        curl -sS -o "$tmp/same.$n" "$url/buildid/$id3/debuginfo" &
        same_pids="${same_pids:-} $!"
done
# shellcheck disable=SC2086
wait $same_pids
all_same() { for n in 1 2 3 4 5 6; do cmp "$tmp/same.$n" "$tmp/files/program3" || return 1; done; }
ok "six clients at once all get the file" all_same
is "$(asked debuginfo)" $((before + 1)) "  the upstream got one request"

# ---- misses ----

before=$(asked debuginfo)
answers 404 not_found "what the upstream has not is 404" "$url/buildid/$unknown/debuginfo"
is "$(asked debuginfo)" $((before + 1)) "  after the request"
answers 404 not_found "and 404 again" "$url/buildid/$unknown/debuginfo"
find_it 3 debuginfo $unknown >/dev/null
flushes=$(metric cairn_flushes_total)
sample $unknown
is "$code" 200 "samples of it are accepted"
wait_metric cairn_flushes_total $((flushes + 1))
is "$(asked debuginfo)" $((before + 1)) "the upstream gets no second request for it"
is "$(fetches missing)" 1 "one miss is counted"

# ---- an unreachable upstream ----

kill $upstream_pid
wait $upstream_pid 2>/dev/null
gone=aa112233445566778899aabbccddeeff00112233
rm -rf "$tmp/cache.4"
find_it 4 debuginfo $gone >/dev/null
unlike $? '^0$' "while the upstream is down, a client gets nothing"
ok "but caches no miss" test ! -e "$tmp/cache.4/$gone/debuginfo"
request "$url/buildid/$gone/debuginfo"
is "$code" 000 "the connection is reset"
like "$(cat "$tmp/curl.err")" 'reset by peer' "  as curl says"
like "$(cat "$server_log")" "federation: $gone: cannot fetch .*$upstream" "the log says why"
answers 200 '' "what is stored is served" -o /dev/null "$url/buildid/$id2/debuginfo"
answers 404 not_found "what is known to be missing stays 404" "$url/buildid/$unknown/debuginfo"
sample ab112233445566778899aabbccddeeff00112233
wait_metric 'cairn_federation_fetches_total{outcome="failed"}' 2
ok "samples of unknown programs are still accepted" healthy
stop_server

# ---- upstreams from the environment, and no waiting for one that hangs ----

rm -rf "$data"
start_upstream "$tmp/files"
DEBUGINFOD_URLS="ima:enforcing $upstream"
export DEBUGINFOD_URLS
start_server
unset DEBUGINFOD_URLS
answers 200 '' "DEBUGINFOD_URLS names upstreams" "$url/buildid/$id/debuginfo"
ok "  and are used" cmp "$tmp/body" "$tmp/files/program1"
stop_server

cat >"$tmp/silent.py" <<'END'
import socket, sys
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen(64)
open(sys.argv[1] + ".new", "w").write(str(s.getsockname()[1]))
import os
os.rename(sys.argv[1] + ".new", sys.argv[1])
kept = []
while True:
    kept.append(s.accept())
    open(sys.argv[1] + ".asked", "w").close()
END
python3 "$tmp/silent.py" "$tmp/silent" &
background_pids="$background_pids $!"
wait_for "the silent upstream" test -s "$tmp/silent"
start_server --upstream "http://127.0.0.1:$(cat "$tmp/silent")"
curl -sS -o /dev/null "$url/buildid/$gone/debuginfo" 2>/dev/null &
waiting=$!
wait_for "the silent upstream to be asked" test -e "$tmp/silent.asked"
ok "while a client waits for an upstream, others are served" healthy

# The maximum number of waiting requests, and some more, all for the same object.
cat >"$tmp/crowd.py" <<'END'
import signal, socket, sys
kept = []
for _ in range(300):
    kept.append(socket.create_connection(("127.0.0.1", int(sys.argv[1]))))
    kept[-1].sendall(b"GET " + sys.argv[2].encode() + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
signal.pause()
END
python3 "$tmp/crowd.py" "$port" "/buildid/$gone/debuginfo" &
crowd=$!
background_pids="$background_pids $crowd"
wait_metric cairn_http_waiting 256
request -H 'X-Forwarded-For: 192.0.2.1, _cairn-0123456789abcdef' -D "$tmp/headers" "$url/buildid/$unknown/debuginfo"
is "$code" 503 "if too many requests wait, a requesting service gets an error"
like "$(cat "$tmp/headers")" '^Retry-After: [0-9]+' "  the error has the header Retry-After"
request -H 'X-Forwarded-For: 192.0.2.1, _cairn-0123456789abcdef' "$url/buildid/$unknown/section/.debug_info"
is "$code" 503 "  a service that requests a section gets an error too"
curl -sS -o /dev/null "$url/buildid/$unknown/debuginfo" 2>/dev/null
is $? 56 "and any other client is reset, for it would take that for \"not found\""
kill "$crowd"
wait "$crowd" 2>/dev/null

begin=$(date +%s)
stop_server
ok "stopping does not wait for the upstream" test $(($(date +%s) - begin)) -lt 60
wait $waiting
unlike $? '^0$' "who waited is told nothing"

# ---- cycles ----

# service NAME PORT UPSTREAM: starts another service.
service() {
        rm -f "$tmp/$1.port"
        "$cairn" serve --data "$tmp/$1" --listen "127.0.0.1:$2" --port-file "$tmp/$1.port" --upstream "$3" \
                2>>"$server_log" &
        eval "$1_pid=\$!"
        background_pids="$background_pids $!"
        wait_for "service $1" test -s "$tmp/$1.port"
}
one=$(free_port)
two=$(free_port)
service first "$one" "http://127.0.0.1:$two"
service second "$two" "http://127.0.0.1:$one"
url=http://127.0.0.1:$one
answers 404 not_found "two services that ask each other say 404" "$url/buildid/$unknown/debuginfo"
# More of them than a service handles concurrently.
for n in $(seq 10 49); do
        for port in "$one" "$two"; do
                curl -sS -o /dev/null -w '%{http_code}\n' "http://127.0.0.1:$port/buildid/bbbb$n/debuginfo" \
                        >"$tmp/ring.$port.$n" &
                ring_pids="${ring_pids:-} $!"
        done
done
# shellcheck disable=SC2086
wait $ring_pids
is "$(cat "$tmp"/ring.* | sort | uniq -c | tr -s ' ')" " 80 404" \
        "both services answer 404 to concurrent requests for one object"
is "$(curl -sS "$url/metrics" |
        awk '/^cairn_upstream_requests_total.*outcome="(failed|unsure)"/ { n += $2 } END { print n + 0 }')" 0 \
        "  no request to an upstream timed out"
# shellcheck disable=SC2154
kill "$first_pid" "$second_pid"
wait "$first_pid" "$second_pid"

service own "$one" "http://127.0.0.1:$one"
answers 404 not_found "a service that is its own upstream says 404" "$url/buildid/$unknown/debuginfo"
# shellcheck disable=SC2154
kill "$own_pid"
wait "$own_pid"

start_upstream "$tmp/files" "DEBUGINFOD_URLS=http://127.0.0.1:$one"
service third "$one" "$upstream"
answers 404 not_found "a ring through elfutils' debuginfod ends too" "$url/buildid/$unknown/debuginfo"
answers 200 '' "  and has what that has" "$url/buildid/$id/debuginfo"
# shellcheck disable=SC2154
kill "$third_pid"
wait "$third_pid"
check_log

done_testing
