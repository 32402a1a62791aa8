#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# debuginfod clients with the service: elfutils' debuginfod-find, and curl for details that it does not show.
. tests/e2e/lib.sh
for tool in debuginfod-find gcc objcopy curl; do
        command -v $tool >/dev/null || skip_all "$tool is not installed"
done

upload() { "$CAIRN_BUILD/cairn-upload" --server "$url" "$@" >"$tmp/upload.log" 2>&1; }

# find_it WORD...: debuginfod-find with a cache of its own; sets $found, $find_status.
find_id=0
find_it() {
        find_id=$((find_id + 1))
        found=$(DEBUGINFOD_URLS=$url DEBUGINFOD_CACHE_PATH=$tmp/cache.$find_id debuginfod-find "$@" 2>"$tmp/find.err")
        find_status=$?
}

cat >"$tmp/program.c" <<'END'
#include <stdio.h>
int main(void) { puts("hello"); return 0; }
END
gcc -g -O2 -Wl,--build-id -o "$tmp/whole" "$tmp/program.c"
mkdir "$tmp/build"
objcopy --only-keep-debug "$tmp/whole" "$tmp/build/program.debug"
objcopy --strip-all "$tmp/whole" "$tmp/build/program"
id=$(build_id_of "$tmp/whole")

start_server
ok "cairn-upload sends debuginfo and executable" upload --executables "$tmp/build"
is "$(curl -sS "$url/api/v1/debuginfo" | jq -c '[.objects[].kind] | sort')" '["debuginfo","executable"]' \
        "both are stored"

# ---- debuginfod-find ----

find_it debuginfo "$id"
is $find_status 0 "debuginfod-find finds the debuginfo"
ok "  is the uploaded file, byte for byte" cmp "$found" "$tmp/build/program.debug"
find_it executable "$id"
is $find_status 0 "debuginfod-find finds the executable"
ok "  is the uploaded file, byte for byte" cmp "$found" "$tmp/build/program"
find_it debuginfo "$tmp/build/program"
ok "a file as argument determines the build-id" cmp "$found" "$tmp/build/program.debug"

objcopy -O binary --only-section=.debug_info --set-section-flags .debug_info=alloc "$tmp/build/program.debug" \
        "$tmp/debug_info"
objcopy -O binary --only-section=.text "$tmp/build/program" "$tmp/text"
find_it section "$id" .debug_info
ok "debuginfod-find section of the debuginfo" cmp "$found" "$tmp/debug_info"
find_it section "$id" .text
ok "and of the executable" cmp "$found" "$tmp/text"
find_it section "$id" .no_such_section
unlike "$find_status" '^0$' "a section that is nowhere is not found"

# Decompressed frames of a section are cached, and section offsets are stored permanently.
from_disk() { metric 'cairn_debuginfo_frames_total{from="disk"}'; }
unpacked=$(from_disk)
request "$url/buildid/$id/section/.debug_info"
ok "the same section again" cmp "$tmp/body" "$tmp/debug_info"
is "$(from_disk)" "$unpacked" "  nothing is decompressed for the second request"
tail -c +11 "$tmp/debug_info" | head -c 20 >"$tmp/part"
request -r 10-29 "$url/buildid/$id/section/.debug_info"
is "$code" 206 "a range of it"
ok "  is its bytes" cmp "$tmp/body" "$tmp/part"
request -H 'X-DEBUGINFOD-MAXSIZE: 10' "$url/buildid/$id/section/.debug_info"
is "$code" 406 "a section that exceeds X-DEBUGINFOD-MAXSIZE is refused"
stop_server
start_server
answers 404 '' "after a restart, a section that is nowhere" "$url/buildid/$id/section/.no_such_section"
is "$(from_disk)" 0 "  is known to be absent"
answers 200 '' "and one that is there" "$url/buildid/$id/section/.debug_info"
ok "  is its bytes" cmp "$tmp/body" "$tmp/debug_info"
is "$(from_disk)" 1 "  from one frame of the object"

