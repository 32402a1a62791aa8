# SPDX-License-Identifier: Apache-2.0
# One program for each effect of linkers and compilers on addresses and names.
. tests/e2e/symbolizer/programs.sh
needs gcc g++ clang clang++ ld.gold ld.lld llvm-symbolizer python3 objcopy nm xz jq

addresses() { # FILE FUNCTIONS: every address of those whose name matches
        nm -S "$1" | awk -v names="$2" 'NF == 4 && $4 ~ names { print $1, $2 }' | sort -u | while read -r start size; do
                seq $((0x$start)) $((0x$start + 0x$size - 1))
        done | awk '{ printf "0x%x\n", $1 }'
}
# llvm-symbolizer's result for every address, without columns; names that it takes from symbols keep their ".cold".
agrees() { # NAME FILE FUNCTIONS
        addresses "$2" "$3" > list
        llvm-symbolizer --inlines --demangle --obj="$2" < list | sed -E 's/:[0-9]+$/:0/; s/\.cold$//' > want
        "$cairn" symbolize -e "$2" --format=llvm < list > got
        same "$1" want got
}
at() { # FILE SYMBOL [MORE]: functions and lines there, on one line
        "$cairn" symbolize -e "$1" "$(printf %x $((0x$(nm "$1" | awk -v s="$2" '$3 == s { print $1 }') + ${3:-0})))" |
                sed "s|$dir/||" | tr '\n' ' ' | sed 's/ $//'
}

# ---- kinds of files

cat > code.c << 'END'
#include <stdlib.h>
__attribute__((cold, noinline)) void give_up(int x) { if (x > 5) abort(); }
static inline __attribute__((always_inline)) int check(int x)
{
        if (__builtin_expect(x < 0, 0)) {
                give_up(x);
                give_up(x + 1);
        }
        return x * 3;
}
__attribute__((noinline)) int hot(int x)
{
        int sum = 0;
        for (int i = 0; i < x; i++)
                sum += check(x - i);
        if (sum == 12345) {
                give_up(sum);
                abort();
        }
        return sum;
}
int main(int argc, char **argv) { (void)argv; return hot(argc); }
END
for cc in gcc clang; do
        $cc -O2 -g -no-pie -o exec-$cc code.c || cannot "compile"
        $cc -O2 -g -fPIE -pie -o pie-$cc code.c || cannot "compile"
        readelf -h exec-$cc pie-$cc | awk '/Type:/ { print $2 }' | tr '\n' ' ' > types
        is "$(cat types)" "EXEC DYN " "$cc builds both kinds of programs"
        agrees "a program at fixed addresses, by $cc" exec-$cc '^(hot|main|give_up)'
        agrees "a program at any address, by $cc" pie-$cc '^(hot|main|give_up)'
done

cat > segments.c << 'END'
__attribute__((section(".far"), noinline)) int far(int x) { return x * 5 + 1; }
__attribute__((section(".middle"), noinline)) int middle(int x) { return far(x) + 2; }
int main(int c, char **v) { (void)v; return middle(c); }
END
cat > segments.ld << 'END'
PHDRS { one PT_LOAD FILEHDR PHDRS FLAGS(5); two PT_LOAD FLAGS(5); three PT_LOAD FLAGS(5); data PT_LOAD FLAGS(6); }
SECTIONS {
        . = 0x400000 + SIZEOF_HEADERS;
        .text : { *(.text*) } :one
        .note.gnu.build-id : { *(.note.gnu.build-id) } :one
        . = 0x10000000; .middle : { *(.middle) } :two
        . = 0x20000000; .far : { *(.far) } :three
        . = 0x30000000; .data : { *(.data*) *(.bss*) *(.rodata*) *(.eh_frame*) } :data
}
END
gcc -O1 -g -nostdlib -static -Wl,-T,segments.ld -Wl,-e,main -Wl,--build-id -o segments segments.c ||
        cannot "link segments"
