#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Functions of stripped files are named by their start, as their symbol tables have it; the script that compares them.
. tests/e2e/lib.sh
for tool in gcc nm readelf strip jq; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
cairn=$CAIRN_SAN/cairn

cat >"$tmp/program.c" <<'EOC'
#include <stdio.h>
#include <stdlib.h>
static __attribute__((noinline)) int alone(int x) { return x > 3 ? printf("%d\n", x) : x * 2; }
static __attribute__((noinline)) int caller(int x) { int s = 0; while (x--) s += alone(x); return s; }
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int exported(int x)
{
        int v[2] = { x, 1 };
        qsort(v, 2, 4, compare);
        return v[0];
}
int main(int argc, char **argv) { (void)argv; return caller(argc) + exported(argc); }
EOC
cat >"$tmp/plain.s" <<'EOS'
        .text
        .globl main
        .type main, @function
main:   call bare
        call bare_too
        xor %eax, %eax
        ret
        .p2align 4
        .type bare, @function
bare:   mov $7, %eax
        add $3, %eax
        ret
        .size bare, .-bare
        .p2align 4
        .type bare_too, @function
bare_too:
        mov $8, %eax
        nop
        ret
        .size bare_too, .-bare_too
EOS
(cd "$tmp" && gcc -O2 -o whole program.c && gcc -O2 -shared -fPIC -Wl,-soname,libwhole.so.1 -o whole.so program.c &&
        strip -o stripped whole && strip -o stripped.so whole.so) || bail_out "cannot build programs"

# named FILE ADDRESS: the function of an address.
named() { "$cairn" symbolize --no-debuginfod -e "$1" "$2" | head -1; }
# start FILE FUNCTION, as in fn@0x1139
start() { nm "$1" | awk -v name="$2" '$3 == name { sub("^0*", "", $1); print "0x" $1 }'; }
# inside FILE FUNCTION: an address within, not the start
inside() { printf '0x%x' $(($(start "$1" "$2") + 3)); }

for function in alone caller compare main; do
        is "$(named "$tmp/stripped" "$(inside "$tmp/whole" $function)")" \
                "fn@$(start "$tmp/whole" $function) [stripped]" \
                "a stripped program: $function is named by its start"
done
if gcc -static -o "$tmp/static" "$tmp/program.c" 2>/dev/null && trampoline=$(start "$tmp/static" __restore_rt) &&
        [ -n "$trampoline" ]; then
        strip -o "$tmp/static-stripped" "$tmp/static"
        is "$(named "$tmp/static-stripped" "$trampoline")" __restore_rt \
                "the trampoline of signal handlers is known by its instructions"
else
        pass "the trampoline of signal handlers # SKIP no static C library"
fi
# Other sources name only a part: the DWARF of one file, the tables of Go beside C code.
echo 'int described(int x) { return x * 3; }' >"$tmp/described.c"
(cd "$tmp" && gcc -O2 -g -c described.c && gcc -O2 -o partly program.c described.o &&
        objcopy -S --keep-section='.debug_*' partly partly-stripped) ||
        bail_out "cannot build a program with some DWARF"
is "$(named "$tmp/partly-stripped" "$(inside "$tmp/partly" described)")" described "DWARF without a symbol table"
is "$(named "$tmp/partly-stripped" "$(inside "$tmp/partly" caller)")" \
        "fn@$(start "$tmp/partly" caller) [partly-stripped]" "  functions that DWARF lacks are named by their start"
if command -v go >/dev/null; then
        mkdir "$tmp/go"
        cat >"$tmp/go/main.go" <<'GO'
package main

/*
__attribute__((noinline)) static int in_c(int x) { return x * 7 + 1; }
*/
import "C"

func main() { println(C.in_c(3)) }
GO
        (cd "$tmp/go" && GOCACHE="$tmp/go-cache" GO111MODULE=off CGO_ENABLED=1 go build -o whole main.go) \
                >"$tmp/err" 2>&1 ||
                bail_out "cannot build a Go program: $(tail -1 "$tmp/err")"
        strip -o "$tmp/go/stripped" "$tmp/go/whole"
        is "$(named "$tmp/go/stripped" "$(start "$tmp/go/whole" main.main)")" main.main "a stripped Go program"
        is "$(named "$tmp/go/stripped" "$(inside "$tmp/go/whole" in_c)")" \
                "fn@$(start "$tmp/go/whole" in_c) [stripped]" \
                "  its C functions are named by their start"
else
        pass "a stripped Go program # SKIP go is not installed"
        pass "  its C functions are named by their start # SKIP go is not installed"
fi
is "$(named "$tmp/stripped.so" "$(inside "$tmp/whole.so" exported)")" exported "exported functions keep their names"
is "$(named "$tmp/stripped.so" "$(inside "$tmp/whole.so" compare)")" \
        "fn@$(start "$tmp/whole.so" compare) [stripped.so]" "static functions of a library are named by their start"
is "$("$cairn" symbolize --format json -e "$tmp/stripped" "$(start "$tmp/whole" main)" |
        jq -r '.quality, .results[0].state' | tr '\n' ' ')" "dynsym resolved " \
        "the quality of a file with named stubs is theirs"
plt=$(readelf -SW "$tmp/whole" | sed 's/^ *\[ *//' | awk '$2 == ".plt" { print "0x" $4 }')
like "$(named "$tmp/stripped" "$(printf '0x%x' $((plt + 0x10)))")" '@plt$' "stubs keep the names of what they call"
is "$(named "$tmp/whole" 0x30)" '??' "a header has no function"
is "$(named "$tmp/stripped" 0x30)" '??' "a header of a stripped file has no function"

if [ "$(uname -m)" = x86_64 ]; then
        (cd "$tmp" && gcc -o bare plain.s && strip -o bare.stripped bare) || bail_out "cannot assemble"
        for function in bare bare_too; do
                is "$(named "$tmp/bare.stripped" "$(inside "$tmp/bare" $function)")" \
                        "fn@$(start "$tmp/bare" $function) [bare.stripped]" \
                        "code without unwind tables: a call marks the start of $function"
        done
fi

# ---- all functions of larger programs ----

(cd "$tmp" && mkdir -p debug && strip -o cairn "$CAIRN_BUILD/cairn-addr2line") || bail_out "cannot strip"
readelf -sW "$CAIRN_BUILD/cairn-addr2line" | awk '$4 == "FUNC" && $3 > 0 && $7 != "UND" { print "0x" $2 }' | sort -u |
        head -3000 >"$tmp/starts"
"$cairn" symbolize --no-cache -e "$tmp/cairn" <"$tmp/starts" | awk 'NR % 2' >"$tmp/answers"
# Named by symbols are only entries of the C library's start files.
right=$(paste "$tmp/starts" "$tmp/answers" |
        awk '{ s = $1; sub("^0x0*", "0x", s); n += ($2 == "fn@" s) } END { print n }')
ok "of $(wc -l <"$tmp/starts") functions $right are found at their start" \
        [ "$right" -ge "$(($(wc -l <"$tmp/starts") * 99 / 100))" ]
done_testing
