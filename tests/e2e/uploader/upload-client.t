# SPDX-License-Identifier: Apache-2.0
# cairn-upload with the service: what it sends, what it does not send, and its messages.
. tests/e2e/lib.sh
upload=$CAIRN_SAN/cairn-upload

# up ARGUMENT...: uploads to the service; sets $code, $out and $errors.
up() {
        "$upload" --server "$url" "$@" >"$tmp/out" 2>"$tmp/errors"
        code=$?
        out=$(cat "$tmp/out")
        errors=$(cat "$tmp/errors")
        if grep -Eq 'Sanitizer|runtime error:' "$tmp/errors"; then fail "no sanitizer report of cairn-upload $*" \
                "$errors"; fi
}

mkdir -p "$tmp/build/sub" "$tmp/more"
cat >"$tmp/program.c" <<'EOF'
#include <stdio.h>
static inline __attribute__((always_inline)) int inner(int x) { return printf("%d\n", x); }
__attribute__((noinline)) int outer(int x) { return inner(x) * 2; }
int main(int argc, char **argv) { (void)argv; return outer(argc); }
EOF
gcc -g -O2 -Wl,--build-id=sha1 -o "$tmp/build/program" "$tmp/program.c"
gcc -g -O2 -shared -fPIC -gz=zlib -Wl,--build-id=sha1 -o "$tmp/build/sub/lib odd+name.so" "$tmp/program.c"
gcc -g -O2 -Wl,--build-id=none -o "$tmp/build/nobody" "$tmp/program.c"
cp "$tmp/build/program" "$tmp/build/sub/copy"
ln -s .. "$tmp/build/sub/loop"
echo text >"$tmp/build/text"
id=$(build_id_of "$tmp/build/program")
lib_id=$(build_id_of "$tmp/build/sub/lib odd+name.so")

start_server

up --dry-run "$tmp/build"
is "$code $out" "0 2 would be sent, 0 already there, 2 skipped (1 without a build-id, 1 duplicate)" \
        "a dry run says what it would do"
is "$(curl -sS "$url/api/v1/debuginfo" | jq '.objects | length')" 0 "a dry run sends nothing"

up "$tmp/build"
is "$code" 0 "a directory is sent"
like "$out" '^2 sent \(.* as .*\), 0 already there, 2 skipped \(1 without a build-id, 1 duplicate\)$' \
        "the summary of a sent directory counts its files"
is "$(grep -c '^sent ' "$tmp/errors")" 2 "each sent file has a line"
is "$(curl -sS "$url/api/v1/debuginfo" | jq '.objects | length')" 2 "the service has the two objects of the directory"

up "$tmp/build"
is "$code $out" "0 nothing to send: 0 sent, 2 already there, 2 skipped (1 without a build-id, 1 duplicate)" \
        "a second run sends nothing and says so"
is "$errors" "" "a second run prints nothing on standard error"

