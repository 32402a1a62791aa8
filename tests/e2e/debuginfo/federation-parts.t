#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Executables, sections and sources that were not uploaded come from upstreams: another Cairn service, elfutils'
# debuginfod, and a server without support for sections.
. tests/e2e/lib.sh
for tool in gcc python3 jq debuginfod debuginfod-find; do
        command -v $tool >/dev/null || skip_all "$tool is not installed"
done

# find_it WORD...: a client with an empty cache.
find_it() { DEBUGINFOD_URLS=$url DEBUGINFOD_CACHE_PATH=$(mktemp -d "$tmp/cache.XXXXXX") debuginfod-find "$@" \
        2>"$tmp/find.err"; }
objects() { curl -sS "$url/api/v1/debuginfo" | jq -c '[.objects[].kind]'; }

mkdir "$tmp/src" "$tmp/files"
printf 'int used;\nint main(void) { return used; }\n' >"$tmp/src/a b+c.c"
gcc -g -Wl,--build-id -o "$tmp/files/program" "$tmp/src/a b+c.c"
program=$tmp/files/program
id=$(build_id_of "$program")
objcopy -O binary --only-section=.debug_info --set-section-flags .debug_info=alloc "$program" "$tmp/debug_info"
objcopy -O binary --only-section=.text "$program" "$tmp/text"

# ---- another service ----

data=$tmp/far-data start_server
far=$url
far_pid=$server_pid
background_pids="${background_pids:-} $far_pid"
data=$tmp/data
ok "another service has a program and its sources" "$CAIRN_BUILD/cairn-upload" --server "$far" --executables \
        --sources "$tmp/src" "$program"
start_server --upstream "$far"
answered() { curl -sS "$far/metrics" | awk '$1 == "cairn_debuginfod_requests_total{outcome=\"found\"}" { print $2 }'; }
ok "a section is fetched through the service" cmp "$(find_it section "$id" .debug_info)" "$tmp/debug_info"
is "$(objects)" '[]' "  without the rest of the file"
ok "also one of the executable" cmp "$(find_it section "$id" .text)" "$tmp/text"
ok "a source is fetched through the service" cmp "$(find_it source "$id" "$tmp/src/a b+c.c")" "$tmp/src/a b+c.c"
before=$(answered)
ok "  to the next client" cmp "$(find_it source "$id" "$tmp/src/a b+c.c")" "$tmp/src/a b+c.c"
ok "  and the section" cmp "$(find_it section "$id" .debug_info)" "$tmp/debug_info"
is "$(answered)" "$before" "  without a request to the other service"
request --path-as-is "$url/buildid/$id/source$tmp/nowhere/.%2e/src/a%20b+c.c"
ok "also one with dots in its path" cmp "$tmp/body" "$tmp/src/a b+c.c"
answers 404 not_found "a section that is nowhere is 404" "$url/buildid/$id/section/.nowhere"
answers 404 not_found "and so is a source" "$url/buildid/$id/source/nowhere.c"
answers 406 too_big "a part may be larger than a client wants" -H 'X-DEBUGINFOD-MAXSIZE: 3' \
        "$url/buildid/$id/section/.debug_info"
ok "the executable is fetched through the service" cmp -n 4 "$(find_it executable "$id")" "$program"
is "$(objects)" '["executable"]' "  the fetched executable is stored"
stop_server

# ---- elfutils' debuginfod ----

rm -rf "$data"
port=$(free_port)
DEBUGINFOD_CACHE_PATH=$tmp/elfutils-cache debuginfod -F -p "$port" -d :memory: -t 0 -g 0 "$tmp/files" "$tmp/src" \
        >"$tmp/elfutils.log" 2>&1 &
background_pids="$background_pids $!"
elfutils=http://127.0.0.1:$port
has_it() { curl -sSf -o /dev/null "$elfutils/buildid/$id/source$(printf '%s' "$tmp/src/a b+c.c" | sed 's/ /%20/g')"; }
wait_for "debuginfod to know the source" has_it
start_server --upstream "$elfutils"
ok "a source of elfutils' debuginfod is fetched through the service" cmp "$(find_it source "$id" "$tmp/src/a b+c.c")" \
        "$tmp/src/a b+c.c"
ok "and a section" cmp "$(find_it section "$id" .debug_info)" "$tmp/debug_info"
is "$(objects)" '[]' "  nothing is stored for a source and a section"
stop_server

# ---- a server without support for sections ----

rm -rf "$data"
mkdir -p "$tmp/old/files/$id"
cp "$program" "$tmp/old/files/$id/debuginfo"
cp "$program" "$tmp/old/files/$id/executable"
echo old >"$tmp/old/mode"
python3 tests/e2e/upstream.py "$tmp/old" &
background_pids="$background_pids $!"
wait_for "the old server" test -s "$tmp/old/port"
start_server --upstream "http://127.0.0.1:$(cat "$tmp/old/port")"
ok "if an upstream does not support sections, one is extracted from its file" cmp \
        "$(find_it section "$id" .debug_info)" "$tmp/debug_info"
is "$(objects)" '["debuginfo"]' "  the file of the extracted section is stored"
is "$(curl -sS "$url/api/v1/debuginfo/upstreams" | jq -r '.upstreams[0] | [.failed, .unsure] | @csv')" 0,1 \
        "  sections that an upstream does not support are no failure"
: >"$tmp/old/asked"
for path in ../../../etc/passwd a/../../x %2e%2e/x .%2E/.%2e/x; do
        answers 404 not_found "a source path that climbs out is 404: $path" --path-as-is "$url/buildid/$id/source/$path"
done
is "$(wc -l <"$tmp/old/asked")" 0 "  a source path that climbs out causes no request to an upstream"
answers 404 not_found "what is asked of an upstream" --path-as-is "$url/buildid/$id/source/a/x%3Fy%20%23%25/../z%0d%0ax"
is "$(cat "$tmp/old/asked")" "/buildid/$id/source/a/x%3Fy%20%23%25/../z%0D%0Ax" "  the path of a source is escaped"
ok "the service is healthy" healthy
done_testing
