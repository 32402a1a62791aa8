# SPDX-License-Identifier: Apache-2.0
# cairn-upload --symbols-only: a service with an object's symbols gives the same frames as one with its debuginfo;
# symbols are much smaller, are verified, are not served as debuginfo, and are replaced by better debuginfo.
. tests/e2e/lib.sh
upload=$CAIRN_SAN/cairn-upload
for tool in g++ dwz jq python3 readelf; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

up() { "$upload" --server "$url" --json "$@" >"$tmp/up.json" 2>"$tmp/up.err"; code=$?; }
sent() { jq -c "$1" "$tmp/up.json"; }
quiet() { metric_equals cairn_index_queue 0; }
is_indexed() { curl -sS "$url/api/v1/debuginfo" |
        jq -e --arg id "$1" '[.objects[] | select(.build_id == $id) | .index.state] | index("indexed")'; }
# The frames of the addresses in a file.
answers() { "$CAIRN_BUILD/cairn" symbolize --server "$url" --build-id "$1" --format=llvm <"$2"; }
aliases() { "$cairn" debuginfo show "$1" --server "$url" --json | jq -c '.aliases | sort'; }
listed() { curl -sS "$url/api/v1/debuginfo" |
        jq -c "[.objects[] | select(.build_id == \"$1\") | [.kind, .quality]] | sort"; }
why() { "$cairn" why --server "$url" --json "$1" "$2" | jq -c "$3"; }
put() { # KIND FILE BUILD-ID [QUERY]
        put_path="$url/api/v1/debuginfo/$3/$1"
        request -X PUT --data-binary "@$2" -H "X-Cairn-Size: $(stat -c %s "$2")" \
                -H "X-Cairn-SHA256: $(sha256sum "$2" | cut -d' ' -f1)" "$put_path?name=x${4:-}"
        reason=$(printf '%s' "$body" | jq -r '.reason // .state')
}

mkdir "$tmp/bin" "$tmp/list" "$tmp/want"
: >"$tmp/inputs"
# input NAME FILE LEAST: the minimum ratio of its compressed debuginfo to its symbols.
input() {
        python3 tests/tools/code_addresses.py "$2" 20000 >"$tmp/list/$1"
        echo "$1 $2 $3" >>"$tmp/inputs"
}
source=$PWD/tests/oracle/sample.cc
g++ -O2 -g -std=c++17 -c -o "$tmp/inlines.o" "$source" || bail_out "g++"
link() { link_to=$1; shift; g++ -o "$tmp/$link_to" "$tmp/inlines.o" "$@" || bail_out "link"; }
link bin/inlines -Wl,--build-id
objcopy --only-keep-debug "$tmp/bin/inlines" "$tmp/bin/inlines.debug"
input inlines "$tmp/bin/inlines" 8
mkdir "$tmp/dwz" "$tmp/dwo"
for b in 1 2; do link dwz/prog$b -Wl,--build-id=0x000000000000000000000000000000000000000$b; done
(cd "$tmp/dwz" && dwz -m common.debug prog1 prog2) 2>/dev/null || bail_out "dwz"
input dwz "$tmp/dwz/prog1" 8
(cd "$tmp/dwo" && g++ -O2 -g -gsplit-dwarf -std=c++17 -Wl,--build-id=0x0000000000000000000000000000000000000003 \
        -o prog "$source") ||
        bail_out "split dwarf"
input dwo "$tmp/dwo/prog" 8
link bin/symtab -Wl,-S,--build-id=0x0000000000000000000000000000000000000004
input symtab "$tmp/bin/symtab" 2
export GOCACHE="$tmp/gocache"
if command -v go >/dev/null && go build -o "$tmp/bin/go" tests/oracle/sample.go 2>/dev/null; then
        input go "$tmp/bin/go" 3
        go build -ldflags="-s -B 0x0000000000000000000000000000000000000005" -o "$tmp/bin/go-stripped" \
                tests/oracle/sample.go && input go-stripped "$tmp/bin/go-stripped" 1
fi
if command -v rustc >/dev/null && rustc -O -g -C link-arg=-Wl,--build-id -o "$tmp/bin/rust" tests/oracle/sample.rs \
        2>/dev/null; then
        input rust "$tmp/bin/rust" 3
fi
libc=$(ldconfig -p | awk '$1 == "libc.so.6" && /x86-64|AArch64/ { print $NF; exit }')
libc_id=$(build_id_of "$libc")
libc_debug=/usr/lib/debug/.build-id/$(printf '%.2s' "$libc_id")/$(printf '%s' "$libc_id" | cut -c3-).debug
[ ! -e "$libc_debug" ] || input libc "$libc_debug" 10

# ---- equal results ----

