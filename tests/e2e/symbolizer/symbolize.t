# SPDX-License-Identifier: Apache-2.0
# cairn symbolize on programs compiled here: output formats, split debuginfo and dwz, every DWARF version, bad input.
. tests/e2e/symbolizer/programs.sh
needs g++ llvm-symbolizer addr2line python3 objcopy
export XDG_CACHE_HOME="$dir/cache"

cat > inner.h <<'END'
static inline __attribute__((always_inline)) int inner(int x)
{
        return x * 3 + (x >> 2);
}
END
cat > prog.cc <<'END'
#include "inner.h"
namespace shop {
struct Cart {
        int total(int n) const;
};
__attribute__((noinline)) int Cart::total(int n) const
{
        int sum = 0;
        for (int i = 0; i < n; i++)
                sum += inner(i) ^ inner(sum);
        return sum;
}
}
int main(int argc, char **)
{
        return shop::Cart().total(argc);
}
END
addresses() { # of the code of total() and main(), all
        nm -S "$1" | awk '$4 == "main" || $4 ~ /total/ { print $1, $2 }' | while read -r start size; do
                i=$((0x$start))
                end=$((i + 0x$size))
                while [ $i -lt $end ]; do
                        printf '%x\n' $i
                        i=$((i + 1))
                done
        done
}
# In the format of addr2line, but printed by LLVM: binutils 2.40 attributes some addresses of inlined code to the
# enclosing function.
expected() { # FILE
        addresses "$1" | sed 's/^/0x/' |
                llvm-symbolizer --output-style=GNU --functions --inlines --demangle --obj="$1" |
                sed -E 's/ \(discriminator [0-9]+\)$//; s/:0$/:?/'
}

# Every version and compiler: the same output as addr2line.
for cc in g++ clang++; do
        command -v $cc >/dev/null || continue
        for version in 2 3 4 5; do
                $cc -O2 -g -gdwarf-$version -o prog-$cc-$version prog.cc || continue
                expected prog-$cc-$version > want
                addresses prog-$cc-$version | "$cairn" symbolize -e prog-$cc-$version > got
                same "DWARF $version of $cc gives the frames that llvm-symbolizer prints" want got
        done
done
g++ -O2 -g -Wl,--build-id -o prog prog.cc || { echo "Bail out! no compiler"; exit 1; }
expected prog > want
addresses prog > list

grep -q '^shop::Cart::total(int) const$' want
ok $? "the program has what the test is about: a C++ name"
awk 'NR % 2 == 1' want | grep -c '^inner$' | grep -qv '^0$'
ok $? "and inlined frames"

# shellcheck disable=SC2046
"$cairn" symbolize -e prog $(cat list) > got
same "addresses as arguments are answered like those on standard input" want got

sed 's/^/0x/' list | llvm-symbolizer --inlines --demangle --obj=prog | sed -E 's/:[0-9]+$/:0/' > want.llvm
"$cairn" symbolize -e prog --format=llvm < list > got
same "--format=llvm is what llvm-symbolizer prints, columns apart" want.llvm got

# A function without inlined calls, for which the tools must agree: byte for byte the output of addr2line.
cat > plain.c << 'END'
int twice(int x)
{
        return x + x;
}
int main(int argc, char **argv)
{
        (void)argv;
        return twice(argc);
}
END
gcc -O0 -g -o plain plain.c
{ nm plain | awk '/ T (main|twice)$/ { print $1 }'; echo ffffff; } > plain.list
addr2line -f -i -C -e plain < plain.list > want.plain
"$cairn" symbolize -e plain < plain.list > got
same "the default shape is byte for byte that of addr2line -f -i -C" want.plain got

# Both formats on many addresses of a large library with a separate debug file.
libc=$(gcc -print-file-name=libc.so.6)
libc_id=$(readelf -n "$libc" | awk '/Build ID:/ { print $3 }')
if [ -e "/usr/lib/debug/.build-id/$(echo "$libc_id" | cut -c1-2)/$(echo "$libc_id" | cut -c3-).debug" ]; then
        python3 "$top/tests/e2e/symbolizer/shapes.py" "$cairn" "$libc" > out 2>&1
        ok $? "on libc both shapes are byte for byte those of addr2line and llvm-symbolizer"
        sed 's/^#* */# /' out