is "$(readelf -lW segments | grep -c 'LOAD.*R E')" 3 "a program has three segments of code"
agrees "and all are named" segments '^(far|middle|main)$'

# ---- moved after linking

cat > library.cc << 'END'
#include <vector>
static inline __attribute__((always_inline)) int inner(int x) { return x * 3 + (x >> 2); }
extern "C" __attribute__((noinline)) int outer(int x)
{
        int s = 0;
        for (int i = 0; i < x; i++)
                s += inner(s) ^ inner(i);
        return s;
}
static __attribute__((noinline, used)) int hidden(int x) { std::vector<int> v(x); return (int)v.size() + outer(x); }
extern "C" int entry(int x) { return hidden(x); }
END
g++ -O2 -g -shared -fPIC -Wl,--build-id -Wl,-z,lazy -o library.so library.cc || cannot "link a library"
objcopy --only-keep-debug library.so library.so.debug
cp library.so stripped.so && strip --strip-unneeded stripped.so &&
        objcopy --add-gnu-debuglink=library.so.debug stripped.so
addresses library.so 'outer|hidden|entry' > list
"$cairn" symbolize -e library.so --format=llvm < list > want
for delta in 0x300000000000 -0x1000; do
        python3 "$top/tests/tools/move_elf.py" stripped.so moved.so $delta || cannot "move"
        python3 -c 'import sys; [print("%#x" % ((int(l, 16) + int(sys.argv[1], 0)) % 2**64)) for l in sys.stdin]' \
                $delta < list > moved.list
        "$cairn" symbolize -e moved.so --format=llvm < moved.list > got
        same "a library that was moved by $delta has the lines of its debug file, which was not" want got
done
stub=$(objdump -d --section=.plt library.so | awk '/<_Znwm@plt>:/ { print $1 }')
python3 "$top/tests/tools/move_elf.py" stripped.so moved.so 0x10000
is "$("$cairn" symbolize -e moved.so "$(printf %x $((0x$stub + 0x10000)))" |
        head -1)" "$("$cairn" symbolize -e library.so "$stub" | head -1)" \
        "the stubs of a moved file are where it runs"
nm library.so --format=posix --defined-only | awk '$1 == "_ZL6hiddeni" { print $1 }' > keep
objcopy -S --keep-symbols=keep library.so mini && xz -c mini > mini.xz
cp library.so packed.so && strip --strip-all packed.so && objcopy --add-section .gnu_debugdata=mini.xz packed.so
python3 "$top/tests/tools/move_elf.py" packed.so moved.so 0x10000
hidden=$(nm library.so | awk '$3 == "_ZL6hiddeni" { print $1 }')
is "$("$cairn" symbolize -e moved.so --debug-dir none "$(printf %x $((0x$hidden + 0x10000)))" |
        head -1)" "hidden(int)" \
        "a minidebuginfo inside of it was not moved either"

# ---- functions at two addresses ----

gcc -O2 -g -freorder-blocks-and-partition -o cold code.c
nm cold | grep -q ' hot\.cold$'
ok $? "a function has a hot and a cold part"
agrees "both have its frames and lines" cold '^hot'
is "$(at cold hot.cold | cut -d' ' -f1)" hot "the cold part has the function's own name"
"$cairn" symbolize -e cold --format=json "$(nm cold | awk '$3 == "hot.cold" { print $1 }')" |
        grep -q 'code.c","line":1[0-9]'
ok $? "and a line of it"

# ---- several functions at one address ----

