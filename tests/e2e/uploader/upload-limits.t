#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Uploads in progress are limited in total and per client; the decompressed size of an upload is charged to the daily
# bytes of its token.
. tests/e2e/lib.sh
for tool in gcc curl python3 zstd; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

cat >"$tmp/tokens" <<'EOT'
token-of-ci       upload name=ci
token-of-nightly  upload name=nightly
token-of-small    upload name=small bytes=256K
token-of-root     admin
EOT
as() { printf 'Authorization: Bearer token-of-%s' "$1"; }
metric_as_root() { curl -sS -H "$(as root)" "$url/metrics" |
        awk -v name="$1" '$1 == name { print $2; f = 1 } END { if (!f) print 0 }'; }
receives() { [ "$(metric_as_root cairn_uploads_receiving)" = "$1" ]; }
start_server --token-file "$tmp/tokens" --max-per-address 1000

printf 'int main(void) { return 0; }\n' >"$tmp/main.c"
gcc -g -Wl,--build-id=0x00000000000000000000000000000000000000aa -o "$tmp/main" "$tmp/main.c"
# put TOKEN [CURL-ARGUMENT...]: the program
put() {
        put_token=$1
        shift
        request -X PUT -T "$tmp/main" -H "$(as "$put_token")" -H "X-Cairn-Size: $(stat -c %s "$tmp/main")" \
                -H "X-Cairn-SHA256: $(sha256sum "$tmp/main" | cut -d' ' -f1)" "$@" \
                "$url/api/v1/debuginfo/00000000000000000000000000000000000000aa/executable"
}

# ---- uploads in progress ----

mkfifo "$tmp/hold1" "$tmp/hold2" "$tmp/hold3" "$tmp/hold4"
# hold N ADDRESS TOKEN COUNT: until the descriptor is closed
hold() { python3 tests/e2e/upload-limits.py "$port" "$2" "token-of-$3" "$4" <"$tmp/hold$1" >/dev/null & }
hold 1 127.0.0.1 ci 64
exec 5>"$tmp/hold1"
wait_for "64 uploads" receives 64
put ci
is "$code" 429 "the 65th upload of a token and address is refused"
like "$body" '64 uploads of this token and address are in progress.*retry' \
        "  the refusal names the uploads of this token and address"
put nightly
is "$code" 201 "another token at that address uploads"
put ci --interface 127.0.0.9
like "$code" '^(200|409)$' "the same token at another address uploads"
hold 2 127.0.0.2 ci 64
exec 6>"$tmp/hold2"
hold 3 127.0.0.3 ci 64
exec 7>"$tmp/hold3"
hold 4 127.0.0.4 ci 64
exec 8>"$tmp/hold4"
wait_for "256 uploads" receives 256
put nightly
is "$code" 429 "the 257th in total is refused"
like "$body" '256 uploads are in progress' "  the refusal names the uploads of all clients"
ok "the service is healthy" healthy
exec 5>&- 6>&- 7>&- 8>&-
wait_for "their end" receives 0
put nightly
like "$code" '^(200|409)$' "once they have ended uploads are taken again"

# ---- daily bytes count decompressed ----

head -c 1000000 /dev/zero | zstd -q >"$tmp/zeros.zst"
request -X PUT -T "$tmp/zeros.zst" -H "$(as small)" -H 'Content-Encoding: zstd' -H 'X-Cairn-Size: 1000000' \
        -H "X-Cairn-SHA256: $(printf %064d 0)" \
        "$url/api/v1/debuginfo/00000000000000000000000000000000000000bb/executable"
unlike "$code" '^20' "100 bytes that unpack to a million are no object"
limit_holds() { put small; [ "$code" = 429 ]; }
wait_for "the bytes to be counted" limit_holds
like "$body" 'token small has sent the 262144 bytes' "the million unpacked bytes count for the token's daily bytes"
stop_server
done_testing
