# SPDX-License-Identifier: Apache-2.0
# Objects by other ids: the hash of a file's ends and length (OTLP's htlhash) and the Go build-id, before and after the
# upload; files without any build-id.
. tests/e2e/lib.sh
upload=$CAIRN_SAN/cairn-upload

cat >"$tmp/program.c" <<'EOF'
__attribute__((noinline)) int leaf(int n) { volatile int v = n; return v; }
char filler[65536] = { 1 };
int main(int argc, char **argv) { (void)argv; return leaf(argc) + filler[argc]; }
EOF
htlhash() {
        python3 -c 'import hashlib, sys; b = open(sys.argv[1], "rb").read()
print(hashlib.sha256(b[:4096] + b[-4096:] + len(b).to_bytes(8, "big")).hexdigest()[:32])' "$1"
}
address() { nm "$1" | awk -v name="$2" '$3 == name { print $1 }'; }
# ingest SERVICE ID-KIND ID FILE [FUNCTION CALLER]
ingest() {
        python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" "build_id=$3" "id_kind=$2" "service=$1" values=7 \
                "addresses=$(address "$4" "${5:-leaf}"),$(address "$4" "${6:-main}")"
        request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
        is "$code" 200 "samples with the $2 id of $1 are accepted"
}
folded() {
        curl -sS -G "$url/api/v1/query/folded" --data-urlencode "selector={service_name=\"$1\"}" \
                --data-urlencode from=now-1h \
                --data-urlencode to=now
}
named() { [ "$(folded "$1")" = "${2:-main;leaf 7}" ]; }
up() { "$upload" --server "$url" "$@" >"$tmp/out" 2>"$tmp/errors"; code=$?; out=$(cat "$tmp/out"); }
shown() { "$cairn" debuginfo show "$1" --server "$url" --json | jq -c "$2"; }

gcc -g -O1 -Wl,--build-id=sha1 -o "$tmp/program" "$tmp/program.c"
strip -o "$tmp/stripped" "$tmp/program"
gcc -g -O1 -Wl,--build-id=none -o "$tmp/nameless" "$tmp/program.c"
id=$(build_id_of "$tmp/program")

start_server --flush-interval 1

# ---- the hash of a file with a GNU build-id ----

whole=$(htlhash "$tmp/program")
ingest split htlhash "$whole" "$tmp/program"
up "$tmp/program"
is "$code" 0 "debuginfo is split off a program and sent"
wait_for "names" named split
pass "  and samples that know the whole by its hash get names"
is "$(shown "$whole" '[.build_id, .aliases]')" "[\"$id\",[\"$whole\"]]" "cairn debuginfo show finds it by that hash"
is "$("$cairn" symbolize --server "$url" --build-id "$whole" "$(address "$tmp/program" leaf)" | head -1)" leaf \
        "cairn symbolize finds it by that hash"
answers 404 not_found "debuginfod does not: its ids are build-ids" "$url/buildid/$whole/debuginfo"
request -H 'Content-Type: application/json' \
        -d "{\"files\":[{\"build_id\":\"$whole\",\"kind\":\"debuginfo\",\"quality\":\"dwarf\"}]}" \
        "$url/api/v1/debuginfo/want"
is "$(printf '%s' "$body" | jq -c '.files[0] | [.want, .reason]')" '[false,"same_or_better"]' \
        "a query by that hash reports the object as stored"
like "$("$cairn" why "$whole" "$(address "$tmp/program" leaf)" --server "$url" 2>&1)" 'leaf' "cairn why takes it"

other=$(htlhash "$tmp/stripped")
put_object executable "$tmp/stripped"
is "$code" 201 "the stripped program is uploaded, too"
ingest stripped htlhash "$other" "$tmp/program"
wait_for "names" named stripped
pass "  and its hash, found in the file, is one more name"
is "$(shown "$id" '.aliases | length')" 2 "  beside the other"

# ---- another file with the same alias ----

gcc -g -O2 -DOTHER -Wl,--build-id=0x00112233445566778899aabbccddeeff00112233 -o "$tmp/later" "$tmp/program.c"
objcopy --only-keep-debug "$tmp/later" "$tmp/later.debug"
request -T "$tmp/later.debug" -H "X-Cairn-Size: $(stat -c %s "$tmp/later.debug")" \
        -H "X-Cairn-SHA256: $(sha256sum "$tmp/later.debug" | cut -d' ' -f1)" \
        "$url/api/v1/debuginfo/$(build_id_of "$tmp/later")/debuginfo?htlhash=$other"
