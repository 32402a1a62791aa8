# SPDX-License-Identifier: Apache-2.0
# Functions whose DWARF has only a bare name (builds with line tables only, skeletons without their .dwo file) are named
# by the symbol that starts where they do, in every way to look an address up. Thunks of g++ have a mangled DW_AT_name.
. tests/e2e/symbolizer/programs.sh
needs g++ clang++ nm jq

export CAIRN_CACHE_DIR="$dir/cache"
mkdir -m 700 cache
cat > bare.cc << 'END'
static inline __attribute__((always_inline)) int mix(int a, int b) { return (a << 5) ^ (a >> 3) ^ b; }
namespace net { struct Reader { int k; __attribute__((noinline)) int run(int n) {
        for (int i = 0; i < n; i++) k = mix(k, i);
        return k;
} }; }
namespace disk { struct Writer { int k; __attribute__((noinline)) int run(int n) {
        for (int i = 0; i < n * 2; i++) k = mix(k, i + 1);
        return k;
} }; }
extern "C" __attribute__((noinline)) int plain(int x) { return mix(x, 9); }
static __attribute__((noinline)) int same(int x) { return mix(x, 3); }
static __attribute__((noinline)) int same(long x) { return mix((int)x, 5); }
int main(int c, char **)
{
        net::Reader r{c};
        disk::Writer w{c};
        return r.run(c) + w.run(c) + plain(c) + same(c) + same((long)c);
}
END
address() { nm "$1" | awk -v s="$2" '$3 == s { print $1 }'; }
names() { "$cairn" symbolize -e "$@" --no-cache --format=json | jq -r '[.results[].frames[-1].function] | join("|")'; }

checked() { # NAME COMPILER...
        name=$1
        shift
        "$@" bare.cc -o bare 2>err || cannot "compile with $*"
        rm -f ./*.dwo
        one=$(address bare _ZN3net6Reader3runEi) two=$(address bare _ZN4disk6Writer3runEi)
        list="$one $two $(address bare plain) $(address bare _ZL4samei) $(address bare _ZL4samel) $(address bare main)"
        want='net::Reader::run(int)|disk::Writer::run(int)|plain|same(int)|same(long)|main'
        # shellcheck disable=SC2086  # several addresses
        is "$(names bare $list)" "$want" "$name: many addresses"
        got=
        for address in $list; do got="$got${got:+|}$(names bare "$address")"; done
        is "$got" "$want" "$name: one address at a time"
}
checked "clang -gmlt" clang++ -O2 -gmlt
checked "clang -gline-tables-only, DWARF 4" clang++ -O2 -gline-tables-only -gdwarf-4
checked "clang -g1" clang++ -O2 -g1
checked "g++ -g1" g++ -O2 -g1
checked "g++ -g: functions without external linkage" g++ -O2 -g
checked "a skeleton with inlined calls, without its .dwo" clang++ -O2 -g -gsplit-dwarf -fsplit-dwarf-inlining
"$cairn" symbolize -e bare "$one" 2> note > /dev/null
grep -q '1 of 1 DWARF units have lines and inlined calls only, because their .dwo or .dwp file is missing' note
ok $? "and the note says what is there"

clang++ -O2 -gmlt bare.cc -o bare || cannot "compile"
one=$(address bare _ZN3net6Reader3runEi) two=$(address bare _ZN4disk6Writer3runEi)
is "$("$cairn" why --json bare "$one" |
        jq -r '.results[0] | "\(.source) \(.name_source) \(.unit_gives_frames) \(.symbol.name)"')" \
        "dwarf symtab true _ZN3net6Reader3runEi" "why says that the name is the symbol's"
"$cairn" index --data data bare > log 2>&1 || cannot "index"
"$cairn" index dump --data data bare > dump
is "$(grep -c 'run(int)\|3runEi' dump | awk '{ print ($1 > 1) }')" 1 "the index has both names"
grep -Eq '(^|[ \t])run([ \t]|$)' dump
is $? 1 "the index has no bare name"
seq 0 20000 | awk '{ printf "%x\n", $1 }' | "$cairn" symbolize -e bare > all # stores the whole file in the cache
is "$("$cairn" symbolize -e bare --format=json "$one" "$two" | jq -r '[.results[].frames[-1].function] | join("|")')" \
        'net::Reader::run(int)|disk::Writer::run(int)' "the cache has both names"
printf 'main;[%s/bare+0x%s] 60\nmain;[%s/bare+0x%s] 40\n' "$dir" "$one" "$dir" "$two" | "$cairn" symbolize --folded - |
        sort > folded
is "$(sed 's/.*;//' folded | tr '\n' '|')" 'disk::Writer::run(int) 40|net::Reader::run(int) 60|' \
        "folded stacks do not melt"

cat > parts.cc << 'END'
#include <cstdlib>
struct Giver { int k; __attribute__((noinline)) int run(int x); };
static __attribute__((always_inline)) inline int check(int x) { if (__builtin_expect(x > 1000, 0)) { exit(x); } return x * 3; }
int Giver::run(int x) { int sum = k; for (int i = 0; i < x; i++) sum += check(sum + i); return sum; }
int main(int c, char **) { Giver g{c}; return g.run(c); }
END
clang++ -O2 -gmlt -fbasic-block-sections=all -fuse-ld=lld parts.cc -o parts || cannot "compile"
nm -S parts | awk '/Giver3runEi/ { print $1 }' > entries
# shellcheck disable=SC2046
is "$(names parts $(cat entries) | tr '|' '\n' | sort -u)" 'Giver::run(int)' \
        "all parts of a split function have its name"
objcopy -w --strip-symbol='*__part*' parts no-locals || cannot "discard local symbols"
for address in $(cat entries); do names no-locals "$address"; done | sort -u > got
is "$(cat got)" 'Giver::run(int)' "even if only its entry has a symbol, one address at a time"

cat > thunks.cc << 'END'
struct A { virtual ~A() {} virtual A *dup() { return this; } int a = 1; };
struct B { virtual ~B() {} virtual B *dup() { return this; } int b = 2; };
struct C : A, B { C *dup() override { a++; return this; } };
int main() { B *b = new C; b->dup(); delete b; }
END
for options in -g -g1; do
        g++ -O1 $options thunks.cc -o thunks || cannot "compile"
        nm thunks | awk '$3 ~ /^_ZTh|^_ZTch/ { print $3 }' | sort -u > mangled
        c++filt < mangled > want
        # shellcheck disable=SC2046
        names thunks $(while read -r name; do address thunks "$name"; done < mangled) | tr '|' '\n' > got
        same "thunks of g++ $options are demangled, without their class in front" want got
done
done_testing