data=$tmp/whole
start_server
while read -r name file least; do
        up "$file"
        is "$code" 0 "$name: its debuginfo is sent"
        sent '[.files[].sent_bytes // 0] | add' >"$tmp/want/$name.bytes"
        id=$(sent '.files[] | select(.kind == "debuginfo") | .build_id' | tr -d '"')
        wait_for "$name to be indexed" is_indexed "$id"
        wait_for "the index to be quiet" quiet
        answers "$id" "$tmp/list/$name" >"$tmp/want/$name"
        aliases "$id" >"$tmp/want/$name.aliases"
done <"$tmp/inputs"
stop_server

data=$tmp/symbols
start_server --flush-interval 3600
while read -r name file least; do
        up --symbols-only "$file"
        is "$code $(sent '[.files[] | [.kind, .state]]')" '0 [["symbols","sent"]]' \
                "$name: its symbols are sent, and nothing else"
        bytes=$(sent '.files[0].sent_bytes')
        id=$(sent '.files[0].build_id' | tr -d '"')
        wait_for "$name to be indexed" is_indexed "$id"
        answers "$id" "$tmp/list/$name" >"$tmp/got"
        count=$(wc -l <"$tmp/list/$name") unknown=$(grep -c '^??$' "$tmp/want/$name")
        ok "$name: the same frames at $count addresses" cmp "$tmp/want/$name" "$tmp/got"
        ok "  most of which have names" test "$unknown" -lt $((count / 2))
        is "$(aliases "$id")" "$(cat "$tmp/want/$name.aliases")" "$name: the same aliases"
        whole=$(cat "$tmp/want/$name.bytes")
        ok "  in $bytes bytes of $whole, 1 to $((whole / bytes))" test "$whole" -ge $((bytes * least))
done <"$tmp/inputs"

# ---- kinds under which they are served ----

id=$(build_id_of "$tmp/bin/inlines")
main=$(nm "$tmp/bin/inlines" | awk '$3 == "main" { print $1 }')
for kind in debuginfo executable section/.text; do
        request "$url/buildid/$id/$kind"
        is "$code" 404 "they are not served as $kind"
done
request "$url/metadata?key=buildid&value=$id"
is "$(printf '%s' "$body" | jq -c .results)" '[]' "symbol files are not listed as an object of debuginfod"
ok "cairn debuginfo get gives them back" "$cairn" debuginfo get "$id" --server "$url" --kind symbols -o "$tmp/file"
is "$(why "$id" "$main" \
        '[.results[0].state, .results[0].source, (.results[0].frames[-1].function),
         .files[0].role, .files[0].quality]')" \
        '["resolved","symbols","main","symbols","dwarf"]' "cairn why says where the answer is from"
like "$("$cairn" why --server "$url" "$id" "$main")" 'there are no DIEs' "cairn why says that there are no DIEs"
is "$("$cairn" debuginfo show "$id" --server "$url" --json | jq -c '[.objects[] | [.kind, .quality, .index.state]]')" \
        '[["symbols","dwarf","indexed"]]' \
        "cairn debuginfo show knows them"
up --symbols-only "$tmp/bin/inlines"
is "$code $(sent '[.files[].state]')" '0 ["already_there"]' "a second run sends nothing"
up --symbols-only --force "$tmp/bin/inlines"
is "$code $(sent '[.files[].state]')" '0 ["already_there"]' "a forced run sends the same, which is there"

# ---- invalid symbol files ----

head -c 300 "$tmp/file" >"$tmp/cut"
cp "$tmp/file" "$tmp/flipped"
printf x | dd of="$tmp/flipped" bs=1 seek=5000 conv=notrunc 2>/dev/null
for case in "$tmp/cut 400.not_symbols" "$tmp/flipped 400.not_symbols" "$tmp/bin/inlines 400.not_symbols" \
        "tests/e2e/lib.sh 400.not_symbols"; do
        put symbols "${case% *}" "$id"
        is "$code.$reason" "${case#* }" "$(basename "${case% *}") is refused"
done
put symbols "$tmp/file" 00000000000000000000000000000000000000aa
is "$code $reason" '409 build_id_mismatch' "another build-id is refused"
put symbols "$tmp/file" "$id" '&quality=lines'
is "$code $reason" '400 quality_mismatch' "another quality is refused"
put debuginfo "$tmp/file" "$id"
is "$code $reason" '400 wrong_kind' "a symbol file is not accepted as debuginfo"
put symbols "$tmp/file" "$id" '&quality=dwarf'
is "$code $reason" '200 same' "a symbol file sent as symbols is already stored"
is "$(listed "$id")" '[["symbols","dwarf"]]' "none of these was stored"

# ---- better and worse ----

