#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# gdb gets debuginfo of stripped programs from the service: for a program compiled here, and Debian's python3.11.
. tests/e2e/lib.sh
for tool in gdb gcc eu-unstrip eu-elflint; do
        command -v $tool >/dev/null || skip_all "$tool is not installed"
done

# debug FILE COMMAND...: gdb in batch mode, without debug files of this machine; sets $shown.
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

# gdb caches a miss for ten minutes; a new client's cache is empty.
rm -rf "$tmp/cache"
ok "the unstripped program is uploaded" upload "$tmp/tree.whole"
debug "$tmp/tree" 'info line heavier_side' 'break heavier_side' 'ptype struct node' 'run' 'backtrace' 'finish' 'kill'
unlike "$shown" 'warning: .*[Ss]ection' "gdb has no complaint of any section of the split file"
like "$shown" 'Line [89] of ".*tree\.c" starts at address' "info line names file and line"
like "$shown" 'Breakpoint 1 at 0x[0-9a-f]+: file .*tree\.c, line 9\.' "a breakpoint by name is at file and line"
like "$shown" 'int weight;' "types are known"
like "$shown" '#0 +heavier_side \(n=.*0x[0-9a-f]+\) at .*tree\.c:9' \
        "the stack of the running program has lines and arguments"
like "$shown" '#1 +0x[0-9a-f]+ in main \(.*\) at .*tree\.c:16' "  down to main"
like "$shown" 'Value returned is \$1 = -1' "  the value that the function returns is right"

# elfutils can merge the stripped program and the split file again.
id=$(build_id_of "$tmp/tree.whole")
ok "the split file is downloaded" curl -sSf -o "$tmp/tree.debug" "$url/buildid/$id/debuginfo"
ok "eu-unstrip accepts it" eu-unstrip -o "$tmp/tree.joined" "$tmp/tree" "$tmp/tree.debug"
is "$(eu-elflint --gnu-ld "$tmp/tree.joined" 2>&1)" "No errors" "  the merged program is valid"
sections() { readelf -SW "$1" | sed -n 's/^ *\[ *[0-9]*\] *//p' | awk '{ print $1 }' | sort; }
is "$(sections "$tmp/tree.joined")" "$(sections "$tmp/tree.whole")" \
        "  the merged program has each section of the original once"

# ---- its source, which was removed from this machine ----

mkdir "$tmp/secret"
ok "sources below a folder are uploaded" upload --sources "$tmp" "$tmp/tree.whole"
like "$(cat "$tmp/upload.log")" '^sent tree.whole \(source, [0-9.]+ [a-zA-Z]+ as' \
        "  the uploaded sources are reported, without a quality of symbols"
mv "$tmp/tree.c" "$tmp/secret/"
rm -rf "$tmp/cache"
debug "$tmp/tree" 'list heavier_side'
like "$shown" '^9[[:space:]]+return weigh\(n->left\) > weigh\(n->right\)' "gdb shows the source"
id=$(build_id_of "$tmp/tree.whole")
source_of() { curl -sS --path-as-is "$url/buildid/$id/source$1"; }
is "$(source_of "$tmp/tree.c" | sha256sum)" "$(sha256sum <"$tmp/secret/tree.c")" "byte for byte"
is "$(source_of "$tmp/./x/../tree.c" | sha256sum)" "$(sha256sum <"$tmp/secret/tree.c")" \
        "a path with dots in it leads to the same source"
if command -v debuginfod-find >/dev/null; then
        is "$(DEBUGINFOD_CACHE_PATH=$tmp/cache2 DEBUGINFOD_URLS=$url debuginfod-find source "$tmp/tree.whole" \
                "$tmp/tree.c" | xargs sha256sum | cut -d' ' -f1)" \
                "$(sha256sum <"$tmp/secret/tree.c" | cut -d' ' -f1)" "debuginfod-find finds it"
fi
for path in /etc/passwd "$tmp/secret/tree.c" /../../../etc/passwd "$tmp/%2e%2e/%2e%2e/etc/passwd" /%00 \
        "$(printf '/%05000d' 0)"; do
        is "$(curl -sS -o /dev/null -w '%{http_code}' --path-as-is "$url/buildid/$id/source$path" | tr 4 X | cut -c1)" \
                X "no other file is served: $(printf %.40s "$path")"
done

# Debuginfo that refers to a file outside of the given folders does not get that file.
printf 'top secret\n' >"$tmp/secret/key"
mkdir "$tmp/project"
printf '# 1 "%s"\nint main(void) { return 0; }\n' "$tmp/secret/key" >"$tmp/project/spy.c"
ln -s "$tmp/secret/key" "$tmp/project/link.h"
printf '# 1 "%s"\nint other(void) { return 0; }\n' "$tmp/project/link.h" >>"$tmp/project/spy.c"
gcc -g -Wl,--build-id -o "$tmp/spy" "$tmp/project/spy.c"
ok "a program that refers to other files" upload --sources "$tmp/project" "$tmp/spy"
id=$(build_id_of "$tmp/spy")
unlike "$(source_of "$tmp/secret/key")$(source_of "$tmp/project/link.h")" 'top secret' \
        "sends none of them, by a link neither"
