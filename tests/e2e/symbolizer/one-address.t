# SPDX-License-Identifier: Apache-2.0
# One address alone gets the answer that it gets together with others: for programs of several units by each compiler,
# DWARF version and linker, with functions in sections of their own, cold parts, dropped functions of size 0, copies and
# folded functions. Alone, only the units that cover the address are read, and their DIEs may lack some of their code.
. tests/e2e/symbolizer/programs.sh
needs gcc g++ clang clang++ ld.gold ld.lld nm

export CAIRN_CACHE_DIR="$dir/cache"
mkdir -m 700 cache
cat > common.h << 'END'
#include <stdlib.h>
template <int N> struct D {
        int k;
        virtual ~D();
        virtual int go(int n)
        {
                int s = k;
                for (int i = 0; i < n; i++) {
                        s = s * N + i;
                        if (__builtin_expect(s == 12345, 0)) abort();
                }
                return s;
        }
};
template <int N> D<N>::~D() { k = 0; }
inline __attribute__((noinline)) int shared(int x) { if (__builtin_expect(x > 1000000, 0)) abort(); return x * 7 + 1; }
static inline __attribute__((always_inline)) int mix(int a, int b) { return (a << 5) ^ (a >> 3) ^ b; }
END
cat > a.cc << 'END'
#include "common.h"
void dead_zero() { __builtin_unreachable(); }
int dead(int x) { return mix(x, 4) + shared(x); }
int b(int);
extern "C" int from_c(int), from_assembly(int);
__attribute__((noinline)) int run(int n)
{
        D<3> d;
        D<7> e;
        d.k = e.k = n;
        int s = d.go(n) + e.go(n) + shared(n);
        if (__builtin_expect(s == 77, 0)) exit(mix(s, n));
        return s;
}
int main(int argc, char **) { D<3> *p = new D<3>; int r = p->go(argc); delete p; return r + run(argc) + b(argc) + from_c(argc) + from_assembly(argc); }
END
cat > b.cc << 'END'
#include "common.h"
namespace { struct L { int x; __attribute__((noinline)) int get(int y) { for (int i = 0; i < y; i++) x = mix(x, i); return x; } }; }
__attribute__((cold, noinline)) void fail(int x) { exit(x); }
int unused(int n) { D<11> x; x.k = 1; return x.go(n); }
int b(int n)
{
        L l{n};
        D<7> *p = new D<7>;
        D<5> q;
        q.k = n;
        int r = p->go(n) + q.go(n) + l.get(n) + shared(n + 1);
        delete p;
        if (__builtin_expect(r < 0, 0)) fail(r);
        return r;
}
END
cat > c.c << 'END'
#include <stdlib.h>
static int helper(int x) { if (__builtin_expect(x < 0, 0)) abort(); return x * 3; }
void dead_c_zero(void) { __builtin_unreachable(); }
int from_c(int x) { int s = 0; for (int i = 0; i < x; i++) s += helper(i + s); if (__builtin_expect(s == 555, 0)) exit(s); return s; }
END
cat > d.S << 'END'
        .text
        .globl from_assembly
        .type from_assembly, @function
from_assembly:
        lea 1(%rdi), %eax
        nop
        ret
        .size from_assembly, . - from_assembly
        .section .text.unlikely, "ax", @progbits
cold:   nop
        ret
        .section .note.GNU-stack, "", @progbits
END
gcc -g -c d.S || cannot "assemble"

programs=
# program NAME FAMILY LINK OPTION...: units of C++, C and assembly
program() {
        name=$1 link=$3
        case $2 in gcc) cc=gcc cxx=g++ ;; *) cc=clang cxx=clang++ ;; esac
        shift 3
        # shellcheck disable=SC2086  # several options
        $cxx -O2 -g "$@" -c a.cc -o "$name-a.o" && $cxx -O2 -g "$@" -c b.cc -o "$name-b.o" &&
                $cc -O2 -g "$@" -c c.c -o "$name-c.o" &&
                $cxx -O2 -g "$@" $link "$name-a.o" "$name-b.o" "$name-c.o" d.o -o "$name" 2> err || cannot "build $name"
        programs="$programs${programs:+:}$dir/$name"
}
for family in gcc clang; do
        for version in 2 3 4 5; do
                program $family-$version-gold $family "-fuse-ld=gold -Wl,--gc-sections" -gdwarf-$version \
                        -ffunction-sections
        done
        program $family-4-bfd $family "-fuse-ld=bfd -Wl,--gc-sections" -gdwarf-4 -ffunction-sections
        program $family-4-lld $family "-fuse-ld=lld -Wl,--gc-sections" -gdwarf-4 -ffunction-sections
        program $family-4-folded $family "-fuse-ld=gold -Wl,--gc-sections,--icf=all" -gdwarf-4 -ffunction-sections
        program $family-split $family "-fuse-ld=gold -Wl,--gc-sections" -gdwarf-4 -ffunction-sections -gsplit-dwarf
        program $family-g1 $family "" -g1
