#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gdb takes debuginfo of stripped programs from the service: a program compiled here, and Debian's python3.11.
. tests/e2e/lib.sh
for tool in gdb gcc; do
        command -v $tool >/dev/null || skip_all "$tool is not installed"
done

# debug FILE COMMAND...: gdb in batch mode, without any debug file of this machine; sets $shown.
debug() {
        debug_file=$1; shift
        : >"$tmp/commands"
        for command in "$@"; do printf '%s\n' "$command" >>"$tmp/commands"; done
        shown=$(HOME=$tmp DEBUGINFOD_URLS=$url DEBUGINFOD_CACHE_PATH=$tmp/cache gdb -nx -batch \
                -iex 'set debug-file-directory /nonexistent' -iex 'set debuginfod enabled on' -iex 'set auto-load no' \
                -x "$tmp/commands" "$debug_file" 2>&1)
}
upload() { "$CAIRN_BUILD/cairn-upload" --server "$url" "$@" >"$tmp/upload.log" 2>&1; }

cat >"$tmp/tree.c" <<'END'
#include <stdlib.h>
struct node { struct node *left, *right; int weight; };
static inline __attribute__((always_inline)) int weigh(const struct node *n)
{
        return n ? n->weight : 0;
}
__attribute__((noinline)) int heavier_side(const struct node *n)
{
        return weigh(n->left) > weigh(n->right) ? -1 : 1;
}
int main(int argc, char **argv)
{
        struct node left = { .weight = argc }, top = { .left = &left };

        (void)argv;
        return heavier_side(&top) + abs(argc);
}
END
gcc -g -O1 -Wl,--build-id -o "$tmp/tree.whole" "$tmp/tree.c"
strip -o "$tmp/tree" "$tmp/tree.whole"

start_server

debug "$tmp/tree" 'info line heavier_side'
unlike "$shown" 'tree\.c' "before the upload gdb knows no line"

# gdb remembers that for ten minutes; a newcomer's cache is empty.
rm -rf "$tmp/cache"
ok "the unstripped program is uploaded" upload "$tmp/tree.whole"
debug "$tmp/tree" 'info line heavier_side' 'break heavier_side' 'ptype struct node' 'run' 'backtrace' 'finish' 'kill'
like "$shown" 'Line [89] of ".*tree\.c" starts at address' "info line names file and line"
like "$shown" 'Breakpoint 1 at 0x[0-9a-f]+: file .*tree\.c, line 9\.' "a breakpoint by name is at file and line"
like "$shown" 'int weight;' "types are known"
like "$shown" '#0 +heavier_side \(n=.*0x[0-9a-f]+\) at .*tree\.c:9' "the stack of the running program has lines and arguments"
like "$shown" '#1 +0x[0-9a-f]+ in main \(.*\) at .*tree\.c:16' "  down to main"
like "$shown" 'Value returned is \$1 = -1' "  and the value is right"

# ---- Debian's Python, stripped ----

python=/usr/bin/python3.11
python_id=$(build_id_of $python)
python_debug=/usr/lib/debug/.build-id/$(printf '%s' "$python_id" | cut -c1-2)/$(printf '%s' "$python_id" | cut -c3-).debug
if [ -n "$python_id" ] && [ -f "$python_debug" ]; then
        debug $python 'info line Py_BytesMain'
        like "$shown" 'No line number information' "Debian's Python has no lines of its own"
        rm -rf "$tmp/cache"
        ok "the debug file of python3.11-dbg is uploaded" upload "$python_debug"
        debug $python 'info line Py_BytesMain' 'break Py_RunMain' 'info scope Py_BytesMain'
        like "$shown" 'Line [0-9]+ of ".*Modules/main\.c"' "then Py_BytesMain is in a C file"
        like "$shown" 'Breakpoint 1 at 0x[0-9a-f]+: file .*Modules/main\.c, line [0-9]+' "a breakpoint is in another"
        like "$shown" 'Symbol argc is (a variable|multi-location)' "and arguments are known"
        # What gdb says with the file from the package is what it says with ours.
        ours=$shown
        theirs=$(HOME=$tmp gdb -nx -batch -iex 'set auto-load no' -x "$tmp/commands" $python 2>&1)
        lines() { printf '%s\n' "$1" | grep -E '^(Line|Breakpoint|Symbol)'; }
        is "$(lines "$ours")" "$(lines "$theirs")" "all as with the installed debug file"
else
        pass "Debian's Python # SKIP python3.11-dbg is not installed for $python"
fi
ok "the service is healthy" healthy
done_testing
