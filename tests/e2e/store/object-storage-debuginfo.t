#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Debuginfo in an S3-compatible store outlives the machine, and another one with an empty disk needs no DWARF to use it.
. tests/e2e/lib.sh
for tool in jq python3 curl gcc objcopy; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh
. tests/e2e/object-store.sh
address=s3://cairn-test/fleet

cat >"$tmp/program.c" <<'END'
static int inner(int n) { return n * 3; }
int outer(int n) { return inner(n) + 1; }
int main(int argc, char **argv) { (void)argv; return outer(argc); }
END
gcc -g -O1 -fno-inline -Wl,--build-id=sha1 -o "$tmp/whole" "$tmp/program.c"
mkdir "$tmp/built"
objcopy --only-keep-debug "$tmp/whole" "$tmp/built/program.debug"
objcopy --strip-all "$tmp/whole" "$tmp/built/program"
id=$(build_id_of "$tmp/whole")
outer=0x$(nm "$tmp/whole" | awk '$3 == "outer" { print $1 }')
symbolized() { "$cairn" symbolize --server "$url" --build-id "$id" --format=llvm "$outer" 2>&1; }
# objects: rows of the table, as deltalake reads them where they are.
objects() { "$PYTHON" tests/e2e/store/object-store.py objects "$store_port"; }
listed() { curl -sS "$url/api/v1/debuginfo" | jq -c '[.objects[] | [.kind, .quality, .name, .tag, .pinned]] | sort'; }
indexed() { symbolized | grep -q '^outer'; }
table_is_stored() { objects | grep -q '^symbol-table'; }

# ---- the first machine ----

start_server --store "$address"
ok "cairn-upload sends debuginfo and executable" \
        "$CAIRN_BUILD/cairn-upload" --server "$url" --executables --tag release "$tmp/built"
folder=$(echo "$id" | cut -c1-2)/$(echo "$id" | cut -c3-)
like "$(keys)" "^fleet/objects/$folder/debuginfo-[0-9a-f]{16}-[0-9a-f]{16}\.zst" \
        "the debuginfo is in the store"
is "$(find "$data/debuginfo" -name '*.zst')" '' "the disk has no object"
wait_for "the symbols" indexed
first=$(symbolized)
wait_for "the symbol table in the table of objects" table_is_stored
is "$(objects | grep -v version)" "debuginfo dwarf program.debug
executable none program
symbol-table dwarf -" "the table of objects has a row for each object and symbol table"
ok "an object is pinned" "$cairn" debuginfo pin --server "$url" "$id" --kind debuginfo
first_list=$(listed)
like "$first_list" '"debuginfo","dwarf","program.debug","release",true' "the list has it pinned"

# ---- it dies, with its disk ----

kill -9 "$server_pid"
wait "$server_pid" 2>/dev/null
server_pid=
mv "$data" "$tmp/dead"
start_server --store "$address"
is "$(listed)" "$first_list" "a machine with an empty disk has the same objects, with name, tag and pin"
wait_for "the symbols on the second machine" indexed
is "$(symbolized)" "$first" "it symbolizes as the first one did"
is "$(metric cairn_symbol_tables_fetched_total)" 1 "it loaded the symbol table that the first one stored"
is "$(metric cairn_debuginfo_unpacked_total)" 0 "it did not read the debuginfo"
request "$url/buildid/$id/debuginfo"
ok "it serves the debuginfo, byte for byte" cmp "$tmp/body" "$tmp/built/program.debug"
request "$url/buildid/$id/executable"
ok "it serves the executable" cmp "$tmp/body" "$tmp/built/program"
request -r 100-199 "$url/buildid/$id/debuginfo"
tail -c +101 "$tmp/built/program.debug" | head -c 100 >"$tmp/part"
ok "it serves a range" cmp "$tmp/body" "$tmp/part"
objcopy -O binary --only-section=.debug_info --set-section-flags .debug_info=alloc "$tmp/built/program.debug" \
        "$tmp/debug_info"
request "$url/buildid/$id/section/.debug_info"
ok "it serves a section" cmp "$tmp/body" "$tmp/debug_info"
"$CAIRN_BUILD/cairn-upload" --server "$url" --executables "$tmp/built" >"$tmp/again.log" 2>&1
is "$(objects | grep -c -v version)" 3 "files that are stored are not stored again"

# ---- a snapshot needs no store ----

ok "a snapshot is made" "$cairn" store snapshot "$tmp/snapshot" --data "$data"
"$cairn" debuginfo get "$id" --data "$tmp/snapshot" --output "$tmp/got" >"$tmp/get.log" 2>&1
ok "the snapshot has the debuginfo on the disk" cmp "$tmp/got" "$tmp/built/program.debug"
ok "the snapshot has no damaged object" "$cairn" debuginfo verify --data "$tmp/snapshot"

# ---- the store is away ----

order away >"$tmp/order"
gcc -g -O1 -DLATER -Wl,--build-id=sha1 -o "$tmp/later" "$tmp/program.c" -Wl,--defsym=later=1
put_object debuginfo "$tmp/later"
unlike "$code" '^2' "an upload is not acknowledged while the store is away"
order back >"$tmp/order"
put_object debuginfo "$tmp/later"
is "$code" 201 "an upload is acknowledged when the store is back"
ok "an object is removed" "$cairn" debuginfo rm --server "$url" "$(build_id_of "$tmp/later")" --kind debuginfo

# ---- replacement ----

