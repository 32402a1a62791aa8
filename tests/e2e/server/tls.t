#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The service over https, with a certificate authority of its own, and all clients.
. tests/e2e/lib.sh

upload=$CAIRN_SAN/cairn-upload
token=secret-of-the-admin
printf '%s admin name=root\n' "$token" >"$tmp/tokens"
printf '%s\n' "$token" >"$tmp/token"

# authority NAME: creates NAME.pem and NAME.key, which sign others.
authority() {
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$1" \
                -keyout "$tmp/$1.key" -out "$tmp/$1.pem" 2>/dev/null
}

# certificate NAME AUTHORITY ALTERNATIVE-NAME: creates NAME.pem and NAME.key.
certificate() {
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$1" \
                -keyout "$tmp/$1.key" -out "$tmp/$1.csr" 2>/dev/null
        printf 'subjectAltName=%s\n' "$3" >"$tmp/$1.ext"
        openssl x509 -req -in "$tmp/$1.csr" -CA "$tmp/$2.pem" -CAkey "$tmp/$2.key" -CAcreateserial -days 2 \
                -extfile "$tmp/$1.ext" -out "$tmp/$1.pem" 2>/dev/null
}

serial() { openssl x509 -in "$1" -noout -serial; }
shown_serial() { openssl s_client -connect "127.0.0.1:$port" </dev/null 2>/dev/null | openssl x509 -noout -serial; }
shows() { [ "$(shown_serial)" = "$(serial "$1")" ]; }

authority ours
authority theirs
certificate first ours IP:127.0.0.1,DNS:localhost
certificate second ours IP:127.0.0.1,DNS:localhost
certificate elsewhere ours DNS:cairn.example
cp "$tmp/first.pem" "$tmp/cert.pem"
cp "$tmp/first.key" "$tmp/key.pem"

# ---- an invalid pair ----

# refuses PATTERN NAME OPTION...: the service refuses to start, with this message.
refuses() {
        refuses_pattern=$1; refuses_name=$2; shift 2
        refusal=$("$cairn" serve --data "$tmp/none" --listen 127.0.0.1:0 "$@" 2>&1)
        refused=$?
        like "$refused $refusal" "$refuses_pattern" "$refuses_name"
}
printf 'nothing\n' >"$tmp/text"
refuses '^64 .*go together' 'a certificate without its key' --tls-cert "$tmp/cert.pem"
refuses '^2 .*text. holds no certificate.*PEM' 'a file without a certificate is named' --tls-cert "$tmp/text" \
        --tls-key "$tmp/key.pem"
refuses '^2 .*text. holds no private key.*PEM' 'a file without a key is named' --tls-cert "$tmp/cert.pem" \
        --tls-key "$tmp/text"
refuses '^2 .*second.key. does not match the first certificate' 'the key of another certificate is named' \
        --tls-cert "$tmp/cert.pem" --tls-key "$tmp/second.key"
refuses '^1 .*absent.pem' 'a file that is not there is named' --tls-cert "$tmp/absent.pem" --tls-key "$tmp/key.pem"
refuses '^64 .*refusing to listen on 0.0.0.0 without tokens' 'https is no token' --listen 0.0.0.0:0 \
        --tls-cert "$tmp/cert.pem" --tls-key "$tmp/key.pem"

# ---- https ----

start_server --token-file "$tmp/tokens" --tls-cert "$tmp/cert.pem" --tls-key "$tmp/key.pem"
url=https://127.0.0.1:$port
export CURL_CA_BUNDLE="$tmp/ours.pem"

like "$(cat "$server_log")" 'listening on https://127.0.0.1' 'the log says https'
answers 200 '^ok$' 'curl with the authority gets an answer' "$url/healthz"
answers 200 '^ok$' 'by name too' "https://localhost:$port/healthz"
answers 401 'a token with the scope' 'tokens are asked for over https' "$url/metrics"
answers 000 '' 'plain http is no answer' "http://127.0.0.1:$port/healthz"
answers 000 '' 'an authority that did not sign is refused by the client' --cacert "$tmp/theirs.pem" "$url/healthz"
ok 'TLS 1.2 is spoken' curl -sS --tlsv1.2 --tls-max 1.2 "$url/healthz"
ok 'TLS 1.3 is spoken' curl -sS --tlsv1.3 "$url/healthz"
for old in 1 1_1; do
        openssl s_client -connect "127.0.0.1:$port" "-tls$old" -cipher ALL:@SECLEVEL=0 </dev/null >"$tmp/old" 2>&1
        like "$(cat "$tmp/old")" 'Cipher is \(NONE\)' "TLS $old is not"
