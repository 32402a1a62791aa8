#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# OTLP over gRPC: real clients get the same results as with OTLP over HTTP, and hostile clients are limited.
. tests/e2e/lib.sh
. tests/e2e/venv.sh

# start_grpc [OPTION]...: a service with both listeners; sets $grpc_port.
start_grpc() {
        : >"$server_log"
        start_server --listen-otlp-grpc 127.0.0.1:0 --flush-interval 1 "$@"
        grpc_port=$(sed -n 's/.*OTLP over gRPC on 127\.0\.0\.1:\([0-9]*\).*/\1/p' "$server_log" | tail -1)
}
client() { "$PYTHON" tests/e2e/grpc-client.py "$grpc_port" "$@" 2>&1; }
sum() { "$cairn" top --server "$url" --json "{service.name=\"$1\"}" | jq 'map(.flat) | add // 0'; }
batch() { python3 tests/e2e/profiles.py otlp "$tmp/$1.otlp" "service=$1" names=leaf,root "$2" ${3:+"$3"}; }

# ---- listen addresses ----

refuses() {
        like "$("$cairn" serve --data "$tmp/none" --listen 127.0.0.1:0 "$@" 2>&1; echo "code $?")" "$refuses" \
                "$refuses_name"
}
refuses='refusing to listen on 0.0.0.0 without tokens' refuses_name='without tokens it listens on loopback only'
refuses --listen-otlp-grpc 0.0.0.0:0
refuses='exclude each other' refuses_name='a read-only service has no such listener'
refuses --listen-otlp-grpc 127.0.0.1:0 --read-only
refuses='has no valid port' refuses_name='a bad address is refused'
refuses --listen-otlp-grpc 127.0.0.1:x

# ---- the same batch over both protocols ----

start_grpc --max-age 30d
like "$grpc_port" '^[0-9]+$' 'the log says where it listens'
for way in http plain gzip deflate; do batch $way values=5,6,70; done
request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/http.otlp" "$url/v1development/profiles"
is "$code" 200 'OTLP over HTTP is accepted'
is "$(client send message="$tmp/plain.otlp")" 'OK - ' 'OTLP over gRPC is accepted: an empty response is full success'
is "$(client send message="$tmp/gzip.otlp" gzip=1)" 'OK - ' 'gzip too'
is "$(client send message="$tmp/deflate.otlp" deflate=1)" 'OK - ' 'and deflate'
is "$(sum http)" 81 'the sum over HTTP'
for way in plain gzip deflate; do is "$(sum $way)" 81 "  is that of gRPC, $way"; done
like "$(client send message="$tmp/plain.otlp")" 'OK .*this batch was received before' \
        'a repeated batch gets the same response, with a warning'
is "$(sum plain)" 81 '  and counts once'
is "$(metric cairn_ingest_duplicate_batches_total)" 1 '  and a metric counts it'
is "$(metric 'cairn_ingest_duration_seconds_bucket{le="300"}')" "$(metric cairn_ingest_batches_total)" \
        '  the time of each batch is observed'
is "$(client send)" 'OK - ' 'an empty request is a success'

batch early values=1 at_ns=1500000000000000000
like "$(client send message="$tmp/early.otlp")" \
        'OK [0-9a-f]+ .*1 sample rejected: the time 2017-07-14T02:40:00Z is too long ago' \
        'samples that are too old are a partial success'

# ---- rejected requests ----

printf 'this is no protobuf' >"$tmp/text"
like "$(client send message="$tmp/text")" '^INVALID_ARGUMENT OTLP request is cut off or malformed.*retry: no$' \
        'malformed OTLP is INVALID_ARGUMENT'
head -c 68157440 /dev/zero >"$tmp/large"
like "$(client send message="$tmp/large")" \
        '^RESOURCE_EXHAUSTED a message of 68157440 bytes is larger than 67108864.*retry: no$' \
        'a message of 65 MiB is too large, and is not to be repeated'
like "$(client send message="$tmp/large" gzip=1)" \
        '^RESOURCE_EXHAUSTED .*larger than 67108864 bytes after unpacking.*retry: no$' \
        'compressed too'
