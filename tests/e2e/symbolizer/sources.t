# SPDX-License-Identifier: Apache-2.0
# Symbol sources other than DWARF: Go's pclntab, PLT stubs, minidebuginfo with .dynsym.
. tests/e2e/symbolizer/programs.sh
needs gcc llvm-symbolizer objdump objcopy python3 xz nm

run() { # NAME COMMAND...: its output as a diagnostic
        name=$1
        shift
        "$@" > out 2>&1
        status=$?
        sed 's/^/# /' out
        ok $status "$name"
}

# Go: the same code, stripped and with DWARF. Preferably Debian's compiler, for its layout.
go=
for candidate in /usr/lib/go-1.19/bin/go go; do
        command -v "$candidate" > /dev/null && { go=$candidate; break; }
done
mkdir shop
cat > shop/main.go <<'END'
package main

import (
        "encoding/json"
        "fmt"
        "os"
        "regexp"
        "sort"
)

type shape interface{ area() float64 }
type square struct{ side float64 }

func (s square) area() float64      { return multiply(s.side, s.side) }
func multiply(a, b float64) float64 { return add(a*b, 0) }
func add(a, b float64) float64      { return a + b }

func apply[T, U any](in []T, f func(T) U) (out []U) {
        for _, v := range in {
                out = append(out, f(v))
        }
        return
}

func main() {
        v := apply([]float64{1, 2, 3}, func(x float64) shape { return square{x} })
        sort.Slice(v, func(i, j int) bool { return v[i].area() > v[j].area() })
        text, _ := json.Marshal(v)
        fmt.Println(regexp.MustCompile("[a-z]+").FindString(os.Args[0]), string(text))
}
END
printf 'module shop\n\ngo 1.18\n' > shop/go.mod
go_build() { # OUTPUT OPTION...
        out=$1
        shift
        (cd shop && GOENV=off GOFLAGS='' GOTOOLCHAIN=local GOCACHE="$dir/cache" GOPATH="$dir/gopath" "$go" build \
                -o "../$out" "$@" .)
}
compare_go() { # NAME STRIPPED FULL OPTION...
        name=$1
        shift
        run "$name" python3 "$top/tests/tools/compare_go.py" --cairn "$cairn" --count 12000 --show 1 "$@"
}
if [ -z "$go" ] || ! go_build full > build.log 2>&1 || ! go_build stripped -ldflags='-s -w' >> build.log 2>&1; then
        [ -z "$go" ] || sed 's/^/# /' build.log
        [ -z "${CAIRN_NEED_ORACLES:-}" ]
        ok $? "a stripped Go program # SKIP no Go compiler that builds here"
else
        "$go" version | sed 's/^/# /'
        compare_go "a stripped Go program answers as its DWARF does at 12,000 addresses" --go "$go" stripped full
        if go_build pie -buildmode=pie > build.log 2>&1 &&
                go_build pie-stripped -buildmode=pie -ldflags='-s -w' >> build.log 2>&1; then
                compare_go "and a position-independent one, whose pointers are relocations" pie-stripped pie
        else
                ok 0 "and a position-independent one # SKIP this compiler cannot link it here"
        fi
        # Without its name the section is found by its content.
        objcopy --rename-section .gopclntab=.other stripped renamed 2> /dev/null &&
                compare_go "and one whose pclntab has no section name" renamed full
        # Also without section headers, through the segments.
        python3 - << 'END'
data = bytearray(open("stripped", "rb").read())
data[40:48], data[58:64] = bytes(8), bytes(6)
open("headless", "wb").write(data)
END
        compare_go "and one without section headers" headless full
        "$cairn" symbolize -e full --format=json 0 | grep -q '"quality":"dwarf"'
        ok $? "with DWARF the quality is that of DWARF"
fi

