# SPDX-License-Identifier: Apache-2.0
# Ingest of profiles: valid ones are counted once and visible at once, invalid ones are refused with a reason.
. tests/e2e/lib.sh

python3 tests/e2e/profiles.py "$tmp/p" || bail_out "profiles.py failed"
otlp=application/x-protobuf

# send PATH FILE [CURL-ARGUMENT]...
send() { send_path=$1; send_file=$2; shift 2; request --data-binary "@$tmp/p/$send_file" "$@" "$url$send_path"; }
send_otlp() { send_file=$1; shift; send /v1development/profiles "$send_file" -H "Content-Type: $otlp" "$@"; }

# refused CODE PATTERN NAME: checks the last response, that the metric of failures increased, and that no sample was
# accepted.
refused() {
        if [ "$code" = "$1" ] && printf '%s' "$body" | grep -aEq -e "$2"; then
                pass "$3"
        else
                fail "$3" "got $code '$(printf '%s' "$body" | tr -cd '[:print:]')', want $1 /$2/"
        fi
        is "$(metric cairn_ingest_samples_total)" "$seen" "no sample is accepted: $3"
        ok "  and the service is healthy" healthy
}

start_server --flush-interval 3600

# ---- OTLP ----

send_otlp good.otlp
is "$code" 200 "OTLP is accepted"
is "$(metric cairn_ingest_samples_total)" 2 "two samples of OTLP are counted"
answers 200 '"function": ?"leaf"' "  a query sees it at once" "$url/api/v1/query/top?from=now-1h&to=now"
send_otlp good.otlp
is "$code" 200 "the same batch again is acknowledged"
is "$(metric cairn_ingest_samples_total) $(metric cairn_ingest_duplicate_batches_total)" "2 1" \
        "the samples of a repeated batch are counted once"
send_otlp good.otlp.gz -H 'Content-Encoding: gzip'
is "$code $(metric cairn_ingest_samples_total)" "200 2" "gzip is decompressed before the batch is compared"
send_otlp good.otlp.gz -H 'Content-Encoding: x-gzip'
is "$code $(metric cairn_ingest_samples_total)" "200 2" "  by its older name, too"
send_otlp good.otlp -H 'Content-Encoding;' # curl sends the header without a value
is "$code $(metric cairn_ingest_samples_total)" "200 2" "an empty encoding is none"
python3 - "$tmp/p" <<'EOF'
import sys
data = open(sys.argv[1] + "/good.otlp", "rb").read()
size = bytes([len(data) & 127 | 128, len(data) >> 7])
open(sys.argv[1] + "/good.otlp.snappy", "wb").write(size + b"\xf4" + (len(data) - 1).to_bytes(2, "little") + data)
EOF
send_otlp good.otlp.snappy -H 'Content-Encoding: snappy'
is "$code $(metric cairn_ingest_samples_total)" "200 2" "a batch compressed by snappy is the same batch"
send_otlp good.otlp.snappy -H 'Content-Encoding: lz4'
is "$code" 400 "a format other than the given one is refused"
send_otlp good.otlp -H 'X-Cairn-Batch: 000102030405060708090a0b0c0d0e0f'
is "$code $(metric cairn_ingest_samples_total)" "200 4" "the same samples with another batch id are another batch"
send_otlp good.otlp -H 'X-Cairn-Batch: 000102030405060708090a0b0c0d0e0f'
is "$code $(metric cairn_ingest_samples_total)" "200 4" "  that is counted once too"
send /v1/profiles good.otlp -H "Content-Type: $otlp" -H 'X-Cairn-Batch: 000102030405060708090a0b0c0d0e10'
is "$code $(metric cairn_ingest_samples_total)" "200 6" "the other path works as well"
send_otlp empty.otlp
is "$code" 200 "an empty request is a success"

cat >"$tmp/p/good.json" <<EOF
{"resourceProfiles": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "in-json"}}]},
  "scopeProfiles": [{"profiles": [{"sampleType": {"typeStrindex": 1, "unitStrindex": 2},
      "timeUnixNano": "$(date +%s)000000000",
    "samples": [{"stackIndex": 1, "values": ["3"]}, {"stackIndex": 1}]}]}]}],
 "dictionary": {"stringTable": ["", "samples", "count", "leaf\u0041"], "functionTable": [{}, {"nameStrindex": 3}],
  "locationTable": [{}, {"lines": [{"functionIndex": 1}]}], "stackTable": [{}, {"locationIndices": [1]}]}}
EOF
send /v1development/profiles good.json -H 'Content-Type: application/json'
is "$code $(metric cairn_ingest_samples_total)" "200 7" "OTLP in JSON is accepted"
is "$body" '{"partialSuccess":{"rejectedProfiles":"1","errorMessage":"1 sample rejected: a sample has neither values nor timestamps"}}' \
        "OTLP in JSON is answered in JSON"
