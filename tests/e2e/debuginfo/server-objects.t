# SPDX-License-Identifier: Apache-2.0
# Upload and download of debuginfo: every kind of invalid upload, and the debuginfod paths.
. tests/e2e/lib.sh

cat >"$tmp/program.c" <<'EOF'
static int depth(int n) { return n ? n + depth(n - 1) : 0; }
int main(int argc, char **argv) { (void)argv; return depth(argc); }
EOF
gcc -g -O1 -Wl,--build-id=sha1 -o "$tmp/program" "$tmp/program.c"
gcc -g -O1 -DX -Wl,--build-id=0x00112233445566778899aabbccddeeff00112233 -o "$tmp/other" "$tmp/program.c"
objcopy --only-keep-debug "$tmp/program" "$tmp/program.debug"
strip -o "$tmp/stripped" "$tmp/program"
id=$(build_id_of "$tmp/program")

# send FILE BUILD-ID KIND [CURL-ARGUMENT]...: uploads the file unchanged, with its size and hash.
send() {
        send_file=$1; send_id=$2; send_kind=$3; shift 3
        request -T "$send_file" -H "X-Cairn-Size: $(stat -c %s "$send_file")" \
                -H "X-Cairn-SHA256: $(sha256sum "$send_file" | cut -d' ' -f1)" \
                "$url/api/v1/debuginfo/$send_id/$send_kind" "$@"
}

# refused CODE REASON NAME: checks the last response, and that the object is not stored.
refused() {
        if [ "$code" = "$1" ] && printf '%s' "$body" | jq -e --arg r "$2" '.reason == $r and (.error | length > 10)' \
                >/dev/null; then
                pass "$3"
        else
                fail "$3" "got $code '$body', want $1 '$2'"
        fi
        is "$(curl -sS "$url/api/v1/debuginfo" | jq '.objects | length')" 0 "  nothing is stored of a refused upload"
}

start_server

# ---- refused ----

printf 'this is no ELF file, only some text that goes on for a while' >"$tmp/text"
send "$tmp/text" "$id" debuginfo
refused 400 not_elf "a text file"
: >"$tmp/zero"
head -c 64 /dev/zero >"$tmp/zero"
send "$tmp/zero" "$id" debuginfo
refused 400 not_elf "zeros"
head -c 2000 "$tmp/program.debug" >"$tmp/cut"
send "$tmp/cut" "$id" debuginfo
case $code-$(printf '%s' "$body" | jq -r .reason) in 400-truncated | 400-not_elf) pass "a cut-off ELF file" ;; *) \
        fail "a cut-off ELF file" "$code $body" ;; esac
like "$body" "cut off|ends|past" "  the text says that it is truncated"
is "$(curl -sS "$url/api/v1/debuginfo" | jq '.objects | length')" 0 "  nothing is stored of a truncated file"
head -c 30 "$tmp/program.debug" >"$tmp/cut"
send "$tmp/cut" "$id" debuginfo
refused 400 not_elf "less than an ELF header"
send "$tmp/other" "$id" debuginfo
refused 409 build_id_mismatch "another program's file"
like "$body" "00112233445566778899aabbccddeeff00112233" "  the text has the actual build-id"
send "$tmp/program.debug" "$id" executable
refused 400 no_symbols "debuginfo sent as executable"
printf 'void _start(void) { for (;;) ; }\n' >"$tmp/bare.c"
gcc -nostdlib -static -Wl,--build-id=sha1 -o "$tmp/bare" "$tmp/bare.c"
strip "$tmp/bare"
send "$tmp/bare" "$(build_id_of "$tmp/bare")" debuginfo
refused 400 no_symbols "debuginfo without a symbol"
send "$tmp/program.debug" "$id" sources
refused 400 unsupported_kind "an unknown kind"
send "$tmp/program.debug" xyz debuginfo
refused 400 build_id "a path that is no build-id"
request -T "$tmp/program.debug" "$url/api/v1/debuginfo/$id/debuginfo"
refused 400 usage "no size and hash"
request -T "$tmp/program.debug" -H 'X-Cairn-Size: 5' \
        -H "X-Cairn-SHA256: $(sha256sum "$tmp/program.debug" | cut -d' ' -f1)" \
        "$url/api/v1/debuginfo/$id/debuginfo"
refused 400 size_mismatch "more bytes than announced"
request -T "$tmp/program.debug" -H "X-Cairn-Size: $(stat -c %s "$tmp/program.debug")" \
        -H "X-Cairn-SHA256: $(sha256sum "$tmp/program" | cut -d' ' -f1)" "$url/api/v1/debuginfo/$id/debuginfo"
refused 400 hash_mismatch "another hash"
request -T "$tmp/program.debug" -H 'X-Cairn-Size: 99999999999' \
        -H "X-Cairn-SHA256: $(sha256sum "$tmp/program" | cut -d' ' -f1)" "$url/api/v1/debuginfo/$id/debuginfo"