done
for suite in AES128-SHA AES256-GCM-SHA384 ECDHE-RSA-AES128-SHA ECDHE-RSA-AES256-SHA384 DHE-RSA-AES128-SHA; do
        openssl s_client -connect "127.0.0.1:$port" -tls1_2 -cipher "$suite:@SECLEVEL=0" </dev/null >"$tmp/old" 2>&1
        like "$(cat "$tmp/old")" 'Cipher is \(NONE\)' "TLS 1.2 with $suite is not: it lacks forward secrecy or AEAD"
done
ok 'TLS 1.2 with ECDHE and GCM is' curl -sS --tlsv1.2 --tls-max 1.2 \
        --ciphers ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256 "$url/healthz"
request -H 'Authorization: Bearer some-token' -H 'Authorization: Bearer other-token' "$url/metrics"
is "$code" 400 'two tokens are refused'
head -c 3000000 /dev/urandom >"$tmp/big"
request -H "Authorization: Bearer wrong-token" --data-binary "@$tmp/big" "$url/v1development/profiles"
is "$code" 401 'a refused body is answered'

# ---- Cairn's clients ----

ca="--ca $tmp/ours.pem"
auth="--token-file $tmp/token"
printf 'int answer(int n) { return n * 2; }\nint main(void) { return answer(0); }\n' >"$tmp/prog.c"
gcc -g -O0 -Wl,--build-id -o "$tmp/prog" "$tmp/prog.c"
id=$(build_id_of "$tmp/prog")

# Word splitting is meant: each is an option with its file.
# shellcheck disable=SC2086
{
        ok 'cairn-upload sends over https' "$upload" --server "$url" $ca $auth --executables "$tmp/prog"
        "$upload" --server "$url" $auth "$tmp/prog" >"$tmp/out" 2>&1
        like "$? $(cat "$tmp/out")" '^64 .*certificate.*--ca FILE' 'without the authority it fails, with a remedy'
        "$upload" --server "$url" --ca "$tmp/text" $auth "$tmp/prog" >"$tmp/out" 2>&1
        like "$? $(cat "$tmp/out")" '^64 .*--ca FILE takes certificates' \
                'a file without certificates is not accepted as authority'
        "$upload" --server "$url" --ca "$tmp/absent" $auth "$tmp/prog" >"$tmp/out" 2>&1
        like "$? $(cat "$tmp/out")" "^1 .*cannot read the certificates in '$tmp/absent'" 'nor is a missing one'
        ok 'cairn debuginfo list' "$cairn" debuginfo list --server "$url" $ca $auth
        address=0x$(nm "$tmp/prog" | awk '$3 == "answer" { print $1 }')
        indexed() { "$cairn" symbolize --server "$url" $ca $auth --build-id "$id" "$address" | grep -q 'prog.c:1'; }
        wait_for 'the object to be indexed' indexed
        pass 'cairn symbolize --server'
        ok 'cairn resymbolize' "$cairn" resymbolize --server "$url" $ca $auth "$id"
        ok 'cairn why' "$cairn" why --server "$url" $ca $auth "$id" "$address"
        ok 'cairn top' "$cairn" top --server "$url" $ca $auth
        printf 'main;answer 5\n' >"$tmp/folded"
        ok 'cairn import' "$cairn" import --server "$url" $ca $auth --format folded "$tmp/folded"
        agent=$CAIRN_BUILD/cairn-agent
        if "$agent" --doctor >"$tmp/doctor"; then
                yes >/dev/null & # so that there is something to sample
                yes=$!
                background_pids="${background_pids:-} $yes"
                ok 'cairn-agent' "$agent" --server "$url" $ca $auth --no-upload --duration 2 --interval 1 --pid $yes
                "$agent" --server "$url" $auth --no-upload --duration 2 --interval 1 --pid $yes >"$tmp/out" 2>&1
                like "$(cat "$tmp/out")" 'certificate.*--ca FILE' 'which sends nothing to an unverified server'
        else
                diag "the agent cannot profile here: $(grep '^error' "$tmp/doctor" | head -1)"
        fi
        ok 'cairn debuginfo get' "$cairn" debuginfo get --server "$url" $ca $auth --kind executable \
                --output "$tmp/got" "$id"
        ok 'what it got is what was sent' cmp "$tmp/got" "$tmp/prog"
}

# Debian's debuginfod client accepts only the system's authorities, so it runs in a mount namespace that includes ours.
# shellcheck disable=SC2016
trusting='mount --bind "$1" /etc/ssl/certs/ca-certificates.crt && shift && exec "$@"'
in_trusting_system() { unshare --user --map-root-user --mount sh -c "$trusting" sh "$tmp/ours.pem" "$@"; }
printf 'Authorization: Bearer %s\n' "$token" >"$tmp/headers"
export DEBUGINFOD_HEADERS_FILE="$tmp/headers" DEBUGINFOD_URLS="$url" DEBUGINFOD_CACHE_PATH="$tmp/cache" \
        DEBUGINFOD_TIMEOUT=20