begin=$(date +%s%N)
find_it debuginfo 00112233445566778899aabbccddeeff00112233
end=$(date +%s%N)
is $find_status 1 "an unknown build-id fails"
like "$(cat "$tmp/find.err")" 'No such file or directory' "  as not found"
ok "  long before it times out" test $((end - begin)) -lt 20000000000
ok "  and the client caches it" test -f "$tmp/cache.$find_id/00112233445566778899aabbccddeeff00112233/debuginfo"
find_it source "$id" "$tmp/program.c"
is $find_status 1 "a source is not found"

# The client takes its size limit from its environment.
found=$(DEBUGINFOD_URLS=$url DEBUGINFOD_CACHE_PATH=$tmp/cache.size DEBUGINFOD_MAXSIZE=100 debuginfod-find debuginfo \
        "$id" 2>"$tmp/find.err")
unlike "$?" '^0$' "debuginfod-find gets nothing larger than DEBUGINFOD_MAXSIZE"
like "$(cat "$tmp/find.err")" 'File too large' "  debuginfod-find says that the file is too large"
ok "  without remembering a miss" test ! -e "$tmp/cache.size/$id/debuginfo"

# ---- headers ----

size=$(stat -c %s "$tmp/build/program.debug")
curl -sS -D "$tmp/get.headers" -o "$tmp/get" "$url/buildid/$id/debuginfo"
curl -sS --head -D "$tmp/head.headers" -o "$tmp/head" "$url/buildid/$id/debuginfo"
headers=$(tr -d '\r' <"$tmp/get.headers")
like "$headers" "^X-DEBUGINFOD-SIZE: $size\$" "X-DEBUGINFOD-SIZE is the file's size"
like "$headers" '^X-DEBUGINFOD-FILE: program.debug$' "X-DEBUGINFOD-FILE is its name"
like "$headers" "^Content-Length: $size\$" "there is a Content-Length"
without_date() { tr -d '\r' <"$1" | grep -Eiv '^(Date|Connection|X-Request-Id):' | sort; }
is "$(without_date "$tmp/head.headers")" "$(without_date "$tmp/get.headers")" "HEAD has the headers of GET"
answers 200 '' "the debuginfo" "$url/buildid/$id/debuginfo"
ok "  is whole" cmp "$tmp/body" "$tmp/build/program.debug"
answers 200 '' "a build-id in capitals is the same" "$url/buildid/$(printf '%s' "$id" | tr a-f A-F)/debuginfo"
ok "  file" cmp "$tmp/body" "$tmp/build/program.debug"

part() { tail -c +$(($1 + 1)) "$tmp/build/program.debug" | head -c "$2" >"$tmp/part"; }
request -r 1000-1999 "$url/buildid/$id/debuginfo"
part 1000 1000
is "$code" 206 "a range in the middle"
ok "  is its bytes" cmp "$tmp/body" "$tmp/part"
request -r -500 "$url/buildid/$id/debuginfo"
part $((size - 500)) 500
is "$code" 206 "the last bytes"
ok "  are the last" cmp "$tmp/body" "$tmp/part"
request -r "$size-" "$url/buildid/$id/debuginfo"
is "$code" 416 "a range past the end is refused"
request -C 1500 "$url/buildid/$id/debuginfo"
part 1500 "$size"
ok "an interrupted download is resumed" cmp "$tmp/body" "$tmp/part"

request -H "X-DEBUGINFOD-MAXSIZE: $((size - 1))" "$url/buildid/$id/debuginfo"
is "$code" 406 "one byte more than X-DEBUGINFOD-MAXSIZE is 406"
request -H "X-DEBUGINFOD-MAXSIZE: $size" "$url/buildid/$id/debuginfo"
is "$code" 200 "exactly that size is accepted"
request -X POST "$url/buildid/$id/debuginfo"
is "$code" 405 "another method is refused"
is "$(metric 'cairn_debuginfod_requests_total{outcome="transient"}')" 0 "the service had no internal error"

done_testing