is "$code" 201 "a later object that claims the same hash is stored"
is "$(shown "$other" .build_id)" "\"$id\"" "  the first object keeps the alias"
is "$(shown "$(build_id_of "$tmp/later")" .aliases)" '[]' "  the later object does not have the alias"
request -T "$tmp/later.debug" -H 'X-Cairn-Size: 1' -H "X-Cairn-SHA256: $(printf '%064d' 0)" \
        "$url/api/v1/debuginfo/$id/debuginfo?htlhash=xyz"
is "$code $(printf '%s' "$body" | jq -r .reason)" "400 usage" "a malformed hash is refused"

# ---- a file without any build-id ----

up "$tmp/nameless"
is "$out" "nothing to send: 0 sent, 0 already there, 1 skipped (1 without a build-id)" \
        "a file without a build-id is not split"
nameless=$(htlhash "$tmp/nameless")
ingest nameless htlhash "$nameless" "$tmp/nameless"
up --executables "$tmp/nameless"
is "$code" 0 "the whole file is sent with --executables"
wait_for "names" named nameless
pass "  and samples that know it by its hash get names"
is "$(shown "$nameless" '[.build_id, .aliases, .objects[0].kind]')" "[\"$nameless\",[],\"debuginfo\"]" \
        "  its hash is its identity"
up --executables "$tmp/nameless"
like "$out" '^nothing to send' "  a second run sends nothing"
cp "$tmp/nameless" "$tmp/changed"
printf 'X' | dd of="$tmp/changed" bs=1 seek=20000 conv=notrunc status=none
is "$(htlhash "$tmp/changed")" "$nameless" "a file that differs in its middle has the same hash"
request -T "$tmp/changed" -H "X-Cairn-Size: $(stat -c %s "$tmp/changed")" \
        -H "X-Cairn-SHA256: $(sha256sum "$tmp/changed" | cut -d' ' -f1)" "$url/api/v1/debuginfo/$nameless/debuginfo"
is "$code $(printf '%s' "$body" | jq -r .reason)" "409 not_better" "  the file that differs does not replace the first"
request -T "$tmp/stripped" -H "X-Cairn-Size: $(stat -c %s "$tmp/stripped")" \
        -H "X-Cairn-SHA256: $(sha256sum "$tmp/stripped" | cut -d' ' -f1)" "$url/api/v1/debuginfo/$nameless/executable"
is "$code $(printf '%s' "$body" | jq -r .reason)" "409 build_id_mismatch" \
        "a file is not stored under another file's hash"

# A stripped program without a build-id is identified by its own hash, and the unstripped program by another one.
gcc -g -O0 -Wl,--build-id=none -o "$tmp/unstripped" "$tmp/program.c"
strip -o "$tmp/running" "$tmp/unstripped"
running=$(htlhash "$tmp/running")
ingest running htlhash "$running" "$tmp/unstripped"
request -T "$tmp/unstripped" -H "X-Cairn-Size: $(stat -c %s "$tmp/unstripped")" \
        -H "X-Cairn-SHA256: $(sha256sum "$tmp/unstripped" | cut -d' ' -f1)" \
        "$url/api/v1/debuginfo/$(htlhash "$tmp/unstripped")/debuginfo?htlhash=$running"
is "$code" 201 "a program is sent with the hash of its stripped version"
is "$(shown "$running" '[.build_id, .aliases]')" "[\"$(htlhash "$tmp/unstripped")\",[\"$running\"]]" \
        "  the hash of the stripped version becomes its alias"
wait_for "names" named running
pass "  and samples of the stripped program get names"

# ---- Go ----

if command -v go >/dev/null; then
        cat >"$tmp/here.go" <<'EOF'
package main

//go:noinline
func leaf(n int) int { return n * 2 }
func main() { println(leaf(3)) }
EOF
        if (cd "$tmp" && HOME=$tmp GO111MODULE=off go build -ldflags=-B=0x00aa00aa00aa00aa00aa00aa00aa00aa00aa00aa \
                -o gone here.go) >/dev/null 2>&1; then
                ingest go go "$(go tool buildid "$tmp/gone")" "$tmp/gone" main.leaf main.main
                up "$tmp/gone"
                is "$code" 0 "a Go program with a GNU build-id is sent"
                wait_for "names" named go 'main.main;main.leaf 7'
                pass "  and samples that know it by its Go build-id get names"
        fi
fi

# ---- restart ----

stop_server
start_server
is "$("$cairn" symbolize --server "$url" --build-id "$whole" "$(address "$tmp/program" leaf)" | head -1)" leaf \
        "aliases persist across a restart"
ok "cairn debuginfo rm" "$cairn" debuginfo rm "$id" --server "$url"
is "$(shown "$other" '[.build_id, .objects[].kind]')" "[\"$id\",\"executable\"]" \
        "the executable keeps the alias found in it"
done_testing
