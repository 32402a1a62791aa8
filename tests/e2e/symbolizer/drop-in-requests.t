#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Rare requests, files and options of the replacements of addr2line, eu-addr2line and llvm-symbolizer: output, messages
# and exit status are those of the replaced program. Without a program its checks are skipped, unless
# CAIRN_NEED_ORACLES is set.
. tests/e2e/lib.sh
for tool in gcc g++ nm ar; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
has() {
        command -v "$1" >/dev/null && return 0
        [ -z "${CAIRN_NEED_ORACLES:-}" ] || fail "$1 is installed" "scripts/deps.sh all"
        return 1
}
mkdir "$tmp/bin" "$tmp/work"
cat >"$tmp/work/program.c" <<'EOC'
#include <stdio.h>
#include <stdlib.h>
static int counter;
static inline __attribute__((always_inline)) int leaf(int a) { return a * 7 ^ (a >> 2); }
__attribute__((noinline)) int work(int n)
{
        int sum = 0;
        for (int i = 0; i < n; i++)
                sum += leaf(i) + counter++;
        return sum;
}
static __attribute__((noinline)) int hidden(int n) { return work(n) * 3 + 1; }
int main(int argc, char **argv)
{
        (void)argv;
        return printf("%d\n", hidden(argc)) & 1;
}
EOC
cat >"$tmp/work/parts.cc" <<'EOC'
#include <coroutine>
struct steps {
        struct promise_type {
                int last;
                steps get_return_object() { return { std::coroutine_handle<promise_type>::from_promise(*this) }; }
                std::suspend_always initial_suspend() noexcept { return {}; }
                std::suspend_always final_suspend() noexcept { return {}; }
                std::suspend_always yield_value(int n) { last = n; return {}; }
                void return_void() {}
                void unhandled_exception() {}
        };
        std::coroutine_handle<promise_type> handle;
};
namespace walk {
steps count(int n) { for (int i = 0; i < n; i++) co_yield i * n; }
int plain(int n) { return n * 5 + 2; }
}
int main(int argc, char **)
{
        steps s = walk::count(argc);
        s.handle.resume();
        return s.handle.promise().last + walk::plain(argc);
}
EOC
cat >"$tmp/work/versions.c" <<'EOC'
int older(int x) { return x + 1; }
int newer(int x) { return x + 2; }
__asm__(".symver older, take@V1");
__asm__(".symver newer, take@@V2");
EOC
echo 'V1 { global: take; local: *; }; V2 { global: take; } V1;' >"$tmp/work/versions.map"
(cd "$tmp/work" && gcc -g -O1 -fPIC -c versions.c &&
        gcc -shared -Wl,--version-script=versions.map versions.o -o versions.so) || bail_out "cannot build a library"
(cd "$tmp/work" && gcc -O2 -g -o program program.c && gcc -O2 -o bare program.c &&
        gcc -O2 -g -ffunction-sections -c -o sections.o program.c && gcc -O2 -g -c -o one.o program.c &&
        g++ -std=c++20 -fcoroutines -O2 -g -o parts parts.cc && ar rc archive.a one.o && mkdir folder) ||
        bail_out "cannot build programs"
for name in addr2line eu-addr2line llvm-symbolizer llvm-addr2line; do ln -s "$CAIRN_SAN/cairn-addr2line" \
        "$tmp/bin/$name"; done
address_of() { nm "$tmp/work/${2:-program}" | awk -v name="$1" '$3 == name { print "0x" $1 }'; }
work=$(address_of work) counter=$(address_of counter)

# run_tool TO PROGRAM [ARGUMENT]...: output, messages and exit status, with names of programs made alike
run_tool() {
        to=$1 program=$2; shift 2
        (cd "$tmp/work" && "$program" "$@" <"$tmp/input") >"$to" 2>"$to.err" && status=0 || status=$?
        {
                sed 's/"StartFileName": *"[^"]*"/"StartFileName"/g; s/\(Function start filename:\).*/\1/' "$to"
                sed "s,^[^ ]*${program##*/}:,TOOL:,; s,\`[^ ]*/\([^/]* --\),\`\1,g; /^Usage/,\$d" "$to.err"
                echo "exit $status"
        } >"$to.all"
}
# alike TEXT TOOL [ARGUMENT]...: with the standard input $tmp/input; the replaced program is ORACLE, or has the same
# name
alike() {
        alike_name=$1 tool=$2; shift 2
        run_tool "$tmp/want" "${oracle:-$tool}" "$@"
        run_tool "$tmp/got" "$tmp/bin/$tool" "$@"
        if cmp -s "$tmp/want.all" "$tmp/got.all"; then
                pass "$alike_name"
        else
                fail "$alike_name" "$(diff "$tmp/want.all" "$tmp/got.all" | head -6)"
        fi
}

