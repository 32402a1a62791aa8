#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The replacements of GNU addr2line, eu-addr2line and llvm-symbolizer, each against the program that it replaces, and
# under the programs that start one. Without a program its checks are skipped, unless CAIRN_NEED_ORACLES is set.
. tests/e2e/lib.sh
for tool in gcc g++ nm python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
# has TOOL: whether its checks can run.
has() {
        command -v "$1" >/dev/null && return 0
        [ -z "${CAIRN_NEED_ORACLES:-}" ] || fail "$1 is installed" "scripts/deps.sh all"
        return 1
}

cat >"$tmp/program.cc" <<'EOC'
#include <cstdio>
#include <cstdlib>
template <class T> struct box {
        static inline __attribute__((always_inline)) T twice(T x)
        {
                return x > 3 ? printf("a%d\n", (int)x) : x * 2;
        }
};
static inline __attribute__((always_inline)) int middle(int x) { return box<int>::twice(x) + 1; }
namespace space {
__attribute__((noinline)) int outer(int n)
{
        int sum = 0;
        for (int i = 0; i < n; i++) sum += i % 3 ? middle(i) : -i;
        return sum;
}
}
extern "C" __attribute__((noinline)) int touch(char *p) { return p[3]; }
int main(int argc, char **)
{
        char *p = (char *)malloc(10);
        if (argc == 2) free(p);
        return space::outer(argc) + touch(p);
}
EOC
mkdir "$tmp/bin" "$tmp/cache"
chmod 700 "$tmp/cache"
(cd "$tmp" && g++ -O2 -g -o program program.cc) ||
        bail_out "cannot build a program"
for name in addr2line eu-addr2line llvm-symbolizer llvm-addr2line; do ln -s "$CAIRN_SAN/cairn-addr2line" \
        "$tmp/bin/$name"; done
python3 - "$tmp" <<'EOP' || bail_out "cannot list addresses"
import subprocess, sys
tmp = sys.argv[1]
lines = [l.split() for l in subprocess.run(["nm", "-S", tmp + "/program"], capture_output=True,
                        text=True, check=True).stdout.splitlines()]
with open(tmp + "/addresses", "w", encoding="ascii") as f:
    for start, size, _, name in (l for l in lines if len(l) == 4 and l[3] in ("_ZN5space5outerEi", "touch", "main")):
        f.writelines(f"{int(start, 16) + i:#x}\n" for i in range(int(size, 16)))
    f.write("0x10\n")
EOP

# same NAME TOOL [OPTION]...: the outputs of TOOL and of its replacement, for all addresses of the program, are equal.
same() {
        same_name=$1 tool=$2; shift 2
        "$tool" -e "$tmp/program" "$@" <"$tmp/addresses" >"$tmp/want" 2>/dev/null
        "$tmp/bin/${replacement:-$tool}" -e "$tmp/program" "$@" <"$tmp/addresses" >"$tmp/got" 2>"$tmp/got.err"
        [ -s "$tmp/want" ] || fail "$tool has an output"
        if cmp -s "$tmp/want" "$tmp/got"; then
                pass "$same_name"
        else
                fail "$same_name" "$(diff "$tmp/want" "$tmp/got" | head -6) $(cat "$tmp/got.err")"
        fi
}

if has addr2line; then
        same "GNU addr2line: lines and discriminators of inlined calls are equal" addr2line -a -i
        same "GNU addr2line: on one line each, base names only" addr2line -a -i -p -s
        same "GNU addr2line: long options" addr2line --addresses --basenames
        is "$("$tmp/bin/addr2line" -e "$tmp/program" -f -C -p "$(nm "$tmp/program" | awk '/space/ { print $1 }')" |
                sed 's/ at .*//')" \
                'space::outer(int)' "GNU addr2line: functions are demangled"
        for program in "$tmp/bin/addr2line" addr2line; do
                is "$("$program" -e "$tmp/nope" 1 2>&1)" "$program: '$tmp/nope': No such file" \
                        "$program: the message for a missing file"
        done
        is "$("$tmp/bin/addr2line" -e "$tmp/program" -j .nope 1 2>&1; echo $?)" \
                "$(printf '%s: %s: cannot find section .nope\n1' "$tmp/bin/addr2line" "$tmp/program")" \
                "GNU addr2line: a missing section"
        is "$("$tmp/bin/addr2line" -e "$tmp/program" -j .text 0 4)" \
                "$(addr2line -e "$tmp/program" -j .text 0 4)" "GNU addr2line: offsets in a section"
        printf -- '-e %s -a\n' "$tmp/program" >"$tmp/options"
        is "$("$tmp/bin/addr2line" "@$tmp/options" 10)" "$(addr2line "@$tmp/options" 10)" \
                "GNU addr2line: options from a file"
fi
if has eu-addr2line; then
        for options in -a '-a -i' '-a -f' '-a -f -i' '-a -f -i -C' '-a -f -i --pretty-print' '-s -i' -S \
                '-a -x -C' '-f -x -i --pretty-print' '--relative -A'; do
                # Word splitting is meant.
                # shellcheck disable=SC2086
                same "eu-addr2line $options: columns and functions are equal" eu-addr2line $options
        done
fi
if has addr2line; then
        for request in main main+4 'main +4' 'main + 4' 'main 4'; do
                is "$("$tmp/bin/addr2line" -a -f -e "$tmp/program" "$request")" \
                        "$(addr2line -a -f -e "$tmp/program" "$request")" "addr2line: the request $request"
        done
