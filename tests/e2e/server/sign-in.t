#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Browser sign-in, tested with curl: the cookie and the routes for which it is accepted, forged requests, guessed
# tokens, expiry of a session, and users named by a proxy.
. tests/e2e/lib.sh

# signs_in JAR TOKEN [CURL-ARGUMENT]...: sets $code, $body, and the response's headers in $tmp/headers.
signs_in() {
        jar=$1; token=$2; shift 2
        request -D "$tmp/headers" -c "$jar" -H 'Content-Type: application/json' -d "{\"token\":\"$token\"}" "$@" \
                "$url/login"
}
csrf() { curl -sS -b "$1" "$url/api/v1/session" | jq -r .csrf; }
cookie() { grep -i '^set-cookie:' "$tmp/headers" | tr -d '\r'; }
status_of() { curl -sS -o /dev/null -w '%{http_code}' "$@"; }
as_root() { curl -sS -H 'Authorization: Bearer root-token' "$url/metrics" |
        awk -v name="$1" '$1 == name { print $2 }'; }

write_tokens() { printf '%s\n' 'reader-token read name=alice' 'agent-token ingest,upload name=host' \
        'root-token admin name=ops' "$@" >"$tmp/tokens"; }
write_tokens 'other-token read'
types=/api/v1/query/types

# ---- without tokens ----

start_server
answers 200 '"sign_in_needed":false,"signed_in_by":"none".*"admin"' "a service without tokens needs no sign-in" \
        "$url/api/v1/session"
signs_in "$tmp/none" reader-token
is "$code" 400 "a service without tokens has no sign-in"
stop_server

# ---- the cookie ----

start_server --token-file "$tmp/tokens"
json='Content-Type: application/json'
answers 200 '^\{"sign_in_needed":true,"signed_in_by":"none","name":"","scopes":\[\]\}$' \
        "the page hears that a sign-in is needed, and no more" "$url/api/v1/session"
answers 200 '<title>Cairn' "the page itself needs none" "$url/"
answers 401 'no_token' "what it asks does" "$url$types"
signs_in "$tmp/jar" reader-token
is "$code" 200 "a token signs in"
like "$body" '"sign_in_needed":false,"signed_in_by":"session","name":"alice","scopes":\["read"\],"csrf":"[0-9a-f]{64}","expires_in_s":43[12][0-9]{2},"version":"[0-9]' "the answer to a sign-in has the user's name and scopes"
like "$(cookie)" '^Set-Cookie: cairn=[0-9a-f]{64}; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200$' \
        "the cookie's name has no prefix over http"
unlike "$(cat "$tmp/headers")" 'reader-token' "no header of the answer has the token"
first=$(cookie)
signs_in "$tmp/jar2" reader-token
ok "  another session has another id" test "$(cookie)" != "$first"
answers 200 '^\[' "the cookie opens what the page asks" -b "$tmp/jar" "$url$types"
answers 200 '"objects"' "  the list of objects too" -b "$tmp/jar" "$url/api/v1/debuginfo"
answers 200 '"signed_in_by":"session","name":"alice"' "  and says who it is" -b "$tmp/jar" "$url/api/v1/session"
answers 200 '"signed_in_by":"token","name":"host","scopes":\["ingest"' \
        "a token that may not read is not asked for another" \
        -H 'Authorization: Bearer agent-token' "$url/api/v1/session"
signs_in "$tmp/form" x -H 'Content-Type: application/x-www-form-urlencoded' -d 'a=b&token=reader%2Dtoken'
is "$code" 400 "two concatenated bodies are refused"
request -c "$tmp/form" -d 'a=b&token=reader%2Dtoken' "$url/login"
is "$code" 200 "a form signs in too"
answers 200 '^\[' "  with a cookie that works" -b "$tmp/form" "$url$types"
request -b "$tmp/form" -c "$tmp/form2" -d 'token=reader-token' "$url/login"
is "$(status_of -b "$tmp/form" "$url$types") $(status_of -b "$tmp/form2" "$url$types")" "401 200" \
        "signing in again ends the previous session"

answers 404 '' "  and what is shared by a link" -b "$tmp/jar" "$url/share/00000000000000000000000000000000"

# ---- routes without the cookie ----

