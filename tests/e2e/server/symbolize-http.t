# SPDX-License-Identifier: Apache-2.0
# POST /api/v1/symbolize in JSON and protobuf, POST /symbolicate/v5: they agree, stream their responses, and tolerate
# slow readers.
. tests/e2e/lib.sh

python=/usr/bin/python3 # has Debian's python3-protobuf
$python -c 'import google.protobuf' 2>/dev/null || bail_out "python3-protobuf is missing: make deps"
protoc -I profile-formats/proto --python_out="$tmp" symbolize.proto || bail_out "protoc is missing: make deps"

cat >"$tmp/fixed.c" <<'EOF'
__attribute__((noinline)) int leaf(int n) { return n * 3 + 1; }
static inline int middle(int n) { return leaf(n) + n; }
int outer(int n) { return middle(n) ^ 5; }
int main(int argc, char **argv) { (void)argv; return outer(argc) + leaf(argc); }
EOF
gcc -g -O2 -no-pie -Wl,--build-id=0xe1e2e3e4d5d6c7c8a1a2a3a4a5a6a7a8b1b2b3b4 -o "$tmp/fixed" "$tmp/fixed.c"
gcc -g -O2 -Wl,--build-id=0xa1b2c3d4e5f6 -o "$tmp/short" "$tmp/fixed.c"
objcopy --only-keep-debug "$tmp/fixed" "$tmp/fixed.debug"
id=$(build_id_of /usr/bin/python3.11)
"$CAIRN_BUILD/cairn" index --data "$data" /usr/bin/python3.11 "$tmp/fixed.debug" "$tmp/short" >"$tmp/index.out" ||
        bail_out "cannot index"

start_server --cors-origin https://profiler.example --cors-origin https://other.example
ok "answers" $python tests/e2e/server/symbolize-http.py answers "$url" "$tmp" "$id" "$CAIRN_BUILD/cairn"
diag "$ok_out"
answers 400 'malformed at byte 12: expected an array' "JSON that breaks the format" -d '{"objects": 5}' \
        "$url/api/v1/symbolize"
answers 400 'cut off' "protobuf that is cut off" -H 'Content-Type: application/x-protobuf' \
        --data-binary "$(printf '\012\177x')" \
        "$url/api/v1/symbolize"
answers 400 'module past the end' "a frame of no module" -d '{"memoryMap":[],"stacks":[[[0,1]]]}' "$url/symbolicate/v5"
answers 400 'a pair of module index and offset' "a frame that is none" -d '{"memoryMap":[],"stacks":[[[-1]]]}' \
        "$url/symbolicate/v5"
answers 400 "neither 'jobs'" "no job at all" -d '{}' "$url/symbolicate/v5"
printf '{"objects":[]}' | zstd -q >"$tmp/small.zst"
answers 200 '^{"objects":\[\]}$' "a packed body" -H 'Content-Encoding: zstd' --data-binary @"$tmp/small.zst" \
        "$url/api/v1/symbolize"
$python -c 'print("{\"objects\":[{\"build_id\":\"ab\",\"addresses\":[" + "\"0\"," * 4000000 + "\"0\"]}]}")' |
        zstd -q >"$tmp/many.zst"
answers 413 'more than 4000000 addresses' "too many addresses" -H 'Content-Encoding: zstd' \
        --data-binary @"$tmp/many.zst" "$url/api/v1/symbolize"
request -i -X OPTIONS -H 'Origin: https://other.example' "$url/symbolicate/v5"
like "$body" '^Access-Control-Allow-Origin: https://other.example' "a permitted origin may send requests"
like "$body" '^Access-Control-Allow-Headers: .*User-Agent' "  the headers of the Firefox Profiler are permitted"
request -i -X OPTIONS -H 'Origin: https://evil.example' "$url/symbolicate/v5"
unlike "$body" 'Access-Control-Allow-Origin' "another may not"
request -i -H 'Origin: https://profiler.example' -d '{"jobs":[]}' "$url/symbolicate/v5"
like "$body" '^Access-Control-Allow-Origin: https://profiler.example' "  a permitted origin may read the answer"
stop_server

# Memory is measured without sanitizers, since these keep freed memory.
cairn=$CAIRN_BUILD/cairn
start_server
ok "large answers" $python tests/e2e/server/symbolize-http.py large "$url" "$tmp" "$id" "$server_pid"
diag "$ok_out"
done_testing