rm "$tmp/large"
like "$(client send method=/no.Service/Method)" "^UNIMPLEMENTED the method '/no.Service/Method' does not exist" \
        'an unknown method is UNIMPLEMENTED'
is "$(client health)" "OK 0801 $(printf '\010\001')" 'the health service says that it is serving'
is "$(client health opentelemetry.proto.collector.profiles.v1development.ProfilesService)" \
        "OK 0801 $(printf '\010\001')" '  of profiles too'
like "$(client health other)" '^NOT_FOUND' '  and other services are unknown'
like "$(client headers 100)" "^200 8 the headers are larger" 'headers of 13 KB are refused'
like "$(client coding br)" "^200 12 the compression 'br' is not known; use gzip" \
        'an unknown compression is UNIMPLEMENTED'
like "$(client timeout)" '^200 4 the message did not arrive in time' 'the timeout of the client ends its call'
answers 000 '' 'HTTP/1.1 gets no answer' "http://127.0.0.1:$grpc_port/healthz"
# curl gives up at the first bytes, before it is read
wait_metric 'cairn_grpc_connections_ended_total{reason="protocol"}' 1
is "$(metric 'cairn_grpc_connections_ended_total{reason="protocol"}')" 1 '  and is counted'
is "$(metric 'cairn_grpc_calls_total{code="invalid_argument"}')" 1 'calls are counted by code'
is "$(curl -sS --http2-prior-knowledge --max-time 20 -o "$tmp/body" -w '%{http_code}' -X POST \
        "http://127.0.0.1:$grpc_port/x")" 415 \
        'another content type is answered 415, as gRPC has it'
is "$(curl -sS --http2-prior-knowledge --max-time 20 -o "$tmp/body" -w '%{http_code}' \
        "http://127.0.0.1:$grpc_port/x")" 405 \
        'and another method 405'

# ---- floods ----

for kind in pings settings resets empty; do
        floods=$(metric 'cairn_grpc_connections_ended_total{reason="flood"}')
        is "$(client flood $kind)" ended "a flood of $kind closes the connection"
        wait_metric 'cairn_grpc_connections_ended_total{reason="flood"}' $((floods + 1))
done
ok 'calls reset by the client are counted, too' test "$(metric 'cairn_grpc_calls_total{code="cancelled"}')" -ge 50
is "$(client many)" "$(printf '64 200 3 there is no message\ngoaway 1')" \
        'a connection may have 64 concurrent calls; with more it is closed'
like "$(client send message="$tmp/gzip.otlp")" '^OK' 'others are served'

# ---- shutdown ----

batch last values=9
client stop "$tmp/last.otlp" >"$tmp/stop" &
stopping=$!
wait_for 'half a message to be there' grep -q ready "$tmp/stop"
stop_server
wait $stopping
is "$(sed 1d "$tmp/stop" | paste -sd ' ')" 'goaway 0 answered' 'a call that had started is answered after GOAWAY'
is "$("$cairn" top --data "$data" --json '{service.name="last"}' | jq 'map(.flat) | add // 0')" 9 \
        '  and its batch is stored'

# ---- tokens and rates ----

printf '%s\n' 'the-sender ingest name=sender' 'the-reader read' 'the-slow ingest,read rate=1 name=slow' >"$tmp/tokens"
start_grpc --token-file "$tmp/tokens"
batch token values=3
like "$(client send message="$tmp/token.otlp")" "^UNAUTHENTICATED a token with the scope 'ingest' is needed" \
        'without a token'
like "$(client send message="$tmp/token.otlp" token=nobody)" '^UNAUTHENTICATED unknown token' 'with an unknown one'
like "$(client send message="$tmp/token.otlp" token=the-reader)" \
        "^PERMISSION_DENIED the token does not carry the scope 'ingest'" 'with one of another scope'
is "$(client send message="$tmp/token.otlp" token=the-sender)" 'OK - ' 'with the right one'
like "$(cat "$server_log")" 'audit: 403 gRPC /opentelemetry.*ProfilesService/Export by - from 127.0.0.1' \
        'refusals are in the audit log'