if has addr2line; then
        for request in main ' work' work+0x3 work+-2 'work 3' work+z cafe+1 nope nope+1 -1 +10 0x 'hidden+010' abc; do
                : >"$tmp/input"
                alike "GNU addr2line: the request '$request'" addr2line -e program -a -f -- "$request"
        done
        for request in take+0 take@V1+0 take@@V2+0; do
                alike "GNU addr2line: the request '$request', of a symbol with versions" addr2line -e versions.so -a \
                        "$request"
        done
        alike "GNU addr2line: a demangled name" addr2line -e parts -a -f 'walk::plain(int)'
        for size in 98 99 100 250; do
                { printf "%0${size}d\n" 0; echo "$work"; printf "%0${size}d%s\n" 0 "$work"; } >"$tmp/input"
                alike "GNU addr2line: lines of $size characters" addr2line -e program -a
        done
        : >"$tmp/input"
        for section in .text .text.work .text.hidden; do
                alike "GNU addr2line -j $section: offsets in an object file" addr2line -e sections.o -j "$section" \
                        -a -f 0 4
        done
        alike "GNU addr2line -j: an offset behind the section" addr2line -e program -j .text -a 0xffffff
        alike "GNU addr2line: the file of a static function without DWARF" addr2line -e bare -f \
                "$(address_of hidden bare)" "$(address_of work bare)"
        # A part in .text.unlikely has the name of the whole with GNU, and its own with us.
        # shellcheck disable=SC2046
        alike "GNU addr2line: the parts of a coroutine have the names of their symbols" addr2line -e parts -f \
                $(nm "$tmp/work/parts" | awk '$3 ~ /actor$|destroy$/ { print "0x" $1 }')
        for file in folder /dev/null archive.a nope; do
                alike "GNU addr2line: the message for $file" addr2line -e "$file" 1
        done
fi
if has eu-addr2line; then
        # shellcheck disable=SC2046
        for options in '-f -S' '-f -x -i' '-f -S --pretty-print' '-S -i -a'; do
                nm "$tmp/work/program" |
                        awk '$3 ~ /^(work|hidden|main)$/ { print "0x" $1; print $3 "+0x9" }' >"$tmp/input"
                # shellcheck disable=SC2086
                alike "eu-addr2line $options: symbols beside functions" eu-addr2line -e program $options
        done
        : >"$tmp/input"
        alike "eu-addr2line: the exit status is that of the last request" eu-addr2line -e program nope 0x10
        alike "eu-addr2line: the same, of one that is unknown" eu-addr2line -e program 0x10 nope
        alike "eu-addr2line: the same, of one that cannot be read" eu-addr2line -e program "$work" @+x
        printf '400000-401000 r-xp 00000000 00:00 0 \n' >"$tmp/work/maps"
        for requests in '-i 0x1' '0x1' 'nope 0x1' '0x1 nope'; do
                # shellcheck disable=SC2086
                alike "eu-addr2line -M: the exit status of $requests" eu-addr2line -M maps $requests
        done
        for file in versions.so versions.o; do
                for request in take take@V1 take@@V2 take@V1+2 take+1 '(.text)+0x1' '(.text)0x1' '(.text)' '(.text)-1' \
                        '(.text)+0x99999' '(.nope)+1'; do
                        alike "eu-addr2line: the request '$request' of $file" eu-addr2line -e "$file" -a -S "$request"
                done
                alike "eu-addr2line -j: an offset in $file" eu-addr2line -e "$file" -a -j .text 1
        done
        alike "eu-addr2line -i: the exit status for an address without DWARF" eu-addr2line -e program -i 0x10
        for option in --foo --functions=x -C=x --target=x; do
                alike "eu-addr2line: the option $option" eu-addr2line "$option" -e program 0x10
        done
        { head -c 300000 /dev/zero | tr '\0' q; printf '\n%s\n' "$work"; } >"$tmp/input"
        is "$(cd "$tmp/work" && "$tmp/bin/eu-addr2line" -e program -a <"$tmp/input" 2>/dev/null)" \
                "$(cd "$tmp/work" && eu-addr2line -e program -a <"$tmp/input" 2>/dev/null)" \
                "eu-addr2line: a long line is one request"
