#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unreliable upstreams: they are queried in order, a failing one is skipped for a while, no partial file is served, and
# waiting clients receive data while it arrives.
. tests/e2e/lib.sh
for tool in gcc python3 jq; do
        command -v $tool >/dev/null || skip_all "$tool is not installed"
done

# make_upstream NAME: starts one; its directory is $tmp/NAME, its URL in $NAME.
make_upstream() {
        mkdir -p "$tmp/$1/files"
        : >"$tmp/$1/asked"
        python3 tests/e2e/upstream.py "$tmp/$1" &
        background_pids="${background_pids:-} $!"
        wait_for "upstream $1" test -s "$tmp/$1/port"
        eval "$1=http://127.0.0.1:$(cat "$tmp/$1/port")"
}
mode() { printf '%s\n' "$2" >"$tmp/$1/mode"; }
asked() { wc -l <"$tmp/$1/asked"; }
# upstream NAME JQ: of the status of that upstream.
upstream() { curl -sS "$url/api/v1/debuginfo/upstreams" |
        jq -r ".upstreams[] | select(.url == \"$(eval "echo \$$1")\") | $2"; }
stored() { curl -sS "$url/api/v1/debuginfo" | jq "[.objects[] | select(.build_id == \"$1\")] | length"; }

printf 'int main(void) { return 0; }\n' >"$tmp/a.c"
# big N: creates a file with debuginfo and build-id N, larger than 1 MB, for the upstream `first`.
id_of() { printf '00000000000000000000000000000000000000%02x' "$1"; }
make_upstream first
make_upstream second
head -c 1000000 /dev/urandom >"$tmp/noise"
for n in 1 2 3 4 5 6 7 8 9; do
        gcc -g -Wl,--build-id="0x$(id_of $n)" -o "$tmp/program" "$tmp/a.c"
        objcopy --add-section .noise="$tmp/noise" "$tmp/program"
        mkdir -p "$tmp/first/files/$(id_of $n)"
        mv "$tmp/program" "$tmp/first/files/$(id_of $n)/debuginfo"
done
file_of() { printf '%s' "$tmp/first/files/$(id_of "$1")/debuginfo"; }

# shellcheck disable=SC2154
start_server --flush-interval 1 --upstream "$first" --upstream "$second"

# ---- in order ----

answers 404 not_found "what nobody has is 404" "$url/buildid/$(id_of 99)/debuginfo"
is "$(asked first) $(asked second)" "1 1" "after requests to both"
request "$url/buildid/$(id_of 1)/debuginfo"
is "$code" 200 "an object of the first"
is "$(asked first) $(asked second)" "2 1" "  is not requested from the second"
ok "  and is the right file" cmp "$tmp/body" "$(file_of 1)"
like "$(curl -sS --head "$url/buildid/$(id_of 1)/debuginfo")" '^Content-Length' \
        "it is stored now, and its size is known"
wait_metric "cairn_upstream_requests_total{upstream=\"$first\",outcome=\"found\"}" 1 # may be counted after it is stored
is "$(upstream first .breaker) $(upstream first .found) $(upstream first .missing)" "closed 1 1" \
        "the status tells of the first"
like "$(metric "cairn_upstream_requests_total{upstream=\"$first\",outcome=\"found\"}")" '^1$' "the metrics too"
ok "  with its bytes" test "$(metric "cairn_upstream_bytes_total{upstream=\"$first\"}")" -gt 1000000

# ---- during the transfer ----

mode first hold
curl -sS -N -D "$tmp/early.headers" -o "$tmp/early" "$url/buildid/$(id_of 2)/debuginfo" &
early=$!
half() { [ "$(stat -c %s "$1" 2>/dev/null || echo 0)" -ge 400000 ]; }
wait_for "the first half of the file" half "$tmp/early"
pass "a client has the first half before the upstream has sent the second"
like "$(tr -d '\r' <"$tmp/early.headers")" "^X-DEBUGINFOD-SIZE: $(stat -c %s "$(file_of 2)")\$" \
        "  the client knows the size of the file"
like "$(tr -d '\r' <"$tmp/early.headers")" '^X-DEBUGINFOD-FILE: /usr/lib/from upstream.debug$' \
        "  the client knows the name of the file"
