#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# llvm-symbolizer --filter-markup: a log in LLVM's symbolizer markup, also against LLVM's own filter.
. tests/e2e/lib.sh
for tool in g++ nm readelf; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

cat >"$tmp/program.cc" <<'EOC'
#include <cstdlib>
int counter = 7;
static inline __attribute__((always_inline)) int inner(int x) { return rand() + x; }
namespace space {
__attribute__((noinline)) int outer(int n)
{
        int sum = counter;
        for (int i = 0; i < n; i++) sum += inner(i);
        return sum;
}
}
int main(int argc, char **) { return space::outer(argc); }
EOC
(cd "$tmp" && g++ -O1 -g -no-pie -Wl,--build-id=0x00112233445566778899 -o program program.cc) ||
        bail_out "cannot build a program"
mkdir -p "$tmp/debug/.build-id/00"
cp "$tmp/program" "$tmp/debug/.build-id/00/112233445566778899.debug"
ln -s "$CAIRN_SAN/cairn-addr2line" "$tmp/llvm-symbolizer"
# filter [OPTION]...
filter() { "$tmp/llvm-symbolizer" --filter-markup --debug-file-directory="$tmp/debug" "$@"; }
# address SYMBOL [OFFSET]
address() { printf '0x%x' $((0x$(nm "$tmp/program" | awk -v name="$1" '$3 == name { print $1 }') + ${2:-0})); }
outer=$(address _ZN5space5outerEi)
# Of an instruction of inner(), and of the next one.
inlined=$(i=0; while [ $i -lt 60 ]; do address _ZN5space5outerEi $i; echo; i=$((i + 1)); done |
        "$tmp/llvm-symbolizer" -a -s --output-style=GNU --functions -e "$tmp/program" |
        awk '/^0x/ { at = $1 } /^inner/ { print at; exit }')
context() {
        printf '%s\n' '{{{reset}}}' '{{{module:1:prog:elf:00112233445566778899}}}' \
                '{{{mmap:0x10400000:0x100000:load:1:rx:0x400000}}}'
}
# here ADDRESS: where it is in the log
here() { printf '0x%x' $(($1 + 0x10000000)); }
# filtered LINE...: the last lines of a log with these
filtered() { { context; printf '%s\n' "$@"; } | filter -s 2>"$tmp/err" | tail -n +2; }

summary='[[[ELF module #0x1 "prog"; BuildID=00112233445566778899 [0x10400000-0x104fffff](rx)]]]'
log=$({ context; echo text; } | filter)
is "$log" "$(printf '%s\ntext' "$summary")" \
        "a module and its mapping become one line, and text is copied"
is "$(filtered "at {{{pc:$(here "$outer")}}}, then")" 'at space::outer(int)[program.cc:6], then' \
        "an address of code becomes function and line"
is "$(filtered "{{{bt:12:$(here "$outer"):pc}}}")" \
        "$(printf '   #12    0x%016x space::outer(int) program.cc:6:1 (prog+%s)' "$(here "$outer")" "$outer")" \
        "a frame of a backtrace has number, address, function, line, column and module"
like "$(filtered "{{{bt:1:$(here "$inlined"):pc}}}" | sed -n 1p)" '^    #1\.1  0x0*[0-9a-f]* inner program\.cc:3:' \
        "an inlined call has a line of its own"
like "$(filtered "{{{bt:1:$(here "$inlined"):pc}}}" | sed -n 2p)" '^    #1    0x.* space::outer\(int\) program\.cc:8:' \
        "an inlined call precedes its caller"
is "$(filtered "{{{bt:0:$(here "$(address main 1)")}}}" | awk '{ print $2 }')" \
        "$(printf '0x%016x' "$(here "$(address main)")")" \
        "a frame without a type is the return address of a call"
is "$(filtered "{{{data:$(here "$(address counter)")}}} {{{data:$(here "$(address counter 2)")}}}")" 'counter counter' \
        "an address of a variable becomes its name"
is "$(filtered '<{{{symbol:_ZN5space5outerEi}}}> {{{symbol:main}}}')" '<space::outer(int)> main' \
        "a linkage name is demangled"
odd='{{{pc:0x5}}} {{{other:1:2}}} {{{}}} {{{pc'
is "$(filtered "$odd")" '[[[pc:0x5]]] {{{other:1:2}}} {{{}}} {{{pc' \
        "an address that is not mapped, and what is no element, stay"
is "$(cat "$tmp/err")" "$(printf '%s\n%s\n%s' 'error: no mmap covers address' "$odd" '      ^')" \
        "the message for such an address shows the place"
log=$({ context; printf '%s\n' '{{{reset}}}' "{{{pc:$(here "$outer")}}}"; } | filter 2>"$tmp/err" | tail -2)
is "$log" \
        "$(printf '[[[reset]]]\n[[[pc:%s]]]' "$(here "$outer")")" "a reset forgets modules and mappings"
is "$(printf '%s\n' '{{{module:7:gone:elf:aabbccdd}}}' '{{{mmap:0x1000:0x1000:load:7:r:0}}}' '{{{pc:0x1234}}}' |
        filter 2>"$tmp/err" | tail -1; cat "$tmp/err")" "$(printf '[[[pc:0x1234]]]\nerror: could not find build ID')" \
        "a module without a file leaves its addresses as they are"