cat > folded.cc << 'END'
static inline __attribute__((always_inline)) int inner(int x) { return x * 7; }
__attribute__((noinline)) int one(int x) {
        return inner(x) + 3;
}
namespace other { struct Some {
        static __attribute__((noinline)) int two(int x);
}; }
int other::Some::two(int x)
{
        return inner(x) + 3;
}
int main(int c, char **) { return one(c) + other::Some::two(c); }
END
for cxx in g++ clang++; do
        for ld in gold lld; do
                file=folded-$cxx-$ld
                $cxx -O2 -g -ffunction-sections -fuse-ld=$ld -Wl,--icf=all -o $file folded.cc || cannot "fold"
                is "$(nm $file | awk '/_Z3onei|two/ { print $1 }' | uniq | wc -l)" 1 \
                        "$ld folds two functions of $cxx into one"
                addresses $file 'one' | "$cairn" symbolize -e $file --format=json |
                        jq -r '[.results[].frames[-1] | "\(.function) \(.line)"] | unique[]' | sort -u > got
                # Either name is correct, but with its own lines, and consistently at every address.
                awk '$1 == "one(int)" && $2 >= 2 && $2 <= 4 || $1 == "other::Some::two(int)" && $2 >= 8 && $2 <= 11 { next } { bad = 1 }
                        END { exit bad || NR == 0 }' got && [ "$(cut -d' ' -f1 got | uniq | wc -l)" -eq 1 ]
                ok $? "and name and lines at $file are of one of them"
        done
done

# ---- dropped functions ----

cat > gone.c << 'END'
void unused(void) { __asm__ volatile(".fill 0x3000, 1, 0x90"); }
int small(int x) { return x * 2; }
int used(int x) { return x + 9; }
int main(int c, char **v) { (void)v; return used(c); }
END
for cc in gcc clang; do
        for version in 4 5; do
                for ld in bfd gold lld; do
                        file=gone-$cc-$version-$ld
                        $cc -O1 -g -no-pie -gdwarf-$version -ffunction-sections -fuse-ld=$ld \
                                -Wl,--gc-sections -o $file gone.c ||
                                cannot "link"
                        agrees "what $ld dropped of DWARF $version by $cc is not in the way" $file '^(used|main)$'
                        "$cairn" symbolize -e $file 0 1 2 4 fff 1000 1100 2fff fffffffffffffffe ffffffffffffffff |
                                awk 'NR % 2' | sort -u > got
                        is "$(cat got)" '??' "the dropped function is nowhere in $file"
                done
        done
done
# Code at 0 and dropped code at 0: addresses outside of the section are those of dropped code.
printf '%s\n' 'void unused(void) { __asm__ volatile(".fill 0x3000, 1, 0x90"); }' 'int main(void) { return 7; }' > zero.c
for ld in bfd lld; do
        clang -O1 -g -static -nostdlib -ffunction-sections -fuse-ld=$ld -Wl,--gc-sections,-Ttext=0,-e,main -o zero-$ld \
                zero.c ||
                cannot "link at 0"
        agrees "a function at 0 is itself, by $ld" zero-$ld '^main$'
        is "$("$cairn" symbolize -e zero-$ld 100 | tr '\n' ' ')" '?? ??:0 ' "there is nothing after the function at 0"
done

# ---- overlapping units ----

cat > first.c << 'END'
int two(int);
__attribute__((noinline)) int one(int x) { return two(x) + 1; }
int main(int c, char **v) { (void)v; return one(c); }
END
cat > second.c << 'END'
static inline __attribute__((always_inline)) int deep(int x) { return x ^ (x >> 3); }
int two(int x);
int two(int x) { int s = 0; for (int i = 0; i < x; i++) s += deep(s + i); return s; }
END
for cc in gcc clang; do
        $cc -O2 -g -flto -fuse-ld="$([ $cc = gcc ] && echo bfd || echo lld)" -o lto-$cc first.c second.c 2> err ||
                cannot "link with LTO"
        agrees "code that $cc moved between units has the frames of both" lto-$cc '^(one|two|main)$'
done

# Copies of a function with the same size: the first is in the program, and with ld.bfd and gold all claim its address.
cat > copies.cc << 'END'
#ifdef SECOND


