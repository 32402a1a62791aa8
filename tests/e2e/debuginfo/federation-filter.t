#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A service does not ask an upstream that is a service, too, for build-ids that are not in its published filter.
. tests/e2e/lib.sh

printf 'int main(void) { return 0; }\n' >"$tmp/a.c"
for b in 0a 0b 0c 0d; do
        gcc -g -O0 -Wl,--build-id="0x00000000000000000000000000000000000000$b" -o "$tmp/program-$b" "$tmp/a.c"
done

"$cairn" serve --data "$tmp/upstream" --listen 127.0.0.1:0 --port-file "$tmp/upstream.port" 2>"$tmp/upstream.log" &
background_pids=$!
wait_for 'the upstream' test -s "$tmp/upstream.port"
upstream=http://127.0.0.1:$(cat "$tmp/upstream.port")
upload() { "$CAIRN_SAN/cairn-upload" --server "$upstream" "$tmp/program-$1" >"$tmp/out" 2>&1; }
ok 'the upstream gets an object' upload 0a

start_server --upstream "$upstream"
# ask ID: the status of the service's answer for the debuginfo of a build-id.
ask() { curl -sS -o /dev/null -w '%{http_code}' "$url/buildid/$1/debuginfo"; }
absent() { printf 'ff%038d' "$1"; }
outcome() { curl -sS "$url/api/v1/debuginfo/upstreams" | jq ".upstreams[0].$1"; }

i=0
while [ $i -lt 16 ]; do
        ask "$(absent $i)" >>"$tmp/codes"
        i=$((i + 1))
done
is "$(outcome missing) $(outcome filtered)" '16 0' 'it asks the upstream for what neither has'
is "$(curl -sS -o "$tmp/filter" -w '%{http_code}' "$upstream/buildid-filter")" 200 'the upstream publishes a filter'
is "$(head -c 8 "$tmp/filter")" cairnidf '  of its build-ids'

# One of 256 is in the filter by chance; of 40 not all are.
while [ $i -lt 56 ]; do
        ask "$(absent $i)" >>"$tmp/codes"
        i=$((i + 1))
done
is "$(fold -w 3 "$tmp/codes" | sort | uniq -c | tr -s ' ')" ' 56 404' 'all are answered as missing'
is $(($(outcome missing) + $(outcome filtered))) 56 'each is either asked for or filtered'
ok '  and most are filtered' test "$(outcome filtered)" -ge 30
counted=$(metric "cairn_upstream_requests_total{upstream=\"$upstream\",outcome=\"filtered\"}")
is "$counted" "$(outcome filtered)" '  as a metric says'
is "$(ask "$(build_id_of "$tmp/program-0a")")" 200 'what the upstream has is found'
like "$(curl -sS "$url/buildid-filter")" 'cannot tell what is absent' 'a service with upstreams publishes none'

# Each is in the old filter by chance, too; of three not all are.
for b in 0b 0c 0d; do ok 'the upstream gets another object' upload $b; done
ask_new() { for b in 0b 0c 0d; do ask "$(build_id_of "$tmp/program-$b")"; done; }
like "$(ask_new)" '404' 'which is missing until the filter is requested again'
stop_server
start_server --upstream "$upstream"
is "$(ask_new)" 200200200 '  and found then'
stop_server

# ---- an upstream that limits requests for its filter ----

mkdir -p "$tmp/limiting/files"
echo 'filter 429' >"$tmp/limiting/mode"
python3 tests/e2e/upstream.py "$tmp/limiting" &
background_pids="$background_pids $!"
wait_for 'the limiting upstream' test -s "$tmp/limiting/port"
rm -rf "$data"
start_server --upstream "http://127.0.0.1:$(cat "$tmp/limiting/port")"
: >"$tmp/codes"
i=0
while [ $i -lt 40 ]; do
        ask "$(absent $i)" >>"$tmp/codes"
        i=$((i + 1))
done
is "$(fold -w 3 "$tmp/codes" | sort | uniq -c | tr -s ' ')" ' 40 404' 'what an upstream lacks is missing'
is "$(grep -c filter "$tmp/limiting/asked")" 1 '  it was asked for its filter, which it refused with 429, once'
is "$(outcome missing) $(outcome filtered) $(outcome breaker)" '40 0 "closed"' '  and for each object'
stop_server
done_testing