is "$(stored "$(id_of 2)")" 0 "it is not stored yet"
fetchers() { for line in /proc/[0-9]*/cmdline; do tr '\0' ' ' <"$line" 2>/dev/null; echo; done |
        grep "worker fetch buildid/$(id_of 2)/"; }
like "$(fetchers)" 'debuginfo' "a process fetches it"
unlike "$(fetchers)" "$first" "  the command line of the process hides the upstream's URL, which may have a password"
curl -sS -N -o "$tmp/early.other" "$url/buildid/$(id_of 2)/debuginfo" &
other=$!
wait_for "the second client's half" half "$tmp/early.other"
request -H 'X-DEBUGINFOD-MAXSIZE: 1000' "$url/buildid/$(id_of 2)/debuginfo"
is "$code" 406 "a client with a smaller size limit gets an error at once"
is "$(asked first)" 3 "both clients share one request to the upstream"
kill $early
wait $early 2>/dev/null
: >"$tmp/first/go"
wait $other
is $? 0 "the other one gets all of it when the first client has left"
ok "  byte for byte" cmp "$tmp/early.other" "$(file_of 2)"
is "$(stored "$(id_of 2)")" 1 "the whole file is stored"
like "$(curl -sSI "$url/buildid/$(id_of 2)/debuginfo" | tr -d '\r')" '^X-DEBUGINFOD-FILE: from upstream.debug$' \
        "  its name is the one that the upstream gave"
rm "$tmp/first/go"

curl -sS -N -o "$tmp/only" "$url/buildid/$(id_of 3)/debuginfo" &
only=$!
wait_for "half of the third" half "$tmp/only"
kill $only
wait $only 2>/dev/null
: >"$tmp/first/go"
has_third() { [ "$(stored "$(id_of 3)")" = 1 ]; }
wait_for "the fetch of somebody who left" has_third
pass "a fetch goes on when its only client leaves"

mode first chunked
request "$url/buildid/$(id_of 4)/debuginfo"
is "$code" 200 "an upstream without Content-Length"
ok "  works equally" cmp "$tmp/body" "$(file_of 4)"

# ---- samples never wait for upstreams ----

mode first hold
rm -f "$tmp/first/go"
gcc -g -O0 -Wl,--build-id="0x$(id_of 70)" -o "$tmp/sampled" "$tmp/a.c"
mkdir "$tmp/first/files/$(id_of 70)"
cp "$tmp/sampled" "$tmp/first/files/$(id_of 70)/debuginfo"
python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" "build_id=$(id_of 70)" service=sampled values=7 \
        "addresses=$(nm "$tmp/sampled" | awk '$3 == "main" { print $1 }')"
request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
is "$code" 200 "samples are accepted"
was_asked() { grep -q "$(id_of 70)" "$tmp/first/asked"; }
wait_for "the upstream to be asked for their object" was_asked
folded() { curl -sS --max-time 20 -G "$url/api/v1/query/folded" --data-urlencode 'selector={service_name="sampled"}' \
        --data-urlencode from=now-1h --data-urlencode to=now; }
like "$(folded)" '^0x[0-9a-f]+.* 7$' "while the upstream sends their debuginfo, they are answered with an address"
: >"$tmp/first/go"
wait_metric cairn_resymbolize_locations_total 1
is "$(folded)" 'main 7' "when it has arrived, past samples have names"
rm "$tmp/first/go"

# ---- no partial files ----

mode first cut
curl -sS -o "$tmp/cut" "$url/buildid/$(id_of 5)/debuginfo" 2>"$tmp/curl.err"
is $? 56 "what is cut off midway is a reset"
is "$(stored "$(id_of 5)")" 0 "  nothing is stored of a file that is cut off"
if command -v debuginfod-find >/dev/null; then
        DEBUGINFOD_CACHE_PATH=$tmp/cache DEBUGINFOD_URLS=$url debuginfod-find debuginfo "$(id_of 5)" >/dev/null 2>&1
        ok "  a client caches no miss" test ! -e "$tmp/cache/$(id_of 5)/debuginfo"
fi
wait_for "the log" grep -Eq "$(id_of 5): cannot fetch .* its response was truncated after [0-9]+ bytes" "$server_log"
pass "  the log says why"