done
for version in 2 3 4 5; do program gcc-strict-$version gcc "" -gdwarf-$version -gstrict-dwarf; done
program gcc-lto gcc "" -flto
program clang-lto clang -fuse-ld=lld -flto=thin
program clang-blocks clang -fuse-ld=lld -fbasic-block-sections=all

# The unit "stray" has line rows and a function at the addresses of the unit "own".
cat > stray.s << 'END'
        .file 1 "stray.c"
        .text
        .globl _start
        .type _start, @function
_start:
        .loc 1 1
        nop
        ret
.Lown:
        .loc 1 2
        nop
        ret
        .type tail, @function
tail:
        .loc 1 3
        nop
        ret
.Lend:
        .section .debug_info, "", @progbits
        .macro unit name, start, end, until
        .long 2f - 1f
1:      .value 5
        .byte 1, 8
        .long .Labbrev
        .uleb128 1
        .asciz "stray.c"
        .long .Lline
        .long .Llist_\name
        .uleb128 2
        .asciz "\name"
        .quad \start
        .quad \until - \start
        .byte 0
2:
        .endm
        unit stray, _start, .Lown, .Lend
        unit own, .Lown, tail, tail
        .section .debug_abbrev, "", @progbits
.Labbrev:
        .uleb128 1, 0x11
        .byte 1
        .uleb128 3, 8, 0x10, 0x17, 0x55, 0x17, 0, 0
        .uleb128 2, 0x2e
        .byte 0
        .uleb128 3, 8, 0x11, 1, 0x12, 7, 0, 0
        .byte 0
        .section .debug_rnglists, "", @progbits
        .long 4f - 3f
3:      .value 5
        .byte 8, 0
        .long 0
.Llist_stray:
        .byte 6
        .quad _start, .Lown
        .byte 0
.Llist_own:
        .byte 6
        .quad .Lown, tail
        .byte 0
4:
        .section .debug_line, "", @progbits
.Lline:
END
gcc -c stray.s && gcc -nostdlib -static stray.o -o stray || cannot "assemble"
programs=$programs:$dir/stray

CAIRN_ORACLE_FILES=$programs CAIRN_WANTED_ADDRESSES=200 \
        "${CAIRN_SAN:-$top/build/san}/tests/unit/symbolizer/test_address_filter" > log 2>&1
ok $? "one, four and twenty addresses of $(echo "$programs" | tr ':' '\n' |
        wc -l) programs have the answers of the whole file"
is "$(grep -c "$dir.*groups of addresses read alone, 0 of them read everything" log)" \
        "$(echo "$programs" | tr ':' '\n' | wc -l)" "without reading everything"
grep -v '^# .*0 of them' log | head -20 | sed 's/^/# /'

for address in $(nm stray | awk '$3 == "_start" || $3 == "tail" { print "0x" $1 }') 0x401002; do
        "$cairn" symbolize -e stray --no-cache "$address"
done > alone
"$cairn" symbolize -e stray --no-cache 0x401000 0x401004 0x401002 > together
same "line rows at the addresses of another unit do not count, alone or together" together alone
is "$(sed -n 5,6p alone | xargs)" "own stray.c:2" "the unit that has the address gives its function"

# The programs themselves.
for file in gcc-4-gold gcc-strict-2 clang-4-folded; do
        nm "$file" | awk '$3 ~ /go|run|helper|fail|shared|main/ { print $1 }' | sort -u > list
        "$cairn" symbolize -e "$file" --no-cache < list > together
        while read -r address; do "$cairn" symbolize -e "$file" --no-cache "$address"; done < list > alone
        same "each function of $file has its line alone" together alone
done
done_testing