ok 'debuginfod-find over https' in_trusting_system debuginfod-find executable "$id"
ok 'and what it found is what was sent' cmp "$(find "$tmp/cache" -name executable)" "$tmp/prog"
rm -rf "$tmp/cache"
debuginfod-find executable "$id" >"$tmp/out" 2>&1
is $? 1 'where the authority is not known it finds nothing'
rm -rf "$tmp/cache"
unset DEBUGINFOD_HEADERS_FILE
export DEBUGINFOD_URLS="https://anybody:$token@127.0.0.1:$port"
ok 'a token may stand in the URL' in_trusting_system debuginfod-find executable "$id"
unset DEBUGINFOD_URLS

# ---- a service with this one as its upstream ----

# downstream NAME OPTION...: starts it; sets $downstream_url.
downstream() {
        downstream_name=$1; shift
        "$cairn" serve --data "$tmp/$downstream_name" --listen 127.0.0.1:0 --port-file "$tmp/$downstream_name.port" \
                --upstream "https://anybody:$token@127.0.0.1:$port" "$@" 2>"$tmp/$downstream_name.log" &
        background_pids="${background_pids:-} $!"
        wait_for "$downstream_name to start" test -s "$tmp/$downstream_name.port"
        downstream_url=http://127.0.0.1:$(cat "$tmp/$downstream_name.port")
}
downstream trusting --upstream-ca "$tmp/ours.pem"
answers 200 '' 'an upstream over https, with its authority and a token' "$downstream_url/buildid/$id/executable"
ok 'returns the uploaded object' cmp "$tmp/body" "$tmp/prog"
downstream doubting --upstream-ca "$tmp/theirs.pem"
answers 000 '' 'one whose certificate somebody else signed gives nothing' "$downstream_url/buildid/$id/executable"
like "$(cat "$tmp/doubting.log")" 'certificate' 'and the log says why'
unlike "$(cat "$tmp/trusting.log" "$tmp/doubting.log")" "$token" 'the token of the URL is in no log'

# ---- another certificate at run time ----

cp "$tmp/second.pem" "$tmp/cert.pem"
kill -HUP "$server_pid"
wait_for 'the log to tell of the wrong pair' grep \
        -q 'does not match the first certificate.*the previous settings stay in use' "$server_log"
ok 'a wrong pair changes nothing' shows "$tmp/first.pem"
cp "$tmp/second.key" "$tmp/key.pem"
kill -HUP "$server_pid"
wait_for 'the second certificate' shows "$tmp/second.pem"
pass 'a right pair is shown from then on'
is "$(curl -sS -H "Authorization: Bearer $token" "$url/metrics" |
        sed -n 's/^cairn_reload_failures_total{file="tls"} //p')" 1 \
        'the failure is counted'

# ---- names ----

cp "$tmp/elsewhere.pem" "$tmp/cert.pem"
cp "$tmp/elsewhere.key" "$tmp/key.pem"
kill -HUP "$server_pid"
wait_for 'the certificate of another name' shows "$tmp/elsewhere.pem"
answers 000 '' 'a certificate for another name is refused by curl' "$url/healthz"
# shellcheck disable=SC2086
"$cairn" debuginfo list --server "$url" $ca $auth >"$tmp/out" 2>&1
like "$? $(cat "$tmp/out")" '^64 .*name' 'and by ours'

stop_server

# ---- tokens in the clear ----

start_server --listen 0.0.0.0:0 --token-file "$tmp/tokens"
like "$(cat "$server_log")" 'warn serve: tokens and data cross the network unencrypted' \
        'the service warns of tokens without https'
"$cairn" debuginfo list --server "http://0.0.0.0:$port" --token-file "$tmp/token" >"$tmp/out" 2>&1
like "$? $(cat "$tmp/out")" '^0 .*the token goes to http://0.0.0.0:[0-9]+ unencrypted' 'and so does a command'
"$upload" --server "http://0.0.0.0:$port" --token-file "$tmp/token" --dry-run "$tmp/prog" >"$tmp/out" 2>&1
like "$? $(cat "$tmp/out")" '^0 .*the token goes to http://0.0.0.0:[0-9]+ unencrypted' 'and cairn-upload'
"$cairn" debuginfo list --server "http://127.0.0.1:$port" --token-file "$tmp/token" >"$tmp/out" 2>&1
unlike "$(cat "$tmp/out")" 'unencrypted' 'not where it stays on this host'
stop_server
done_testing
