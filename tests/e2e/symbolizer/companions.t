# SPDX-License-Identifier: Apache-2.0
# Companion files of debuginfo: .dwo files, packages of them, dwz supplementary files. Uploaded by cairn-upload,
# verified, used by the symbolizer whenever they arrive, served, and kept as long as they are needed.
. tests/e2e/lib.sh
upload=$CAIRN_SAN/cairn-upload
for tool in g++ dwp dwz; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

mkdir "$tmp/src"
cat >"$tmp/src/inner.h" <<'EOF'
static inline __attribute__((always_inline)) int inner(int x) { return x * 3 + (x >> 2); }
EOF
cat >"$tmp/src/main.cc" <<'EOF'
#include "inner.h"
int other(int);
int main(int argc, char **) { volatile int v = inner(argc); return v + other(argc); }
EOF
cat >"$tmp/src/other.cc" <<'EOF'
#include "inner.h"
__attribute__((noinline)) int other(int x) { volatile int v = inner(x); return v; }
EOF
# build NAME BUILD-ID OPTION...: builds the program and its .dwo files in a folder of its own.
build() {
        build_name=$1; build_id=$2; shift 2
        mkdir -p "$tmp/$build_name"
        (cd "$tmp/$build_name" && g++ -O2 -g "$@" -c ../src/main.cc ../src/other.cc &&
                g++ -Wl,--build-id="0x00000000000000000000000000000000000000$build_id" -o prog main.o other.o) ||
                bail_out "g++"
}
# package NAME: replaces its .dwo files by one package.
package() { (cd "$tmp/$1" && dwp -e prog -o prog.dwp && rm -- *.dwo) || bail_out "dwp"; }
id() { printf '%038d%s' 0 "$1"; }
addresses() { nm "$1" | awk '$3 == "main" || $3 == "_Z5otheri" { print $1 }'; }
# Each address with all its frames, as returned by the service.
answers() { # BUILD-ID FILE
        # shellcheck disable=SC2046
        "$cairn" symbolize --server "$url" --build-id "$1" --format=llvm $(addresses "$2") 2>/dev/null
}
# shellcheck disable=SC2046
local_answers() { "$cairn" symbolize --no-cache -e "$1" --format=llvm $(addresses "$1") 2>/dev/null; }
has_inner() { answers "$1" "$2" | grep -q '^inner'; }
quiet() { metric_equals cairn_index_queue 0; }
listed() { curl -sS "$url/api/v1/debuginfo" | jq -c "[.objects[] | select(.kind == \"$1\") | $2]"; }
up() {
        "$upload" --server "$url" "$@" >"$tmp/out" 2>"$tmp/errors"
        code=$?
        out=$(cat "$tmp/out")
        if grep -Eq 'Sanitizer|runtime error:' "$tmp/errors"; then fail "no sanitizer report of cairn-upload $*" \
                "$(cat "$tmp/errors")"; fi
}
# send FILE BUILD-ID KIND
send() {
        request -T "$1" -H "X-Cairn-Size: $(stat -c %s "$1")" -H "X-Cairn-SHA256: $(sha256sum "$1" | cut -d' ' -f1)" \
                "$url/api/v1/debuginfo/$2/$3?name=$(basename "$1")"
}
reason() { printf '%s' "$body" | jq -r .reason; }

start_server

# ---- .dwo files that arrive after the program ----

for version in 4 5; do
        build v$version 0$version -gdwarf-$version -gsplit-dwarf
        prog=$tmp/v$version/prog
        local_answers "$prog" >"$tmp/want"
        like "$(cat "$tmp/want")" '^inner' "DWARF $version: the program has inlined calls"
        objcopy --only-keep-debug "$prog" "$tmp/prog.debug"
        put_object debuginfo "$tmp/prog.debug"
        is "$code" 201 "  a file with skeleton units arrives without split units"
        wait_for "it to be indexed" quiet
        unlike "$(answers "$(id 0$version)" "$prog")" '^inner' "  the file without split units has no inlined calls"
        up --json "$prog"
        is "$(printf '%s' "$out" | jq -c '[.files[] | .kind + " " + .state] | sort')" \
                '["debuginfo already_there","dwo sent","dwo sent"]' \
                "  cairn-upload sends the .dwo files that it asks for"
        wait_for "the inlined calls" has_inner "$(id 0$version)" "$prog"
        wait_for "the index to be quiet" quiet
        answers "$(id 0$version)" "$prog" >"$tmp/got"
        ok "  with them the service gives the same result as the program's folder" cmp "$tmp/got" "$tmp/want"
        ok "  and nothing is missing" test ! -s "$data/missing-companions"
        up "$prog"
        is "$out" "nothing to send: 0 sent, 3 already there, 0 skipped" "  a second run sends nothing"