fi
if has eu-addr2line; then
        for request in main touch+0x3 main-0x2 0x10 nope main+100000 '(.nope)+3'; do
                is "$("$tmp/bin/eu-addr2line" -a -S -e "$tmp/program" "$request" 2>&1 | sed 's/^[^ ]*addr2line: //')" \
                        "$(eu-addr2line -a -S -e "$tmp/program" "$request" 2>&1 | sed 's/^[^ ]*addr2line: //')" \
                        "eu-addr2line: the request $request"
        done
fi

# Where eu-addr2line finds a debug file: by the link of a program, or by its build-id and name.
separate() { # NAME LINK-OPTION...
        separate_name=$1; shift
        printf 'int main(void) { return 0; }\n' >"$tmp/separate.c"
        mkdir -p "$tmp/usr/bin" "$tmp/held"
        (cd "$tmp" && gcc -g "$@" -o "held/whole" separate.c &&
                objcopy --only-keep-debug held/whole "held/$separate_name.debug" &&
                strip -g -o "usr/bin/$separate_name" held/whole) || bail_out "cannot build $separate_name"
}
# find_separate ADDR2LINE PROGRAM: the line of main with each list of directories
find_separate() {
        main=$(nm "$tmp/usr/bin/$2" | awk '$3 == "main" { print "0x" $1 }')
        for list in "$tmp/debug" "$tmp/none:$tmp/debug" ":$tmp/debug" '+:.debug:/usr/lib/debug' \
                sub '-:sub' .debug '' "$tmp/debug/usr"; do
                printf '%s %s\n' "$list" "$("$1" -s -e "$tmp/usr/bin/$2" --debuginfo-path="$list" "$main" 2>&1)"
        done
        printf 'none %s\n' "$("$1" -s -e "$tmp/usr/bin/$2" "$main" 2>&1)"
}
separate linked -Wl,--build-id=none
objcopy --add-gnu-debuglink="$tmp/held/linked.debug" "$tmp/usr/bin/linked"
separate unlinked -Wl,--build-id=0x0123456789abcdef0123456789abcdef01234567
if has eu-addr2line; then
        for file in debug/linked.debug debug/bin/linked.debug debug/usr/bin/linked.debug \
                "debug$tmp/usr/bin/linked.debug" usr/bin/linked.debug usr/bin/sub/linked.debug \
                usr/bin/.debug/linked.debug debug/bin/unlinked.debug \
                debug/.build-id/01/23456789abcdef0123456789abcdef01234567.debug; do
                case $file in *build-id*) name=unlinked ;; *) name=$(basename "$file" .debug) ;; esac
                mkdir -p "$tmp/$(dirname "$file")"
                cp "$tmp/held/$name.debug" "$tmp/$file"
                find_separate eu-addr2line "$name" >"$tmp/want"
                like "$(cat "$tmp/want")" 'separate.c:1' "eu-addr2line finds $file"
                is "$(find_separate "$tmp/bin/eu-addr2line" "$name")" "$(cat "$tmp/want")" \
                        "eu-addr2line --debuginfo-path: the same lists find $file"
                rm -rf "$tmp/debug" "$tmp/usr/bin/sub" "$tmp/usr/bin/.debug" "$tmp/usr/bin/linked.debug"
        done
fi
printf 'int other; int main(void) { return 1; }\n' >"$tmp/usr/bin/x.c"
gcc -g -Wl,--build-id=none -o "$tmp/held/x" "$tmp/usr/bin/x.c"
objcopy --only-keep-debug "$tmp/held/x" "$tmp/usr/bin/linked.debug"
unlike "$(find_separate "$tmp/bin/eu-addr2line" linked)" ':1' \
        "eu-addr2line --debuginfo-path: a file with another checksum is not used"
for option in -F --flags -k --kernel -K --offline-kernel=6.1; do
        like "$("$tmp/bin/eu-addr2line" "$option" -e "$tmp/program" 0 2>&1)" '(is|are) not supported' \
                "eu-addr2line $option is refused with its reason"
done
if has llvm-symbolizer-19; then
        replacement='llvm-symbolizer'
        for options in -a '-a --no-inlines' '-a -p -s' '-a --functions=none' '--output-style=GNU' '-a --no-demangle' \
                '--inlining -demangle=false'; do
                # shellcheck disable=SC2086
                same "llvm-symbolizer $options: columns and functions are equal" llvm-symbolizer-19 $options
        done
        same "llvm-symbolizer --relativenames" llvm-symbolizer-19 --relativenames
        same "llvm-symbolizer: -s after --relativenames counts" llvm-symbolizer-19 --relativenames -s
        sed 's/^/DATA /' "$tmp/addresses" >"$tmp/data"
        nm "$tmp/program" | awk '$2 ~ /^[DBR]$/ { print "DATA 0x" $1 }' >>"$tmp/data"
        for options in -a '-a --output-style=GNU' --output-style=JSON; do
                # The third line of LLVM is the place of the declaration, or the file of a symbol.
                # shellcheck disable=SC2086
                llvm-symbolizer-19 $options -e "$tmp/program" <"$tmp/data" | sed 's,^[^ ]*\.[^ ]*:[0-9]*$,??:?,' \
                        >"$tmp/data.theirs"
                # shellcheck disable=SC2086
                "$tmp/bin/llvm-symbolizer" $options -e "$tmp/program" <"$tmp/data" >"$tmp/data.ours"
                ok "llvm-symbolizer $options: variables are equal" cmp "$tmp/data.theirs" "$tmp/data.ours"
        done
        # LLVM leaves out the file of a declaration whose number is in the abbreviation.
        for program in llvm-symbolizer-19 "$tmp/bin/llvm-symbolizer"; do
                "$program" --output-style=JSON -e "$tmp/program" <"$tmp/addresses" |
                        sed 's/"StartFileName":"[^"]*"/"StartFileName":""/g' >"$tmp/json"
                [ -f "$tmp/json-want" ] || mv "$tmp/json" "$tmp/json-want"
        done
        ok "llvm-symbolizer: JSON is equal but for the files of declarations" cmp "$tmp/json-want" "$tmp/json"
        for options in --verbose '--verbose --output-style=GNU' '--verbose --no-inlines'; do
                for program in llvm-symbolizer-19 "$tmp/bin/llvm-symbolizer"; do
                        # shellcheck disable=SC2086
                        "$program" $options -e "$tmp/program" <"$tmp/addresses" |
                                sed 's/\(Function start filename:\).*/\1/' >"$tmp/verbose.${program##*/}"
                done
                ok "llvm-symbolizer $options: functions and calls start at the same addresses" \
                        cmp "$tmp/verbose.llvm-symbolizer-19" "$tmp/verbose.llvm-symbolizer"
        done
        cat >"$tmp/clones.cc" <<'EOC'
