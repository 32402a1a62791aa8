# SPDX-License-Identifier: Apache-2.0
# Programs compiled with -gsplit-dwarf are symbolized like those without it: with .dwo files, packages, and neither.
. tests/e2e/symbolizer/programs.sh
needs g++ clang++ llvm-dwp dwp nm readelf jq objcopy dwz

cat > inner.h <<'END'
static inline __attribute__((always_inline)) int inner(int x) { return x * 3 + (x >> 2); }
struct Base {
        virtual ~Base() {}
        virtual int at(int i) const { return inner(i); }
};
END
cat > main.cc <<'END'
#include "inner.h"
int other(int);
namespace shop { namespace {
struct Cart : Base {
        int total(int n) const
        {
                int sum = 0;
                auto add = [&](int i) {
                        volatile int v = inner(i);
                        sum += v;
                };
                for (int i = 0; i < n; i++)
                        add(i + at(i));
                return sum;
        }
};
} }
int main(int argc, char **)
{
        shop::Cart c;
        if (argc > 5)
                throw argc;
        return c.total(argc) + other(argc);
}
END
cat > other.cc <<'END'
#include "inner.h"
static __attribute__((noinline, cold)) void rare(int x) { throw x; }
static inline int twice(int x)
{
        if (x > 100)
                rare(inner(x));
        return 2 * x;
}
int other(int x)
{
        volatile int v = twice(x) + inner(x);
        return v;
}
END
# All addresses of the program's own code.
addresses() { # FILE
        nm -S --defined-only "$1" | awk 'NF == 4 && tolower($3) ~ /[tw]/ { print $1, $2 }' | sort -u |
                while read -r start size; do
                        i=$((0x$start))
                        end=$((i + 0x$size))
                        while [ $i -lt $end ]; do
                                printf '%x\n' $i
                                i=$((i + 1))
                        done
                done
}
answers() { # FILE
        "$cairn" symbolize --format=json -e "$1" < list 2> notes | jq -c '.quality, .results[]'
}

for cc in g++ clang++; do
        for version in 4 5; do
                what="$cc, DWARF $version"
                mkdir -p "$cc-$version" && cd "$cc-$version" || exit 1
                options="-O2 -gdwarf-$version -ffunction-sections -I.."
                # shellcheck disable=SC2086,SC2015
                $cc $options ../main.cc ../other.cc -o whole &&
                        $cc $options -gsplit-dwarf -c ../main.cc && $cc $options -gsplit-dwarf -c ../other.cc &&
                        $cc main.o other.o -o prog || { echo "Bail out! $cc does not compile"; exit 1; }
                addresses whole > list
                answers whole > want
                grep -q '"function": *"inner' want
                ok $? "$what: the whole program has inlined calls"
                answers prog > got
                same "$what: .dwo files where they were compiled" want got

                mkdir away moved beside
                cp prog moved
                mv main.dwo other.dwo away
                answers moved/prog > none
                grep -q '"line": *[1-9]' none && ! grep -q '"function": *"inner' none &&
                        grep -q '"function": *"main"' none
                ok $? "$what: without them there are lines and symbols"
                grep -q '2 of 2 DWARF units have lines only' notes
                ok $? "$what: and what is missing is told"
                cp prog away/*.dwo beside
                answers beside/prog > got
                same "$what: .dwo files beside the program" want got

                cp away/*.dwo .
                cp prog packed
                llvm-dwp -e packed -o packed.dwp 2> /dev/null
                mv main.dwo other.dwo away
                answers packed > got
                same "$what: a package of LLVM" want got
                # The debug file has the skeleton units; its package is found beside it.
                objcopy --only-keep-debug packed split.debug
                objcopy --strip-debug --add-gnu-debuglink=split.debug packed stripped
                mv packed.dwp split.debug.dwp
                answers stripped > got
                same "$what: a package beside the debug file" want got
                if [ "$version" = 4 ]; then
                        cp away/*.dwo .
                        dwp -e packed -o packed.dwp
                        rm main.dwo other.dwo
                        answers packed > got
                        same "$what: a package of binutils" want got
                fi

                # Unrelated files with such names.
                cp away/main.dwo other.dwo
                head -c 300 away/main.dwo > main.dwo
                rm -f ./*.dwp
                answers packed > got
                same "$what: wrong and cut off .dwo files are as good as none" none got
                rm main.dwo other.dwo
                mkfifo main.dwo
                mkdir other.dwo
                timeout 60 "$cairn" symbolize --format=json -e packed < list 2> notes |
                        jq -c '.quality, .results[]' > got
                same "$what: a pipe and a directory are not opened" none got
                rm -rf main.dwo other.dwo
                cd ..
        done
done

# Supplementary files of DWARF 5.
g++ -O2 -gdwarf-5 main.cc other.cc -o one && cp one two && addresses one > list && answers one > want
dwz -5 -m shared.sup one two
ok $? "dwz makes a supplementary file"
readelf -S one | grep -q debug_sup
ok $? "that is named by .debug_sup"
answers one > got
same "which gives the same answers" want got
g++ -O1 -gdwarf-5 other.cc main.cc -o three && cp three four && dwz -5 -m foreign.sup three four &&
        mv foreign.sup shared.sup
answers one > got
cmp -s want got
[ $? -eq 1 ] && grep -q '"function": *"main"' got
ok $? "a file with another checksum is not used in its place"
done_testing