signs_in "$tmp/root" root-token
like "$body" '"name":"ops","scopes":\["read"\]' "the session of an administrator reads, and nothing else"
id=00000000000000000000000000000000000000aa
for path in /buildid/$id/debuginfo /buildid/$id/executable /buildid/$id/section/.text /buildid/$id/source/a.c \
        /metadata?key=glob \
        /store/ /store/samples/ /cairn/ /metrics /api/v1/debuginfo/$id/debuginfo/partial; do
        is "$(status_of -b "$tmp/root" "$url$path")" 401 "the cookie is not accepted for GET $path"
        ok "the token is accepted for GET $path" test \
                "$(status_of -H 'Authorization: Bearer root-token' "$url$path")" != 401
done
key=$(csrf "$tmp/root")
for path in /v1/profiles /v1development/profiles /ingest /push.v1.PusherService/Push /api/v1/debuginfo/want \
        /api/v1/debuginfo/gc \
        /api/v1/debuginfo/scan /api/v1/store/compact /api/v1/resymbolize /symbolicate/v5 \
        /querier.v1.QuerierService/ProfileTypes; do
        is "$(status_of -b "$tmp/root" -H "$json" -H "Origin: $url" -H "X-Cairn-CSRF: $key" -d '{}' "$url$path")" 401 \
                "the cookie is not accepted for POST $path"
done
is "$(status_of -b "$tmp/root" -X PUT -H "X-Cairn-CSRF: $key" -H "Origin: $url" \
        "$url/api/v1/debuginfo/$id/debuginfo")" 401 "the cookie is not accepted to upload an object"
is "$(status_of -b "$tmp/root" -X DELETE -H "X-Cairn-CSRF: $key" -H "Origin: $url" \
        "$url/api/v1/debuginfo/$id/debuginfo")" 401 "the cookie is not accepted to remove an object"
session_id=$(sed -n 's/.*\t//p' "$tmp/jar" | tail -1)
answers 401 'bad_token' "a session id is no token" -H "Authorization: Bearer $session_id" "$url$types"
answers 401 'no_token' "a cookie of the other name is not taken" -H "Cookie: __Host-cairn=$session_id" "$url$types"
answers 401 'no_token' "nor part of one" -H "Cookie: cairn=$(printf %s "$session_id" | cut -c1-63)" "$url$types"

# ---- forged requests ----

key=$(csrf "$tmp/jar")
post() { status_of -b "$tmp/jar" -d '{"addresses":[]}' "$@" "$url/api/v1/symbolize"; }
is "$(post -H "$json" -H "Origin: $url" -H "X-Cairn-CSRF: $key")" 400 "a POST by the page reaches its handler"
is "$(post -H "$json" -H 'Sec-Fetch-Site: same-origin' -H "X-Cairn-CSRF: $key")" 400 \
        "a POST with Sec-Fetch-Site: same-origin reaches its handler"
is "$(post -H "$json" -H "X-Cairn-CSRF: $key")" 403 "a POST without an origin is refused"
is "$(post -H "$json" -H 'Sec-Fetch-Site: none' -H "X-Cairn-CSRF: $key")" 403 "a POST of no page is refused"
is "$(post -H "$json" -H 'Origin: http://evil.example' -H "X-Cairn-CSRF: $key")" 403 \
        "a POST of another origin is refused"
is "$(post -H "$json" -H 'Sec-Fetch-Site: same-site' -H "Origin: $url" -H "X-Cairn-CSRF: $key")" 403 \
        "a POST of a sibling domain is refused"
is "$(post -H "$json" -H "Origin: $url")" 403 "a POST without the CSRF header is refused"
is "$(post -H "$json" -H "Origin: $url" -H "X-Cairn-CSRF: $(csrf "$tmp/root")")" 403 \
        "a POST with the CSRF header of another session is refused"
is "$(post -H 'Content-Type: text/plain' -H "Origin: $url" -H "X-Cairn-CSRF: $key")" 403 \
        "a POST with a form's Content-Type is refused"
is "$(status_of -b "$tmp/jar" -H 'Sec-Fetch-Site: cross-site' -H 'Sec-Fetch-Mode: navigate' "$url$types")" 401 \
        "a link of another origin is not signed in"
is "$(status_of -b "$tmp/jar" -H 'Sec-Fetch-Site: same-origin' -H 'Sec-Fetch-Mode: navigate' "$url$types")" 200 \
        "a link of the page itself is signed in"