strip -g -o "$tmp/bin/symtab-of-it" "$tmp/bin/inlines"
answers "$id" "$tmp/list/inlines" >"$tmp/before"
up "$tmp/bin/symtab-of-it"
is "$code $(sent '[.files[].state]')" '0 ["sent"]' "debuginfo with only symbols is stored beside them"
wait_for "the index to be quiet" quiet
answers "$id" "$tmp/list/inlines" >"$tmp/after"
ok "  and changes no results" cmp "$tmp/before" "$tmp/after"
is "$(why "$id" "$main" '.results[0].source')" '"symbols"' \
        "debuginfo with only symbols does not change the source of results"
stop_server
rm -rf "$data/index"
start_server --flush-interval 3600
wait_for "the index to be made anew" is_indexed "$id"
wait_for "the index to be quiet" quiet
answers "$id" "$tmp/list/inlines" >"$tmp/after"
ok "a new index has the better of the two" cmp "$tmp/before" "$tmp/after"
up "$tmp/bin/inlines"
is "$code $(sent '[.files[].state]')" '0 ["sent"]' "debuginfo that is as good is wanted"
wait_for "the index to be quiet" quiet
is "$(why "$id" "$main" '.results[0].source')" '"dwarf"' "the debuginfo is used from then on"
answers "$id" "$tmp/list/inlines" >"$tmp/after"
ok "  the same" cmp "$tmp/before" "$tmp/after"
is "$(listed "$id")" '[["debuginfo","dwarf"]]' "the symbol file is removed when debuginfo is stored"
is "$(metric 'cairn_debuginfo_removed_total{reason="superseded"}')" 1 "the removed symbol file is counted"
up --symbols-only "$tmp/bin/inlines"
is "$code $(sent '[.files[].state]')" '0 ["already_there"]' "symbols are not wanted when debuginfo is stored"
put symbols "$tmp/file" "$id"
is "$code $reason" '409 not_better' "symbols are not accepted when debuginfo is stored"

# ---- re-symbolization, names by hash and from archives ----

folded() {
        curl -sS -G "$url/api/v1/query/folded" --data-urlencode 'selector={service_name="late"}' \
                --data-urlencode from=now-1h \
                --data-urlencode to=now
}
link bin/no-id -Wl,--build-id=none
link bin/late -Wl,--build-id=0x00000000000000000000000000000000000000bb
late=$(nm "$tmp/bin/late" | awk '$3 == "main" { print $1 }')
python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" build_id=00000000000000000000000000000000000000bb service=late \
        values=7 \
        "addresses=$late" mapping_file=late
request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
is "$code" 200 "samples of a program arrive first"
unlike "$(folded)" main "a program's samples have no names before its symbols"
tar -C "$tmp" -cf - bin/late bin/no-id bin/inlines.debug |
        "$upload" --server "$url" --symbols-only --json - >"$tmp/up.json" 2>"$tmp/up.err"
is "$(sent '[.files[] | [(.path | sub(".*/"; "")), .kind, .state]] | sort')" \
        '[["inlines.debug","symbols","already_there"],["late","symbols","sent"],["no-id","symbols","sent"]]' \
        "its symbols come later, out of an archive, with those of a program that has only its hash"
has_names() { folded | grep -Eq '^main(;.*)? 7$'; }
wait_for "names" has_names
pass "  and the same past has names"
hash=$(sent '.files[] | select(.path | endswith("no-id")) | .build_id' | tr -d '"')
wait_for "that program to be indexed" is_indexed "$hash"
is "$("$cairn" symbolize --server "$url" --build-id "$hash" --format=llvm "$main" | tail -3 | head -1)" main \
        "a program without a build-id is resolved by its hash"

# ---- the command line ----

up --symbols-only --dry-run "$tmp/bin/late" "$tmp/dwz/common.debug" "$tmp/dwz/prog2"
is "$code $(sent '[[.files[].state], .skipped.half]')" '0 [["already_there","would_send"],1]' \
        "a dry run queries; a dwz file is sent with others"
for option in --strip --executables "--sources=$tmp"; do
        up --symbols-only "$option" "$tmp/bin/late"
        is "$code" 64 "--symbols-only and ${option%=*} exclude each other"
        like "$(cat "$tmp/up.err")" "leave ${option%=*} out" "the message says to leave ${option%=*} out"
done
rm "$tmp/dwo/"*.dwo
up --symbols-only --force "$tmp/dwo/prog"
is "$code $(sent '[.files[].state]')" '0 ["sent"]' "what there is without the .dwo file is sent"
like "$(cat "$tmp/up.err")" 'its symbols are partial: ' "the message says that the symbols are partial"
like "$(sent '.files[0].partial')" dwo "  as JSON too"

# ---- maintenance ----

wait_for "the index to be quiet" quiet
is "$("$cairn" debuginfo gc --server "$url" --retain kind=symbols,size=1 --dry-run --json |
        jq -c '[.removed[].kind] | unique')" '["symbols"]' \
        "retention rules select them"
stop_server
like "$("$cairn" debuginfo verify --data "$data")" ' 0 damaged$' "cairn debuginfo verify reads them"
done_testing