#define FACTOR 1000033
#else
#define FACTOR 1000003
#endif
inline __attribute__((noinline)) int copied(int x) { return x * FACTOR + 3; }
template <class T> __attribute__((noinline)) T made(T x)
{
#ifdef SECOND
        return x * FACTOR + 5;
#else
        return x * FACTOR + 7;
#endif
}
#ifdef SECOND
int other(int x) { return copied(x) + made(x); }
#else
int other(int x);
int main(int argc, char **) { return copied(argc) - made(argc) + other(argc); }
#endif
END
echo '#include "copies.cc"' > one.cc
printf '%s\n' '#define SECOND' '#include "copies.cc"' > two.cc
for cxx in g++ clang++; do
        $cxx -O2 -g -c one.cc && $cxx -O2 -g -c two.cc || cannot "compile"
        for ld in bfd gold lld; do
                for order in "one.o two.o" "two.o one.o"; do
                        # shellcheck disable=SC2086  # two files
                        $cxx -fuse-ld=$ld -o copies $order || cannot "link copies"
                        line=14 factor=f4243
                        [ "$order" = "one.o two.o" ] || line=12 factor=f4261
                        objdump -d --no-show-raw-insn --disassemble=_Z4madeIiET_S0_ copies | grep -q "\$0x$factor"
                        ok $? "$cxx and $ld keep what is in the first of $order"
                        is "$(at copies _Z4madeIiET_S0_ 2 | sed 's|\./||')" "int made<int>(int) copies.cc:$line" \
                                "the line is that of the unit whose code was kept"
                        agrees "as are all of both copies" copies '^_Z(4made|6copied)'
                done
        done
done

# ---- symbols with little information ----

cat > labels.s << 'END'
        .text
        .globl whole, no_size, second, last_label, behind
        .type whole, @function
whole:  nop
        nop
        .size whole, .-whole
label:  nop
        ret
        .type no_size, @function
no_size:
        nop
        ret
        .section .text.second, "ax", @progbits
        .type second, @function
second: nop
        .size second, .-second
        .type at_the_end, @function
at_the_end:
        .size at_the_end, .-at_the_end
        .section .text.third, "ax", @progbits
        nop
last_label:
        nop
        ret
behind:
END
echo 'SECTIONS { . = 0x401000; .text : { *(.text) } .text.second : { *(.text.second) } .text.third : { *(.text.third) } }' > labels.ld
gcc -nostdlib -static -Wl,-T,labels.ld,-e,whole,--build-id=none -o labels labels.s || cannot "assemble"
start=$((0x$(nm labels | awk '$3 == "whole" { print $1 }')))
seq $start $((start + 11)) | awk '{ printf "%x\n", $1 }' | "$cairn" symbolize -e labels | awk 'NR % 2' |
        tr '\n' ' ' > got
echo 'whole whole label label no_size no_size second ?? last_label last_label ?? ?? ' > want
tr -d '\n' < want > want2
same "assembly without types or sizes: to the next symbol, and never past a section" want2 got

# mold has symbols of stubs, "NAME$plt", and may have one of the first entry.
printf '%s\n' '#include <math.h>' 'int main(int c, char **v) { (void)v; return (int)sin(c); }' > stub.c
gcc -O1 -fno-builtin -Wl,-z,lazy -o stub stub.c -lm || cannot "link"
stub=$(objdump -d --section=.plt stub | awk '/<sin@plt>:/ { print $1 }')
first=$(objdump -h stub | awk '$2 == ".plt" { print $4 }')
objcopy --add-symbol 'sin$plt=.plt:'$((0x$stub - 0x$first)),function,local \
        --add-symbol _PROCEDURE_LINKAGE_TABLE_=.plt:0,function,local stub stub-named || cannot "add symbols"
for file in stub stub-named; do
        is "$("$cairn" symbolize -e $file "$stub" "$first" | tr '\n' ' ')" \
                'sin@plt ??:? _PROCEDURE_LINKAGE_TABLE_ ??:? ' \
                "$file: a stub has one name, with and without a symbol"