#include <cstdio>
namespace space {
__attribute__((noinline)) static int clone(int x, int unused, int known)
{
        for (int i = 0; i < known; i++)
                printf("%d\n", x + i);
        return x;
}
}
int main(int argc, char **) { return space::clone(argc, argc + 1, 7) + space::clone(argc + 3, 2, 7); }
EOC
        (cd "$tmp" && g++ -O2 -g -o clones clones.cc) || bail_out "cannot build a program"
        clone_addresses=$(nm "$tmp/clones" | awk '$2 == "t" && /clone|register_tm|frame_dummy/ { print "0x" $1 }')
        like "$(nm "$tmp/clones")" 'clone.*\.constprop' "the program has a clone of a function"
        for options in -a '-a --no-demangle' '-a --no-inlines' '-a --output-style=GNU' --output-style=JSON; do
                # shellcheck disable=SC2086
                is "$("$tmp/bin/llvm-symbolizer" $options -e "$tmp/clones" $clone_addresses)" \
                        "$(llvm-symbolizer-19 $options -e "$tmp/clones" $clone_addresses)" \
                        "llvm-symbolizer $options: names of symbols, and files that symbols name, are equal"
        done
        echo 'int target(int x) { return x * 3; } int main(int c, char **v) { return target(c); }' >"$tmp/escaped.c"
        gcc -O0 -o "$tmp/escaped" "$tmp/escaped.c" || bail_out "cannot build a program"
        objcopy --redefine-sym "target=f$(printf '\033')[31m\"q" "$tmp/escaped"
        escaped_address=$(nm "$tmp/escaped" | awk '/\[31m/ { print "0x" $1 }')
        is "$("$tmp/bin/llvm-symbolizer" --output-style=JSON -e "$tmp/escaped" "$escaped_address")" \
                "$(llvm-symbolizer-19 --output-style=JSON -e "$tmp/escaped" "$escaped_address")" \
                "JSON has a symbol's name with a control character and a quote"
        is "$("$tmp/bin/llvm-symbolizer" -e "$tmp/escaped" "$escaped_address" | head -1)" 'f\x1b[31m"q' \
                "text has it with an escape"
        cat >"$tmp/operators.cc" <<'EOC'
