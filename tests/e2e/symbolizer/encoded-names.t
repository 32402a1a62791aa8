# SPDX-License-Identifier: Apache-2.0
# A linkage name that no demangler knows gives way to the name in DWARF, in every way to look an address up.
. tests/e2e/symbolizer/programs.sh
needs clang++ nm jq

export CAIRN_CACHE_DIR="$dir/cache"
mkdir -m 700 cache
names() { "$cairn" symbolize -e "$@" --format=json | jq -r '[.results[].frames[].function] | join("|")'; }

cat > later.cc << 'END'
#define APART __attribute__((noinline))
namespace net {
struct Reader {
        int k;
        int run(int n) asm("_ZN3net6Reader3runEQQQi");
        static int swift(int n) asm("$s3net6ReaderV5swiftyS2iF");
        int known(int n);
        int label(int n) asm("plain_label");
};
APART int Reader::run(int n) { for (int i = 0; i < n; i++) k = k * 5 + i; return k; }
APART int Reader::swift(int n) { int s = 1; for (int i = 0; i < n; i++) s = s * 9 + i; return s; }
APART int Reader::known(int n) { for (int i = 0; i < n; i++) k = k * 6 + i; return k; }
APART int Reader::label(int n) { for (int i = 0; i < n; i++) k = k * 7 + i; return k; }
namespace {
int hidden(int n) asm("_Z9hidden");
APART int hidden(int n) { int s = n; for (int i = 0; i < n; i++) s = s * 3 + i; return s; }
}
static inline __attribute__((always_inline)) int part(int n) asm("_ZN3netW4part");
static inline __attribute__((always_inline)) int part(int n) { int s = n; for (int i = 0; i < n; i++) s = s * 8 + i; return s; }
extern "C" APART int outer(int n) { return part(n); }
}
int main(int c, char **)
{
        net::Reader r{c};
        return r.run(c) + r.swift(c) + r.known(c) + r.label(c) + net::hidden(c) + net::outer(c);
}
END
want='net::Reader::run|net::Reader::swift|net::Reader::known(int)|plain_label|net::(anonymous namespace)::hidden|outer'
for options in "-O1 -g" "-O1 -g -gdwarf-4" "-O1 -g -gsplit-dwarf" "-O1 -g -fdebug-types-section"; do
        # shellcheck disable=SC2086  # several options
        clang++ $options later.cc -o later || cannot "compile"
        list=
        for symbol in _ZN3net6Reader3runEQQQi '$s3net6ReaderV5swiftyS2iF' _ZN3net6Reader5knownEi plain_label _Z9hidden \
                outer; do
                list="$list $(nm later | awk -v s="$symbol" '$3 == s { print $1 }')"
        done
        # shellcheck disable=SC2086  # several addresses
        is "$(names later --no-cache $list)" "$want" "$options: many addresses"
        got=
        for address in $list; do got="$got${got:+|}$(names later --no-cache "$address")"; done
        is "$got" "$want" "$options: one address at a time"
done

nm -S later | awk '$4 == "outer" { print $1, $2 }' >outer
read -r start size <outer
seq $((0x$start)) $((0x$start + 0x$size - 1)) | awk '{ printf "%x\n", $1 }' |
        "$cairn" symbolize -e later --no-cache --format=json |
        jq -r '.results[].frames | map(.function) | join("|")' | sort -u > inlined
is "$(grep -c '^net::part|outer$' inlined)" 1 "an inlined call"

# shellcheck disable=SC2086
set -- $list
seq 0 20000 | awk '{ printf "%x\n", $1 }' | "$cairn" symbolize -e later > all # stores the whole file in the cache
is "$(names later "$@")" "$want" "from the cache"
"$cairn" index --data data later > log 2>&1 || cannot "index"
"$cairn" index dump --data data later > dump
grep -q 'net::Reader::run' dump
ok $? "the index has the name in DWARF"
grep -q 'QQQ' dump
is $? 1 "the index does not have the linkage name"
is "$("$cairn" why --json later "$1" | jq -r '.results[0].frames[0].function')" 'net::Reader::run' \
        "why gives the same name"

clang++ -O1 -g0 later.cc -o bare || cannot "compile"
is "$(names bare --no-cache "$(nm bare | awk '/QQQ/ { print $1 }')")" '_ZN3net6Reader3runEQQQi' \
        "without DWARF the symbol stays"

if command -v gfortran > /dev/null; then
        cat > shapes.f90 << 'END'
module shapes
contains
 integer function area(n)
  integer, intent(in) :: n
  integer :: i
  area = 0
  do i = 1, n
   area = area * 3 + i
  end do
 end function
end module
program p
 use shapes
 print *, area(command_argument_count())
end program
END
        gfortran -O1 -g -fno-inline shapes.f90 -o shapes || cannot "compile"
        is "$(names shapes --no-cache "$(nm shapes | awk '/MOD_area/ { print $1 }')")" 'shapes::area' \
                "a procedure of a Fortran module has the module in front"
fi
done_testing