done

echo 'int with(int x) { return x * 3; }' > with.c
echo 'extern int with(int); int without(int x) { return x * 5; } int main(int c, char **v) { (void)v; return with(c) + without(c); }' > without.c
gcc -O1 -g -c with.c
gcc -O1 -c without.c
gcc -o mixed with.o without.o || cannot "link"
is "$(at mixed with)" "with with.c:1" "DWARF is used for functions that it describes"
is "$(at mixed without)" "without ??:?" "symbols are used for functions without DWARF"

# ---- debug files that do not say where code is

for kind in -pie -no-pie; do
        gcc -g -O2 $kind -o unextracted code.c || cannot "compile"
        python3 "$top/tests/e2e/emptied-elf.py" unextracted extracted
        objcopy -j '.debug_*' unextracted debug-alone 2> /dev/null
        objdump -d --no-show-raw-insn -j .init -j .text -j .fini unextracted |
                awk -F: '/^ / { gsub(/ /, "", $1); print $1 }' > list
        "$cairn" symbolize -e unextracted < list > want
        "$cairn" symbolize -e extracted < list > got
        same "code sections whose size was removed end at the next section ($kind)" want got
        addresses unextracted '^(hot|main|give_up)' > list
        "$cairn" symbolize -e unextracted < list > want
        "$cairn" symbolize -e debug-alone < list > got
        same "debug sections alone name their functions ($kind)" want got
done

# ---- compressed files, and those that are not ELF

echo 'int in_module(int n) { return n * 3; }' > module.c
gcc -O1 -g -c module.c && ld -r --build-id -o module.ko module.o || cannot "link a module"
for packing in gzip bzip2 xz lzma zstd; do
        $packing -c module.ko > module.ko.$packing
        is "$("$cairn" symbolize -e module.ko.$packing 0 | sed "s|$dir/||" | tr '\n' ' ')" "in_module module.c:1 " \
                "a module compressed with $packing"
done
is "$("$cairn" why --json module.ko.xz 0 | jq -r '.results[0].state + " " + .files[0].name')" "resolved module.ko.xz" \
        "cairn why reads it too"
"$cairn" index --data index module.ko.xz > index.out 2>&1
ok $? "cairn index reads it too"
mkdir modules && cp module.ko.zstd modules/module.ko.zst
"$cairn" index --data index modules > index.out 2>&1
ok $? "and in a directory"
fails() { # NAME MESSAGE FILE
        "$cairn" symbolize -e "$3" 0 > out 2> err
        is "$?" 2 "$1 cannot be read"
        grep -q "$2" err
        ok $? "  and the message tells: $2"
}
ar rc library.a module.o && fails "an archive" 'not an ELF file but an archive (ar)' library.a
tar cJf tree.tar.xz module.ko && fails "a compressed archive" 'it is an archive, not a compressed file' tree.tar.xz
head -c 200 module.ko.xz > cut.ko.xz &&
        fails "a compressed file that is cut off" "cannot decompress 'cut.ko.xz'" cut.ko.xz
echo text | gzip > text.gz && fails "a compressed text" "cannot read 'text.gz': not an ELF file" text.gz
: > empty && fails "an empty file" 'not an ELF file: it is empty' empty

# ---- relocatable files of other machines, such as kernel modules