#include <cstddef>
namespace shop {
struct item {
        int v;
        __attribute__((noinline)) int operator()(int x) const { return v + x; }
        __attribute__((noinline)) int operator[](int x) const { return v - x; }
        __attribute__((noinline)) bool operator<(const item &o) const { return v < o.v; }
        __attribute__((noinline)) item &operator<<(int x) { v += x; return *this; }
        __attribute__((noinline)) const item *operator->() const { return this; }
        __attribute__((noinline)) operator int() const { return v * 3; }
        template <class T> __attribute__((noinline)) T operator+(T x) const { return x + v; }
        static void *operator new(size_t n, void *p) { return n ? p : nullptr; }
};
__attribute__((noinline)) int operator_count(int n) { return n + 1; }
}
int main(int c, char **)
{
        shop::item i{c}, k{2};
        new (&k) shop::item{c};
        return i(1) + i[2] + (i < k) + (i << 3).v + i->v + (int)i + (i + 2) + shop::operator_count(c);
}
EOC
        (cd "$tmp" && g++ -O1 -g -o operators operators.cc) || bail_out "cannot build a program"
        operator_addresses=$(nm "$tmp/operators" | awk '$3 ~ /^_ZNK?4shop/ { print "0x" $1 }')
        # shellcheck disable=SC2086
        is "$("$tmp/bin/llvm-symbolizer" -f=short -e "$tmp/operators" $operator_addresses)" \
                "$(llvm-symbolizer-19 -f=short -e "$tmp/operators" $operator_addresses)" \
                "llvm-symbolizer -f=short: names of operators are equal"
        # With link-time optimization a declaration is in another unit, here in a file without a line of the code.
        printf '__attribute__((noinline)) int work(int n)\n{\n#line 5 "other.inc"\nint s = 0;\nwhile (n--)\n%s\n}\n' \
                's += n * n % 7; return s;' >"$tmp/work.c"
        printf 'int work(int); int main(int c, char **v) { (void)v; return work(c); }\n' >"$tmp/main.c"
        (cd "$tmp" && gcc -O2 -g -flto -o lto work.c main.c 2>/dev/null) || bail_out "cannot build with LTO"
        work_address=0x$(nm "$tmp/lto" | awk '$3 ~ /^work/ { print $1 }')
        is "$("$tmp/bin/llvm-symbolizer" --output-style=JSON -e "$tmp/lto" "$work_address")" \
                "$(llvm-symbolizer-19 --output-style=JSON -e "$tmp/lto" "$work_address")" \
                "llvm-symbolizer: the declaration of a function in another unit and file"
        printf 'int one(int x)\n{\n\treturn x * 3;\n}\n// 5\n// 6\n// 7\r\nint two(int x)\n{\n return one(x);\n}\n' \
                >"$tmp/embedded.c"
        if has clang; then
                (cd "$tmp" && clang -g -gdwarf-5 -gembed-source -shared -fPIC -o embedded.so embedded.c &&
                        clang -g -shared -fPIC -o named.so embedded.c) || bail_out "cannot build a library"
                for lines in 1 3 4 10 25; do
                        for style in -a --output-style=GNU --output-style=JSON --relativenames; do
                                for library in embedded named; do
                                        requests="one two 0x$(nm "$tmp/$library.so" | awk '$3 == "two" { print $1 }')"
                                        options="$style --print-source-context-lines=$lines -e $tmp/$library.so"
                                        # shellcheck disable=SC2086
                                        is "$("$tmp/bin/llvm-symbolizer" $options $requests)" \
                                                "$(llvm-symbolizer-19 $options $requests)" \
                                                "llvm-symbolizer: $lines lines of $library source, $style"
                                done
                        done
                done
                rm "$tmp/embedded.c"
                like "$("$tmp/bin/llvm-symbolizer" --print-source-context-lines=3 -e "$tmp/embedded.so" two)" \
                        '9 >: {' "the source in the line table is printed where the file is missing"
                # Relative names of two folders are the same: each function has the source of its unit.
                mkdir "$tmp/early" "$tmp/late"
                printf 'int early(int x)\n{\n\treturn x * 3;\n}\n' >"$tmp/early/part.c"
                printf '// 1\n// 2\nint late(int x)\n{\n\treturn x - 4;\n}\n' >"$tmp/late/part.c"
                for folder in early late; do
                        (cd "$tmp/$folder" && clang -g -gdwarf-5 -gembed-source -fPIC -c part.c) ||
                                bail_out "cannot build a library"
                done
                clang -shared -o "$tmp/parts.so" "$tmp/early/part.o" "$tmp/late/part.o" || bail_out "cannot link"
                for style in -a --relativenames --output-style=JSON; do
                        options="$style --print-source-context-lines=3 -e $tmp/parts.so"
                        # shellcheck disable=SC2086
                        is "$("$tmp/bin/llvm-symbolizer" $options early late early)" \
                                "$(llvm-symbolizer-19 $options early late early)" \
                                "llvm-symbolizer $style: sources of two folders with one relative name"
                done
        fi
        replacement=
fi

# ---- the memory of a process, for eu-addr2line ----

cat >"$tmp/waits.c" <<'EOC'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static __attribute__((noinline)) int wait_here(void) { return pause(); }
int main(int argc, char **argv)
{
        (void)argv;
        printf("%p\n", (void *)(unsigned long)wait_here);
        fflush(stdout);
        if (argc > 1)
                abort();
        return wait_here();
}
EOC
(cd "$tmp" && gcc -g -O1 -o waits waits.c) || bail_out "cannot build a program"
mkfifo "$tmp/waits.out"
"$tmp/waits" >"$tmp/waits.out" &
waits=$!
read -r waiting <"$tmp/waits.out"
cp "/proc/$waits/maps" "$tmp/maps"
# A function of libc: eu-addr2line has no names for stubs.
libc_file=$(awk '/libc\.so/ { print $6; exit }' "$tmp/maps")
libc=$(awk '/libc\.so/ && $3 ~ /^0*$/ { sub("-.*", "", $1); print $1; exit }' "$tmp/maps")
libc=$(printf '0x%x' $((0x$libc + 0x$(nm -D "$libc_file" | awk '$3 ~ /^pause(@|$)/ { print $1; exit }'))))
for source in "-p $waits" "--pid=$waits" "-M $tmp/maps"; do
        # shellcheck disable=SC2086
        "$tmp/bin/eu-addr2line" $source -a -f -s "$waiting" 0x10 | sed 's/:4:[0-9]*$/:4/' | tr '\n' ' ' >"$tmp/got"
        is "$(cat "$tmp/got")" \
                "$(printf '0x%016x wait_here waits.c:4 0x%016x ?? ??:0 ' "$waiting" 16)" \
                "eu-addr2line ${source%%[ =]*}: addresses of memory, also where nothing is mapped"
        if has eu-addr2line; then
                for options in '-a -f -i' '-a -f --pretty-print'; do
                        # shellcheck disable=SC2086
                        is "$("$tmp/bin/eu-addr2line" $source $options "$waiting" 0x10 "$libc")" \
                                "$(eu-addr2line $source $options "$waiting" 0x10 "$libc")" \
                                "eu-addr2line ${source%%[ =]*} $options: the same as elfutils"
                done
        fi
done
kill "$waits"
is "$("$tmp/bin/eu-addr2line" -M "$tmp/waits.c" 1 2>&1; echo $?)" \
        "$(printf "%s: '%s' has not the format of /proc/PID/maps\n1" "$tmp/bin/eu-addr2line" "$tmp/waits.c")" \
        "eu-addr2line -M: another file is refused"
