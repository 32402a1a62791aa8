#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Profiles by link: a profile posted in each format is returned as a page and as pprof; limits, age, scopes, restarts.
. tests/e2e/lib.sh
for tool in curl jq python3 gunzip; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

# share FILE [CURL-ARGUMENT]... [?QUERY]: sets $code, $body, $link.
share() {
        share_file=$1; shift
        share_query=${1:-}; [ $# -eq 0 ] || shift
        request "$@" --data-binary "@$share_file" "$url/api/v1/share$share_query"
        link=$url$(printf '%s' "$body" | jq -r '.url // empty' 2>/dev/null)
}
# folded_of URL: its stacks with values.
folded_of() {
        curl -sS -o "$tmp/got.pb.gz" "$1/profile" && "$cairn" flame --profile "$tmp/got.pb.gz" 2>/dev/null | sort
}
stored() { find "$data/shares" -name '*.pb.gz' | wc -l; }

printf 'main;work 30\nmain;work;leaf 12\n' >"$tmp/a.folded"
cat >"$tmp/a.json" <<'END'
{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"main"},{"name":"work"},{"name":"leaf"}]},
"profiles":[{"type":"sampled","name":"p","unit":"none","startValue":0,"endValue":42,"samples":[[0,1],[0,1,2]],"weights":[30,12]}]}
END
python3 tests/e2e/profiles.py "$tmp/p" || bail_out "profiles.py failed"