refused 413 too_big "an object over the limit"
send "$tmp/program.debug" "$id" debuginfo -H 'Content-Encoding: br'
refused 415 encoding "an unknown encoding"
send "$tmp/program.debug" "$id" debuginfo -H 'Content-Encoding: zstd'
refused 400 bad_encoding "no zstd where zstd was said"

zstd -q -c "$tmp/program.debug" >"$tmp/whole.zst"
head -c 700 "$tmp/whole.zst" >"$tmp/part.zst"
request -T "$tmp/part.zst" -H 'Content-Encoding: zstd' -H "X-Cairn-Size: $(stat -c %s "$tmp/program.debug")" \
        -H "X-Cairn-SHA256: $(sha256sum "$tmp/program.debug" | cut -d' ' -f1)" "$url/api/v1/debuginfo/$id/debuginfo"
refused 400 truncated "a zstd stream that ends early"

# A bomb: 1 GiB of zeros in 33 KB, announced as a small file and with its actual size.
head -c 1073741824 /dev/zero | zstd -q -c >"$tmp/bomb.zst"
before=$(peak_memory_kb)
request -T "$tmp/bomb.zst" -H 'Content-Encoding: zstd' -H 'X-Cairn-Size: 100000' \
        -H "X-Cairn-SHA256: $(printf '%064d' 0)" \
        "$url/api/v1/debuginfo/$id/debuginfo"
refused 400 size_mismatch "a bomb that claims to be small"
ok "  costs little memory" test "$(peak_memory_kb)" -lt $((before + 65536))

# A truncated body: 100,000 bytes announced, 2,000 sent, connection closed.
python3 - "$port" "$id" <<'EOF'
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.sendall(b"PUT /api/v1/debuginfo/%s/debuginfo HTTP/1.1\r\nHost: localhost\r\nX-Cairn-Size: 100000\r\nX-Cairn-SHA256: %s\r\n"
          b"Content-Length: 100000\r\n\r\n" % (sys.argv[2].encode(), b"ab" * 32) + b"\x7fELF" * 500)
s.close()
EOF
wait_metric 'cairn_uploads_total{outcome="broken_off"}' 1
pass "a body that is cut off is counted"
left_no_file() { [ -z "$(find "$data/debuginfo/incoming" -type f)" ]; } # it is removed after it is counted
wait_for "its file to go" left_no_file
pass "  and leaves no file"
is "$(find "$data/debuginfo/objects" -type f 2>/dev/null | wc -l)" 0 "no refused upload left a file"
ok "the service is healthy" healthy

# ---- upload queries ----