auth() { curl -sS -H 'Authorization: Bearer the-reader' "$url/metrics" | awk -v name="$1" '$1 == name { print $2 }'; }
is "$(auth 'cairn_access_refused_total{code="401"}')" 2 '  and counted'
is "$(client health)" "OK 0801 $(printf '\010\001')" 'health needs no token'
like "$(client send token=the-slow repeat=60)" \
        '^RESOURCE_EXHAUSTED token slow sends more than 1 requests a second.*retry: 1$' \
        'past its rate a token is told when to repeat the call'
stop_server

# ---- memory ----

head -c 62914560 /dev/zero | tr '\000' x >"$tmp/long" # an unknown field again and again
start_grpc --memory 256M
client hold "$tmp/long" >"$tmp/hold" &
holding=$!
wait_for 'two thirds of a long message to be there' grep -q ready "$tmp/hold"
like "$(client send message="$tmp/long")" '^UNAVAILABLE .*retry: 5$' 'without memory the client is asked to retry later'
wait $holding
is "$(sed 1d "$tmp/hold")" closed 'a client that holds memory and sends nothing is disconnected'
is "$(metric 'cairn_grpc_connections_ended_total{reason="slow_body"}')" 1 '  and counted'
is "$(metric 'cairn_memory_bytes{use="ingest"}')" 0 'no memory is held by messages'
is "$(client crowd 400)" 'OK - ' 'connections over the memory limit are closed for new ones'
is "$(metric 'cairn_grpc_connections_refused_total{reason="memory"}')" 0 '  and memory is left for all that are open'
stop_server

# ---- connections ----

start_grpc --max-connections 8
client idle 40 >"$tmp/idle" &
idling=$!
wait_for 'the connections' grep -q ready "$tmp/idle"
ok 'others are served despite forty idle connections' healthy
batch beside values=4
is "$(client send message="$tmp/beside.otlp")" 'OK - ' '  over gRPC too'
ok 'eight are open at most' test "$(metric cairn_grpc_connections)" -le 8
wait $idling
pass 'who does not speak HTTP/2 within ten seconds is cut'
ok '  and counted' test "$(metric 'cairn_grpc_connections_ended_total{reason="handshake"}')" -ge 1
rooms=$(metric 'cairn_grpc_connections_ended_total{reason="room"}')
wait_for 'all of them to be gone' metric_equals cairn_grpc_connections 0
is "$(client untaken 4)" 'OK - ' 'a client that opens no window is disconnected for others'
is "$(metric 'cairn_grpc_connections_ended_total{reason="room"}')" $((rooms + 1)) '  and one of them is closed'
stop_server

# ---- TLS ----

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout "$tmp/key.pem" -out "$tmp/cert.pem" 2>/dev/null
start_grpc --tls-cert "$tmp/cert.pem" --tls-key "$tmp/key.pem"
export CURL_CA_BUNDLE="$tmp/cert.pem"
url=https://localhost:$port
batch tls values=8
is "$(client send message="$tmp/tls.otlp" ca="$tmp/cert.pem" gzip=1)" 'OK - ' \
        'with TLS, the certificate is that of the HTTP listener'
is "$("$cairn" top --server "$url" --ca "$tmp/cert.pem" --json '{service.name="tls"}' | jq 'map(.flat) | add // 0')" 8 \
        '  and the batch is stored'
like "$(client send message="$tmp/long" ca="$tmp/cert.pem")" '^OK .*the request of 62914560 bytes has no sample' \
        'a message of 60 MiB is accepted, which has no sample'
like "$(client send message="$tmp/tls.otlp" timeout=3)" '^(UNAVAILABLE|DEADLINE_EXCEEDED) ' \
        'without TLS there is no response'
openssl s_client -connect "127.0.0.1:$grpc_port" -servername localhost -alpn http/1.1 </dev/null >"$tmp/alpn" 2>&1
like "$(cat "$tmp/alpn")" 'no application protocol' 'a client of HTTP/1.1 is refused in the handshake'
openssl s_client -connect "127.0.0.1:$grpc_port" -servername localhost -alpn h2 </dev/null >"$tmp/alpn" 2>&1
like "$(cat "$tmp/alpn")" 'ALPN protocol: h2' 'one of HTTP/2 is not'
stop_server
done_testing