is "$("$tmp/bin/eu-addr2line" --core "$tmp/waits" 1 2>&1; echo $?)" \
        "$(printf "%s: '%s' is no core that lists mapped files\n1" "$tmp/bin/eu-addr2line" "$tmp/waits")" \
        "eu-addr2line --core: a program is refused"
if [ "$(cat /proc/sys/kernel/core_pattern)" = core ]; then
        mkdir "$tmp/cores"
        waiting=$(cd "$tmp/cores" && prlimit --core=unlimited ../waits crash 2>/dev/null || :)
        core=$(find "$tmp/cores" -type f)
        is "$("$tmp/bin/eu-addr2line" --core "$core" -f -s "$waiting" | head -1)" wait_here \
                "eu-addr2line --core: addresses of the memory of a core"
        head -c 3000 "$core" >"$tmp/cut-core"
        unlike "$("$tmp/bin/eu-addr2line" --core "$tmp/cut-core" "$waiting" 2>&1)" 'waits.c' \
                "eu-addr2line --core: a core that ends early has no files"
fi

touch_address=$(nm "$tmp/program" | awk '$3 == "touch" { print $1 }')
# ---- variables of functions (FRAME) ----

cat >"$tmp/frame.cc" <<'EOC'
struct point { int x[3]; int walk(int); };
extern "C" void use(void *);
static inline __attribute__((always_inline)) void inner(int *p) { char small[7]; use(small); use(p); }
extern "C" int fill(int n, point *q)
{
        long big[4][2];
        point local;
        int (point::*walk)(int) = &point::walk;
        const int &alias = n;
        use(big);
        use(&local);
        use(&walk);
        inner(&n);
        return q->x[1] + alias;
}
int main() { point q = { { 1, 2, 3 } }; return fill(2, &q); }
extern "C" void use(void *) {}
int point::walk(int n) { return n; }
EOC
# frames TOOL: what it answers for each address of the function and for one without any
frames() {
        for address in $frame_addresses 0x7fffff00; do echo "FRAME $tmp/framed $address"; done |
                "$@" 2>"$tmp/frames.err"
}
if has clang; then
        for flags in '-gdwarf-5 -O1' '-gdwarf-4 -O1' '-gdwarf-4 -O0' \
                '-gdwarf-5 -O2 -m32 -ffreestanding -nostdlib -c'; do
                # shellcheck disable=SC2086
                (cd "$tmp" && clang++ $flags -o framed frame.cc) 2>"$tmp/err" ||
                        fail "clang++ $flags" "$(cat "$tmp/err")"
                frame_addresses=$(nm -S "$tmp/framed" | awk '$4 == "fill" { print $1, $2 }' |
                        { read -r start size; i=0
                        while [ $i -lt $((0x$size)) ]; do
                                printf '0x%x ' $((0x$start + i))
                                i=$((i + 5))
                        done; })
                frames "$tmp/bin/llvm-symbolizer" >"$tmp/frames.ours"
                like "$(cat "$tmp/frames.ours")" 'big' "FRAME, $flags: variables are listed"
                is "$(tail -2 "$tmp/frames.ours")" '??' "FRAME, $flags: an address without a function has none"
                ! has llvm-symbolizer-19 || {
                        frames llvm-symbolizer-19 >"$tmp/frames.theirs"
                        ok "FRAME, $flags: names, sizes and offsets are equal" \
                                cmp "$tmp/frames.theirs" "$tmp/frames.ours"
                        for style in JSON GNU; do
                                frames llvm-symbolizer-19 --output-style=$style >"$tmp/frames.theirs"
                                frames "$tmp/bin/llvm-symbolizer" --output-style=$style >"$tmp/frames.ours"
                                ok "FRAME, $flags, $style: the answers are equal" \
                                        cmp "$tmp/frames.theirs" "$tmp/frames.ours"
                        done
                }
        done
fi
# shared FILE VARIABLES: an object whose variables have the same list of locations, of 20 KB, with an offset at its end
shared() {
        python3 - "$2" >"$tmp/shared.s" <<'EOP' && as -o "$1" "$tmp/shared.s" || bail_out "cannot assemble"
import sys
print(""".text
f: .skip 16, 0x90
.section .debug_abbrev
.byte 1, 0x11, 1, 0x11, 1, 0x12, 6, 0, 0 # compile_unit: low_pc, high_pc
.byte 2, 0x2e, 1, 0x03, 8, 0x11, 1, 0x12, 6, 0x40, 0x18, 0, 0 # subprogram: name, addresses, frame_base
.byte 3, 0x34, 0, 0x03, 8, 0x02, 0x17, 0, 0, 0 # variable: name, location
.section .debug_info
.long end - start
start: .value 4
.long 0
.byte 8, 1
.quad f
.long 16
.byte 2
.string "f"
.quad f
.long 16
.byte 1, 0x56""")
for i in range(int(sys.argv[1])):
    print(f'.byte 3\n.string "v{i}"\n.long 0')
print(""".byte 0, 0
end:
.section .debug_loc
.rept 1000
.quad 0, 16
.value 2
.byte 0x30, 0x9f # 0, a constant
.endr
.quad 0, 16
.value 2
.byte 0x91, 0x70 # fbreg -16
.quad 0, 0""")
EOP
}
shared "$tmp/shared.o" 3
is "$("$tmp/bin/llvm-symbolizer" "FRAME $tmp/shared.o 4" | grep -c -- '^-16 ')" 3 \
        "FRAME: each variable has its offset, also behind locations of other kinds"