mode first page
curl -sS -o "$tmp/page" "$url/buildid/$(id_of 6)/debuginfo" 2>"$tmp/curl.err"
is $? 56 "a page of HTML is no debuginfo: reset"
is "$(stored "$(id_of 6)")" 0 "  a page of HTML is not stored"
is "$(upstream first .refused) $(upstream first .failures_in_a_row)" "1 0" \
        "  a page of HTML is counted as refused, apart from failures"
mode first large
request "$url/buildid/$(id_of 7)/debuginfo"
is "$code" 000 "an object over the size limit is not fetched"
is "$(upstream first .refused)" 2 "  an object over the size limit is counted as refused"
cp "$(file_of 1)" "$tmp/first/files/$(id_of 7)/debuginfo"
mkdir "$tmp/first/files/$(id_of 60)"
cp "$(file_of 1)" "$tmp/first/files/$(id_of 60)/debuginfo"
mode first ok
curl -sS -o "$tmp/wrong" "$url/buildid/$(id_of 60)/debuginfo" 2>"$tmp/curl.err"
is "$? $(stored "$(id_of 60)")" "56 0" "the end of a file with another build-id is never sent to clients"

# ---- redirects ----

mode first "redirect $first"
request "$url/buildid/$(id_of 8)/debuginfo"
is "$code" 200 "a redirect to the same host is followed"
mode first "redirect $second"
mkdir -p "$tmp/second/files/$(id_of 9)"
cp "$(file_of 9)" "$tmp/second/files/$(id_of 9)/debuginfo"
mode second "status 404"
before=$(asked second)
request "$url/buildid/$(id_of 9)/debuginfo"
is "$code" 000 "one to another is not"
is "$(asked second)" $((before + 1)) "  the other host got requests only in its own turn"
like "$(cat "$server_log")" 'redirects to another host' "  the log says that the redirect leads to another host"
rm "$tmp/second/mode"

# ---- the circuit breaker ----

mode first "status 500"
for n in 20 21 22 23 24 25; do
        request "$url/buildid/$(id_of $n)/debuginfo"
done
is "$(upstream first .breaker)" open "an upstream that fails repeatedly is skipped"
# It is probed after half a minute, which may be now on a busy machine.
n=109
is_left_alone() {
        n=$((n + 1))
        before=$(asked first)
        begin=$(date +%s)
        request "$url/buildid/$(id_of $n)/debuginfo"
        [ "$(asked first)" = "$before" ]
}
wait_for "a question that it is not asked" is_left_alone
is "$code" 000 "a request that it might have answered is reset, not 404"
ok "  long before a time limit" test $(($(date +%s) - begin)) -lt 60
like "$(upstream first .skipped)" '^[1-9]' "  the skipped request is counted"
is "$(metric "cairn_upstream_open{upstream=\"$first\"}")" 1 "the metrics show it"
like "$(cat "$server_log")" \
        "upstream $first failed [0-9]+ times in a row and is skipped for [0-9]+ s; last error: .*status 500.*curl -I" \
        "the log reports it, with a remedy"
shown=$("$cairn" debuginfo upstreams --server "$url")
like "$shown" "^$first +open " "cairn debuginfo upstreams shows it"
like "$shown" 'failed [0-9]+ times in a row, next request in [0-9]+ s' \
        "  cairn debuginfo upstreams has the time of the next request"
like "$shown" "^$second +closed " "  cairn debuginfo upstreams has the other upstream"
mkdir -p "$tmp/second/files/$(id_of 9)"
gcc -g -Wl,--build-id="0x$(id_of 31)" -o "$tmp/program" "$tmp/a.c"
mkdir "$tmp/second/files/$(id_of 31)"
mv "$tmp/program" "$tmp/second/files/$(id_of 31)/debuginfo"
request "$url/buildid/$(id_of 31)/debuginfo"
is "$code" 200 "objects of the second are fetched in the meantime"

mode second "status 503 120"
request "$url/buildid/$(id_of 40)/debuginfo"
is "$(upstream second .breaker)" open "one that sends Retry-After is skipped at once"
ok "  for so long" test "$(upstream second .retry_in_s)" -gt 90
ok "the service is healthy" healthy
done_testing