else
        ok 0 "on libc both shapes are byte for byte those of addr2line and llvm-symbolizer # SKIP no libc6-dbg"
fi

"$cairn" symbolize -e prog --format=json < list > json
python3 - json want list <<'END'
import json, sys
answer = json.load(open(sys.argv[1]))
want = open(sys.argv[2]).read().split("\n")
flat = []
for r in answer["results"]:
    assert r["state"] == "resolved", r
    assert [f["inlined"] for f in r["frames"]] == [True] * (len(r["frames"]) - 1) + [False]
    for f in r["frames"]:
        flat += [f["function"] or "??", "%s:%s" % (f["file"], f["line"] or "?")]
assert flat == want[:-1]
assert [r["address"] for r in answer["results"]] == ["0x" + l.strip() for l in open(sys.argv[3])]
assert answer["quality"] == "dwarf" and len(answer["build_id"]) == 40
assert any(f["linkage_name"] == "_ZNK4shop4Cart5totalEi" for r in answer["results"] for f in r["frames"])
END
ok $? "--format=json has the same frames, the linkage name and the build-id"

# Interactive: each result is printed before the next input.
python3 - "$cairn" "$(head -1 list)" <<'END'
import subprocess, sys
p = subprocess.Popen([sys.argv[1], "symbolize", "-e", "prog"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
for _ in range(2):
    p.stdin.write(sys.argv[2] + "\n")
    p.stdin.flush()
    assert p.stdout.readline() and ":" in p.stdout.readline()
p.stdin.close()
assert p.wait() == 0
END
ok $? "an address written to the pipe is answered before the next one is written"

# Split debuginfo, found like by gdb.
objcopy --only-keep-debug --compress-debug-sections=zlib prog prog.debug
cp prog stripped && strip stripped
id=$(readelf -n prog | awk '/Build ID:/ { print $3 }')
! "$cairn" symbolize -e stripped --debug-dir "$dir/none" < list | grep -q Cart
ok $? "a stripped file alone knows no functions"
mkdir -p "dbg/.build-id/$(echo "$id" | cut -c1-2)"
cp prog.debug "dbg/.build-id/$(echo "$id" | cut -c1-2)/$(echo "$id" | cut -c3-).debug"
"$cairn" symbolize -e stripped --debug-dir "$dir/dbg" < list > got
same "its compressed debug file is found by build-id" want got
objcopy --add-gnu-debuglink=prog.debug stripped
"$cairn" symbolize -e stripped --debug-dir "$dir/none" < list > got
same "or beside it by .gnu_debuglink" want got
g++ -O1 -g -Wl,--build-id -DOTHER -o other prog.cc && objcopy --only-keep-debug other prog.debug
! "$cairn" symbolize -e stripped --debug-dir "$dir/none" < list | grep -q Cart
ok $? "a debug file of another build is not taken"

cp prog nodebug && strip -g nodebug
addr2line -f -i -C -e nodebug < list > want.nodebug
"$cairn" symbolize -e nodebug --debug-dir "$dir/none" < list > got
same "without DWARF the symbol table gives the functions, as addr2line prints them" want.nodebug got

# Minidebuginfo: functions of a stripped file that .dynsym lacks.
if command -v xz > /dev/null; then
        nm -D prog --format=posix --defined-only | awk '{ print $1 }' | sort > dynamic
        nm prog --format=posix --defined-only | awk '$2 ~ /[Tt]/ { print $1 }' | sort | comm -13 dynamic - > keep
        objcopy -S --keep-symbols=keep prog mini
        xz -c mini > mini.xz
        cp prog withmini && strip --strip-all -R .comment withmini &&
                objcopy --add-section .gnu_debugdata=mini.xz withmini
        "$cairn" symbolize -e withmini --debug-dir "$dir/none" --format=json "$(head -1 list)" > got
        grep -q '"quality":"minidebuginfo"' got && grep -qE '"linkage_name":"(main|_ZNK4shop4Cart5totalEi)"' got
        ok $? "minidebuginfo gives functions of a stripped file"
fi

# Relocatable files: must give the same results as a program linked from the same sections at the same addresses.
relocatable() { # NAME FILE
        {
                echo 'SECTIONS {'
                echo '.text 0 : SUBALIGN(1) { *(.text) }'
                readelf -SW "$2" | sed 's/^ *\[ *//' | awk '$2 != ".text" && $8 ~ /X/ {
                        print $2 " ALIGN(" $11 ") : SUBALIGN(1) { *(" $2 ") }" }'
                echo '.data 0x1000000 : { *(.data) *(.data.*) *(.rodata) *(.rodata.*) *(.bss) *(.eh_frame) }'
                echo '}'
        } > layout
        ld -static -T layout -e 0 --unresolved-symbols=ignore-all --no-check-sections -o linked "$2" 2> /dev/null
        seq 0 $(($(size -A -d linked |
                awk '$1 ~ /^\.text|^\.init/ { n = $3 + $2 > n ? $3 + $2 : n } END { print n }') - 1)) |
                awk '{ printf "0x%x\n", $1 }' > all
        "$cairn" symbolize -e linked < all > want.linked
        "$cairn" symbolize -e "$2" < all > got
        [ "$(grep -c 'prog.cc:' got)" -gt 20 ] || echo "few lines" >> got
        same "$1" want.linked got
}
g++ -O2 -g -c -ffunction-sections -fno-asynchronous-unwind-tables -o parts.o prog.cc
relocatable "a relocatable file with many sections of code is read as the linker would lay it out" parts.o
objcopy --compress-debug-sections=zlib parts.o packed.o
relocatable "also when its DWARF is compressed" packed.o
objcopy --compress-debug-sections=zlib-gnu parts.o zdebug.o
relocatable "also in .zdebug_ sections" zdebug.o

if objcopy --compress-debug-sections=zstd prog prog.zstd 2>/dev/null; then
        "$cairn" symbolize -e prog.zstd < list > got
        same "debug sections compressed with zstd are read" want got
fi

if command -v dwz >/dev/null; then
        g++ -O2 -g -Wl,--build-id -fdebug-prefix-map=x=y -o twin prog.cc
        cp prog dwz1 && cp twin dwz2
        if dwz -m common.debug dwz1 dwz2 2>/dev/null && readelf -SW dwz1 | grep -q gnu_debugaltlink; then
                "$cairn" symbolize -e dwz1 < list > got
                same "DWARF that dwz moved to a supplementary file is read" want got
        else
                ok 0 "DWARF that dwz moved to a supplementary file is read # SKIP dwz found nothing to share"
        fi
else
        ok 0 "DWARF that dwz moved to a supplementary file is read # SKIP no dwz"
fi

# Unknown addresses, and errors.
"$cairn" symbolize -e prog --verbose ffffffffff > got 2> err
printf '??\n??:0\n' > want.unknown
same "an unknown address is ?? and ??:0" want.unknown got
grep -q '0xffffffffff: not_in_object' err
ok $? "and --verbose says why"
code() { # CODE NAME COMMAND...
        want_code=$1
        name=$2
        shift 2
        "$@" > out 2> err < /dev/null
        got_code=$?
        [ $got_code -eq "$want_code" ] && [ "$(wc -l < err)" -eq 1 ]
        ok $? "$name: exit code $want_code and one line on stderr"
}
echo "no ELF file" > text
head -c 3000 prog > "cut"
code 2 "what is not ELF" "$cairn" symbolize -e text 0
code 2 "a file that is cut off" "$cairn" symbolize -e cut 0
code 1 "a missing file" "$cairn" symbolize -e missing 0
code 64 "no file" "$cairn" symbolize 0
code 64 "an unknown format" "$cairn" symbolize -e prog --format=xml 0
code 64 "an argument that is no address" "$cairn" symbolize -e prog zzz
printf 'hello\n%s\n' "$(head -1 list)" | "$cairn" symbolize -e prog > got 2>/dev/null
[ "$(head -2 got | tr '\n' ' ')" = '?? ??:0 ' ] && [ "$(wc -l < got)" -ge 4 ]
ok $? "a line that is no address is answered as unknown, so that answers pair up with lines"

"$cairn" --help | grep -q '^  symbolize '
ok $? "cairn --help lists the command"
"$cairn" symbolize --help | grep -q -- '--format FORMAT'
ok $? "cairn symbolize --help lists its options"
done_testing