cat > other.c << 'END'
static inline __attribute__((always_inline)) int mix(int a, int b) { return (a << 5) ^ (a >> 3) ^ b; }
__attribute__((noinline)) int first(int n)
{
        int s = 0;
        for (int i = 0; i < n; i++)
                s = mix(s, i);
        return s;
}
__attribute__((noinline)) int second(int n)
{
        return first(n) + mix(n, 3);
}
END
text_offsets() { # FILE
        size=$(readelf -SW "$1" | sed 's/^ *\[ *//' | awk '$2 == ".text" { print $6 }')
        seq 0 2 $((0x$size - 1)) | awk '{ printf "0x%x\n", $1 }'
}
for machine in i386 aarch64 armv7a powerpc powerpc64 powerpc64le s390x; do
        for dwarf in 4 5; do
                clang --target=$machine-linux-gnu -O1 -gdwarf-$dwarf -c -o other.o other.c 2> err ||
                        cannot "compile for $machine"
                text_offsets other.o > list
                llvm-symbolizer --inlines --demangle --obj=other.o < list | sed -E 's/:[0-9]+$/:0/' > want
                "$cairn" symbolize -e other.o --format=llvm < list > got
                same "a relocatable file of $machine with DWARF $dwarf" want got
        done
done
# llvm-symbolizer takes names from symbols that are labels there.
for machine in riscv32 riscv64 bpf mips mipsel mips64 mips64el; do
        clang --target=$machine -O1 -g -c -o other.o other.c || cannot "compile for $machine"
        text_offsets other.o | "$cairn" symbolize -e other.o --format=llvm | grep -v '^$' |
                sed -E "s|$dir/||; s/:[0-9]+$//" |
                paste -d' ' - - | awk '{ if ($0 != last) print; last = $0 }' | tr '\n' ';' > got
        grep -qE '^first other.c:[345];.*mix other.c:1;first other.c:6;.*second other.c:1[01];' got &&
                ! grep -q '??' got
        ok $? "a relocatable file of $machine: $(head -c 100 got)"
done

# A discarded function of a COMDAT group: lld leaves relocations without effect, gold removes them.
cat > shared.h << 'END'
struct shared { int a[4]; __attribute__((noinline)) int sum(int n) const { int s = 0; for (int i = 0; i < n; i++) s += a[i & 3]; return s; } };
END
echo 'extern "C" int at_the_start(int n) { return n * 3; }' > no-debug.cc
g++ -O1 -c no-debug.cc || cannot "compile"
for dwarf in 2 3 4 5; do
        for unit in a b; do
                printf '#include "shared.h"\nint call_%s(shared *s) { return s->sum(3); }\n' $unit > shared-$unit.cc
                g++ -O1 -g -gdwarf-$dwarf -c shared-$unit.cc || cannot "compile"
        done
        for linker in ld ld.lld ld.gold; do
                $linker -r -o discarded.o no-debug.o shared-a.o shared-b.o || cannot "link with $linker"
                is "$("$cairn" symbolize -e discarded.o 0 | head -1)" at_the_start \
                        "$linker -r: a discarded function has no address (DWARF $dwarf)"
                is "$(at discarded.o _Z6call_aP6shared)" "call_a(shared*) shared-a.cc:2" \
                        "  other functions have their addresses"
        done
done
gcc -O1 -g -c module.c -o relocated.o && objcopy --remove-section '.rela.debug*' relocated.o ||
        cannot "remove relocations"
is "$("$cairn" symbolize -e relocated.o 0 | grep -o ':[0-9?]*')" :1 "DWARF without any relocation has its addresses"

# ---- symbols that are not those of functions in a section

cat > objects.s << 'END'
        .text
        .globl function
        .type function, @function
function: nop
        ret
        .size function, .-function
        .globl closure_info
        .type closure_info, @object
closure_info: nop
        nop
        ret
        .size closure_info, .-closure_info
END
gcc -nostdlib -static -Wl,-e,function,--build-id=none -o objects objects.s || cannot "assemble"
is "$(at objects closure_info 1)" "closure_info ??:?" "an object among code names it, as in Haskell"
is "$(at objects function 1)" "function ??:?" "  functions beside the object have their names"

cat > descriptors.c << 'END'
__attribute__((noinline)) int leaf(int x) { int s = 0; for (int i = 0; i < x; i++) s = s * 3 + i; return s; }
int _start(int c) { return leaf(c); }
END
clang --target=powerpc64-linux-gnu -ffreestanding -O1 -c descriptors.c && ld.lld -o descriptors descriptors.o ||
        cannot "link for ppc64"
