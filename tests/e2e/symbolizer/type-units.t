# SPDX-License-Identifier: Apache-2.0
# Functions of classes in type units have the same names as without type units.
. tests/e2e/symbolizer/programs.sh
needs g++ clang++ llvm-dwp nm readelf

cat > shop.h <<'END'
namespace shop {
struct Base {
        struct Inner {
                int deep(int x) { return x + 5; }
                static int flat(int x) { return x - 5; }
        };
        int plain(int x);
        template <class T> T general(T x) { return x * 3; }
        virtual int at(int x) { return x ^ 3; }
        virtual ~Base() {}
};
template <class T> struct Box {
        T value;
        T get(int i) const { return value + i; }
};
namespace {
struct Hidden {
        struct Nested;
        int h(int x) { return x * 7; }
};
struct Hidden::Nested {
        int n(int x) { return x * 9; }
};
}
}
END
cat > shop.cc <<'END'
#include "shop.h"
#define APART __attribute__((noinline))
int shop::Base::plain(int x) { return x + 1; }
namespace api {
extern "C" APART int in_namespace(int x) { return x * 11; }
}
namespace shop {
APART int run(int n)
{
        struct Local {
                struct More { int twice(int x) { return x * 19; } };
                int once(int x) { return x * 17; }
        };
        auto lambda = [&](int i) {
                struct Inside { int q(int x) { return x * 23 + 1; } };
                return Inside().q(i) + n;
        };
        Base b;
        Base::Inner inner;
        Box<int> box{n};
        return Local().once(n) + Local::More().twice(n) + lambda(n) + b.plain(n) + b.general<int>(n) + inner.deep(n) +
               Base::Inner::flat(n) + b.at(n) + Hidden().h(n) + Hidden::Nested().n(n) + box.get(n);
}
}
int main(int argc, char **) { return shop::run(argc) + api::in_namespace(argc); }
END
addresses() { nm "$1" | awk \
        'tolower($2) ~ /[tw]/ && ($3 ~ /^_Z+N/ || $3 == "main" || $3 == "in_namespace") { print $1, $3 }' | sort -k 2; }
answers() { # PROGRAM: in the order of the symbols
        addresses "$1" | cut -d' ' -f1 | "$cairn" symbolize -e "$1" 2> notes
}

for cc in g++ clang++ "clang++ -gsce"; do # the last one omits the linkage names of declarations
        for version in 4 5; do
                for level in 0 2; do
                        what="$cc, DWARF $version, -O$level"
                        options="-O$level -gdwarf-$version -fno-inline"
                        # shellcheck disable=SC2086,SC2015
                        $cc $options shop.cc -o whole && $cc $options -fdebug-types-section shop.cc -o types &&
                                $cc $options -fdebug-types-section -gsplit-dwarf -c shop.cc && $cc shop.o -o split ||
                                { echo "Bail out! cannot compile"; exit 1; }
                        answers whole > want
                        answers types > got
                        same "$what: type units" want got
                        answers split > got
                        same "$what: type units of a .dwo file" want got
                        rm -f split.dwp
                        if llvm-dwp -e split -o split.dwp 2> /dev/null; then
                                mv shop.dwo away.dwo
                                answers split > got
                                same "$what: type units of a package" want got
                        fi
                        rm -f ./*.dwo
                done
                readelf -S types | grep -q debug_types
                [ $? -eq $((version - 4)) ]
                ok $? "$cc, DWARF $version: they are where that version has them"
        done
done
# Without a linkage name, names are qualified with their scopes, also if these are functions.
grep -qx 'shop::Box<int>::get' got && grep -qx 'shop::Base::Inner::deep' got &&
        grep -qx 'shop::(anonymous namespace)::Hidden::Nested::n' got
ok $? "and names are not missing altogether"
g++ -g -O0 shop.cc -o local || { echo "Bail out! cannot compile"; exit 1; }
answers local > got
for name in 'api::in_namespace' 'shop::run(int)::Local::once' 'shop::run(int)::Local::More::twice' \
        'shop::run(int)::(anonymous struct)::operator()' 'shop::run(int)::(anonymous struct)::operator()::Inside::q'; do
        grep -qxF "$name" got
        ok $? "a function of g++ is $name"
done
"$cairn" why local "$(nm local | awk '/Local4once/ { print $1 }')" > got
grep -q 'frame .*shop::run(int)::Local::once ' got && ! grep -q 'other frames' got
ok $? "and why knows its DIE by it"
# An inlined call has the same name as the function itself.
g++ -g -O2 shop.cc -o inlined || { echo "Bail out! cannot compile"; exit 1; }
start=$((0x$(nm inlined | awk '$3 == "_ZN4shop3runEi" { print $1 }')))
seq $start $((start + 200)) | awk '{ printf "0x%x\n", $1 }' | "$cairn" symbolize -e inlined --format=llvm > got
grep -qxF 'shop::run(int)::Local::once' got
ok $? "and its inlined calls have the same name"
done_testing
