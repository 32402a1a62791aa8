#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Signing in and out in a browser, over https and over http on loopback, and as a user named by a proxy.
. tests/e2e/lib.sh
. tests/browser/lib.sh
. tests/browser/load_data.sh
start_server --flush-interval 1
load_recorded
stop_server

printf '%s\n' 'reader-token read name=alice' >"$tmp/tokens"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout "$tmp/key.pem" -out "$tmp/cert.pem" 2>/dev/null
start_server --token-file "$tmp/tokens" --tls-cert "$tmp/cert.pem" --tls-key "$tmp/key.pem"
url=https://127.0.0.1:$port
is "$(curl -sS --cacert "$tmp/cert.pem" -c "$tmp/jar" -d token=reader-token "$url/login" | jq -r .signed_in_by)" \
        session "curl signs in over https"
is "$(curl -sS --cacert "$tmp/cert.pem" -b "$tmp/jar" "$url/api/v1/session" | jq -r .name)" alice \
        "  the session has the name of the token"
run_browser sign_in.js "$url" reader-token alice
stop_server

start_server --token-file "$tmp/tokens"
run_browser sign_in.js "$url" reader-token alice
stop_server

start_server --token-file "$tmp/tokens" --trusted-proxy 127.0.0.1 --proxy-auth X-Forwarded-User
run_browser sign_in.js "$url" --proxy X-Forwarded-User bob@example.org
stop_server
done_testing