# PLT: names agree with objdump.
cat > calls.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int twice(int x) { return 2 * x; }
static void *choose(void) { return (void *)twice; }
int chosen(int) __attribute__((ifunc("choose")));
int main(int c, char **v)
{
        void *(*take)(size_t) = malloc;
        char *p = take(100);

        printf("%s %d\n", strcpy(p, v[0]), atoi(v[0]) + chosen(c));
        free(p);
        return puts("end");
}
END
set --
gcc -o lazy calls.c && set -- "$@" lazy
gcc -fcf-protection=full -Wl,-z,ibtplt -o ibt calls.c && set -- "$@" ibt
gcc -Wl,-z,now -o now calls.c && set -- "$@" now
gcc -no-pie -o fixed calls.c && set -- "$@" fixed
command -v ld.gold > /dev/null && gcc -fuse-ld=gold -o gold calls.c && set -- "$@" gold
gcc -static -o static calls.c && set -- "$@" static
command -v ld.lld > /dev/null && gcc -fuse-ld=lld -o lld calls.c && set -- "$@" lld
[ -x /usr/bin/python3.11 ] && set -- "$@" /usr/bin/python3.11
run "PLT stubs are named as objdump names them" python3 "$top/tests/tools/compare_plt.py" --cairn "$cairn" "$@" "$cairn"
if command -v aarch64-linux-gnu-gcc > /dev/null && aarch64-linux-gnu-gcc -o arm calls.c 2> /dev/null &&
        aarch64-linux-gnu-gcc -mbranch-protection=standard -Wl,-z,force-bti -o arm-bti calls.c 2> /dev/null; then
        run "and those of AArch64" python3 "$top/tests/tools/compare_plt.py" --cairn "$cairn" \
                --objdump aarch64-linux-gnu-objdump arm arm-bti
else
        ok 0 "and those of AArch64 # SKIP no aarch64-linux-gnu-gcc"
fi
strip -o bare lazy
"$cairn" symbolize -e bare --format=json "0x$(objdump -d lazy | awk '/<puts@plt>:/ { print $1 }')" > got
grep -q '"quality":"dynsym"' got && grep -q '"function":"puts@plt"' got
ok $? "stubs of a stripped file are named, and its quality is dynsym"

# One name for each stub, stripped or not, by each linker; nothing in a PLT section has none.
# plt_names FILE: the distinct names of all addresses in its PLT sections
plt_names() {
        readelf -SW "$1" | sed 's/^ *\[ *//' | awk '$2 ~ /^\.i?plt/ && $3 == "PROGBITS" && /AX/ { print $4, $6 }' |
                while read -r start size; do seq $((0x$start)) 4 $((0x$start + 0x$size - 1)); done |
                awk '{ printf "%x\n", $1 }' | "$cairn" symbolize -e "$1" | awk 'NR % 2' | LC_ALL=C sort -u |
                tr '\n' ' '
}
linkers=bfd
for name in gold lld mold; do ! command -v ld.$name > /dev/null || linkers="$linkers $name"; done
for name in $linkers; do
        for flags in -Wl,-z,lazy -Wl,-z,now '-fcf-protection=full -Wl,-z,ibtplt' -Wl,-z,retpolineplt; do
                # Word splitting is meant. A linker without an option is left out.
                # shellcheck disable=SC2086
                clang -fuse-ld=$name $flags -o plt calls.c 2> err || continue
                grep -q 'unknown.*option' err && continue
                strip -o plt-stripped plt
                plt_names plt > got
                plt_names plt-stripped | sed 's/\*ABS\*+0x[0-9a-f]*@plt/chosen@plt/' | tr ' ' '\n' |
                        LC_ALL=C sort -u | tr '\n' ' ' | sed 's/^ //' > stripped
                grep -q 'chosen@plt ' got && ! grep -q '??' got && cmp got stripped > /dev/null
                ok $? "$name $flags: each address of the PLT has a name, which strip does not change"
        done
done

# Minidebuginfo as in distributions: only the functions that .dynsym lacks.
cat > library.c <<'END'
static __attribute__((noinline)) int hidden(int x) { return x * 7 ^ 3; }
int shown(int x) { return hidden(x) + hidden(x + 1); }
END
gcc -O1 -g -shared -fPIC -o library.so library.c
nm -D library.so --format=posix --defined-only | awk '{ print $1 }' | sort > dynamic
nm library.so --format=posix --defined-only | awk '$2 ~ /^[TtD]$/ { print $1 }' | sort | comm -13 dynamic - > keep
objcopy --only-keep-debug library.so debug
objcopy -S --remove-section .gdb_index --remove-section .comment --keep-symbols=keep debug mini 2> /dev/null
xz -c mini > mini.xz
strip --strip-all -R .comment -o small.so library.so
objcopy --add-section .gnu_debugdata=mini.xz small.so
for f in hidden shown; do nm library.so | awk -v f=$f '$3 == f { print "0x" $1 }'; done > list
"$cairn" symbolize -e small.so --format=json < list > got
grep -q '"function":"hidden"' got && grep -q '"function":"shown"' got && grep -q '"quality":"minidebuginfo"' got
ok $? "minidebuginfo and .dynsym name functions of one file together"
done_testing
