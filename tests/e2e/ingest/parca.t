#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Parca's clients over gRPC: debuginfo uploads of parca-debuginfo and parca-agent, profiles by WriteRaw.
. tests/e2e/lib.sh
. tests/e2e/venv.sh

start_grpc() {
        : >"$server_log"
        start_server --listen-otlp-grpc 127.0.0.1:0 --flush-interval 1 "$@"
        grpc_port=$(sed -n 's/.*OTLP over gRPC on 127\.0\.0\.1:\([0-9]*\).*/\1/p' "$server_log" | tail -1)
}
parca() { "$PYTHON" tests/e2e/parca.py "$grpc_port" "$@" 2>&1; }
listed() { curl -sS "$url/api/v1/debuginfo" | jq -c '[.objects[] | [.kind, .quality]]'; }
indexed() { wait_for 'the index queue to be empty' metric_equals cairn_index_queue 0; }

cat >"$tmp/program.c" <<'END'
__attribute__((noinline)) int leaf(int n) { volatile int v = n; return v; }
int main(int argc, char **argv) { (void)argv; return leaf(argc); }
END
gcc -g -O1 -Wl,--build-id=sha1 -o "$tmp/program" "$tmp/program.c"
gcc -g -O2 -Wl,--build-id=0x00112233445566778899aabbccddeeff00112233 -o "$tmp/second" "$tmp/program.c"
gcc -g -O2 -Wl,--build-id=none -o "$tmp/nameless" "$tmp/program.c"
objcopy --only-keep-debug "$tmp/second" "$tmp/second.debug"
objcopy --only-keep-debug "$tmp/nameless" "$tmp/nameless.debug"
strip -g -o "$tmp/stripped" "$tmp/program"
id=$(build_id_of "$tmp/program") second=00112233445566778899aabbccddeeff00112233
leaf=$(nm "$tmp/program" | awk '$3 == "leaf" { print $1 }')

start_grpc

# ---- parca-debuginfo ----

is "$(parca should "$id")" 'yes nothing is stored under this build-id' 'an unknown file is wanted'
like "$(parca finished "$id")" '^NOT_FOUND no file is stored under build-id' 'nothing was uploaded yet'
like "$(parca initiate "$id" 1000)" '^cairn1-1000-0-0- strategy 1$' 'the upload strategy is gRPC'
is "$(parca upload "$id" "$tmp/stripped")" "OK $(wc -c <"$tmp/stripped")" 'a file with a symbol table is accepted'
is "$(parca should "$id")" 'yes the file stored under this build-id may be worse' \
        '  and one with debug information is still wanted'
like "$(parca should "$id" id_type=1)" '^no ' '  but not from an agent, which offers it at each start'
is "$(parca upload "$id" "$tmp/program" chunk=4096)" "OK $(wc -c <"$tmp/program")" 'it is accepted, in chunks of 4 KiB'
is "$(parca finished "$id")" 'OK -' '  and finished'
indexed
is "$("$cairn" symbolize --server "$url" --build-id "$id" "$leaf" | head -1)" leaf '  and symbolizes'
is "$(listed)" '[["debuginfo","dwarf"]]' '  from one object'
is "$(parca should "$id")" 'no the file stored under this build-id is as good or better' 'it is not wanted again'
like "$(parca initiate "$id" 1000)" '^FAILED_PRECONDITION the file stored' '  nor may an upload begin'
is "$(parca upload "$id" "$tmp/stripped" upload_id=cairn1-"$(wc -c <"$tmp/stripped")"-0-0-)" \
        "OK $(wc -c <"$tmp/stripped")" \
        'a worse file that comes nevertheless is answered as taken'
is "$(listed)" '[["debuginfo","dwarf"]]' '  and replaces nothing'
is "$(parca should "$id" force=1)" 'yes the file stored under this build-id is as good or better; force replaces it' \
        'with force it is wanted'
is "$(parca upload "$id" "$tmp/stripped" force=1)" "OK $(wc -c <"$tmp/stripped")" '  and taken'
is "$(listed)" '[["debuginfo","symtab"]]' '  and replaces the stored object'
is "$(parca upload "$id" "$tmp/program" type=1)" "OK $(wc -c <"$tmp/program")" 'an executable is taken as such'
is "$(listed)" '[["debuginfo","symtab"],["executable","dwarf"]]' '  beside it'
like "$(cat "$server_log")" 'audit: 200 gRPC /parca.debuginfo.v1alpha1.DebuginfoService/Upload by - from 127.0.0.1' \
        'uploads are in the audit log'

# ---- parca-agent ----

htlhash=00112233445566778899aabbccddee01
is "$(parca upload "$second" "$tmp/second.debug" id_type=1 hash=$htlhash)" "OK $(wc -c <"$tmp/second.debug")" \
        'a file without text is taken'
is "$("$cairn" debuginfo show $htlhash --server "$url" --json | jq -r '.objects[0].build_id')" $second \
        "  the hash that the agent has of the program leads to the object"
hash=00112233445566778899aabbccddee02
is "$(parca upload $hash "$tmp/nameless.debug" id_type=2 hash=$hash)" "OK $(wc -c <"$tmp/nameless.debug")" \
        'a file without a build-id is taken'