shared "$tmp/shared.o" 40
like "$("$tmp/bin/llvm-symbolizer" "FRAME $tmp/shared.o 4" 2>&1)" 'share too many location lists' \
        "FRAME: lists that many variables share are an error"

cp "$tmp/program" "$tmp/no-dwarf" && strip "$tmp/no-dwarf"
is "$("$tmp/bin/llvm-symbolizer" "FRAME $tmp/no-dwarf 0x$touch_address" 2>&1)" '??' \
        "FRAME of a file without DWARF: no variables, and no error"

is "$("$tmp/bin/llvm-symbolizer" -s -e "$tmp/program" 'touch' 'CODE touch+0 ignored' 'nope' | tr '\n' ' ')" \
        "touch program.cc:18:69  touch program.cc:18:69  ?? ??:0:0  " \
        "llvm-symbolizer: a function's name and an offset are a request"
is "$("$tmp/bin/llvm-symbolizer" --output-style=JSON -s -e "$tmp/program" touch nope |
        sed 's/"StartAddress":"0x[^"]*"/"StartAddress":""/; s,"[^"]*/,"/,g')" \
        "$(printf '%s%s%s%s' '[{"Loc":[{"Column":69,"Discriminator":0,"FileName":"program.cc",' \
                '"FunctionName":"touch","Line":18,"StartAddress":"","StartFileName":"program.cc",' \
                '"StartLine":18}],"ModuleName":"/program","SymName":"touch"},' \
                '{"Loc":[],"ModuleName":"/program","SymName":"nope"}]')" \
        "JSON has the name of a function that was given"
for part in 1 2; do printf 'static __attribute__((noinline, used)) int same(int x) { return x + %s; }\n%s\n' $part \
        "int part$part(int x) { return same(x); }" >"$tmp/part$part.c"; done
(cd "$tmp" && gcc -g -O1 -shared -fPIC -o same.so part1.c part2.c) || bail_out "cannot build a library"
is "$("$tmp/bin/llvm-addr2line" -s -f -e "$tmp/same.so" same | tr '\n' ' ')" 'same part1.c:1 same part2.c:1 ' \
        "llvm-addr2line: each function of a name is printed"
if has llvm-symbolizer-19; then
        # answers NAME PROGRAM OPTION...: answers and messages of a program, without its name in them
        answers() {
                answers_name=$1; shift
                "$@" <"$tmp/requests" >"$tmp/$answers_name" 2>"$tmp/$answers_name.err"
                sed -i 's/^[^ ]*: error/error/' "$tmp/$answers_name.err"
        }
        for request in nofile 'FILE:' 'BUILDID:' 'BUILDID: foo' 'FILE:"foo' 'FILE:FILE:/x 1' '/nope 1' 'DATA /nope 1' \
                'FRAME /nope 1' '/nope main' 'BUILDID:aabb 1' 'BUILDID:aabb main' CODE ' ' \
                "$tmp/program 9x" 'FRAME /x 0xg'; do
                printf '%s\n' "$request" >"$tmp/requests"
                differences=
                for options in --verbose -a '--output-style=GNU -p' --output-style=JSON; do
                        # shellcheck disable=SC2086
                        answers want llvm-symbolizer-19 $options
                        # shellcheck disable=SC2086
                        answers got "$tmp/bin/llvm-symbolizer" $options
                        differences="$differences$(diff "$tmp/want" "$tmp/got"; diff "$tmp/want.err" "$tmp/got.err")"
                done
                is "$differences" '' "llvm-symbolizer: answers and messages for '${request##*/}'"
        done
        echo 1 >"$tmp/requests"
        for options in '-e /nope' '-e /etc/passwd' '--output-style=JSON -e /nope' --build-id=abc \
                '-e x --build-id=aabb' --build-id=no; do
                # shellcheck disable=SC2086
                answers want llvm-symbolizer-19 $options
                # shellcheck disable=SC2086
                answers got "$tmp/bin/llvm-symbolizer" $options
                is "$(cat "$tmp/got" "$tmp/got.err")" "$(cat "$tmp/want" "$tmp/want.err")" \
                        "llvm-symbolizer $options: the message"
        done
        is "$("$tmp/bin/llvm-symbolizer" -e /nope 1 >/dev/null 2>&1; echo $?)" 1 \
                "llvm-symbolizer: the exit code for a missing file of an option"
fi
is "$("$tmp/bin/llvm-symbolizer" "$tmp/nope 1" "$tmp/nope 2" 2>&1)" \
        "$(printf "%s: error: '%s': No such file or directory\n??\n??:0:0\n\n??\n??:0:0" \
                "$tmp/bin/llvm-symbolizer" "$tmp/nope")" \
        "llvm-symbolizer: a missing file is reported once, and each address is unknown"
is "$("$tmp/bin/llvm-symbolizer" --inline -x 2>&1 | sed 's/.*error/error/')" \
        "$(printf "error: unknown argument '--inline', did you mean '--inlines'?\nerror: unknown argument '-x'")" \
        "llvm-symbolizer: each unknown option is reported"

# ---- lines without functions, and lines that are not DWARF's ----

cat >"$tmp/lines.s" <<'EOS'
        .file 1 "lines.s"
        .text
        .globl first
        .type first, @function
first:
        .loc 1 5
        nop
        .skip 200, 0x90
        .loc 1 7
        ret
EOS
(cd "$tmp" && as -o lines.o lines.s) || bail_out "cannot assemble"
is "$("$tmp/bin/llvm-symbolizer" -s -e "$tmp/lines.o" 0 0xc9 | tr '\n' ' ')" "first lines.s:5:0  first lines.s:7:0  " \
        "a function's symbol names the lines of a table without units"
