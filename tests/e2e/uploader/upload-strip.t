# SPDX-License-Identifier: Apache-2.0
# cairn-upload --strip: strips programs after upload; they still run and can be debugged with the service's debuginfo. A
# program whose debuginfo was not accepted is never stripped.
. tests/e2e/lib.sh
upload=$CAIRN_SAN/cairn-upload
up() { "$upload" --server "$url" "$@" >"$tmp/out" 2>"$tmp/errors"; code=$?; out=$(cat "$tmp/out"); }
sections() { readelf -SW "$1" 2>"$tmp/readelf.err" | sed 's/^ *\[ *[0-9]*\] *//' | awk '{ print $1 }'; }

mkdir "$tmp/build"
cat >"$tmp/program.c" <<'EOF'
#include <stdio.h>
int shared(int);
__attribute__((noinline)) int outer(int x) { return shared(x) * 2; }
int main(int argc, char **argv) { (void)argv; return printf("%d\n", outer(argc)) < 0; }
EOF
printf 'int shared(int x) { return x + 40; }\n' >"$tmp/shared.c"
gcc -g -O1 -shared -fPIC -Wl,--build-id=sha1 -o "$tmp/build/libshared.so" "$tmp/shared.c"
gcc -g -O1 -Wl,--build-id=sha1 -o "$tmp/build/program" "$tmp/program.c" -L"$tmp/build" -lshared -Wl,-rpath,"$tmp/build"
gcc -g -O1 -static -Wl,--build-id=sha1 -o "$tmp/build/fixed" "$tmp/program.c" "$tmp/shared.c"
gcc -g -O1 -no-pie -Wl,--build-id=sha1 -Wl,--emit-relocs -o "$tmp/build/relocs" "$tmp/program.c" "$tmp/shared.c"
ln -s program "$tmp/build/link"
cp "$tmp/build/program" "$tmp/build/copy"
chmod 4751 "$tmp/build/program"
python3 -c 'import os, sys; os.setxattr(sys.argv[1], "user.note", b"kept")' "$tmp/build/program" 2>/dev/null &&
        has_xattr=1
cp -a "$tmp/build" "$tmp/before"
id=$(build_id_of "$tmp/build/program")

# ---- not accepted, not stripped ----

url=http://127.0.0.1:9
up --strip "$tmp/build/program"
is "$code" 1 "without a service nothing is done"
ok "  and the program is unchanged" cmp "$tmp/build/program" "$tmp/before/program"
printf 'read-secret read\n' >"$tmp/tokens"
start_server --token-file "$tmp/tokens"
CAIRN_TOKEN=read-secret up --strip "$tmp/build/program"
ok "also if the service refuses it" cmp "$tmp/build/program" "$tmp/before/program"
stop_server
start_server
up --strip --dry-run "$tmp/build/program"
is "$code" 64 "a dry run strips nothing"

# ---- accepted ----

up --strip "$tmp/build"
is "$code" 0 "all files are sent"
like "$out" ', 5 stripped$' "  all files are stripped, copies too"
for program in program fixed relocs copy link; do
        is "$("$tmp/build/$program")" "$("$tmp/before/$program")" "$program runs as before"
done
for file in program fixed relocs libshared.so copy; do
        unlike "$(sections "$tmp/build/$file")" '^\.(debug_|symtab|strtab)' "$file has no symbols and no DWARF"
        is "$(cat "$tmp/readelf.err")" '' "  the stripped $file is well-formed"
        is "$(build_id_of "$tmp/build/$file")" "$(build_id_of "$tmp/before/$file")" \
                "  the stripped $file has its build-id"
        is "$(readelf -lW "$tmp/build/$file" | sed '/^Elf file/d; /offset/d')" "$(readelf -lW "$tmp/before/$file" |
                sed '/^Elf file/d; /offset/d')" \
                "  the stripped $file has its segments"
        ok "  and is smaller" test "$(stat -c %s "$tmp/build/$file")" -lt "$(stat -c %s "$tmp/before/$file")"
done
is "$(stat -c '%a %U %G' "$tmp/build/program")" "$(stat -c '%a %U %G' "$tmp/before/program")" \
        "permissions and owner are kept"
[ -z "${has_xattr:-}" ] || is "$(python3 -c 'import os, sys; print(os.getxattr(sys.argv[1], "user.note"))' \
        "$tmp/build/program")" "b'kept'" \
        "extended attributes too"
ok "a symbolic link stays one" test -L "$tmp/build/link"
is "$(find "$tmp/build" | wc -l)" "$(find "$tmp/before" | wc -l)" "no other files are left"

"$cairn" debuginfo get "$id" --server "$url" --output "$tmp/build/program.debug" 2>/dev/null
crc=$(python3 -c 'import sys, zlib; print("%08x" % zlib.crc32(open(sys.argv[1], "rb").read()))' \
        "$tmp/build/program.debug")
objcopy -O binary --only-section=.gnu_debuglink --set-section-flags .gnu_debuglink=alloc "$tmp/build/program" \
        "$tmp/link"
is "$(head -c 13 "$tmp/link")" program.debug ".gnu_debuglink names the debug file"
is "$(tail -c 4 "$tmp/link" | od -An -tx4 | tr -d ' ')" "$crc" "  .gnu_debuglink has the checksum of the service's file"
if command -v gdb >/dev/null; then
        like "$(gdb -nx -q -batch -ex 'info line outer' "$tmp/build/program" 2>&1)" '^Line 3 of' "gdb loads it"
fi
rm "$tmp/build/program.debug"
cp -a "$tmp/build/program" "$tmp/once"
up --strip "$tmp/build"
unlike "$out" stripped "a second run finds nothing to strip"
ok "  and changes nothing" cmp "$tmp/build/program" "$tmp/once"
tar -C "$tmp/before" -cf "$tmp/archive.tar" program
up --strip "$tmp/archive.tar"
is "$code" 0 "what is in an archive"
unlike "$out" stripped "  is not stripped"
done_testing