is "$("$cairn" debuginfo show $hash --server "$url" --json | jq -r '.objects[0].build_id')" $hash \
        '  under the hash of the program'
like "$(parca should $hash id_type=2)" '^no ' '  and is not wanted again'
like "$(parca should short id_type=2)" "^INVALID_ARGUMENT build_id 'short' is not a build-id" 'a hash has 32 digits'
like "$(parca should abc/def-GHI id_type=3)" '^yes ' 'the id of a Go program is text'

# ---- rejected uploads ----

before=$(listed)
like "$(parca upload "$id" "$tmp/second" force=1)" \
        "^FAILED_PRECONDITION the file's build-id is $second, not the claimed" 'a file with another build-id'
like "$(parca upload "$id" "$tmp/program.c" force=1)" '^INVALID_ARGUMENT .*not an ELF' 'one that is not an ELF file'
like "$(parca upload "$id" "$tmp/program" force=1 size=9000)" \
        '^INVALID_ARGUMENT the object is larger than its announced 9000 bytes' 'one of another size'
like "$(parca upload "$id" "$tmp/program" first_chunk=1 force=1)" \
        '^INVALID_ARGUMENT the first message of an upload must have info' 'a chunk without preceding information'
like "$(parca upload "$id" "$tmp/program" upload_id=other)" "^FAILED_PRECONDITION upload_id 'other' was not issued" \
        'an upload that was not initiated'
like "$(parca upload "$id" "$tmp/program" upload_id=cairn1-1-0-0-zz)" '^FAILED_PRECONDITION upload_id' \
        '  nor one with trailing data'
like "$(parca should xyz)" "^INVALID_ARGUMENT build_id 'xyz' is not a build-id" 'a malformed id'
like "$(parca initiate "$id" 5000000000 force=1)" \
        '^INVALID_ARGUMENT size is 5000000000; files have 1 to 4294967296 bytes' 'a file that is too large'
like "$(parca should "$id" type=2)" \
        '^UNIMPLEMENTED source archives of Parca are unsupported; send sources with cairn-upload' \
        'an archive of sources'
like "$(parca should "$id" type=3)" '^UNIMPLEMENTED files of Parca.s type 3' 'a source map'
like "$(parca small "$second" 5000 force=1)" '^RESOURCE_EXHAUSTED more than 1000 messages of less than 1024 bytes' \
        'many empty messages'
head -c 18874368 /dev/zero >"$tmp/large"
like "$(parca upload "$id" "$tmp/large" force=1 chunk=17825792)" \
        '^RESOURCE_EXHAUSTED a message of 178257[0-9]+ bytes is larger than 16777216' 'a message of 17 MiB'
is "$(listed)" "$before" 'nothing of that was stored'

mkfifo "$tmp/go"
parca broken "$second" "$tmp/program" force=1 <"$tmp/go" >"$tmp/broken" &
breaking=$!
exec 7>"$tmp/go"
wait_metric cairn_uploads_receiving 1
broken=$(metric 'cairn_uploads_total{outcome="broken_off"}')
exec 7>&-
wait $breaking
wait_metric 'cairn_uploads_total{outcome="broken_off"}' $((broken + 1))
pass 'an upload that is broken off is counted'
wait_for 'no upload to be in progress' metric_equals cairn_uploads_receiving 0
left_no_file() { [ -z "$(find "$data/debuginfo/incoming" -type f)" ]; } # it is removed after it is counted
wait_for 'its file to go' left_no_file
pass '  and leaves no file'
wait_for 'its memory to be free' metric_equals 'cairn_memory_bytes{use="uploads"}' 0
pass '  and no memory'

# ---- profiles ----

"$PYTHON" tests/e2e/parca.py - pprof "$tmp/native.pprof" "$id" "$leaf" native
python3 tests/e2e/profiles.py "$tmp/p" || bail_out 'profiles.py failed'
top() { "$cairn" top --server "$url" --json "$1" | jq -c 'map([.function, .flat])'; }
is "$(parca write "$tmp/p/good.pprof" label=job=batch)" 'OK -' 'a pprof file is taken'
ok '  and is stored, with its label' \
        test "$("$cairn" query --server "$url" --json --from now-1h '{job="batch"}' | jq '.sides[0].total')" -gt 0
is "$(parca write "$tmp/p/good.pprof" label=job=batch)" 'OK -' 'sent again it is answered as before'
is "$(metric cairn_ingest_duplicate_batches_total)" 1 '  and counts once'
is "$(parca write "$tmp/native.pprof" normalized=1)" 'OK -' 'addresses of the object'
indexed
wait_for 'the function to be known' sh -c "'$cairn' top --server '$url' '{service_name=\"native\"}' | grep -q leaf"
is "$(top '{service_name="native"}')" '[["leaf",7]]' '  are looked up as they are'
"$PYTHON" tests/e2e/parca.py - pprof "$tmp/process.pprof" "$id" "$leaf" process
is "$(parca write "$tmp/process.pprof")" 'OK -' 'the same as an address of a process'
unlike "$(top '{service_name="process"}')" leaf '  is another one'
printf 'this is no pprof' >"$tmp/text"
like "$(parca write "$tmp/text")" '^INVALID_ARGUMENT ' 'a malformed pprof file is refused'
for method in WriteArrow Write; do
        like "$(parca arrow $method)" \
                '^UNIMPLEMENTED Cairn does not read the Arrow records that parca-agent sends; run cairn-agent' \
                "$method says what works instead"