printf 'a \033[31mred {{{symbol:main}}}\033[0m plain\033[7m\n' >"$tmp/colored"
is "$(filter <"$tmp/colored" | sed 's/\x1b/ESC/g')" 'a red main plainESC[7m' \
        "colors are removed if the output is no terminal, other sequences are copied"
is "$(filter --color <"$tmp/colored" | sed 's/\x1b/ESC/g')" \
        'a ESC[0;31mred ESC[0;34mmainESC[0;31mESC[0m plainESC[7m' "--color keeps colors, and elements have one"
is "$(filter --color=never <"$tmp/colored" | sed 's/\x1b/ESC/g')" "$(filter <"$tmp/colored" | sed 's/\x1b/ESC/g')" \
        "--color=never removes colors"
is "$(filter --color=some <"$tmp/colored" | sed 's/\x1b/ESC/g')" \
        "$(filter --color <"$tmp/colored" | sed 's/\x1b/ESC/g')" "another value of --color is that without a value"
is "$(printf 'first\r\n{{{module:1:x:elf:aabb}}}\r\nlast' | filter | od -An -c | tr -d ' ' | tr -d '\n')" \
        'first\r\n[[[ELFmodule#0x1"x";BuildID=aabb]]]\nlast\n' "ends of lines stay"
python3 - >"$tmp/many" <<'EOP'
for i in range(5000):
    print(f"{{{{{{module:{i}:m:elf:aabbcc}}}}}}")
EOP
filter <"$tmp/many" >"$tmp/out" 2>"$tmp/err"
is "$(grep -c 'ELF module' "$tmp/out")" 4096 "the number of modules has a limit"
like "$(cat "$tmp/err")" 'error: the log has over 4096 modules' "a message names the limit of modules"

# ---- the filter of LLVM ----

{
        context
        printf '%s\n' "{{{pc:$(here "$outer")}}} {{{pc:$(here "$outer"):pc:more}}} {{{bt:010:$(here "$inlined")}}}" \
                '{{{mmap:0x22345:0x100:load:1:rwx:0x10}}} left out' 'x {{{mmap:0x12345:0x100:load:1:W:0x10}}}' \
                '{{{module:0x2:other name:elf:AAB}}}' '{{{mmap:0x32345:16:load:2:r:0}}}' \
                '{{{mmap:0x42345:16:load:1:r:0}}}' '{{{mmap:0x10400100:16:load:1:r:0}}}' '{{{module:2:x:elf:aa}}}' \
                '{{{mmap:z:b:c:d}}}' '{{{mmap:0x1:b:c:d}}}' '{{{mmap:0x1}}}' '{{{mmap:0x1:1:x:d}}}' \
                '{{{mmap:0x1:1:load:9:q:0}}}' '{{{mmap:0x1:1:load:9:r:0}}}' '{{{mmap:0x1:1:load:z:r:0}}}' \
                '{{{mmap:0x1:1:load:1:r:10}}}' '{{{module:1:b}}}' '{{{module:q:b:c}}}' '{{{module:5:b:c}}}' \
                '{{{module:5:b:elf:}}}' '{{{module:5:b:elf:zz}}}' '{{{module:5:b:elf:00:1}}}' \
                '{{{symbol}}}{{{symbol:}}}{{{symbol:a:b}}} {{{ symbol:a}}}{{{Symbol:a}}} {{{{symbol:c}}}}' \
                '{{{pc}}}{{{pc:zz}}}{{{pc:0x}}}{{{pc:00}}}{{{pc:1}}}{{{pc:0X1}}}{{{pc:0x1:xx}}}' \
                '{{{bt:0}}}{{{bt:0x1:0x1}}}{{{bt:1:zz}}}{{{bt:1:0x1:pc:z}}}{{{bt:123456:0x10400000}}}' \
                '{{{data}}}{{{data:0x1}}}{{{data:q}}}{{{data:0x1:1}}}' '{{{hexdict:' ' RAX: 0x10 }}}' \
                "$(printf '\033[1mbold\033[34mblue {{{symbol:a}}}\033[30m')" "$(printf '\033[39m{{{symbol:a}}}')" \
                "{{{bt:3:$(here "$inlined"):pc}}} {{{data:$(here "$(address counter)")}}}" 'x {{{reset:1}}} y'
} >"$tmp/log"
if command -v llvm-symbolizer-19 >/dev/null; then
        for options in -s '--color -s' '--no-demangle --color=always'; do
                # shellcheck disable=SC2086
                llvm-symbolizer-19 --filter-markup --debug-file-directory="$tmp/debug" $options \
                        <"$tmp/log" >"$tmp/want" 2>"$tmp/want.err"
                # shellcheck disable=SC2086
                filter $options <"$tmp/log" >"$tmp/got" 2>"$tmp/got.err"
                ok "$options: the output of LLVM 19 is the same" cmp "$tmp/want" "$tmp/got"
                ok "$options: the messages of LLVM 19 are the same" cmp "$tmp/want.err" "$tmp/got.err"
        done
fi
done_testing