answers 200 '"function": ?"leafA"' "  a query sees it at once" \
        "$url/api/v1/query/top?type=process_cpu:samples:count::&from=now-1h&to=now"
printf '{}' >"$tmp/p/empty.json"
send /v1/profiles empty.json -H 'Content-Type: application/json'
is "$code $body" "200 {}" "an empty request in JSON is a success"
seen=$(metric cairn_ingest_samples_total)

send_otlp good.otlp -H 'X-Cairn-Batch: xyz'
refused 400 'X-Cairn-Batch' "a malformed batch id"
for bad in bad-stack-index bad-negative-index bad-attribute-index bad-mapping-index; do
        send_otlp $bad.otlp
        refused 400 'index|indices|outside|entr' "OTLP with an index out of range: $bad"
done
for bad in bad-cut bad-text bad-length; do
        send_otlp $bad.otlp
        refused 400 'cut off|malformed|not' "malformed OTLP: $bad"
done
send_otlp good.otlp -H 'Content-Encoding: br'
refused 415 'Content-Encoding' "an unknown encoding"
ok "  in protobuf, for a protobuf client" sh -c 'printf %s "$1" | od -An -tx1 | grep -q "^ 08 03 12"' - "$body"
send /v1development/profiles good.otlp -H 'Content-Type: application/json; charset=utf-8'
refused 400 '^{"code":3,"message":"the JSON is malformed at byte [01]: ' \
        "protobuf that is said to be JSON, said as JSON"
cp tests/corpus/otlp_json/bad/string-index-past-table.json "$tmp/p"
send /v1development/profiles string-index-past-table.json -H 'Content-Type: application/json'
refused 400 'string index 2000 is outside the table' "OTLP in JSON with an index out of range"
send /v1development/profiles good.otlp -H 'Content-Type: text/plain'
refused 415 'unsupported' "an unknown content type"
send /v1development/profiles good.otlp -H 'Content-Type:'
refused 415 'unsupported' "no content type"
send_otlp good.otlp -H 'Content-Encoding: br'
refused 415 'use gzip, deflate, zstd, zlib, snappy, lz4 or none' "an unknown content encoding"
request -X PUT -H "Content-Type: $otlp" --data-binary "@$tmp/p/good.otlp" "$url/v1development/profiles"
refused 405 'allowed: POST' "a wrong method"
send_otlp cut.gz -H 'Content-Encoding: gzip'
refused 400 'cut off|ends' "a gzip body that is cut off"
send_otlp noise.gz -H 'Content-Encoding: gzip'
refused 400 'gzip|damaged' "a gzip body of noise"
python3 -c 'import sys, zlib; sys.stdout.buffer.write(zlib.compress(open(sys.argv[1], "rb").read())[2:-4])' \
        "$tmp/p/good.otlp" >"$tmp/p/raw.deflate"
send_otlp raw.deflate -H 'Content-Encoding: deflate'
refused 400 'this is raw deflate data: .*zlib header' "a body in raw deflate"
before=$(peak_memory_kb)
send_otlp bomb.gz -H 'Content-Encoding: gzip'
refused 413 'after unpacking' "a gzip bomb of 256 MiB"
ok "  costs no more than the limit" test "$(peak_memory_kb)" -lt $((before + 300000))
head -c 67108865 /dev/zero >"$tmp/p/large"
send_otlp large
refused 413 'larger than 67108864 bytes' "a body over the limit"
send_otlp large -H 'Expect:'
refused 413 'larger than 67108864 bytes' "  also when the client does not wait for leave"
send_otlp large -H 'Expect:' -H 'Transfer-Encoding: chunked'
refused 413 'larger than 67108864 bytes' "  also without a length"
python3 - "$port" <<'EOF'
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.sendall(b"POST /v1development/profiles HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\nContent-Length: 5000\r\n\r\n" + b"\x0a" * 100)
s.close()
EOF
wait_for "the end of a connection" metric_equals cairn_http_connections 1
is "$(metric cairn_ingest_samples_total)" "$seen" "a truncated body counts nothing"
ok "  and the service is healthy" healthy

# ---- pprof ----

ingest="/ingest?name=shop%7Bregion%3Deu%7D&from=$(date +%s)"
send "$ingest&format=pprof" good.pprof
is "$code" 200 "pprof is accepted"
send "$ingest&format=pprof&n=2" plain.pprof
is "$code" 200 "pprof without gzip is accepted"
request -F "profile=@$tmp/p/good.pprof" -F 'sample_type_config={}' "$url$ingest&n=3"
is "$code" 200 "pprof as a form is accepted"
send /push.v1.PusherService/Push push.proto -H 'Content-Type: application/proto'
is "$code" 200 "pushed pprof is accepted"
printf '{"series":[{"labels":[{"name":"__name__","value":"process_cpu"},{"name":"service_name","value":"json"}],"samples":[{"rawProfile":"%s","ID":"1"}]}]}' \
        "$(base64 -w0 "$tmp/p/plain.pprof")" >"$tmp/p/push.json"