is "$(status_of -H 'Sec-Fetch-Site: cross-site' -H "$json" -d '{"token":"reader-token"}' "$url/login")" 403 \
        "another origin cannot sign a browser in"
is "$(as_root cairn_csrf_refused_total)" 5 "forged requests are counted"

# ---- sign-out ----

answers 403 'csrf' "another page cannot sign out" -b "$tmp/jar" -H "$json" -d '{}' "$url/logout"
request -D "$tmp/headers" -b "$tmp/jar" -H "$json" -H "Origin: $url" -H "X-Cairn-CSRF: $key" -d '{}' "$url/logout"
is "$code" 204 "the page signs out"
like "$(cookie)" '^Set-Cookie: cairn=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0$' "the sign-out removes the cookie"
answers 401 'no_token' "the cookie opens nothing after the sign-out" -b "$tmp/jar" "$url$types"
request -b "$tmp/jar" -H "$json" -H "Origin: $url" -d '{}' "$url/logout"
is "$code" 204 "signing out twice succeeds"
is "$(as_root 'cairn_sessions_ended_total{reason="signed_out"}')" 2 "the session's end is counted once"

# ---- a removed token ----

signs_in "$tmp/other" other-token
is "$(status_of -b "$tmp/other" "$url$types")" 200 "a token without a name signs in"
write_tokens
kill -HUP "$server_pid"
wait_for "the tokens to be read again" eval '[ "$(as_root "cairn_sessions_ended_total{reason=\"revoked\"}")" -ge 1 ]'
is "$(status_of -b "$tmp/other" "$url$types")" 401 "its removal ends the session"
is "$(status_of -b "$tmp/root" "$url$types")" 200 "  the session of another token goes on"
write_tokens 'other-token read'
kill -HUP "$server_pid"
back() { [ "$(status_of -H 'Authorization: Bearer other-token' "$url$types")" = 200 ]; }
wait_for "the token to be back" back
is "$(status_of -b "$tmp/other" "$url$types")" 401 "the session stays ended when the token is back"

# ---- guessing ----

# One more guess is permitted every six seconds: on a busy machine that may be between a refused guess and the valid
# token.
guesses=0
began_s=$(date +%s)
while [ $guesses -lt 30 ]; do
        signs_in "$tmp/none" "guess-$guesses-token"
        if [ "$code" = 401 ]; then
                guesses=$((guesses + 1))
                is "$(printf '%s' "$body" | sed 's/"request_id":"[0-9a-f]*"/ID/')" \
                        '{"error":"unknown token","reason":"bad_token",ID}' "a guessed token is 401"
                continue
        fi
        signs_in "$tmp/none" reader-token
        [ "$code" = 200 ] || break
done
ok "the limit is reached after some ten guesses" test "$guesses" -ge 5 \
        -a "$guesses" -le $((11 + ($(date +%s) - began_s) / 6))
is "$code" 429 "a client at its limit of guesses is told to wait"
like "$(cat "$tmp/headers")" 'Retry-After: [1-6].$' "the wait after too many guesses is a few seconds"
unlike "$(cat "$tmp/headers")" 'Set-Cookie' "a refused guess sets no cookie"
is "$(status_of -b "$tmp/root" "$url$types")" 200 "sessions continue during the guesses"
again() { signs_in "$tmp/late" reader-token; [ "$code" = 200 ]; }
wait_for "the limit to be over" again
pass "a valid token signs in when the wait is over"
for try in 1 2 3; do signs_in "$tmp/late" reader-token; done
is "$code" 200 "successful sign-ins are not limited"
for bad in '{}' '{"token":1}' '{"token":""' 'token'; do
        request -H "$json" -d "$bad" "$url/login"
        case $code in 400 | 429) ;; *) fail "the body $bad is refused" "$code" ;; esac
done
like "$(as_root 'cairn_sign_ins_total{result="refused"}') $(as_root 'cairn_sign_ins_total{result="accepted"}')" \
        "^$guesses [1-9]" "attempts are counted"
like "$(cat "$server_log")" 'audit: 200 POST /login by alice from 127\.0\.0\.1$' "the log has a sign-in"
like "$(cat "$server_log")" 'audit: 204 POST /logout by alice from 127\.0\.0\.1$' "the log has a sign-out"
unlike "$(cat "$server_log")" "(reader|root|other|guess-[0-9]+)-token|$session_id" \
        "the log has no token and no session id"
