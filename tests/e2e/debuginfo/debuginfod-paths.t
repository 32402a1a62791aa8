#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# No path sent by a client leads out of its object: each attempt of tests/corpus/debuginfod_paths gets the expected
# status, without upstreams and with one that has every requested file.
. tests/e2e/lib.sh
for tool in gcc python3; do
        command -v $tool >/dev/null || skip_all "$tool is not installed"
done

mkdir "$tmp/src"
printf 'int main(void) { return 0; } /* the source */\n' >"$tmp/src/w.c"
printf 'THE-SECRET\n' >"$tmp/src/secret"
cp "$tmp/src/secret" "$tmp/secret"
ln -s secret "$tmp/src/link.c"
gcc -g -Wl,--build-id -o "$tmp/program" "$tmp/src/w.c"
printf 'int main(void) { return 1; }\n' >"$tmp/other.c"
gcc -g -Wl,--build-id -o "$tmp/other" "$tmp/other.c"
id=$(build_id_of "$tmp/program")
other=$(build_id_of "$tmp/other")

start_server
ok "a program with its sources" "$CAIRN_BUILD/cairn-upload" --server "$url" --sources "$tmp/src" "$tmp/program"
ok "another one" "$CAIRN_BUILD/cairn-upload" --server "$url" "$tmp/other"

long=$(printf '%05000d' 0 | tr 0 a)
huge=$(printf '%040000d' 0 | tr 0 a)
# attempt BODY PATH: sends PATH unchanged; sets $code.
attempt() { code=$(curl -sS --path-as-is -g --max-time 60 -o "$1" -w '%{http_code}' "$url/buildid/$2" 2>/dev/null); }

# try_all FIELD NAME: the whole corpus, with the status of that field.
try_all() {
        count=0
        while read -r want path; do
                case $want in '#' | '') continue ;; esac
                want=$(printf '%s:%s' "$want" "$want" | cut -d: -f"$1")
                path=$(printf '%s\n' "$path" |
                        sed "s|@IDUP@|$(printf '%s' "$id" |
                        tr a-f A-F)|; s|@IDCUT@|${id%??}|; s|@ID@|$id|g; s|@OTHER@|$other|g;
                        s|@SRC@|$tmp/src/w.c|g; s|@DIR@|$tmp/src|g")
                case $path in
                *@LONG@*) path="${path%%@LONG@*}$long${path#*@LONG@}" ;;
                *@HUGE@*) path="${path%%@HUGE@*}$huge${path#*@HUGE@}" ;;
                esac
                rm -f "$tmp/got"
                attempt "$tmp/got" "$path"
                count=$((count + 1))
                shown=$(printf '%.110s' "$path" | sed "s|$tmp||g; s|$id|ID|g")
                is "$code" "$want" "$2: $shown"
                if [ -f "$tmp/got" ] &&
                        grep -Eq 'THE-SECRET|root:' "$tmp/got"; then fail "  gives nothing away" "$shown"; fi
                case $want$path in 200*/source*) ok "  is the source" cmp "$tmp/got" "$tmp/src/w.c" ;; esac
        done <tests/corpus/debuginfod_paths/paths
        ok "all of $count attempts were made" test "$count" -gt 80
}
try_all 1 here
is "$(metric 'cairn_debuginfod_requests_total{outcome="transient"}')" 0 "none was an internal error"
far=$url
background_pids="${background_pids:-} $server_pid"
far_pid=$server_pid
data=$tmp/near
start_server --upstream "$far"
try_all 2 "through another service"

# ---- a path in the debuginfo with "..", "." or "//", requested in all spellings