if has clang; then # other assemblers leave out line 0
        cat >"$tmp/zero.s" <<'EOS'
        .file 1 "zero.c"
        .text
        .globl first
        .type first, @function
first:
        .loc 1 0
        nop
        .loc 1 5 3
        nop
        .loc 1 0
        nop
        nop
        .loc 1 7
        ret
        .size first, .-first
EOS
        (cd "$tmp" && clang -c -o zero.o zero.s) || bail_out "cannot assemble"
        # zero OPTION...: the places of code without a line, the first one and after another, and of code with one
        zero() { "$tmp/bin/llvm-symbolizer" -s -f=none -e "$tmp/zero.o" "$@" 0 3 4 | tr '\n' ' '; }
        is "$(zero)" 'zero.c:0:0  zero.c:0:0  zero.c:7:0  ' "llvm-symbolizer: code without a line has line 0"
        is "$(zero --skip-line-zero)" 'zero.c:0:0  zero.c:5:3 (approximate)  zero.c:7:0  ' \
                "--skip-line-zero: it has the last line before it"
        is "$(zero --skip-line-zero --output-style=GNU)" 'zero.c:0 zero.c:5 (approximate) zero.c:7 ' \
                "--skip-line-zero in the style GNU"
        like "$(zero --skip-line-zero --verbose)" 'Line: 5   Column: 3   Approximate: true' \
                "--skip-line-zero with --verbose"
        like "$(zero --skip-line-zero --output-style=JSON)" '"0x3",.*"Approximate":true,"Column":3,.*"Line":5,.*"0x4"' \
                "--skip-line-zero in JSON"
fi
if has go; then
        printf '%s\n' 'package main' '' '//go:noinline' 'func add(a, b int) int {' '	return a + b' '}' '' \
                'func main() {' '	println(add(1, 2))' '}' >"$tmp/main.go"
        (cd "$tmp" && HOME=$tmp GOFLAGS=-buildvcs=false go build -ldflags=-w -o gone main.go) 2>"$tmp/err" ||
                bail_out "$(cat "$tmp/err")"
        nm "$tmp/gone" | awk '$3 == "main.add" || $3 == "main.main" { print "0x" $1 }' >"$tmp/go-addresses"
        is "$("$tmp/bin/addr2line" -f -e "$tmp/gone" <"$tmp/go-addresses")" \
                "$(HOME=$tmp go tool addr2line "$tmp/gone" <"$tmp/go-addresses")" "lines of Go's pclntab are right"
fi

# ---- a dialogue over pipes ----