done
is "$(listed dwo .index.state)" '["companion","companion","companion","companion"]' \
        "a .dwo file is listed as a companion"
dwo_id=$(listed dwo .build_id | jq -r '.[0]')
curl -sS -o "$tmp/fetched" "$url/buildid/$dwo_id/dwo"
same_as_one() { for f in "$tmp"/v*/*.dwo; do cmp -s "$f" "$tmp/fetched" && return; done; return 1; }
ok "it is served by its unit's id" same_as_one
send "$tmp/fetched" 0102030405060708 dwo
is "$code $(reason)" "409 build_id_mismatch" "a .dwo file is not stored under another id"
send "$tmp/fetched" "$dwo_id" debuginfo
is "$code $(reason)" "400 wrong_kind" "  a .dwo file is not stored as debuginfo"
head -c 300 "$tmp/fetched" >"$tmp/cut.dwo"
send "$tmp/cut.dwo" "$dwo_id" dwo
is "$code $(reason)" "400 not_elf" "  a truncated .dwo file is not stored"

# ---- missing companions persist when the service is killed ----

build killed 06 -gsplit-dwarf -DKILLED
put_object debuginfo "$tmp/killed/prog"
wait_for "it to be indexed" quiet
kill_server
start_server
wait_for "the start" quiet
unlike "$(answers "$(id 06)" "$tmp/killed/prog")" '^inner' "what is needed is remembered across a crash"
up "$tmp/killed/prog"
wait_for "the inlined calls" has_inner "$(id 06)" "$tmp/killed/prog"
pass "  and used when it comes"

# ---- many .dwo files ----

many=12
mkdir "$tmp/many"
n=0; calls=; objects=
while [ $n -lt $many ]; do
        printf '#include "../src/inner.h"\n__attribute__((noinline)) int part%d(int x) { volatile int v = inner(x) + %d; return v; }\n' $n $n >"$tmp/many/part$n.cc"
        calls="$calls + part$n(argc)"; objects="$objects part$n.o"
        n=$((n + 1))
done
{ n=0; while [ $n -lt $many ]; do echo "int part$n(int);"; n=$((n + 1)); done
  echo "int main(int argc, char **) { return 0$calls; }"; } >"$tmp/many/main.cc"
# shellcheck disable=SC2086
(cd "$tmp/many" && g++ -O2 -g -gsplit-dwarf -c ./*.cc &&
        g++ -Wl,--build-id=0x000000000000000000000000000000000000000c -o prog main.o $objects) || bail_out "g++"
put_object debuginfo "$tmp/many/prog"
wait_for "it to be indexed" quiet
is "$(wc -l <"$data/missing-companions")" $((many + 1)) "a program waits for many .dwo files"
indexed=$(metric cairn_objects_indexed_total)
mv "$tmp/many/part0.dwo" "$tmp/part0.dwo"
began_ns=$(date +%s%N)
up "$tmp/many/prog"
took_ns=$(($(date +%s%N) - began_ns))
like "$out" "$many sent" "all but one of them arrive"
parts_have_inner() { "$cairn" symbolize --server "$url" --build-id "$(id 0c)" --format=llvm \
        "$(nm "$tmp/many/prog" | awk '$3 == "_Z5part1i" { print $1 }')" | grep -q '^inner'; }
wait_for "the inlined calls" parts_have_inner
wait_for "the index to be quiet" quiet
# Once if none arrived for 5 s, so more often only if they took longer than that.
times=$(($(metric cairn_objects_indexed_total) - indexed))
is "$((times >= 1 && times <= 1 + took_ns / 5000000000))" 1 "  the object is indexed once when no more files arrive"
indexed=$((indexed + times))
mv "$tmp/part0.dwo" "$tmp/many/part0.dwo"
up "$tmp/many/prog"
ok "  with the last missing one it waits for no more" metric_equals cairn_index_incomplete 0
wait_for "the index to be quiet" quiet
is "$(metric cairn_objects_indexed_total) $(wc -c <"$data/missing-companions")" "$((indexed + 1)) 0" \
        "  the object is indexed with the last file"

# ---- packages ----

build packed 07 -gdwarf-4 -gsplit-dwarf -DPACKED
package packed
send "$tmp/packed/prog.dwp" "$(id 07)" dwp
is "$code" 201 "a package may arrive before its program"
is "$(listed dwp .quality)" '["none"]' "  it is not known yet whether the package belongs to its program"
build alien 0f -gdwarf-4 -gsplit-dwarf -DALIEN
package alien
send "$tmp/alien/prog.dwp" "$(id 07)" dwp
is "$code $(reason)" "409 not_better" "  another one does not replace it then"
up "$tmp/packed/prog"
is "$code" 0 "the program arrives"
is "$(listed dwp .quality)" '["dwarf"]' "  the package is found to belong to the program"
wait_for "the inlined calls" has_inner "$(id 07)" "$tmp/packed/prog"
local_answers "$tmp/packed/prog" >"$tmp/want"
answers "$(id 07)" "$tmp/packed/prog" >"$tmp/got"
ok "  with it the service gives the same result as the program's folder" cmp "$tmp/got" "$tmp/want"
send "$tmp/alien/prog.dwp" "$(id 07)" dwp
is "$code $(reason)" "409 build_id_mismatch" "a package of another build is refused"
like "$(printf '%s' "$body" | jq -r .error)" 'another build' "  the refusal gives the reason"
send "$tmp/alien/prog.dwp" "$(id 08)" dwp
is "$code" 201 "if a wrong package arrived first"
build late 08 -gdwarf-4 -gsplit-dwarf -DLATE
package late
up "$tmp/late/prog"
up "$tmp/late/prog" # the package may have arrived before the program again
wait_for "the inlined calls" has_inner "$(id 08)" "$tmp/late/prog"
pass "  the right one replaces it"
cp "$tmp/alien/prog.dwp" "$tmp/v5/prog.dwp"
up --json "$tmp/v5/prog"
is "$(printf '%s' "$out" | jq -c '[.files[].kind] | sort')" '["debuginfo","dwo","dwo"]' \
        "cairn-upload skips a package of another build"
"$cairn" debuginfo get "$(id 07)" --kind dwp --server "$url" --output "$tmp/got.dwp" 2>/dev/null
ok "cairn debuginfo get --kind dwp" cmp "$tmp/got.dwp" "$tmp/packed/prog.dwp"
send "$tmp/v5/prog" "$(id 05)" dwp
is "$code $(reason)" "400 wrong_kind" "a program is not a package"

# ---- dwz ----

build one 0a
build two 0b
mkdir "$tmp/dwz"
for b in one two; do objcopy --only-keep-debug "$tmp/$b/prog" "$tmp/dwz/$b.debug"; done
(cd "$tmp/dwz" && dwz -m common.debug one.debug two.debug 2>/dev/null)
common=$(build_id_of "$tmp/dwz/common.debug")
up --json "$tmp/dwz/one.debug"
is "$(printf '%s' "$out" | jq -c \
        '[.files[] | .kind + " " + .state] | sort')" '["debuginfo sent","supplementary sent"]' \
        "cairn-upload sends the supplementary file too"
is "$(listed supplementary '[.build_id, .index.state]')" "[[\"$common\",\"supplement\"]]" "  as a kind of its own"
wait_for "the inlined calls" has_inner "$(id 0a)" "$tmp/one/prog"
pass "  and the service uses it"
for kind in debuginfo supplementary; do
        curl -sS -o "$tmp/fetched" "$url/buildid/$common/$kind"
        ok "it is served as $kind" cmp "$tmp/fetched" "$tmp/dwz/common.debug"
done
put_object debuginfo "$tmp/dwz/common.debug"
is "$code $body" '200 {"state":"same"}' "uploading it as debuginfo reports that it is stored"

# The supplementary file may also be added to a scanned tree, and found by a later walk, after the file that needs it
# was uploaded.
mkdir "$tmp/tree" "$tmp/dwz2"
build three 1a -Dinner=inner_two # a dwz file of its own
build four 1b -Dinner=inner_two
for b in three four; do objcopy --only-keep-debug "$tmp/$b/prog" "$tmp/dwz2/$b.debug"; done
(cd "$tmp/dwz2" && dwz -m common.debug three.debug four.debug 2>/dev/null)
stop_server
start_server --scan "$tmp/tree" --scan-interval 0
wait_metric cairn_scan_rounds_total 1
put_object debuginfo "$tmp/dwz2/three.debug"
is "$code" 201 "debuginfo arrives without its supplementary file"
wait_for "it to be indexed" quiet
unlike "$(answers "$(id 1a)" "$tmp/three/prog")" '^inner' \
        "  debuginfo without its supplementary file has no inlined calls"
walk() { rounds=$(metric cairn_scan_rounds_total); kill -USR1 "$server_pid"; \
        wait_metric cairn_scan_rounds_total $((rounds + 1)); }
cp "$tmp/dwz2/common.debug" "$tmp/tree"
walk
wait_for "the inlined calls" has_inner "$(id 1a)" "$tmp/three/prog"
pass "  until a walk finds the file in a tree"
wait_for "the index to be quiet" quiet
ok "  and nothing is missing" test ! -s "$data/missing-companions"
# The same for an object that is only in the tree, and for files found while the service is down.
build five 1c -Dinner=inner_three
build six 1d -Dinner=inner_three
mkdir "$tmp/dwz3"
for b in five six; do objcopy --only-keep-debug "$tmp/$b/prog" "$tmp/dwz3/$b.debug"; done
(cd "$tmp/dwz3" && dwz -m common3.debug five.debug six.debug 2>/dev/null)
cp "$tmp/dwz3/five.debug" "$tmp/tree"
put_object debuginfo "$tmp/dwz3/six.debug"
walk
answers "$(id 1c)" "$tmp/five/prog" >/dev/null
wait_for "the names" sh \
        -c "'$cairn' symbolize --server '$url' --build-id '$(id 1c)' --format=llvm $(addresses "$tmp/five/prog" |
        tr '\n' ' ') | grep -q other"
wait_for "it to be indexed" quiet
unlike "$(answers "$(id 1c)" "$tmp/five/prog")" '^inner' \
        "a scanned file without its supplementary file has no inlined calls"
kill_server
cp "$tmp/dwz3/common3.debug" "$tmp/tree"
start_server --scan "$tmp/tree" --scan-interval 0
for b in "1c five" "1d six"; do wait_for "the inlined calls" has_inner "$(id "${b% *}")" "$tmp/${b#* }/prog"; done
pass "  until it comes, as an uploaded one"
wait_for "the index to be quiet" quiet
stop_server
start_server

# ---- retention ----

gc() { request -H 'Content-Type: application/json' -d "{\"dry_run\": $1, \"rules\": [$2]}" "$url/api/v1/debuginfo/gc"; }
companions='"kind=dwo,size=1", "kind=dwp,size=1", "kind=supplementary,size=1"'
wait_for "the index to be quiet" quiet
before=$(curl -sS "$url/api/v1/debuginfo" | jq '.objects | length')
gc false "$companions"
is "$(printf '%s' "$body" | jq -c '[(.removed | length), .companions > 0]')" '[0,true]' \
        "companions are kept as long as they are needed"
ok "cairn debuginfo rm removes the program" "$cairn" debuginfo rm "$(id 0a)" --server "$url"
gc true "$companions"
is "$(printf '%s' "$body" | jq -c '[.removed[].kind]')" '["supplementary"]' "  then its companions may be removed"
for b in 05 07; do "$cairn" debuginfo rm "$(id $b)" --server "$url" >/dev/null; done
gc false "$companions"
is "$(printf '%s' "$body" | jq -c '[.removed[].kind] | sort')" '["dwo","dwo","dwp","supplementary"]' \
        "  the companions of removed objects are removed"
is "$(curl -sS "$url/api/v1/debuginfo" | jq '.objects | length')" $((before - 7)) "  nothing else is removed"
ok "no companion is a failure of the index" metric_equals cairn_objects_failed_total 0
done_testing
