# SPDX-License-Identifier: Apache-2.0
# Debuginfo uploads as Pyroscope's agents make them: ShouldInitiateUpload, Upload, UploadFinished, in JSON and protobuf.
. tests/e2e/lib.sh
service() { service_method=$1; shift; request "$@" "$url/debuginfo.v1alpha1.DebuginfoService/$service_method"; }
json() { json_method=$1; json_body=$2; shift 2; \
        service "$json_method" -H 'Content-Type: application/json' -d "$json_body" "$@"; }
proto() { proto_method=$1; shift; service "$proto_method" -H 'Content-Type: application/proto' \
        -H 'Connect-Protocol-Version: 1' --data-binary "@$tmp/message" "$@"; }
send() { service "Upload/$2" -H 'Content-Type: application/octet-stream' --data-binary "@$1" -H 'Expect:'; }
connect_code() { printf '%s' "$body" | jq -r .code; }

cat >"$tmp/program.c" <<'EOF'
__attribute__((noinline)) int leaf(int n) { volatile int v = n; return v; }
int main(int argc, char **argv) { (void)argv; return leaf(argc); }
EOF
gcc -g -O1 -Wl,--build-id=sha1 -o "$tmp/program" "$tmp/program.c"
gcc -g -O2 -Wl,--build-id=0x00112233445566778899aabbccddeeff00112233 -o "$tmp/second" "$tmp/program.c"
id=$(build_id_of "$tmp/program")
second=$(build_id_of "$tmp/second")
objcopy --only-keep-debug "$tmp/second" "$tmp/second.debug"

start_server

# ---- JSON ----

json ShouldInitiateUpload "{\"file\":{\"gnuBuildId\":\"$id\",\"name\":\"program\",\"type\":\"TYPE_EXECUTABLE_FULL\"}}"
is "$code $(printf '%s' "$body" | jq -c '[.shouldInitiateUpload == true, .reason]')" '200 [true,"unknown"]' \
        "an unknown file is wanted"
json UploadFinished "{\"gnuBuildId\":\"$id\"}"
is "$code $(connect_code)" "404 not_found" "nothing was uploaded yet"
send "$tmp/program" "$id"
is "$code $body" '200 {}' "the file is accepted"
json UploadFinished "{\"gnuBuildId\":\"$id\"}"
is "$code $body" '200 {}' "the upload is finished"
wait_for "the index queue to be empty" metric_equals cairn_index_queue 0
is "$("$cairn" symbolize --server "$url" --build-id "$id" "$(nm "$tmp/program" | awk '$3 == "leaf" { print $1 }')" |
        head -1)" leaf "the uploaded file symbolizes an address"
is "$(curl -sS "$url/api/v1/debuginfo" | jq -c '[.objects[] | [.kind, .name, .quality]]')" \
        '[["debuginfo","program","dwarf"]]' "it has its name"
json ShouldInitiateUpload "{\"file\":{\"gnu_build_id\":\"$id\"}}"
is "$code $(printf '%s' "$body" | jq -c '[.shouldInitiateUpload == true, .reason]')" '200 [false,"same_or_better"]' \
        "it is not wanted again"
send "$tmp/program" "$id"
is "$code $body" '200 {}' "sent again it is already stored"
strip -g -o "$tmp/worse" "$tmp/program"
send "$tmp/worse" "$id"
is "$code $body" '200 {}' "a worse one gets the same response"
is "$(curl -sS "$url/api/v1/debuginfo" | jq -c '[.objects[].quality]')" '["dwarf"]' "  a worse file replaces nothing"

# ---- protobuf: {1: {1: gnu_build_id, 3: otel_file_id, 4: "second", 5: 2}} ----