start_server
# A time and a duration whose sum exceeds 64 bits: fields 9 and 10 are replaced.
python3 - tests/corpus/pprof/good/go-cpu.pb.gz "$tmp/late.pb.gz" <<'END' || bail_out "the profile cannot be changed"
import gzip, sys
def varint(at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at
data, at, kept = gzip.open(sys.argv[1]).read(), 0, b""
while at < len(data):
    start = at
    tag, at = varint(at)
    size, at = varint(at)
    at += size if tag & 7 == 2 else 0
    kept += b"" if tag >> 3 in (9, 10) else data[start:at]
late = b"\x48\xd8\xf9\xff\xff\xff\xff\xff\xff\x7f\x50\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
gzip.open(sys.argv[2], "wb").write(kept + late)
END
like "$("$cairn" top --profile "$tmp/late.pb.gz" 2>&1)" ' in 136 samples, 2262-04-11 ' \
        "a profile with extreme times is read completely"
share "$tmp/a.folded"
is "$code" 201 "folded stacks are shared"
like "$body" '^\{"id":"[0-9a-f]{32}","url":"/share/[0-9a-f]{32}","expires":"20[0-9-]{8}T[0-9:]{8}Z"\}$' \
        "  the response has id, link and expiry"
first=$link
is "$(folded_of "$link")" "$(sort "$tmp/a.folded")" "  the shared profile has the same stacks as pprof"
answers 200 '<!doctype html>' "  and a page" "$link"
like "$body" '"leaf"' "    the page has the frames"
like "$(curl -sS "$link?format=json" | jq -c '[.sides[0].total, .total] | map(select(. != null)) | .[0]')" '^42$' \
        "  the data of the page is served as JSON"
like "$(curl -sS -D - -o /dev/null "$link" | grep -i '^content-security-policy')" "script-src 'sha256-" \
        "  whose script may run"
answers 400 'maximum|max_nodes' "  whose parameters are checked" "$link?max_nodes=x"
share "$tmp/a.json"
is "$code $(folded_of "$link")" "201 $(sort "$tmp/a.folded")" "speedscope is detected"
share "$tmp/p/good.otlp" '?format=otlp'
is "$code" 201 "OTLP is shared"
like "$(folded_of "$link")" '[0-9]' "  the shared OTLP profile has stacks"
share "$tmp/p/good.pprof" '' -H 'Content-Type: application/octet-stream'
is "$code" 201 "pprof is shared"
answers 200 '<!doctype html>' "  and has a page" "$link"
is "$("$cairn" query --server "$url" --from 1970-01-01 --json 2>/dev/null | jq '[.sides[].samples] | add // 0')" 0 \
        "no share is among the stored samples"
is "$(stored) $(metric cairn_shares) $(metric cairn_shares_posted_total)" "4 4 4" "four are kept and counted"

# ---- rejected profiles ----

printf 'no profile at all' >"$tmp/bad"
share "$tmp/bad"
is "$code" 400 "invalid data is refused"
share "$tmp/a.folded" '?format=elf'
is "$code" 400 "an unknown format is refused"
like "$body" 'one of pprof, otlp, speedscope, perf, folded' "  the refusal lists the known formats"
: >"$tmp/empty"
share "$tmp/empty" '?format=pprof'
is "$code" 400 "a profile without samples is refused"
head -c 17000000 /dev/zero >"$tmp/large"
share "$tmp/large"
is "$code" 413 "one over 16 MiB is refused"
for id in 00000000000000000000000000000000 ../lock x "$(basename "$first").pb.gz"; do
        answers 404 'share does not exist|not_found|no route' "there is no share $id" --path-as-is "$url/share/$id"
done
is "$(stored)" 4 "nothing was stored"

# ---- memory ----

python3 -c 'print("\n".join("main;f%d;g%d;h%d 1" % (i, i, i) for i in range(60000)))' >"$tmp/many.folded"
share "$tmp/many.folded"
is "$code" 201 "a share of many functions"
many=$(basename "$link")
answers 200 '"total"|\[|\{' "  is read" "$link?format=json&selector=%7Bcomm%3D%22none%22%7D"
stop_server
start_server --query-memory 4M
answers 413 'query-memory' "  within the memory of a query" \
        "$url/share/$many?format=json&selector=%7Bcomm%3D%22none%22%7D"
first=$url/share/$(basename "$first")
answers 200 '<!doctype html>' "  which smaller ones do not need" "$first"
rm "$data/shares/$many.pb.gz"

# ---- expiry of a share ----

touch -d '31 days ago' "$data/shares/$(basename "$first").pb.gz"
answers 404 'oldest' "a share over its age is not found" "$first"
like "$(ls "$data/shares")" "$(basename "$first")" "  although the file still exists"
: >"$data/shares/.tmp-left"
touch -d '1 day ago' "$data/shares/.tmp-left"
stop_server
start_server --share-age any
wait_for "the first round of expiry" metric_equals cairn_shares 4
answers 200 '<!doctype html>' "with --share-age any it is there, also after a restart" "$url/share/$(basename "$first")"
is "$(find "$data/shares" -name "*tmp*")" "" "a file left by a crash is removed"
stop_server
start_server
wait_metric 'cairn_shares_removed_total{reason="age"}' 1
is "$(stored)" 3 "the hourly cleanup removes expired shares"
stop_server

size=$(stat -c %s "$data"/shares/*.pb.gz | sort -n | tail -1)
start_server --share-size $((size + 100))
share "$tmp/a.folded"
is "$code" 201 "there is room for a new share when the oldest are removed"
ok "  so that all fit" \
        test "$(stat -c %s "$data"/shares/*.pb.gz | awk '{ n += $1 } END { print n }')" -le $((size + 100))
ok "  which is counted" test "$(metric 'cairn_shares_removed_total{reason="size"}')" -ge 1
answers 200 '<!doctype html>' "  and the new one is there" "$link"
stop_server

kept=$(basename "$link")
start_server --share-size 0
share "$tmp/a.folded"
is "$code" 403 "--share-size 0 turns sharing off"
answers 404 '' "  and no share is found" "$url/share/$kept"
stop_server

start_server --read-only
share "$tmp/a.folded"
is "$code" 403 "a read-only service takes none"
answers 200 '<!doctype html>' "  and shows those that are there" "$url/share/$kept"
stop_server

# ---- scopes ----

printf '%s\n' 'reader-0123456789abcdef read' 'writer-0123456789abcdef ingest' >"$tmp/tokens"
chmod 600 "$tmp/tokens"
start_server --token-file "$tmp/tokens"
share "$tmp/a.folded"
is "$code" 401 "sharing requires a token if there are tokens"
share "$tmp/a.folded" '' -H 'Authorization: Bearer reader-0123456789abcdef'
is "$code" 403 "  not one that reads"
share "$tmp/a.folded" '' -H 'Authorization: Bearer writer-0123456789abcdef'
is "$code" 201 "  a token with ingest may share"
answers 403 '' "  which does not read it" -H 'Authorization: Bearer writer-0123456789abcdef' "$link"
answers 200 '<!doctype html>' "  as one with read does" -u any:reader-0123456789abcdef "$link"
like "$(curl -sS -D - -o /dev/null -H 'Accept: text/html,*/*' "$link")" '^[Ww][Ww][Ww]-[Aa]uthenticate: Basic ' \
        "a browser asks its user for the token"
like "$(curl -sS -D - -o /dev/null "$link")" '^[Ww][Ww][Ww]-[Aa]uthenticate: Bearer ' \
        "  other clients are asked for a bearer token"
like "$(curl -sS -D - -o /dev/null -H 'Accept: text/html' -d x "$url/api/v1/share")" \
        '^[Ww][Ww][Ww]-[Aa]uthenticate: Bearer ' \
        "  a client that changes something is asked for a bearer token"

answers 401 '' "the profile takes a token, too" "$link/profile"

# ---- cairn record --share ----

"$cairn" record --share "$url" --token-file /dev/null -- true >/dev/null 2>"$tmp/err"
ok "an empty token file is an error" test $? -ne 0
if "$CAIRN_BUILD/cairn-agent" --doctor --sampler perf >"$tmp/doctor"; then
        echo writer-0123456789abcdef >"$tmp/token"
        "$cairn" record --share "$url/" --token-file "$tmp/token" -F 999 -- sh \
                -c 'i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done' \
                >"$tmp/out" 2>"$tmp/err"
        is "$?" 0 "cairn record --share"
        like "$(cat "$tmp/out")" "^$url/share/[0-9a-f]{32}\$" "  prints the link and nothing else"
        answers 200 '<!doctype html>' "  which has a page" -u any:reader-0123456789abcdef "$(cat "$tmp/out")"
        like "$body" '"(sh|dash|bash|busybox)"|dash' "    to the recorded profile"
else
        diag "no perf events here: cairn record --share is not tried"
fi
"$cairn" record --token-file "$tmp/tokens" -- true >/dev/null 2>"$tmp/err"
is $? 64 "--token-file without --share is a usage error"
done_testing