# Different files have the same placeholder: it identifies none of them.
for placeholder in 0x00 0x0000000000000000000000000000000000000000 0x0102; do
        gcc -g -O2 -Wl,--build-id=$placeholder -o "$tmp/more/placeholder" "$tmp/program.c"
        up "$tmp/more/placeholder"
        is "$out" "nothing to send: 0 sent, 0 already there, 1 skipped (1 without a build-id)" \
                "a file with the build-id $placeholder is not sent"
        like "$errors" "more/placeholder.*is a placeholder.*link it with --build-id" \
                "cairn-upload says why a file with a placeholder is not sent"
        hex=${placeholder#0x}
        code=$(curl -sS -o "$tmp/answer" -w '%{http_code}' -T "$tmp/more/placeholder" \
                -H "X-Cairn-Size: $(stat -c %s "$tmp/more/placeholder")" \
                -H "X-Cairn-SHA256: $(sha256sum <"$tmp/more/placeholder" |
                cut -d' ' -f1)" "$url/api/v1/debuginfo/$hex/debuginfo")
        is "$code $(jq -r .reason "$tmp/answer")" "409 build_id_mismatch" \
                "the service does not accept a placeholder from other clients"
        like "$(jq -r .error "$tmp/answer")" "is a placeholder" "the refusal of a placeholder has the reason"
done
gcc -g -O2 -Wl,--build-id=0x00 -o "$tmp/more/placeholder" "$tmp/program.c"
up --executables "$tmp/more/placeholder"
like "$out" '^1 sent ' "a file with a placeholder is sent under its hash by --executables"
rm "$tmp/more/placeholder"

curl -sS -o "$tmp/fetched" "$url/buildid/$id/debuginfo"
is "$(build_id_of "$tmp/fetched")" "$id" "the downloaded file has the build-id"
like "$(readelf -SW "$tmp/fetched")" '\.text +NOBITS' "the downloaded file has no code"
addresses=$(nm --defined-only "$tmp/build/program" | awk '$2 ~ /[Tt]/ { print "0x" $1 }')
# shellcheck disable=SC2086
is "$(eu-addr2line -fi -e "$tmp/fetched" $addresses)" "$(eu-addr2line -fi -e "$tmp/build/program" $addresses)" \
        "the downloaded file names the same functions and lines"
code=$(curl -sS -o "$tmp/fetched" -w '%{http_code}' "$url/buildid/$lib_id/debuginfo")
is "$code" 200 "a file whose name needs escaping is there"

code=$(curl -sS -o /dev/null -w '%{http_code}' "$url/buildid/$id/executable")
is "$code" 404 "the executable is not sent by default"
up --executables --json "$tmp/build/program"
is "$(echo "$out" | jq -c '[.sent, .already_there, .failed]')" "[1,1,0]" "--executables sends it, --json counts it"
is "$(echo "$out" | jq -r '.files[] | select(.kind == "executable") | .state')" sent \
        "--json lists the executable as sent"
curl -sS -o "$tmp/fetched" "$url/buildid/$id/executable"
ok "  byte for byte" cmp "$tmp/fetched" "$tmp/build/program"

# ---- better replaces worse ----
gcc -g -O1 -Wl,--build-id=sha1 -o "$tmp/more/full" "$tmp/program.c"
strip -g -o "$tmp/symbols" "$tmp/more/full"
up "$tmp/symbols"
like "$errors" '^sent symbols \(debuginfo, symtab' "a program with only a symbol table is sent"
up "$tmp/more"
like "$out" '^1 sent' "its DWARF is wanted later"
up "$tmp/symbols"
like "$out" '^nothing to send: 0 sent, 1 already there' "a symbol table is not wanted when DWARF is stored"
up --force "$tmp/more"
is "$code" 0 "--force sends stored files again"

# ---- bad input ----
size=$(stat -c %s "$tmp/build/program")
head -c $((size / 2)) "$tmp/build/program" >"$tmp/cut"
gcc -g -O0 -Wl,--build-id=sha1 -o "$tmp/good" "$tmp/program.c"
up "$tmp/cut" "$tmp/good"
is "$code" 2 "a truncated file is bad input"
like "$errors" "'$tmp/cut': cut off: .* past the file's" "a truncated file is reported with the offset"
like "$out" '^1 sent' "the good file beside a truncated one is sent"
up "$tmp/cut" "$tmp/good"
is "$code $out" "2 0 sent, 1 already there, 1 skipped (1 not readable as ELF)" \
        "a run with an unreadable file does not say that there is nothing to send"
up "$tmp/build/text"
is "$code" 2 "a named file that is not ELF is bad input"
like "$errors" "'$tmp/build/text' is neither an ELF file nor an archive" "the message names the file that is not ELF"
is "$out" "0 sent, 0 already there, 0 skipped, 1 not readable" "the summary counts the file that is not ELF"
printf '!<arch>\nno members' >"$tmp/damaged.deb"
up "$tmp/damaged.deb"
is "$code $out" "2 0 sent, 0 already there, 0 skipped, 1 not readable" "a damaged archive is bad input"
up "$tmp/absent"
is "$code $out" "1 0 sent, 0 already there, 0 skipped, 1 not readable" "a missing path is an error, not an empty one"
up --json "$tmp/absent" "$tmp/good"
is "$code $(echo "$out" | jq -c '[.already_there, .unreadable]')" "1 [1,1]" \
        "a missing path beside files is an error that --json counts"
mkdir "$tmp/empty"
up "$tmp/empty"
is "$code" 1 "a directory without ELF files fails"
like "$errors" "no ELF files under '$tmp/empty'" "the message says that a directory has no ELF files"
"$upload" --server "$url" >"$tmp/out" 2>&1
is "$?" 64 "no path is a usage error"
"$upload" --server "ftp://x" "$tmp/good" >"$tmp/out" 2>&1
is "$?" 64 "a wrong address is a usage error"

# ---- real debug files, if installed ----
python=$(ls /usr/bin/python3.11 2>/dev/null || :)
debug=
[ -z "$python" ] || debug=$(build_id_of "$python" | sed 's|^\(..\)\(.*\)$|/usr/lib/debug/.build-id/\1/\2.debug|')
if [ -n "$debug" ] && [ -f "$debug" ]; then
        up "$python"
        is "$code" 0 "a stripped python is sent as its installed debug file"
        curl -sS -o "$tmp/fetched" "$url/buildid/$(build_id_of "$python")/debuginfo"
        ok "  byte for byte" cmp "$tmp/fetched" "$debug"
fi
stop_server

"$upload" --server "$url" "$tmp/good" >"$tmp/out" 2>"$tmp/errors"
is "$?" 1 "cairn-upload fails without a service"
like "$(cat "$tmp/errors")" 'is the service running there\?' "the message without a service has a hint"

# ---- tokens ----
data=$tmp/data2
printf 'writer-token upload\nreader-token read\n' >"$tmp/tokens"
printf 'reader-token\n' >"$tmp/wrong"
start_server --token-file "$tmp/tokens"
up "$tmp/good"
is "$code" 64 "the service refuses an upload without a token"
like "$errors" 'HTTP 401' "  cairn-upload names the status of a request without a token"
up --token-file "$tmp/wrong" "$tmp/good"
is "$code" 64 "a token without the scope is refused"
like "$errors" 'HTTP 403' "  cairn-upload names the status of a request without the scope"
CAIRN_TOKEN=writer-token; export CAIRN_TOKEN
up --dry-run "$tmp/good"
is "$code" 0 "a token of the environment is sent"
unset CAIRN_TOKEN
up --token-file "$tmp/tokens" "$tmp/good"
like "$out" '^1 sent' "an upload with the token succeeds"
done_testing