fi
printf '%s\r\n' "$work" | "$tmp/bin/eu-addr2line" -e "$tmp/work/program" >/dev/null 2>"$tmp/err"
like "$(cat "$tmp/err")" "cannot find symbol '$work"'\\x0d'"'" \
        "eu-addr2line: a control character of a request is shown whole"
if has llvm-symbolizer-19; then
        oracle=llvm-symbolizer-19
        long=$(printf '%01100d' 0)
        cat >"$tmp/requests" <<EOC
main
work+0x10
work+100000
work-3
work+
work+z
+5
counter
nope
0xffffffffffffffff
0xfff0000000000010
$counter
$(printf '0x10\r0')
$long$work
EOC
        # LLVM has no name for a stub of the procedure linkage table and one symbol of several at an address.
        for options in '' --output-style=GNU --output-style=JSON '--output-style=JSON -p' '-a -p --verbose' \
                '--output-style=GNU -a' '--functions=short --output-style=JSON' '--output-style=JSON -s' \
                '-f=short -a'; do
                cp "$tmp/requests" "$tmp/input"
                # shellcheck disable=SC2086
                alike "llvm-symbolizer $options: rare requests" llvm-symbolizer -e program $options
                : >"$tmp/input"
                # shellcheck disable=SC2086
                alike "llvm-symbolizer $options: arguments" llvm-symbolizer -e program $options '' main "$work" \
                        "$counter"
        done
        cat >"$tmp/requests" <<EOC
nope 1
nope 2
program $work
nope main
nope main
DATA program counter
FRAME program main
"program
'program
""  10
FILE:"" 10
BUILDID: 10
archive.a 1
sections.o nope
EOC
        for options in '' --output-style=JSON '-p --output-style=JSON'; do
                cp "$tmp/requests" "$tmp/input"
                # shellcheck disable=SC2086
                alike "llvm-symbolizer $options: requests of several files" llvm-symbolizer $options
        done
        : >"$tmp/input"
        for request in take take@V1 take@@V2; do
                alike "llvm-symbolizer: the request '$request', of a symbol with versions" llvm-symbolizer \
                        -e versions.so "$request"
        done
        alike "llvm-symbolizer: no file" llvm-symbolizer -e '' 1
        for option in -- --foo -Z --no-inline --fun --functions=bogus --output-style=bogus --adjust-vma=zz \
                --cache-size=x --inlines=1 --inlining=0 --demangle=x --color=bogus --print-source-context-lines=x; do
                alike "llvm-symbolizer: the option $option" llvm-symbolizer "$option" -e program "$work"
                oracle=llvm-addr2line-19
                alike "llvm-addr2line: the option $option" llvm-addr2line "$option" -e program "$work"
                oracle=llvm-symbolizer-19
        done
        alike "llvm-symbolizer -s: FRAME has whole paths" llvm-symbolizer -s -e program "FRAME $work"
        alike "llvm-symbolizer: an unknown letter behind a long option" llvm-symbolizer --inlining -demangle -e program
        oracle=llvm-addr2line-19
        printf 'work+0x10\nmain\n' >"$tmp/input"
        alike "llvm-addr2line -f: a function with calls inlined at its start" llvm-addr2line -e program -f
        oracle=
fi
for name in work hidden main; do
        is "$("$tmp/bin/llvm-symbolizer" -e "$tmp/work/sections.o" $name | head -1)" $name \
                "llvm-symbolizer: the function $name in one of several sections of an object file"
        is "$("$tmp/bin/eu-addr2line" -e "$tmp/work/sections.o" -f $name | head -1)" $name \
                "eu-addr2line: the function $name in one of several sections of an object file"
done
done_testing