readelf -SW descriptors | sed 's/^ *\[ *//' | awk '$2 == ".text" { print $4 }' > text
is "$("$cairn" symbolize -e descriptors "$(cat text)" | head -1)" leaf \
        "function descriptors of 64-bit PowerPC are followed"
is "$("$cairn" symbolize -e descriptors.o 0 | head -1)" leaf "  function descriptors of relocatable files are followed"

for style in gnu sysv both; do
        gcc -O1 -rdynamic -Wl,--hash-style=$style -o exported code.c || cannot "compile"
        python3 -c 'd = bytearray(open("exported", "rb").read()); d[0x28:0x30] = bytes(8); d[0x3c:0x40] = bytes(4); open("headless", "wb").write(d)'
        start=$(nm exported | awk '$3 == "hot" { print $1 }')
        is "$("$cairn" symbolize -e headless "$start" | head -1)" hot \
                "without section headers, dynamic symbols are found (hash $style)"
        is "$("$cairn" why --json headless "$start" | jq -r '.quality + " " + .results[0].state')" "dynsym resolved" \
                "  the quality of dynamic symbols is known"
        is "$("$cairn" why --json headless "$start" | jq -r '.results[0].symbol | .name + " " + .table')" \
                "hot PT_DYNAMIC" "  cairn why names the symbol and its table"
done

# A partial unit is only a part for others unless it has addresses.
cat > part.c << 'END'
static inline __attribute__((always_inline)) int inner(int x) { return x * 7 ^ (x >> 2); }
int outer(int n) { int s = 0; for (int i = 0; i < n; i++) s += inner(i); return s; }
END
for version in 4 5; do
        clang -O1 -gdwarf-$version -S part.c &&
                sed 's/^\t\.byte\t17 .*DW_TAG_compile_unit/\t.byte 60/' part.s > partial.s &&
                clang -nostdlib -shared -o part.so part.s && clang -nostdlib -shared -o partial.so partial.s ||
                cannot "build a partial unit"
        readelf --debug-dump=info partial.so 2>/dev/null > units
        like "$(cat units)" 'DW_TAG_partial_unit' "the unit is partial (DWARF $version)"
        start=$((0x$(nm part.so | awk '$3 == "outer" { print $1 }'))) && i=0
        while [ $i -lt 40 ]; do printf '%x\n' $((start + i)); i=$((i + 1)); done > part.addresses
        "$cairn" symbolize -e part.so < part.addresses > part.want
        "$cairn" symbolize -e partial.so < part.addresses > part.got
        like "$(cat part.want)" 'inner' "  the compilation unit has inlined calls"
        is "$(cat part.got)" "$(cat part.want)" "  a partial unit with addresses is read as a compilation unit"
        is "$("$cairn" symbolize --no-cache -e partial.so "$(sed -n 20p part.addresses)")" \
                "$("$cairn" symbolize --no-cache -e part.so "$(sed -n 20p part.addresses)")" \
                "  one address alone has it too"
done

# The numbers of sections from 0xff00 are in a second table; those up to 0xffff are reserved in the first.
python3 -c 'for i in range(66000):
        print(".section .text.f%d,\"ax\"\n.globl f%d\n.type f%d,@function\nf%d: nop\nret\n.size f%d,2" % ((i,) * 5))' \
                > many.s
as -g -o many.o many.s || cannot "assemble many sections"
is "$("$cairn" symbolize -e many.o 0 1ffda 20380 | sed "s|$PWD/||" | paste -sd ' ')" \
        "f0 many.s:4 f65517 many.s:393106 f65984 many.s:395908" "a file of 66,000 sections has all symbols and lines"
is "$("$cairn" why --json many.o 1ffda | jq -r '.results[0].place.section')" .text.f65517 \
        "  an address in one of 66,000 sections has its section"
done_testing