{
        printf '\012\126\012\050%s\032\040%s\042\006second\050\002' "$second" 00112233445566778899aabbccddeeff
} >"$tmp/message"
hex() { od -An -v -tx1 "$tmp/body" | tr -d ' \n'; }
proto ShouldInitiateUpload
is "$code $(hex)" '200 08011207756e6b6e6f776e' "protobuf in, protobuf out: true, unknown"
send "$tmp/second.debug" "$second"
is "$code $body" '200 {}' "a file without .text is accepted"
printf '\012\050%s' "$second" >"$tmp/message"
proto UploadFinished
is "$code $(hex)" '200 ' "the second upload is finished with an empty message"
is "$(service UploadFinished -H 'Content-Type: application/proto' --data-binary "@$tmp/message" \
        -D "$tmp/headers"; tr -d '\r' <"$tmp/headers" | sed -n 's/^Content-Type: //p')" \
        application/proto "  that has its type"
is "$("$cairn" debuginfo show 00112233445566778899aabbccddeeff --server "$url" --json | jq -r '.objects[0].name')" \
        second \
        "the id that OTLP's profiler has for it leads to it"
printf '\012\052\012\050%s' "$second" >"$tmp/message"
proto ShouldInitiateUpload
is "$code $(hex)" "200 120e$(printf same_or_better | od -An -tx1 | tr -d ' \n')" "it is not wanted again"

# ---- rejected uploads ----

send "$tmp/second" "$id"
is "$code $(connect_code)" "409 failed_precondition" "a file with another build-id"
head -c 1000 "$tmp/program" >"$tmp/cut"
send "$tmp/cut" "$id"
is "$code $(connect_code)" "400 invalid_argument" "a truncated file"
send "$tmp/program" "nothex"
is "$code $(connect_code)" "400 invalid_argument" "a malformed id"
json ShouldInitiateUpload '{"file":{"gnuBuildId":"xyz"}}'
is "$code $(connect_code)" "400 invalid_argument" "  a malformed id in the query is refused"
json ShouldInitiateUpload '{"file":'
is "$code $(connect_code)" "400 invalid_argument" "malformed JSON is refused"
printf '\012\177' >"$tmp/message"
proto ShouldInitiateUpload
is "$code $(connect_code)" "400 invalid_argument" "malformed protobuf is refused"
json ShouldInitiateUpload '{"file":{"goBuildId":"abc/def"}}'
is "$code $(printf '%s' "$body" | jq -c '.shouldInitiateUpload == true')" '200 false' \
        "a file without a GNU build-id is not wanted"
service ShouldInitiateUpload -H 'Content-Type: text/plain' -d x
is "$code $(connect_code)" "415 unimplemented" "another content type"
is "$(curl -sS "$url/api/v1/debuginfo" | jq '.objects | length')" 2 "nothing of that was stored"

# ---- a truncated body, and tokens ----

python3 - "$port" "$id" <<'EOF'
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.sendall(b"POST /debuginfo.v1alpha1.DebuginfoService/Upload/%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n" % sys.argv[2].encode()
          + b"\x7fELF" * 500)
s.close()
EOF
wait_metric 'cairn_uploads_total{outcome="broken_off"}' 1
pass "a body that is cut off is counted"
left_no_file() { [ -z "$(find "$data/debuginfo/incoming" -type f)" ]; } # it is removed after it is counted
wait_for "its file to go" left_no_file
pass "  and leaves no file"
stop_server
printf 'upload-secret upload\nread-secret read\n' >"$tmp/tokens"
start_server --token-file "$tmp/tokens"
json ShouldInitiateUpload "{\"file\":{\"gnuBuildId\":\"$id\"}}"
is "$code $(connect_code)" "401 unauthenticated" "without a token"
json ShouldInitiateUpload "{\"file\":{\"gnuBuildId\":\"$id\"}}" -H 'Authorization: Bearer read-secret'
is "$code $(connect_code)" "403 permission_denied" "a token that may only read is refused"
json ShouldInitiateUpload "{\"file\":{\"gnuBuildId\":\"$id\"}}" -H 'Authorization: Bearer upload-secret'
is "$code" 200 "a token for uploads is accepted"
service "Upload/$id" --data-binary "@$tmp/program" -H 'Expect:'
is "$code $(connect_code)" "401 unauthenticated" "a file is not accepted without a token"
done_testing