upload --sources /nonexistent "$tmp/spy"
like "$(cat "$tmp/upload.log")" "source folder '/nonexistent'" "a missing folder is reported"

# A build that maps its paths.
mkdir "$tmp/mapped"
printf 'int main(void) { return 0; }\n' >"$tmp/mapped/m.c"
gcc -g -fdebug-prefix-map="$tmp/mapped=/usr/src/thing" -Wl,--build-id -o "$tmp/m" "$tmp/mapped/m.c"
ok "sources of a build that maps paths" upload --sources "$tmp/mapped" --source-map "/usr/src/thing=$tmp/mapped" \
        "$tmp/m"
id=$(build_id_of "$tmp/m")
is "$(source_of /usr/src/thing/m.c)" "$(cat "$tmp/mapped/m.c")" "are found by the paths of the debuginfo"
mkdir -p "$tmp/root/usr/src"
cp -r "$tmp/mapped" "$tmp/root/usr/src/other"
gcc -g -fdebug-prefix-map="$tmp/mapped=/usr/src/other" -Wl,--build-id -o "$tmp/o" "$tmp/mapped/m.c"
ok "the root of all paths can be mapped" upload --sources "$tmp/root" --source-map "/=$tmp/root" "$tmp/o"
id=$(build_id_of "$tmp/o")
is "$(source_of /usr/src/other/m.c)" "$(cat "$tmp/mapped/m.c")" "the sources below a mapped root are found"

# ---- Debian's Python, stripped ----

python=/usr/bin/python3.11
python_id=$(build_id_of $python)
python_debug=/usr/lib/debug/.build-id/$(printf '%s' "$python_id" | cut -c1-2)/$(printf '%s' "$python_id" |
        cut -c3-).debug
if [ -n "$python_id" ] && [ -f "$python_debug" ]; then
        debug $python 'info line Py_BytesMain'
        like "$shown" 'No line number information' "Debian's Python has no lines of its own"
        rm -rf "$tmp/cache"
        ok "the debug file of python3.11-dbg is uploaded" upload "$python_debug"
        debug $python 'info line Py_BytesMain' 'break Py_RunMain' 'info scope Py_BytesMain'
        like "$shown" 'Line [0-9]+ of ".*Modules/main\.c"' "then Py_BytesMain is in a C file"
        like "$shown" 'Breakpoint 1 at 0x[0-9a-f]+: file .*Modules/main\.c, line [0-9]+' "a breakpoint is in another"
        like "$shown" 'Symbol argc is (a variable|multi-location)' "the arguments of a function are known"
        # gdb prints the same with the file from the package and with the service's.
        ours=$shown
        theirs=$(HOME=$tmp gdb -nx -batch -iex 'set auto-load no' -x "$tmp/commands" $python 2>&1)
        lines() { printf '%s\n' "$1" | grep -E '^(Line|Breakpoint|Symbol)'; }
        is "$(lines "$ours")" "$(lines "$theirs")" "the same as with the installed debug file"

        # Its sources are not on this machine: generated lines with numbers replace them, under the path in the
        # debuginfo.
        where=$(printf '%s\n' "$ours" | sed -n 's/^Line [0-9]* of "\(.*main\.c\)".*/\1/p' | head -1)
        build=$(gdb -nx -batch -iex 'set auto-load no' -ex 'list Py_BytesMain' -ex 'info source' $python 2>/dev/null |
                sed -n 's/^Compilation directory is //p')
        case $where in /*) ;; *) where=$build/$where ;; esac
        where=$(realpath -sm "$where")
        mkdir -p "$tmp/python$build" "$tmp/python$(dirname "$where")"
        seq -f 'numbered line %.0f' 2000 >"$tmp/python$where"
        ok "a source of Debian's Python is uploaded" upload --sources "$tmp/python" \
                --source-map "${build%/*}=$tmp/python${build%/*}" "$python_debug"
        rm -rf "$tmp/cache"
        debug $python 'break Py_RunMain' 'run -c pass' 'list' 'kill'
        like "$shown" 'Breakpoint 1, Py_RunMain \(\) at .*main\.c:[0-9]+' "gdb stops Debian's Python at a source line"
        line=$(printf '%s\n' "$shown" | sed -n 's/^Breakpoint 1, .*main\.c:\([0-9]*\)$/\1/p')
        like "$shown" "^${line}[[:space:]]+numbered line $line\$" "  gdb shows the source, downloaded from the service"
else
        pass "Debian's Python # SKIP python3.11-dbg is not installed for $python"
fi
ok "the service is healthy" healthy
done_testing
