# SPDX-License-Identifier: Apache-2.0
# The cost of an upload: the number of worker processes started and of stored objects decompressed until the uploaded
# file is indexed.
. tests/e2e/lib.sh
upload=$CAIRN_SAN/cairn-upload
for tool in gcc dwz; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

cat >"$tmp/main.c" <<'EOF'
struct counts { int first, second, third; long totals[8]; };
static struct counts counts;
__attribute__((noinline)) int step(int x) { counts.first += x; return counts.first * 3; }
int main(int argc, char **argv) { (void)argv; return step(argc); }
EOF
# build NAME BUILD-ID
build() {
        gcc -O2 -g -DNAME="$1" -Wl,--build-id="0x00000000000000000000000000000000000000$2" -o "$tmp/$1" "$tmp/main.c" ||
                bail_out "gcc"
}
id() { printf '%038d%s' 0 "$1"; }
quiet() { metric_equals cairn_index_queue 0; }
count() { value=$(metric "$1"); echo "${value:-0}"; }
remember() {
        workers=$(count cairn_workers_started_total)
        unpacked=$(count cairn_debuginfo_unpacked_total)
}
workers_since() { echo $(($(count cairn_workers_started_total) - workers)); }
unpacked_since() { echo $(($(count cairn_debuginfo_unpacked_total) - unpacked)); }
up() { "$upload" --server "$url" --force "$@" >"$tmp/out" 2>"$tmp/errors"; }
address() { nm "$1" | awk '$3 == "step" { print $1 }'; }
answers() { # NAME BUILD-ID
        "$cairn" symbolize --server "$url" --build-id "$(id "$2")" --format=llvm "$(address "$tmp/$1")" 2>/dev/null
}
# send FILE BUILD-ID KIND
send() {
        request -T "$1" -H "X-Cairn-Size: $(stat -c %s "$1")" -H "X-Cairn-SHA256: $(sha256sum "$1" | cut -d' ' -f1)" \
                "$url/api/v1/debuginfo/$2/$3?name=$(basename "$1")"
}

build plain 01
build first 02
build second 03
(cd "$tmp" && dwz -m common.dwz -r first second) 2>"$tmp/dwz.err" || bail_out "dwz: $(cat "$tmp/dwz.err")"

start_server

# ---- debuginfo ----

remember
up "$tmp/plain"
wait_metric cairn_objects_indexed_total 1
wait_for "an empty index queue" quiet
is "$(workers_since)" 2 "an upload starts one worker that verifies and one that extracts symbols"
is "$(unpacked_since)" 0 "the indexer reads the uploaded file, not the stored object"
like "$(answers plain 01)" "step" "the symbols of the uploaded file are in the index"

# ---- an executable with its debuginfo ----

remember
send "$tmp/plain" "$(id 01)" executable
wait_for "an empty index queue" quiet
is "$(workers_since)" 2 "an executable starts two workers as well"
is "$(unpacked_since)" 1 "only the earlier debuginfo is decompressed"

# ---- a dwz supplementary file ----

supplement=$(readelf -n "$tmp/common.dwz" | awk '/Build ID/ { print $3 }')
remember
send "$tmp/common.dwz" "$supplement" supplementary
wait_for "an empty index queue" quiet
is "$(workers_since)" 1 "a supplementary file is verified, and has no symbols to extract"
remember
up "$tmp/first"
wait_metric cairn_objects_indexed_total 2
wait_for "an empty index queue" quiet
like "$(answers first 02)" "step" "symbols of a file that dwz compressed are in the index"
stored=$(curl -sS "$url/api/v1/debuginfo" | jq '[.objects[] | select(.kind == "supplementary")] | length')
is "$stored" 1 "the supplementary file is stored once"
is "$(unpacked_since)" 1 "only the supplementary file of the stored objects is decompressed"

# ---- after a restart ----

before=$(answers plain 01)
stop_server
rm -rf "$data/index"
start_server
wait_metric cairn_objects_indexed_total 2
wait_for "an empty index queue" quiet
ok "after a restart the indexer reads the stored objects" metric_reached cairn_debuginfo_unpacked_total 4
is "$(answers plain 01)" "$before" "the symbols indexed after a restart give the same result"

done_testing