stop_server

# The log accepts ten refusals per second, so another service that has refused nothing yet.
start_server --token-file "$tmp/tokens"
signs_in "$tmp/none" guess-0-token
logs_guess() { grep -q 'audit: 401 POST /login by - from 127\.0\.0\.1$' "$server_log"; }
wait_for "a failed sign-in in the log" logs_guess
pass "the log has a failed sign-in"
logs_limit() { signs_in "$tmp/none" guess-0-token; \
        grep -q 'audit: 429 POST /login by - from 127\.0\.0\.1$' "$server_log"; }
wait_for "one that came too soon in the log" logs_limit
pass "the log has a sign-in that came too soon"
unlike "$(cat "$server_log")" 'guess-0-token' "the log does not have the token of a refused sign-in"
stop_server

# ---- expiry ----

start_server --token-file "$tmp/tokens" --session-max-age 2s
signs_in "$tmp/short" reader-token
like "$(cookie)" 'Max-Age=2$' "a session may be short"
is "$(status_of -b "$tmp/short" "$url$types")" 200 "a session works until its end"
sed -i 's/\t[0-9]\{10\}\t/\t0\t/' "$tmp/short" # curl removes expired cookies as well
over() { [ "$(status_of -b "$tmp/short" "$url$types")" = 401 ]; }
wait_for "the session to end" over
is "$(as_root 'cairn_sessions_ended_total{reason="expired"}') $(as_root cairn_sessions)" "1 0" \
        "a session at its end is counted as expired"
stop_server
for age in 0s 3 2y 367d; do
        "$cairn" serve --data "$tmp/none" --token-file "$tmp/tokens" --session-max-age $age 2>"$tmp/err"
        is "$? $(grep -c 'session-max-age' "$tmp/err")" "64 1" "--session-max-age $age is refused"
done

# ---- behind a proxy ----

start_server --token-file "$tmp/tokens" --trusted-proxy 127.0.0.1 --trusted-proxy 10.0.0.0/8 \
        --proxy-auth X-Forwarded-User
https='X-Forwarded-Proto: https'
signs_in "$tmp/secure" reader-token -H "$https" -H 'X-Forwarded-For: 192.0.2.7, 10.1.2.3'
like "$(cookie)" '^Set-Cookie: __Host-cairn=[0-9a-f]{64}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=43200$' \
        "a proxy with https gets the cookie for https"
like "$(cat "$server_log")" 'audit: 200 POST /login by alice from 192\.0\.2\.7$' \
        "the log has the address that the proxy gives"
secure=$(cookie | sed 's/.*: //; s/;.*//')
answers 200 '^\[' "the cookie for https is taken over https" -H "Cookie: $secure" -H "$https" "$url$types"
answers 401 '' "the cookie for https is not taken over http" -H "Cookie: $secure" "$url$types"
for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
        [ "$code" = 429 ] || signs_in "$tmp/none" "guess-$try-token" -H 'X-Forwarded-For: 192.0.2.8'
done
is "$code" 429 "guesses of one client behind the proxy are limited"
signs_in "$tmp/none" reader-token -H 'X-Forwarded-For: 192.0.2.9'
is "$code" 200 "guesses of another client behind the proxy are not limited"
user='X-Forwarded-User: carol@example.org'
answers 200 '"signed_in_by":"proxy","name":"proxy:carol@example.org","scopes":\["read"\],"csrf"' \
        "the proxy names who it is" -H "$user" "$url/api/v1/session"
answers 200 '^\[' "a user named by the proxy may read" -H "$user" "$url$types"
answers 401 '' "a user named by the proxy may only read what the page requests" -H "$user" "$url/store/"
answers 401 '' "a user named by the proxy may not write" -H "$user" -H 'Content-Type: application/x-protobuf' \
        --data-binary '' \
        "$url/v1/profiles"
key=$(curl -sS -H "$user" "$url/api/v1/session" | jq -r .csrf)
answers 403 'csrf' "a forged POST is refused" -H "$user" -H "$json" -d '{"addresses":[]}' "$url/api/v1/symbolize"
answers 400 '' "  the page's is not" -H "$user" -H "$json" -H "Origin: $url" -H "X-Cairn-CSRF: $key" \
        -d '{"addresses":[]}' "$url/api/v1/symbolize"
