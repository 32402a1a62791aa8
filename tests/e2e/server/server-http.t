# SPDX-License-Identifier: Apache-2.0
# General behaviour of the service: starting, refusing to start, tokens, methods, paths, the table files.
. tests/e2e/lib.sh

# ---- starting ----

"$cairn" serve --data "$tmp/none" --listen 0.0.0.0:0 2>"$tmp/err"
is $? 64 "listening beyond loopback without tokens is refused"
like "$(cat "$tmp/err")" "without tokens.*--token-file" "the refusal names the option that helps"
ok "and nothing was created" test ! -e "$tmp/none"
"$cairn" serve --data "$tmp/none" --listen 127.0.0.1:99999 2>"$tmp/err"
is $? 64 "a wrong address is a usage error"
"$cairn" serve --upstream ftp://example.org 2>"$tmp/err"
is $? 64 "a wrong upstream is a usage error"
printf 'bad\n' >"$tmp/tokens"
"$cairn" serve --data "$tmp/none" --token-file "$tmp/tokens" 2>"$tmp/err"
is $? 2 "a malformed token file is bad data"
like "$(cat "$tmp/err")" "line 1" "the line of the malformed token is reported"

start_server
"$cairn" serve --data "$data" --listen 127.0.0.1:0 2>"$tmp/err"
is $? 1 "a second service on the same directory is refused"
like "$(cat "$tmp/err")" "a running service uses" "the refusal says that a running service uses the directory"

# ---- without tokens on loopback ----

answers 200 '^ok' "healthz" "$url/healthz"
answers 200 '^ready' "readyz" "$url/readyz"
answers 200 '^# TYPE cairn_http_requests_total counter' "metrics" "$url/metrics"
answers 404 './nowhere. does not exist' "an unknown path is 404" "$url/nowhere"
answers 405 'allowed: POST' "a wrong method is 405" "$url/v1development/profiles"
like "$(curl -sSI "$url/v1development/profiles")" "^Allow: POST" "a wrong method gets the header Allow"
answers 405 'allowed: GET, HEAD' "a wrong method of a reading route too" -X DELETE "$url/store/"
answers 200 '"tables":\[.*"samples".*"stacks".*"locations"' "the listing names the three tables" "$url/store/"
answers 404 'not_found' "an unknown table is 404" "$url/store/secrets/"
for path in ../../lock %2e%2e/%2e%2e/lock ..%2f..%2flock .tmp-x/a.parquet _delta_log/../../../../lock \
        x/../../../lock; do
        answers 404 'not_found' "a path cannot climb: $path" --path-as-is "$url/store/samples/$path"
done
answers 200 '"objects":\[\]' "nothing is stored" "$url/api/v1/debuginfo"
answers 200 '"missing":\[\]' "nothing is missing" "$url/api/v1/debuginfo/missing"
stop_server

# ---- with tokens ----

cat >"$tmp/tokens" <<EOF
reader-token   read            # dashboards
agent-token    ingest,upload
operator-token admin         name=ops
EOF
start_server --token-file "$tmp/tokens"
answers 401 'no_token' "no token" "$url/api/v1/debuginfo"
like "$(curl -sSI "$url/api/v1/debuginfo")" "^WWW-Authenticate: Bearer" \
        "a request without a token gets WWW-Authenticate"
answers 401 'bad_token' "an unknown token" -H 'Authorization: Bearer reader-tokem' "$url/api/v1/debuginfo"
answers 200 'objects' "a reading token reads" -H 'Authorization: Bearer reader-token' "$url/api/v1/debuginfo"
answers 403 "scope 'ingest'" "a reading token does not write" -H 'Authorization: Bearer reader-token' \
        -H 'Content-Type: application/x-protobuf' --data-binary '' "$url/v1development/profiles"
answers 403 "scope 'read'" "a writing token does not read" -H 'Authorization: Bearer agent-token' "$url/metrics"
answers 403 "scope 'admin'" "nor administer" -X POST -H 'Authorization: Bearer agent-token' "$url/api/v1/resymbolize"
answers 200 'locations_seen' "an administrator does" -X POST -H 'Authorization: Bearer operator-token' \
        "$url/api/v1/resymbolize"
answers 200 'tables' "and reads" -H 'Authorization: Bearer operator-token' "$url/store/"
answers 200 '^ok' "health needs no token" "$url/healthz"
like "$(cat "$server_log")" 'info audit: 200 POST /api/v1/resymbolize by ops from 127\.0\.0\.1$' \
        "a change is in the log, with the name of the token"
like "$(cat "$server_log")" 'info audit: 403 POST /api/v1/resymbolize by - from' "as are refused requests"
unlike "$(cat "$server_log")" '(reader|agent|operator)-token' "the log has no token"
is "$(curl -sS -H 'Authorization: Bearer operator-token' "$url/metrics" |
        grep -c '^cairn_access_refused_total{code="40[13]"} [1-9]')" 2 "refusals are counted"
printf 'another-token read\n' >"$tmp/tokens"
kill -HUP "$server_pid"
reloaded() { [ "$(curl -sS -o /dev/null -w '%{http_code}' -H 'Authorization: Bearer another-token' \
        "$url/api/v1/debuginfo")" = 200 ]; }
wait_for "the tokens to be read again" reloaded
answers 401 'bad_token' "a token that is no more in the file" -H 'Authorization: Bearer operator-token' "$url/store/"
head -c 70000000 /dev/zero >"$tmp/large"
answers 401 'no_token' "a large body without a token is 401" -T "$tmp/large" -X POST "$url/v1development/profiles"
answers 401 'no_token' "also when the client does not wait" -H 'Expect:' -T "$tmp/large" -X POST \
        "$url/v1development/profiles"

# ---- clients that disconnect in the middle ----

python3 - "$port" <<'EOF'
import socket, sys
for i in range(600):
    c = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=120)
    c.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
    c.close()
EOF
ok "more clients than connections, which all disconnected half-way, do not block the next one" curl -sS \
        -f -o /dev/null -m 120 "$url/healthz"
stop_server

# ---- read-only ----

start_server --read-only
answers 200 'tables' "a read-only service reads" "$url/store/"
answers 403 'read-only' "and takes no samples" -H 'Content-Type: application/x-protobuf' --data-binary x \
        "$url/v1development/profiles"
answers 403 'read-only' "no objects" -X PUT --data-binary x "$url/api/v1/debuginfo/abcd/debuginfo"
answers 403 'read-only' "and resymbolizes nothing" -X POST "$url/api/v1/resymbolize"
stop_server
rm -rf "$data/index" "$data/debuginfo"
start_server --read-only
answers 200 'tables' "it reads tables that have no index and no objects beside them" "$url/store/"
answers 200 '"objects": ?\[\]' "  lists no object" "$url/api/v1/debuginfo"
answers 404 'not_found' "  has none" "$url/buildid/abcd/debuginfo"
answers 404 'no symbol index' "  and symbolizes nothing" -H 'Content-Type: application/json' \
        -d '{"objects":[{"build_id":"00ff","addresses":["1"]}]}' "$url/api/v1/symbolize"
done_testing