want() { request -H 'Content-Type: application/json' -d "$1" "$url/api/v1/debuginfo/want"; }
want "{\"files\":[{\"build_id\":\"$id\",\"kind\":\"debuginfo\",\"quality\":\"dwarf\",\"size\":0,\"name\":\"x\"},
       {\"build_id\":\"$id\",\"kind\":\"sources\",\"quality\":\"none\"}]}"
is "$(printf '%s' "$body" | jq -c '[.files[] | [.want, .reason]]')" '[[true,"unknown"],[false,"unsupported_kind"]]' \
        "an unknown object is wanted"
want '{"files":[{"build_id":"zz","kind":"debuginfo","quality":"dwarf"}]}'
is "$code" 400 "a malformed build-id is refused"
want '{"files":[{"kind":"debuginfo"}]}'
is "$code" 400 "a file without build-id is refused"
want '{"files":'
is "$code" 400 "malformed JSON is refused"
like "$body" "byte" "  the refusal has the offset in the JSON"
want '[]'
is "$code" 400 "another JSON type is refused"
python3 -c 'import json; print(json.dumps({"files": [{"build_id": "%040x" % i, "kind": "debuginfo", "quality": "dwarf"} for i in range(10001)]}))' >"$tmp/many.json"
want "@$tmp/many.json"
is "$code" 413 "more files than the limit are refused"
jq -c '.files |= .[:10000]' "$tmp/many.json" >"$tmp/most.json"
want "@$tmp/most.json"
is "$code $(printf '%s' "$body" | jq -c '[(.files | length), all(.files[]; .want)]')" '200 [10000,true]' \
        "as many as the limit are answered in one batch"

# ---- accepted uploads ----

put_object debuginfo "$tmp/program.debug"
is "$code $body" '201 {"state":"stored"}' "debuginfo is stored"
put_object debuginfo "$tmp/program.debug"
is "$code $body" '200 {"state":"same"}' "uploading it again is a no-op"
put_object executable "$tmp/stripped"
is "$code" 201 "an executable is stored"
strip -g -o "$tmp/names" "$tmp/program"
put_object debuginfo "$tmp/names"
is "$code" 409 "a worse file does not replace a better one"
is "$(printf '%s' "$body" | jq -r .reason)" not_better "  the reason is not_better"
want "{\"files\":[{\"build_id\":\"$id\",\"kind\":\"debuginfo\",\"quality\":\"dwarf\",\"size\":0}]}"
is "$(printf '%s' "$body" | jq -c '.files[0] | [.want, .reason]')" '[false,"same_or_better"]' "it is not wanted again"

# ---- debuginfod ----

answers 200 '' "debuginfo comes back" "$url/buildid/$id/debuginfo"
ok "  byte for byte" cmp "$tmp/body" "$tmp/program.debug"
answers 200 '' "the executable too" "$url/buildid/$id/executable"
ok "  byte for byte" cmp "$tmp/body" "$tmp/stripped"
headers=$(curl -sSI "$url/buildid/$id/debuginfo")
like "$headers" "^X-DEBUGINFOD-SIZE: $(stat -c %s "$tmp/program.debug")" "X-DEBUGINFOD-SIZE is the size of the file"
like "$headers" "^X-DEBUGINFOD-FILE: program.debug" "X-DEBUGINFOD-FILE is the name of the file"
like "$headers" "^Content-Type: application/octet-stream" "Content-Type is application/octet-stream"
request -r 100-299 "$url/buildid/$id/debuginfo"
is "$code $(stat -c %s "$tmp/body")" "206 200" "a range of a file has its size"
ok "  has the right bytes" sh -c "tail -c +101 '$tmp/program.debug' | head -c 200 | cmp - '$tmp/body'"
etag=$(printf '%s' "$headers" | sed -n 's/^ETag: \(.*\)\r*$/\1/p' | tr -d '\r')
request -H "If-None-Match: $etag" "$url/buildid/$id/debuginfo"
is "$code" 304 "a known object is 304"
answers 406 'allows 100' "an object larger than the client wants is 406" -H 'X-DEBUGINFOD-MAXSIZE: 100' \
        "$url/buildid/$id/debuginfo"
answers 200 '' "a section" "$url/buildid/$id/section/.debug_info"
objcopy -O binary --only-section=.debug_info --set-section-flags .debug_info=alloc "$tmp/program.debug" "$tmp/section"
ok "  is its bytes" cmp "$tmp/body" "$tmp/section"
answers 404 'not_found' "a section that is not there is 404" "$url/buildid/$id/section/.gdb_index"
answers 404 'not_found' "an unknown build-id is 404" "$url/buildid/00ff/debuginfo"
answers 400 'build_id' "a build-id that is none is 400" "$url/buildid/00f/debuginfo"
answers 404 'not_found' "sources are not there" "$url/buildid/$id/source/usr/src/a.c"
if command -v debuginfod-find >/dev/null; then
        found=$(DEBUGINFOD_CACHE_PATH=$tmp/cache DEBUGINFOD_URLS=$url debuginfod-find debuginfo "$id" 2>"$tmp/err")
        ok "debuginfod-find gets the file" cmp "$found" "$tmp/program.debug"
fi

# ---- symbolize ----

wait_metric cairn_objects_indexed_total 1
wait_for "the index queue to be empty" metric_equals cairn_index_queue 0
main=$(nm "$tmp/program" | awk '$3 == "main" { print $1 }')
symbolize() { request -H 'Content-Type: application/json' -d "$1" "$url/api/v1/symbolize"; }
symbolize "{\"objects\":[{\"build_id\":\"$id\",\"addresses\":[\"$main\",\"0xffffffffff\"]},{\"build_id\":\"00ff\",\"addresses\":[\"1\"]}]}"
is "$(printf '%s' "$body" | jq -c '[.objects[] | .state, (.results[] | .state)]')" \
        '["indexed","resolved","not_in_object","absent","no_debuginfo"]' "every address has a state"
is "$(printf '%s' "$body" | jq -c \
        '.objects[0].results[0].frames[-1] | [.function, (.file | split("/") | last), .line, .inlined]')" \
        '["main","program.c",2,false]' "main has function, file and line"
is "$("$cairn" symbolize --server "$url" --build-id "$id" "$main" | head -1)" main "the command asks the service"
symbolize '{"objects":[{"build_id":"00ff","addresses":[1]}]}'
is "$code" 400 "an address that is not a string is refused"
symbolize '{"objects":[{"build_id":"00f","addresses":["1"]}]}'
is "$code" 400 "a malformed build-id is refused"
symbolize '{"objects":[{"build_id":"00ff"}]}'
is "$code" 400 "an object without addresses is refused"

# ---- restart ----

stop_server
start_server
is "$(curl -sS "$url/api/v1/debuginfo" | jq -c '[.objects[] | [.kind, .quality, .index.state]]')" \
        '[["debuginfo","dwarf","indexed"],["executable","none","indexed"]]' \
        "objects and index are there after a restart"
done_testing