answers 403 'csrf' "  nor is another user's text good" -H 'X-Forwarded-User: dave' -H "$json" -H "Origin: $url" \
        -H "X-Cairn-CSRF: $key" -d '{"addresses":[]}' "$url/api/v1/symbolize"
answers 403 'occurs more than once.*proxy_auth' "two names are none" -H "$user" -H 'X-Forwarded-User: root' "$url$types"
answers 403 'printable.*proxy_auth' "nor is a name with spaces" -H 'X-Forwarded-User: a from 1.2.3.4' "$url$types"
answers 403 'proxy_auth' "nor one without end" -H "X-Forwarded-User: $(printf %0200d 7)" "$url$types"
answers 403 'proxy_auth' "nor none" -H 'X-Forwarded-User;' "$url$types"
answers 200 '"signed_in_by":"token","name":"ops"' "a token goes before the proxy's word" -H "$user" \
        -H 'Authorization: Bearer root-token' "$url/api/v1/session"
stop_server
start_server --token-file "$tmp/tokens" --trusted-proxy 127.0.0.2 --proxy-auth X-Forwarded-User
answers 403 'not in --trusted-proxy.*proxy_auth' "whoever is no proxy cannot name a user" -H "$user" "$url$types"
answers 403 'proxy_auth' "  X-Forwarded-For does not help" -H "$user" -H 'X-Forwarded-For: 127.0.0.2' "$url$types"
answers 200 '^\[' "  the proxy can" --interface 127.0.0.2 -H "$user" "$url$types"
signs_in "$tmp/none" reader-token -H "$https" -H 'X-Forwarded-For: 192.0.2.7'
like "$(cookie) $(tail -1 "$server_log")" '^Set-Cookie: cairn=.* from 127\.0\.0\.1$' \
        "a client beside the proxy cannot set its address or the scheme"
is "$(as_root cairn_proxy_auth_refused_total)" 2 "refusals are counted"
stop_server

# ---- tenants ----

printf '%s\n' team-a >"$tmp/tenants"
write_tokens 'team-token read,ingest tenant=team-a'
start_server --token-file "$tmp/tokens" --tenants "$tmp/tenants" --trusted-proxy 127.0.0.1 --proxy-auth X-Forwarded-User
answers 200 '' "a tenant has samples" -H 'Authorization: Bearer team-token' --data-binary 'main;f 3' \
        "$url/ingest?name=app&format=folded&from=$(date +%s)"
signs_in "$tmp/team" team-token
answers 200 '^\["' "a session reads those of its token's tenant" -b "$tmp/team" "$url$types"
signs_in "$tmp/other" reader-token
answers 200 '^\[\]$' "  and no other" -b "$tmp/other" "$url$types"
answers 200 '^\[\]$' "  a proxy's user reads the default tenant" -H "$user" "$url$types"
answers 200 '^\[\]$' "  whatever tenant the request names" -H "$user" -H 'X-Scope-OrgID: anonymous' "$url$types"
request -H "$user" -H 'X-Scope-OrgID: team-a' "$url$types"
isnt_team() { [ "$code" != 200 ] || [ "$body" = '[]' ]; }
ok "a user of the proxy does not read team-a by naming it" isnt_team
stop_server

# refuses PATTERN NAME OPTION...: the service refuses to start, with this message.
refuses() {
        refuses_pattern=$1; refuses_name=$2; shift 2
        refusal=$("$cairn" serve --data "$tmp/none" --listen 127.0.0.1:0 "$@" 2>&1)
        like "$? $refusal" "$refuses_pattern" "$refuses_name"
}
refuses '^64 .*needs --trusted-proxy' "--proxy-auth alone is refused" --proxy-auth X-User --token-file "$tmp/tokens"
refuses '^64 .*--token-file' "  and without tokens" --proxy-auth X-User --trusted-proxy ::1
for header in Authorization cookie X-Forwarded-For 'X User' ''; do
        refuses '^64 .*cannot name|^64 .*is not a header' "  and as '$header'" --proxy-auth "$header" \
                --trusted-proxy ::1 --token-file "$tmp/tokens"
done
for range in 10.0.0.1/8 10.0.0.0/33 fd00::/129 localhost 1.2.3 10.0.0.0/ ''; do
        refuses '^64 .*--trusted-proxy' "--trusted-proxy '$range' is refused" --trusted-proxy "$range"
done
done_testing