gcc -DLATER -Wl,--build-id=0xabcdef0123456789 -o "$tmp/named" "$tmp/program.c"
gcc -g -DLATER -Wl,--build-id=0xabcdef0123456789 -o "$tmp/better" "$tmp/program.c"
put_object debuginfo "$tmp/named"
is "$code" 201 "debuginfo with names only is stored"
replaced=$(keys | grep '^fleet/objects/ab/cdef0123456789/') # its symbol table may be there, too
waiting=fleet/objects/ab/cdef0123456789/debuginfo-00000000000000aa.zst
change PUT "$waiting" -d waiting
put_object debuginfo "$tmp/better"
is "$code" 201 "debuginfo with lines replaces it"
unlike "$(keys)" "$replaced" "what was replaced leaves the store"
like "$(keys)" "$waiting" "an object that another upload has put, and not committed yet, stays"
ok "the replacement is removed" "$cairn" debuginfo rm --server "$url" abcdef0123456789 --kind debuginfo

# ---- a removal that is late ----

gcc -DLATER -Wl,--build-id=0xabcdef0123456780 -o "$tmp/names" "$tmp/program.c"
gcc -g -DLATER -Wl,--build-id=0xabcdef0123456780 -o "$tmp/lines" "$tmp/program.c"
put_object debuginfo "$tmp/names"
is "$code" 201 "debuginfo is stored"
# send FILE QUERY: its status.
send() {
        curl -sS -o "$1.answer" -w '%{http_code}' -T "$1" -H "X-Cairn-Size: $(stat -c %s "$1")" \
                -H "X-Cairn-SHA256: $(sha256sum "$1" | cut -d' ' -f1)" \
                "$url/api/v1/debuginfo/abcdef0123456780/debuginfo?$2"
}
order hold >"$tmp/order"
send "$tmp/lines" name=lines >"$tmp/lines.code" 2>&1 &
replacement=$!
held() { curl -sS "$AWS_ENDPOINT_URL_S3/-/held" | grep -q '/objects/ab/cdef0123456780/'; }
wait_for "the removal of what was replaced to be on its way" held
send "$tmp/names" force=1 >"$tmp/names.code" &
again=$!
second_put() { [ "$(keys | grep -c "/ab/cdef0123456780/debuginfo-$(sha256sum "$tmp/names" | cut -c1-16)")" -eq 2 ]; }
wait_for "the first content to be put again" second_put
order release >"$tmp/order"
wait "$replacement" "$again"
is "$(cat "$tmp/lines.code" "$tmp/names.code")" 201201 "both are stored, the first content again"
request "$url/buildid/abcdef0123456780/debuginfo"
ok "the removal that came later did not take it" cmp "$tmp/body" "$tmp/names"
ok "it is removed" "$cairn" debuginfo rm --server "$url" abcdef0123456780 --kind debuginfo

# ---- what no row names ----

wait_for "the symbol tables of what was uploaded" metric_equals cairn_index_queue 0
for orphan in "fleet/objects/$folder/debuginfo-00000000000000aa-00000000000000bb.zst" fleet/objects/ab/cd/notes.txt \
        "fleet/symbols/$folder/symbol-table-00000000000000aa-00000000000000bb.v1.zst" \
        fleet/tables/objects/part-00000000000000000000000000000000.parquet; do
        change PUT "$orphan" -d orphan
done
"$cairn" debuginfo gc --server "$url" >"$tmp/gc.log" 2>&1
is "$(keys | grep -c -e 00000000000000aa -e 0000000000000000000000.parquet)" 4 \
        "what was put lately is kept: a commit may be about to name it"
order ahead/172800 >"$tmp/order"
ok "garbage is collected" "$cairn" debuginfo gc --server "$url"
unlike "$(keys)" '00000000000000aa|0000000000000000000000.parquet' \
        "after a day the garbage collection removes objects, symbol tables and files that no version has"
is "$(keys | grep -c -e '^fleet/objects/' -e '^fleet/symbols/')" $(($(objects | grep -c -v version) + 1)) \
        "it keeps what the table names, and files of other programs"
order ahead/0 >"$tmp/order"

# ---- removal ----

ok "an object is removed" "$cairn" debuginfo rm --server "$url" "$id" --kind executable
is "$(objects | grep -v 'version\|symbol-table')" "debuginfo dwarf program.debug" \
        "a removed object leaves the table of objects"
unlike "$(keys)" 'objects/.*/executable-' "a removed object leaves the store"
stop_server
rm -rf "$data"
order mangle/damaged/1/.zst >"$tmp/order"
start_server --store "$address"
is "$(listed | jq length)" 1 "it does not come back on another machine"
curl -sS -o "$tmp/repaired" "$url/buildid/$id/debuginfo"
is "$(sha256sum <"$tmp/repaired")" "$(sha256sum <"$tmp/built/program.debug")" \
        "debuginfo that was damaged on its way is fetched again"
like "$(metric cairn_object_store_cache_damaged_total)" '^[1-9]' "the damage is counted"
order mangle/damaged/0 >"$tmp/order"
stop_server

# ---- what is refused ----

mkdir "$tmp/local"
data=$tmp/local start_server
stop_server
"$cairn" serve --listen 127.0.0.1:0 --data "$tmp/local" --store "$address" >"$tmp/refused" 2>&1
unlike $? "^0\$" "a directory with debuginfo on its disk is refused"
like "$(cat "$tmp/refused")" "objects of '.*' are in files of this directory" "the refusal says where it is"
done_testing
