#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deploy/nginx-oauth2-proxy.conf with Debian's nginx: users are signed in by the proxy, programs use tokens, and no
# client can set the user header itself. A small server simulates oauth2-proxy.
. tests/e2e/lib.sh
nginx=$(PATH=$PATH:/usr/sbin command -v nginx) || {
        [ -z "${CAIRN_NEED_ORACLES:-}" ] || bail_out "nginx is not installed: scripts/deps.sh all"
        skip_all "nginx is not installed"
}

printf '%s\n' 'agent-token ingest name=host' 'reader-token read name=alice' >"$tmp/tokens"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=cairn.example \
        -addext subjectAltName=DNS:cairn.example,DNS:cairn-api.example -keyout "$tmp/key.pem" -out "$tmp/cert.pem" \
        2>/dev/null

start_server --token-file "$tmp/tokens" --allow-host cairn.example --allow-host cairn-api.example \
        --trusted-proxy 127.0.0.1 --proxy-auth X-Forwarded-User
cairn_port=$port

# A client is signed in if it has the cookie _oauth2_proxy=NAME.
cat >"$tmp/oauth2-proxy.py" <<'END'
import http.server, re, sys

class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        found = re.search("_oauth2_proxy=([^;]+)", self.headers.get("Cookie", ""))
        start = self.path.startswith("/oauth2/start")
        self.send_response(302 if start else 202 if found else 401)
        if start:
            self.send_header("Location", "https://provider.example/authorize")
        if found:
            self.send_header("X-Auth-Request-Email", found[1])
        self.send_header("Content-Length", "8" if start else "0")
        self.end_headers()
        self.wfile.write(b"sign in\n" if start else b"")

    def log_message(self, *arguments):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
with open(sys.argv[1], "w", encoding="ascii") as f:
    f.write(str(server.server_port))
server.serve_forever()
END
python3 "$tmp/oauth2-proxy.py" "$tmp/oauth2-port" &
oauth2_pid=$!
wait_for "oauth2-proxy's stand-in" test -s "$tmp/oauth2-port"

port=$(free_port)
mkdir "$tmp/nginx"
{
        echo "daemon off; worker_processes 1; pid $tmp/nginx/pid; error_log $tmp/nginx/error.log;"
        echo "events {} http { access_log off;"
        for kind in client_body proxy fastcgi uwsgi scgi; do echo "${kind}_temp_path $tmp/nginx/$kind;"; done
        sed "s/127.0.0.1:7700/127.0.0.1:$cairn_port/; s/127.0.0.1:4180/127.0.0.1:$(cat "$tmp/oauth2-port")/; s/listen 443/listen 127.0.0.1:$port/; s,/etc/cairn,$tmp," \
                deploy/nginx-oauth2-proxy.conf
        echo "}"
} >"$tmp/nginx.conf"
[ "$(id -u)" != 0 ] || sed -i "1i user $(id -un);" "$tmp/nginx.conf"
"$nginx" -e "$tmp/nginx/start.log" -c "$tmp/nginx.conf" 2>"$tmp/nginx/stderr" &
nginx_pid=$!

# over NAME CODE PATTERN TEST PATH [CURL-ARGUMENT]...: a request through nginx to the server of that name.
over() {
        over_host=$1; over_code=$2; over_pattern=$3; over_name=$4; over_path=$5; shift 5
        answers "$over_code" "$over_pattern" "$over_name" --cacert "$tmp/cert.pem" \
                --resolve "$over_host:$port:127.0.0.1" "$@" "https://$over_host:$port$over_path"
}
up() { [ -s "$tmp/nginx/pid" ] && curl -sS -o /dev/null --cacert "$tmp/cert.pem" \
        --resolve "cairn-api.example:$port:127.0.0.1" "https://cairn-api.example:$port/healthz" 2>/dev/null; }
wait_for "nginx" up
carol='Cookie: _oauth2_proxy=carol@example.org'
forged='X-Forwarded-User: root'

# ---- users ----

over cairn.example 302 '' "who is not signed in is sent to do so" /
like "$body" '^sign in' "  oauth2-proxy asks a user to sign in"
over cairn.example 401 '' "what the page asks is refused" /api/v1/session
over cairn.example 401 '' "  also to whoever writes the header" /api/v1/session -H "$forged"
over cairn.example 200 '<title>Cairn' "who is signed in gets the page" / -H "$carol"
over cairn.example 200 '"signed_in_by":"proxy","name":"proxy:carol@example.org","scopes":\["read"\]' \
        "  as oauth2-proxy knows her" /api/v1/session -H "$carol"
over cairn.example 200 '"name":"proxy:carol@example.org"' "  whatever the request says" /api/v1/session -H "$carol" \
        -H "$forged" -H 'Authorization: Bearer reader-token'
over cairn.example 200 '^\[' "  and what it asks" /api/v1/query/types -H "$carol"
over cairn.example 401 '' "she cannot send profiles" /v1/profiles -H "$carol" \
        -H 'Content-Type: application/x-protobuf' --data-binary ''
key=$(printf '%s\n' "$body" >/dev/null; curl -sS --cacert "$tmp/cert.pem" --resolve "cairn.example:$port:127.0.0.1" \
        -H "$carol" "https://cairn.example:$port/api/v1/session" | jq -r .csrf)
over cairn.example 400 '' "a POST of the page reaches its handler" /api/v1/symbolize -H "$carol" \
        -H "Origin: https://cairn.example:$port" \
        -H "X-Cairn-CSRF: $key" -H 'Content-Type: application/json' -d '{"addresses":[]}'
over cairn.example 403 'csrf' "  one without the text does not" /api/v1/symbolize -H "$carol" \
        -H "Origin: https://cairn.example:$port" \
        -H 'Content-Type: application/json' -d '{"addresses":[]}'

# ---- programs ----

over cairn-api.example 200 '"signed_in_by":"token","name":"alice"' "a token passes" /api/v1/session \
        -H 'Authorization: Bearer reader-token' -H "$forged"
over cairn-api.example 200 '"sign_in_needed":true' "no client of it can name a user" /api/v1/session -H "$forged"
over cairn-api.example 401 '' "  nor be signed in at the other" /api/v1/query/types -H "$carol" -H "$forged"
over cairn-api.example 200 '"signed_in_by":"session"' "a browser may sign in with a token there" /login -c "$tmp/jar" \
        -H 'Content-Type: application/json' -d '{"token":"reader-token"}' -H 'X-Forwarded-For: 192.0.2.66' \
        --interface 127.0.0.9
like "$(cat "$tmp/jar")" '	TRUE	[0-9]+	__Host-cairn	[0-9a-f]{64}' "  the session has the cookie for https"
over cairn-api.example 200 '^\[' "  which works" /api/v1/query/types -b "$tmp/jar"
like "$(grep 'POST /login' "$server_log")" ' 200 POST /login by alice from 127\.0\.0\.9$' \
        "  the address is that of nginx's peer, not the one sent"

kill "$nginx_pid" "$oauth2_pid"
wait "$nginx_pid" "$oauth2_pid" 2>/dev/null
stop_server
done_testing
