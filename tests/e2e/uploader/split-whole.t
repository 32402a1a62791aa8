# SPDX-License-Identifier: Apache-2.0
# Splitting loses nothing needed for symbolization: the file sent by cairn-upload gives the same results as the whole
# file, for PLT entries, minidebuginfo, DWARF, symbols, Go's tables with their inlined calls; and it contains no other
# data.
. tests/e2e/lib.sh
upload=$CAIRN_SAN/cairn-upload

# split NAME FILE: the uploaded split of it, as stored by the service, in $tmp/NAME.split.
split() {
        "$upload" --server "$url" --json "$2" >"$tmp/json" 2>"$tmp/errors" ||
                { fail "$1: upload" "$(cat "$tmp/errors")"; return 1; }
        curl -sS -o "$tmp/$1.split" "$url/buildid/$(jq -r '.files[0].build_id' "$tmp/json")/debuginfo"
}
# One result per line, for every 3rd byte of the sections in the file FILE.list.
answers() { "$cairn" symbolize --no-cache --format=llvm -e "$1" <"$2" 2>/dev/null; }
# addresses FILE SECTION...: every 3rd address of these sections, at most 6000 of each
addresses() {
        addresses_of=$1; shift
        for section; do
                readelf -SW "$addresses_of" | sed 's/^ *\[ *[0-9]*\] *//' |
                        awk -v name="$section" '$1 == name { print $3, $5 }' |
                        while read -r start size; do
                                i=$((0x$start)); end=$((i + 0x$size)); n=0
                                while [ $i -lt $end ] && [ $n -lt 6000 ]; do printf '0x%x\n' $i; i=$((i + 3)); \
                                        n=$((n + 1)); done
                        done
        done
}
# equal NAME FILE SECTION...: the split gives the same results as the whole file.
equal() {
        equal_name=$1; equal_file=$2; shift 2
        split "$equal_name" "$equal_file" || return
        addresses "$equal_file" "$@" >"$tmp/list"
        answers "$equal_file" "$tmp/list" >"$tmp/whole.answers"
        answers "$tmp/$equal_name.split" "$tmp/list" >"$tmp/split.answers"
        like "$(readelf -SW "$tmp/$equal_name.split")" '\.text +NOBITS' "$equal_name: the split has no code"
        ok "$equal_name: it gives the same results as the whole file at $(wc -l <"$tmp/list") addresses" cmp \
                "$tmp/whole.answers" "$tmp/split.answers"
}

cat >"$tmp/program.c" <<'EOF'
#include <stdio.h>
#include <stdlib.h>
static inline __attribute__((always_inline)) int inner(int x) { return printf("%d\n", x) + atoi("5"); }
__attribute__((noinline)) int outer(int x) { return inner(x) * 2; }
int main(int argc, char **argv) { return outer(argc) + atoi(argv[0]); }
EOF
start_server

gcc -g -O2 -Wl,--build-id=sha1 -o "$tmp/dwarf" "$tmp/program.c"
equal dwarf "$tmp/dwarf" .text .plt .plt.got .plt.sec .init
like "$(cat "$tmp/split.answers")" 'printf@plt' "dwarf: the split names the entries of the PLT"
like "$(cat "$tmp/split.answers")" '^inner' "dwarf: the split names inlined calls"
gcc -O2 -Wl,--build-id=sha1 -Wl,-z,lazy -DSECOND -o "$tmp/symbols" "$tmp/program.c"
equal symbols "$tmp/symbols" .text .plt .plt.got .plt.sec
like "$(cat "$tmp/split.answers")" 'printf@plt' "symbols: the split names the entries of the PLT"

# As in distributions: the symbols that .dynsym lacks, compressed with xz.
if command -v xz >/dev/null; then
        gcc -O2 -Wl,--build-id=0x0102030405060708090a0b0c0d0e0f1011121314 -o "$tmp/full" "$tmp/program.c"
        objcopy --only-keep-debug "$tmp/full" "$tmp/mini"
        objcopy -S --remove-section .comment --remove-section .gnu_debuglink "$tmp/mini" "$tmp/mini" 2>/dev/null
        nm -P "$tmp/full" | awk '$2 ~ /[tT]/ { print $1 }' >"$tmp/keep"
        objcopy --only-keep-debug "$tmp/full" "$tmp/mini" &&
                objcopy -g --keep-symbols="$tmp/keep" "$tmp/mini" "$tmp/mini.small" 2>/dev/null
        xz -c "$tmp/mini.small" >"$tmp/mini.xz"
        strip -o "$tmp/minidebuginfo" "$tmp/full"
        objcopy --add-section .gnu_debugdata="$tmp/mini.xz" "$tmp/minidebuginfo"
        equal minidebuginfo "$tmp/minidebuginfo" .text .plt .plt.got
        like "$(cat "$tmp/split.answers")" '^outer' "minidebuginfo: the split has its functions"
fi

# ---- Go ----

cat >"$tmp/here.go" <<'EOF'
package main

func tiny(n int) int   { return n*3 + 1 }
func middle(n int) int { return tiny(n) + tiny(n+1) }

//go:noinline
func outer(n int) int { return middle(n) * 2 }
func main()           { println(outer(3), "a secret of the read-only data") }
EOF
# The newest compiler, and Debian's: one before and one after Go 1.26 moved the inline trees.
for go in "$(command -v go)" /usr/lib/go-1.19/bin/go; do
        [ -x "$go" ] || continue
        version=$("$go" version | awk '{ print $3 }')
        (cd "$tmp" && HOME=$tmp GO111MODULE=off GOFLAGS='' "$go" build -o "$version" here.go) >/dev/null 2>&1 ||
                continue
        objcopy --strip-debug "$tmp/$version" "$tmp/$version-symtab"
        strip -o "$tmp/$version-stripped" "$tmp/$version"
        for what in symtab stripped; do
                # It has the same Go build-id, so the previous one has to be removed.
                for stored in $(curl -sS "$url/api/v1/debuginfo" |
                        jq -r '.objects[] | select(.name | startswith("go1")) | .build_id'); do
                        "$cairn" debuginfo rm "$stored" --server "$url" >/dev/null
                done
                equal "$version-$what" "$tmp/$version-$what" .text
                nm "$tmp/$version" | awk '$3 == "main.outer" { print "0x" $1 }' >"$tmp/list"
                first=$(cat "$tmp/list"); i=0
                while [ $i -lt 40 ]; do printf '0x%x\n' $((first + i)); i=$((i + 1)); done >"$tmp/list"
                answers "$tmp/$version-$what.split" "$tmp/list" >"$tmp/split.answers"
                like "$(cat "$tmp/split.answers")" '^main\.(tiny|middle)' "$version-$what: the split has inlined calls"
                answers "$tmp/$version-$what" "$tmp/list" >"$tmp/whole.answers"
                ok "  all of them" cmp "$tmp/whole.answers" "$tmp/split.answers"
                ok "  from a file that has the read-only data" grep -aq 'a secret of the read-only data' \
                        "$tmp/$version-$what"
                if grep -aq 'a secret of the read-only data' "$tmp/$version-$what.split"; then
                        fail "  and no other data goes along"
                else
                        pass "  and no other data goes along"
                fi
        done
done
done_testing