send /push.v1.PusherService/Push push.json -H 'Content-Type: application/json'
is "$code $body" '200 {}' "pprof pushed in JSON is accepted"
answers 200 '"service_name": ?"json"|main' "  and a query sees it" -G "$url/api/v1/query/top" \
        --data-urlencode 'selector={service_name="json"}' \
        --data-urlencode 'from=now-1h' --data-urlencode 'to=now'
# type_of PATH FILE CONTENT-TYPE: the Content-Type of the response, which generated clients check.
type_of() {
        curl -sS -o "$tmp/body" -w '%{http_code} %{content_type} %{size_download}' -H "Content-Type: $3" \
                --data-binary "@$tmp/p/$2" "$url$1"
}
is "$(type_of /push.v1.PusherService/Push push.proto application/proto)" '200 application/proto 0' \
        "an empty answer has the type of the call"
is "$(type_of /push.v1.PusherService/Push push.json application/json)" '200 application/json 2' \
        "an empty answer in JSON has the type of the call"
is "$(type_of /push.v1.PusherService/Push bad-text.otlp application/proto | cut -d ' ' -f 1,2)" '400 application/json' \
        "an error of a call in protobuf is JSON"
is "$(type_of /v1development/profiles empty.otlp "$otlp")" "200 $otlp 0" "  as an empty answer to OTLP has its type"
send "$ingest&format=folded" good.folded
is "$code" 200 "folded stacks are accepted"
is "$(metric cairn_ingest_samples_total)" $((seen + 7)) "  all of them"
answers 200 'main' "  and the labels are there" -G "$url/api/v1/query/top" \
        --data-urlencode 'selector={service_name="shop",region="eu"}' \
        --data-urlencode 'from=now-1h' --data-urlencode 'to=now'
seen=$(metric cairn_ingest_samples_total)

for bad in bad-location-id bad-function-id bad-cycle bad-string-index bad-value-count giant-count bad-text; do
        send "$ingest&format=pprof" $bad.pprof
        refused 400 '"error":"[^"]{10,}' "pprof: $bad"
done
before=$(peak_memory_kb)
for bad in giant-stack many-samples; do
        send "$ingest&format=pprof" $bad.pprof
        case $code in 200 | 400 | 413) pass "pprof: $bad is answered ($code)" ;; *) fail "pprof: $bad is answered" \
                "$code $body" ;; esac
        ok "  and the service is healthy" healthy
done
ok "  within the memory limits" test "$(peak_memory_kb)" -lt $((before + 1500000))
seen=$(metric cairn_ingest_samples_total)
send '/ingest?format=pprof' good.pprof
refused 400 "'name' is missing" "pprof without a name"
send '/ingest?name=a%7Bb&format=pprof' good.pprof
refused 400 'no closing brace' "a malformed name"
send "$ingest&format=jfr" good.pprof
refused 400 'not a JFR file' "what is no recording, as JFR"
request -F "other=@$tmp/p/good.pprof" "$url$ingest"
refused 400 "no part 'profile'" "a form without a profile"
send /push.v1.PusherService/Push good.pprof -H 'Content-Type: text/plain'
refused 415 '^{"code":"unimplemented","message":".*send application/proto or application/json"}$' \
        "a push in another content type"
send /push.v1.PusherService/Push good.pprof -H 'Content-Type: application/json'
refused 400 '^{"code":"invalid_argument","message":"the JSON is malformed' "pushed JSON that is none"
send /push.v1.PusherService/Push bad-text.otlp -H 'Content-Type: application/proto'
refused 400 '^{"code":"invalid_argument","message":".*(cut off|malformed)' "a malformed push"
send /push.v1.PusherService/Push large -H 'Content-Type: application/proto'
refused 413 '^{"code":"invalid_argument","message":".*67108864' "a push over the limit, which Alloy must not repeat"
send "$ingest&format=folded" bad-text.pprof
refused 400 'line 1' "folded stacks without a count"

# ---- across a restart ----

sum() {
        curl -sS -G "$url/api/v1/query/folded" --data-urlencode 'selector={service_name="test"}' \
                --data-urlencode from=now-1h \
                --data-urlencode to=now --data-urlencode type=process_cpu:cpu:nanoseconds:cpu:nanoseconds |
                awk '{ n += $NF } END { print n + 0 }'
}
is "$(sum)" 33 "three batches of 11"
stop_server
start_server --flush-interval 3600
is "$(sum)" 33 "samples are stored in parts after a clean stop"
send_otlp good.otlp
is "$code $(sum)" "200 33" "a batch that is sent again is known after a restart"
kill_server
start_server --flush-interval 3600
is "$(sum)" 33 "samples are stored after a crash"
done_testing