cat >"$tmp/dialogue.py" <<'EOP'
"""dialogue.py FILE ADDRESS COMMAND...: each request is answered before the next one is sent."""
import subprocess, sys
file, address = sys.argv[1:3]
with subprocess.Popen(sys.argv[3:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as p:
    for request in (f"{file} 0x{address}", f'CODE "{file}" 0x{address}', "/nope 0x10",
                       "nonsense", f"FILE:{file} 0x{address}"):
        p.stdin.write(request + "\n")
        p.stdin.flush()
        answer = [p.stdout.readline().rstrip("\n")]
        while answer[-1]:
            answer.append(p.stdout.readline().rstrip("\n"))
        print(*(part.rpartition("/")[2] for part in answer[:2]))
EOP
is "$(python3 "$tmp/dialogue.py" "$tmp/program" "$touch_address" "$tmp/bin/llvm-symbolizer" 2>"$tmp/err")" \
        "$(printf 'touch program.cc:18:69\ntouch program.cc:18:69\n?? ??:0:0\n?? ??:0:0\ntouch program.cc:18:69')" \
        "llvm-symbolizer answers each line, of several files, and goes on after errors"
like "$(cat "$tmp/err")" "error: '/nope': No such file or directory" \
        "  standard error says that a file cannot be opened"

# ---- the names of cairn itself, and the cache ----

mkdir "$tmp/linked"
ln -s "$CAIRN_SAN/cairn" "$tmp/linked/addr2line"
is "$("$tmp/linked/addr2line" -s -e "$tmp/program" "$touch_address")" "program.cc:18" \
        "a link to cairn by the name addr2line is addr2line"
export CAIRN_CACHE_DIR=$tmp/cache
for column in first second; do "$tmp/bin/addr2line" -a -i -e "$tmp/program" <"$tmp/addresses" >"$tmp/$column"; done
CAIRN_CACHE_DIR=
ok "the same answers come from the cache" cmp "$tmp/first" "$tmp/second"
unlike "$(ldd "$CAIRN_BUILD/cairn-addr2line" | awk '{ print $1 }' | tr '\n' ' ')" \
        'crypto|archive|curl|gnutls|lmdb|dw\.so' \
        "the small program loads none of the service's libraries"

# ---- libraries that cairn loads when it calls them ----

readelf -d "$CAIRN_BUILD/cairn" | grep -q 'NEEDED.*libcurl' || { # not on processors without such functions
        service_libraries='lib(crypto|archive|curl|gnutls|lmdb|dw|elf|microhttpd|json-c)[.-]'
        # loaded COMMAND...: the libraries that it loads
        loaded() { LD_DEBUG=files "$CAIRN_BUILD/cairn" "$@" 2>&1 | sed -n 's/.*calling init: .*\///p'; }
        loaded symbolize --no-cache -e "$tmp/program" "$touch_address" >"$tmp/loaded"
        unlike "$(cat "$tmp/loaded")" "$service_libraries" "cairn symbolize loads none of the service's libraries"
        like "$(cat "$tmp/loaded")" 'libzstd' "cairn symbolize loads the libraries that it is linked with"
        like "$(loaded symbolize --server http://127.0.0.1:1 --build-id 0011223344 1)" 'libcurl' \
                "cairn symbolize --server loads the library for HTTP"
        loaded status --server http://127.0.0.1:1 >"$tmp/loaded"
        like "$(cat "$tmp/loaded")" 'liblmdb' "another command loads the libraries that it does not call, too"
        mkdir "$tmp/broken"
        echo 'int unused;' | gcc -shared -x c - -Wl,-soname,libcurl.so.4 -o "$tmp/broken/libcurl.so.4"
        for arguments in "symbolize --build-id 0011223344 1" status; do
                # shellcheck disable=SC2086
                out=$(LD_LIBRARY_PATH=$tmp/broken "$CAIRN_BUILD/cairn" $arguments --server http://127.0.0.1:1 2>&1
                        echo $?)
                like "$out" 'libcurl.so.4: undefined symbol: curl_' \
                        "cairn ${arguments%% *}: a library without a function is reported"
                is "${out##*
}" 1 "cairn ${arguments%% *}: the exit code is then 1"
        done
}

# ---- programs that start a symbolizer ----

if has clang; then
        if (cd "$tmp" && clang++ -O1 -g -fsanitize=address -o sanitized program.cc) 2>"$tmp/err"; then
                ASAN_SYMBOLIZER_PATH=$tmp/bin/llvm-symbolizer "$tmp/sanitized" x >/dev/null 2>"$tmp/report"
                like "$(cat "$tmp/report")" ' in touch .*program\.cc:18:[0-9]+' \
                        "AddressSanitizer's report has function, line and column"
                like "$(cat "$tmp/report")" ' in main .*program\.cc:2[0-9]' "  each frame of the report has them"
        else
                fail "clang builds with AddressSanitizer" "$(cat "$tmp/err")"
        fi
fi
if has go; then
        python3 - "$tmp" "$touch_address" <<'EOP' || bail_out "cannot write a profile"
import sys
sys.path.insert(0, "tests/e2e")
from profiles import blob, num, packed
tmp, address = sys.argv[1], int(sys.argv[2], 16)
strings = ["", "cpu", "nanoseconds", tmp + "/program"]
valuetype = num(1, 1) + num(2, 2)
mapping = num(1, 1) + num(2, 0) + num(3, 0x100000) + num(4, 0) + num(5, 3)
location = num(1, 1) + num(2, 1) + num(3, address)
sample = packed(1, (1,)) + packed(2, (7,))
with open(tmp + "/bare.pprof", "wb") as f:
    f.write(blob(1, valuetype) + blob(2, sample) + blob(3, mapping) + blob(4, location)
                + b"".join(blob(6, s) for s in strings))
EOP
        for names in llvm-symbolizer addr2line; do
                mkdir "$tmp/only-$names"
                ln -s "$CAIRN_SAN/cairn-addr2line" "$tmp/only-$names/$names"
                PPROF_TOOLS=$tmp/only-$names PPROF_TMPDIR=$tmp HOME=$tmp PATH=$(dirname "$(command -v go)"):/nowhere \
                        go tool pprof -symbolize=force -lines -top "$tmp/program" "$tmp/bare.pprof" >"$tmp/top" \
                        2>"$tmp/err"
                like "$(cat "$tmp/top" "$tmp/err")" 'touch .*program\.cc:18' \
                        "pprof symbolizes with $names from PPROF_TOOLS"
        done
fi
cat >"$tmp/spin.cc" <<'EOC'
static inline __attribute__((always_inline)) unsigned step(unsigned x) { return x * 1664525u + 1013904223u; }
static inline __attribute__((always_inline)) unsigned twice(unsigned x) { return step(step(x)); }
__attribute__((noinline)) unsigned spin(unsigned n)
{
        unsigned x = n;
        for (unsigned i = 0; i < n; i++)
                x = twice(x) ^ i;
        return x;
}
int main() { return spin(100000000) == 7; }
EOC
if has perf && (cd "$tmp" && g++ -O2 -g -o spin spin.cc &&
        perf record -q -e cpu-clock -F 2000 -o perf.data ./spin) >/dev/null 2>&1; then
        mkdir "$tmp/logging"
        printf '#!/bin/sh\necho used >>"%s"\nexec "%s" "$@"\n' "$tmp/used" "$tmp/bin/addr2line" \
                >"$tmp/logging/addr2line"
        chmod +x "$tmp/logging/addr2line"
        for command in 'script -F ip,sym,srcline --inline' 'report --stdio --inline -s sym,srcline'; do
                rm -f "$tmp/used"
                # shellcheck disable=SC2086
                perf $command -i "$tmp/perf.data" 2>/dev/null | grep 'spin' >"$tmp/perf-want"
                # shellcheck disable=SC2086
                PATH=$tmp/logging:$PATH perf $command -i "$tmp/perf.data" 2>/dev/null | grep 'spin' >"$tmp/perf-got"
                like "$(cat "$tmp/used" 2>&1)" used "perf ${command%% *} starts the replacement of addr2line"
                ok "perf ${command%% *} prints the same for the program" cmp "$tmp/perf-want" "$tmp/perf-got"
                like "$(cat "$tmp/perf-got")" 'spin\.cc:[0-9]' "perf ${command%% *} has lines"
        done
fi
done_testing
