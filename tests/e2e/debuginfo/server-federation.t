# SPDX-License-Identifier: Apache-2.0
# Objects that were not uploaded come from an upstream debuginfod: for samples in the background, for gdb while it
# waits.
. tests/e2e/lib.sh
command -v debuginfod >/dev/null || skip_all "elfutils' debuginfod is not installed"

printf 'int work(int n) { return n * 3; }\nint main(int argc, char **argv) { (void)argv; return work(argc); }\n' \
        >"$tmp/a.c"
mkdir "$tmp/files"
for b in 0a 0b 0c; do
        gcc -g -O0 -Wl,--build-id="0x00000000000000000000000000000000000000$b" -o "$tmp/program-$b" "$tmp/a.c"
        objcopy --only-keep-debug "$tmp/program-$b" "$tmp/program-$b.debug"
done
cp "$tmp/program-0a.debug" "$tmp/program-0b.debug" "$tmp/files"

# A free port, for an upstream that cannot select one itself.
upstream_port=$(free_port)
env -u DEBUGINFOD_URLS debuginfod -p "$upstream_port" -d "$tmp/upstream.sqlite" -F "$tmp/files" >"$tmp/upstream.log" \
        2>&1 &
background_pids=$!
upstream=http://127.0.0.1:$upstream_port
scanned() { curl -sS "$upstream/metrics" | grep -q '^thread_work_total{role="traverse"} [1-9]' &&
        curl -sSf -o /dev/null "$upstream/buildid/$(build_id_of "$tmp/program-0b")/debuginfo"; }
wait_for "the upstream to know its files" scanned

start_server --flush-interval 1 --upstream "$upstream"

# ---- for samples ----

ingest() {
        python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" "build_id=$(build_id_of "$tmp/program-$1")" "service=$2" \
                values=7 \
                "addresses=$(nm "$tmp/program-$1" | awk '$3 == "work" { print $1 }'),$(nm "$tmp/program-$1" |
                awk '$3 == "main" { print $1 }')"
        request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
        is "$code" 200 "samples of program $1 are accepted"
}
folded() {
        curl -sS -G "$url/api/v1/query/folded" --data-urlencode "selector={service_name=\"$1\"}" \
                --data-urlencode from=now-1h \
                --data-urlencode to=now
}
ingest 0a upstream-has-it
wait_metric 'cairn_federation_fetches_total{outcome="found"}' 1
wait_metric cairn_resymbolize_locations_total 2
is "$(folded upstream-has-it)" 'main;work 7' "the object is fetched and the past has names"
is "$(curl -sS "$url/api/v1/debuginfo" | jq -c '[.objects[] | [.source, .index.state]]')" '[["upstream","indexed"]]' \
        "it is stored with the upstream as source"

ingest 0c nobody-has-it
wait_metric 'cairn_federation_fetches_total{outcome="missing"}' 1
like "$(folded nobody-has-it)" '^0x' "an object that is nowhere available stays unresolved"

# ---- an object that the upstream got later ----

cp "$tmp/program-0c.debug" "$tmp/files"
kill -USR1 "$background_pids"
has_it() { curl -sSf -o /dev/null "$upstream/buildid/$(build_id_of "$tmp/program-0c")/debuginfo"; }
wait_for "the upstream to have the third object" has_it
stop_server
start_server --flush-interval 1 --upstream "$upstream"
wait_metric cairn_resymbolize_locations_total 2
is "$(folded nobody-has-it)" 'main;work 7' "it is requested again after a restart"

# ---- an object of which only the exported names are known ----

gcc -g -O0 -shared -fPIC -Wl,--build-id=0x000000000000000000000000000000000000000d -o "$tmp/program-0d" "$tmp/a.c"
strip -o "$tmp/stripped-0d" "$tmp/program-0d"
cp "$tmp/program-0d" "$tmp/files"
kill -USR1 "$background_pids"
has_fourth() { curl -sSf -o /dev/null "$upstream/buildid/$(build_id_of "$tmp/program-0d")/debuginfo"; }
wait_for "the upstream to have the fourth object" has_fourth
"$CAIRN_BUILD/cairn-upload" --server "$url" --symbols-only "$tmp/stripped-0d" >/dev/null
ingest 0d only-exported-names
wait_metric 'cairn_federation_fetches_total{outcome="found"}' 2
with_lines() { "$CAIRN_BUILD/cairn" query --server "$url" --lines --function work | grep -q 'a\.c'; }
wait_for "the samples to have lines" with_lines
pass "its debuginfo is fetched, and replaces the names"

# ---- for a debuginfod client ----

request "$url/buildid/$(build_id_of "$tmp/program-0b")/debuginfo"
is "$code" 200 "a client gets the upstream's object"
ok "byte for byte" cmp "$tmp/body" "$tmp/program-0b.debug"
request "$url/buildid/00112233/debuginfo"
is "$code" 404 "an unavailable object is 404"
asked=$(curl -sS "$upstream/metrics" | awk '/^http_requests_total{type="debuginfo"}/ { print $2 }')
request "$url/buildid/00112233/debuginfo"
is "$code" 404 "an unavailable object is 404 again"
is "$(curl -sS "$upstream/metrics" | awk '/^http_requests_total{type="debuginfo"}/ { print $2 }')" "$asked" \
        "without another request to the upstream"
request -H 'X-Forwarded-For: 1, 2, 3, 4, 5, 6, 7, 8' "$url/buildid/0011223344/debuginfo"
is "$code" 404 "a request forwarded too often is not forwarded again"
is "$(curl -sS "$upstream/metrics" | awk '/^http_requests_total{type="debuginfo"}/ { print $2 }')" "$asked" \
        "the upstream gets no request for it"

# ---- an upstream that is down ----

kill -9 "$background_pids"
background_pids=
curl -sS --max-time 60 -o "$tmp/body" "$url/buildid/aabbccdd/debuginfo" 2>"$tmp/curl.err"
is $? 56 "an upstream that is down resets the client, which then does not remember 'not found'"
if command -v debuginfod-find >/dev/null; then
        DEBUGINFOD_CACHE_PATH=$tmp/cache DEBUGINFOD_URLS=$url debuginfod-find debuginfo aabbccddee >/dev/null \
                2>"$tmp/err"
        ok "and the upstream gets no request" test ! -e "$tmp/cache/aabbccddee/debuginfo"
fi
ok "the service is healthy" healthy
done_testing