mkdir -p "$tmp/tree/src" "$tmp/tree/build"
echo 'int f(int n) { return n * 3; } int main(int c, char **v) { (void)v; return f(c); }' >"$tmp/tree/src/q.c"
(cd "$tmp/tree/build" && gcc -g -Wl,--build-id -o up ../src/q.c && gcc -g -Wl,--build-id -o dots ..//src/./q.c)
(cd "$tmp/tree" && gcc -g -Wl,--build-id "-fdebug-prefix-map=$tmp/tree=." -o build/relative src/q.c)
for program in up dots relative; do
        "$CAIRN_BUILD/cairn-upload" --server "$url" --sources "$tmp/tree" "$tmp/tree/build/$program" >/dev/null 2>&1
done
for program in up dots; do
        id=$(build_id_of "$tmp/tree/build/$program")
        for path in "$tmp/tree/src/q.c" "$tmp/tree/build/../src/q.c" "$tmp//tree/src//q.c" \
                "$tmp/tree/./build/../src/./q.c" \
                "$tmp/x/y/../../tree/src/q.c" "/$tmp/tree/src/q.c"; do
                attempt "$tmp/got" "$id/source$path"
                is "$code" 200 "a program built with $program: source${path#"$tmp"}"
                ok "  is the source" cmp "$tmp/got" "$tmp/tree/src/q.c"
        done
        attempt "$tmp/got" "$id/source$tmp/tree/build/q.c"
        is "$code" 404 "  another path is not found"
done
id=$(build_id_of "$tmp/tree/build/relative")
for path in /./src/q.c /src/q.c /build/../src/q.c; do
        attempt "$tmp/got" "$id/source$path"
        is "$code" 200 "a program with the compilation directory '.': source$path"
done

# ---- a source that the line table has, and this machine has not

if command -v clang >/dev/null; then
        mkdir "$tmp/gone" "$tmp/empty"
        printf 'int twice(int n)\n{\n        return n * 2;\n}\n' >"$tmp/gone/twice.c"
        cp "$tmp/gone/twice.c" "$tmp/twice.want"
        (cd "$tmp/gone" && clang -g -gdwarf-5 -gembed-source -shared -fPIC -Wl,--build-id -o ../twice.so twice.c)
        rm "$tmp/gone/twice.c"
        ok "a library with an embedded source is uploaded" \
                "$CAIRN_BUILD/cairn-upload" --server "$url" --sources "$tmp/empty" "$tmp/twice.so"
        attempt "$tmp/got" "$(build_id_of "$tmp/twice.so")/source$tmp/gone/twice.c"
        is "$code" 200 "the source in its line table is served"
        ok "  as it was compiled" cmp "$tmp/got" "$tmp/twice.want"
fi

# Nine names of one text that is larger than a source may be, and two of a small one: large texts count towards the
# limit of all texts of a file, so that names without end take no time without end.
cat >"$tmp/large.s" <<'EOC'
        .text
        .globl f
f:      ret
.Lend:
        .section .debug_abbrev,"",@progbits
        .uleb128 1, 0x11
        .byte 0
        .uleb128 0x10, 0x17, 0x3, 0x8, 0x1b, 0x8, 0, 0
        .byte 0
        .section .debug_info,"",@progbits
        .long .Linfo_end - .Linfo
.Linfo: .short 5
        .byte 1, 8
        .long 0
        .uleb128 1
        .long 0
        .asciz "large.c"
        .asciz "/gone"
.Linfo_end:
        .section .debug_line_str,"",@progbits
        .asciz "/gone"
.Lsmall: .asciz "int small;\n"
.Llarge: .fill 67108865, 1, 65
        .byte 0
        .section .debug_line,"",@progbits
        .long .Lline_end - .Lline
.Lline: .short 5
        .byte 8, 0
        .long .Lprogram - .Lheader
.Lheader: .byte 1, 1, 1, -5, 14, 13
        .byte 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1
        .byte 1
        .uleb128 1, 0x1f, 1
        .long 0
        .byte 3
        .uleb128 1, 0x8, 2, 0xb, 0x2001, 0x1f
        .uleb128 11
        .asciz "first.c"
        .byte 0
        .long .Lsmall
        .set number, 0
        .rept 9
        .ascii "large"
        .byte 48 + number
        .asciz ".c"
        .byte 0
        .long .Llarge
        .set number, number + 1
        .endr
        .asciz "small.c"
        .byte 0
        .long .Lsmall
.Lprogram:
.Lline_end:
EOC
(cd "$tmp" && gcc -shared -nostdlib -Wl,--build-id -o large.so large.s) || bail_out "cannot build a library"
rm "$tmp/large.s"
ok "a library that names a large source nine times is uploaded" \
        "$CAIRN_BUILD/cairn-upload" --server "$url" --sources "$tmp/src" "$tmp/large.so"
large=$(build_id_of "$tmp/large.so")
attempt "$tmp/got" "$large/source/gone/first.c"
is "$code $(cat "$tmp/got")" "200 int small;" "the text before the large ones is served"
attempt "$tmp/got" "$large/source/gone/small.c"
is "$code" 404 "  the text after them is beyond the limit"
ok "the service is healthy" healthy
is "$(metric 'cairn_debuginfod_requests_total{outcome="transient"}')" 0 "none was an internal error"
stop_server
kill "$far_pid"
wait "$far_pid"
done_testing