done
stop_server

# ---- an upload needs memory only for its chunks ----

head -c 125829120 /dev/urandom >"$tmp/random"
objcopy --add-section .debug_more="$tmp/random" "$tmp/second" "$tmp/huge"
rm "$tmp/random"
start_grpc --memory 256M
is "$(parca upload $second "$tmp/huge" force=1)" "OK $(wc -c <"$tmp/huge")" \
        'a file of 120 MiB is accepted with a smaller memory limit for uploads'
is "$(metric 'cairn_memory_refused_total{use="uploads"}')" 0 '  and nothing of it was refused'
rm "$tmp/huge"
stop_server

# ---- tokens ----

printf '%s\n' 'the-uploader upload name=ci' 'the-sender ingest' 'the-reader read' >"$tmp/tokens"
start_grpc --token-file "$tmp/tokens"
like "$(parca should "$id")" "^UNAUTHENTICATED a token with the scope 'upload' is needed" 'without a token'
like "$(parca should "$id" token=the-reader)" "^PERMISSION_DENIED the token does not carry the scope 'upload'" \
        'with one that may only read'
like "$(parca upload "$id" "$tmp/program" token=the-sender upload_id=cairn1-1-0-0-)" \
        "^PERMISSION_DENIED the token does not carry the scope 'upload'" '  or send profiles'
is "$(parca upload "$id" "$tmp/program" token=the-uploader force=1)" "OK $(wc -c <"$tmp/program")" 'with the right one'
is "$(curl -sS -H 'Authorization: Bearer the-reader' "$url/api/v1/debuginfo" |
        jq -r --arg id "$id" '.objects[] | select(.build_id == $id and .kind == "debuginfo").token')" ci \
        '  whose name is kept'
like "$(parca write "$tmp/p/good.pprof" token=the-uploader)" \
        "^PERMISSION_DENIED the token does not carry the scope 'ingest'" 'profiles need another scope'
is "$(parca write "$tmp/p/good.pprof" token=the-sender)" 'OK -' '  which this one has'
stop_server

# ---- extracted files: code sections have an address and no size, and only PT_NOTE segments remain ----

start_grpc
ask() { "$cairn" symbolize --server "$url" --build-id "$1" "$2"; }
gcc -g -O1 -no-pie -Wl,--build-id=0x4444444444444444 -o "$tmp/whole" "$tmp/program.c"
python3 tests/e2e/emptied-elf.py "$tmp/whole" "$tmp/extracted"
leaf=$(nm "$tmp/whole" | awk '$3 == "leaf" { print $1 }')
is "$(parca upload 4444444444444444 "$tmp/extracted")" "OK $(wc -c <"$tmp/extracted")" 'extracted debuginfo is accepted'
indexed
is "$(ask 4444444444444444 "$leaf")" "$("$cairn" symbolize -e "$tmp/whole" "$leaf")" \
        '  and names what the whole program names'
like "$(ask 4444444444444444 "$leaf")" '^leaf$' '  which are functions'
like "$(ask 4444444444444444 "$leaf")" '/program.c:1$' '  with lines'

# Debuginfo with a DWARF unit and no code in it.
useless=5555555555555555
echo 'struct type { int a; } variable;' >"$tmp/types.c"
gcc -g -c -o "$tmp/types.o" "$tmp/types.c"
gcc -O1 -c -o "$tmp/program.o" "$tmp/program.c"
gcc -no-pie -Wl,--build-id=0x$useless -Wl,--retain-symbols-file=/dev/null -o "$tmp/useless" "$tmp/program.o" \
        "$tmp/types.o"
objcopy --only-keep-debug "$tmp/useless" "$tmp/useless.debug"
gcc -g -O1 -no-pie -Wl,--build-id=0x$useless -o "$tmp/useful" "$tmp/program.c"
leaf=$(nm "$tmp/useful" | awk '$3 == "leaf" { print $1 }')
is "$(parca upload $useless "$tmp/useless.debug")" "OK $(wc -c <"$tmp/useless.debug")" \
        'debuginfo without any symbol is accepted'
indexed
is "$(curl -sS "$url/api/v1/debuginfo" |
        jq -r '.objects[] | select(.build_id == "'$useless'") | .quality + " " + .index.state')" \
        'none indexed' '  but has quality none when it is indexed'
like "$(parca should $useless id_type=1)" '^yes ' '  so that a better file is wanted'
is "$(parca upload $useless "$tmp/useful" id_type=1)" "OK $(wc -c <"$tmp/useful")" '  and accepted without force'
indexed
is "$(ask $useless "$leaf" | head -1)" leaf '  and named'
like "$(parca should $useless)" '^no ' '  and is then as good or better'
stop_server
done_testing
