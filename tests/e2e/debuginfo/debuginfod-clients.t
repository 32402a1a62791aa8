#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Other debuginfod clients get their debuginfo from the service: valgrind, perf, eu-stack, eu-addr2line, and elfutils'
# debuginfod as a server with Cairn as its upstream.
. tests/e2e/lib.sh
for tool in gcc debuginfod-find jq; do
        command -v $tool >/dev/null || skip_all "$tool is not installed"
done

# has NAME TOOL: whether the tool is installed; otherwise reports its part as skipped, or as a failure if
# CAIRN_NEED_ORACLES is set.
has() {
        command -v "$2" >/dev/null && return 0
        if [ -n "${CAIRN_NEED_ORACLES:-}" ]; then fail "$1" "$2 is not installed"; \
                else pass "$1 # SKIP $2 is not installed"; fi
        return 1
}
upload() { "$CAIRN_BUILD/cairn-upload" --server "$url" "$@" >"$tmp/upload.log" 2>&1; }
# with_service COMMAND...: as a client of the service with an empty cache.
cache_id=0
with_service() {
        cache_id=$((cache_id + 1))
        HOME=$tmp DEBUGINFOD_URLS=$url DEBUGINFOD_CACHE_PATH=$tmp/cache.$cache_id "$@"
}

mkdir "$tmp/src" "$tmp/bin"
cat >"$tmp/src/work.c" <<'END'
#include <stdlib.h>
#include <unistd.h>
volatile unsigned sink;
__attribute__((noinline)) void busy_part(unsigned n)
{
        for (unsigned i = 0; i < n; i++)
                sink += i * 3;
}
__attribute__((noipa)) int careless_part(int *numbers)
{
        return numbers[4];
}
__attribute__((noinline)) int patient_part(const char *until)
{
        write(1, "here\n", 5);
        for (;;)
                sink += (unsigned)pause() + (unsigned)*until;
}
int main(int argc, char **argv)
{
        int *numbers = calloc(4, sizeof *numbers);

        if (argc > 1 && argv[1][0] == 'b')
                for (int i = 0; i < 200; i++)
                        busy_part(1000000);
        if (argc > 1 && argv[1][0] == 'c' && careless_part(numbers))
                return 1;
        if (argc > 1 && argv[1][0] == 'p')
                return patient_part(argv[1]);
        free(numbers);
        return 0;
}
END
gcc -g -O0 -no-pie -Wl,--build-id -o "$tmp/work.whole" "$tmp/src/work.c"
# Not the default location of debug files of /usr/bin/strip: none of them are on this machine.
strip -o "$tmp/bin/work" "$tmp/work.whole"
id=$(build_id_of "$tmp/work.whole")
address() { nm "$tmp/work.whole" | awk -v name="$1" '$3 == name { print "0x" $1 }'; }
line_of() { grep -n "$1" "$tmp/src.c" | cut -d: -f1; }

start_server
ok "debuginfo, executable and sources are uploaded" upload --executables --sources "$tmp/src" "$tmp/work.whole"
mv "$tmp/src/work.c" "$tmp/src.c" # removed from where it was compiled

# ---- debuginfod-find ----

is "$(with_service debuginfod-find source "$id" "$tmp/src/work.c" | xargs sha256sum | cut -d' ' -f1)" \
        "$(sha256sum <"$tmp/src.c" | cut -d' ' -f1)" "debuginfod-find source is the file that was compiled"
is "$(with_service debuginfod-find source "$tmp/bin/work" "$tmp/src/work.c" | xargs sha256sum | cut -d' ' -f1)" \
        "$(sha256sum <"$tmp/src.c" | cut -d' ' -f1)" \
        "  debuginfod-find source takes a stripped program for its build-id"
like "$(with_service debuginfod-find debuginfo "$tmp/bin/work" | xargs readelf -SW)" ' \.debug_info ' \
        "its debuginfo has DWARF"
ok "its executable is a program" cmp -n 4 "$(with_service debuginfod-find executable "$tmp/bin/work")" "$tmp/bin/work"
with_service debuginfod-find section "$tmp/bin/work" .debug_line >/dev/null 2>&1
is $? 0 "its section .debug_line is found"

# ---- curl ----

etag=$(curl -sS --head "$url/buildid/$id/debuginfo" | tr -d '\r' | sed -n 's/^ETag: //p')
like "$etag" '^"[0-9a-f]{64}"$' "HEAD has an ETag"
answers 304 '^$' "who has that gets 304" -H "If-None-Match: $etag" "$url/buildid/$id/debuginfo"
answers 200 '' "who has something else gets it" -o /dev/null -H 'If-None-Match: "other"' "$url/buildid/$id/debuginfo"
request -H "If-Range: $etag" -r 0-99 "$url/buildid/$id/debuginfo"
is "$code $(stat -c %s "$tmp/body")" "206 100" "a range of an unchanged file"
request -H 'If-Range: "other"' -r 0-99 "$url/buildid/$id/debuginfo"
is "$code" 200 "If-Range of a changed file gives all of it"
headers=$(curl -sS -D - -o /dev/null "$url/buildid/$id/section/.debug_line" | tr -d '\r')
like "$headers" '^X-DEBUGINFOD-SIZE: [1-9]' "a section has a size header"
is "$(printf '%s\n' "$headers" | sed -n 's/^X-DEBUGINFOD-SIZE: //p')" \
        "$(printf '%s\n' "$headers" | sed -n 's/^Content-Length: //p')" "  the size in the header is that of the body"

# ---- eu-addr2line, eu-stack ----

if has "eu-addr2line names file and line of a stripped program" eu-addr2line; then
        like "$(with_service eu-addr2line -f -e "$tmp/bin/work" "$(address careless_part)" 2>&1 | tr '\n' ' ')" \
                "careless_part .*work\.c:1[0-9]:" "eu-addr2line names file and line of a stripped program"
        unlike "$(HOME=$tmp eu-addr2line -f -e "$tmp/bin/work" "$(address careless_part)" 2>&1)" 'work\.c' \
                "  eu-addr2line names nothing without the service"
fi
if has "eu-stack names the lines of a stripped program that runs" eu-stack; then
        "$tmp/bin/work" patient >"$tmp/patient.out" &
        patient=$!
        background_pids="${background_pids:-} $patient"
        wait_for "the patient program" test -s "$tmp/patient.out"
        shown=$(with_service eu-stack -s -p "$patient" 2>&1)
        like "$shown" ' patient_part' "eu-stack names the functions of a stripped program that runs"
        like "$shown" "work\.c:$(line_of 'sink += (unsigned)pause')" "  eu-stack has the line that the program waits in"
        like "$shown" "work\.c:$(line_of 'return patient_part')" "  eu-stack has the line of the caller"
        kill "$patient"
fi

# ---- valgrind ----

if has "valgrind's errors have file and line of a stripped program" valgrind; then
        shown=$(with_service valgrind --error-exitcode=9 "$tmp/bin/work" careless 2>&1)
        is $? 9 "valgrind finds the error"
        like "$shown" 'Invalid read of size 4' "  the error is a read past the end"
        like "$shown" "at 0x[0-9A-F]+: careless_part \(work\.c:$(line_of 'return numbers\[4\]')\)" \
                "  at file and line of a stripped program"
        like "$shown" "by 0x[0-9A-F]+: main \(work\.c:$(line_of 'calloc(4')\)" "  the allocation has file and line"
        unlike "$(HOME=$tmp valgrind "$tmp/bin/work" careless 2>&1)" 'work\.c' "without the service it has none"
fi

# ---- perf ----

# If perf was built without debuginfod, like Debian's, debuginfod-find fills its build-id cache.
if has "perf report names functions of a stripped program" perf; then
        cp "$tmp/bin/work" "$tmp/bin/busy"
        if HOME=$tmp perf record -q -e cpu-clock:u --buildid-all -o "$tmp/perf.data" "$tmp/bin/busy" busy \
                >"$tmp/perf.log" 2>&1; then
                report() { with_service perf --buildid-dir "$tmp/perf-cache" report -i "$tmp/perf.data" --stdio \
                        --sort sym 2>/dev/null; }
                if perf version --build-options 2>/dev/null | grep -q 'debuginfod: .*on'; then
                        diag "perf asks for debuginfo itself"
                else
                        unlike "$(report)" 'busy_part' "perf report knows no function of it"
                        perf --buildid-dir "$tmp/perf-cache" buildid-cache --remove "$tmp/bin/busy" >/dev/null 2>&1
                        ok "debuginfod-find fills perf's cache" perf --buildid-dir "$tmp/perf-cache" buildid-cache \
                                --add "$(with_service debuginfod-find debuginfo "$tmp/bin/busy")"
                        debug=$tmp/perf-cache/.build-id/$(printf '%s' "$id" | cut -c1-2)/$(printf '%s' "$id" | cut -c3-)
                        ok "  by build-id" test -e "$debug"
                fi
                like "$(report)" '[0-9]+\.[0-9]+% .*busy_part' "perf report names functions of a stripped program"
        else
                fail "perf records a program" "$(cat "$tmp/perf.log")"
        fi
fi

# ---- elfutils' debuginfod, with Cairn as its upstream ----

if has "elfutils' debuginfod hands on what ours has" debuginfod; then
        mkdir "$tmp/nothing"
        down_port=$(free_port)
        DEBUGINFOD_URLS=$url DEBUGINFOD_CACHE_PATH=$tmp/down-cache debuginfod -F -p "$down_port" -d :memory: -t 0 -g 0 \
                "$tmp/nothing" \
                >"$tmp/down.log" 2>&1 &
        background_pids="${background_pids:-} $!"
        down=http://127.0.0.1:$down_port
        wait_for "elfutils' debuginfod" curl -sSf -o /dev/null "$down/metrics"
        for part in debuginfo executable "source$tmp/src/work.c" section/.debug_line; do
                curl -sS -o "$tmp/theirs" -w '%{http_code}' "$down/buildid/$id/$part" >"$tmp/theirs.code"
                request "$url/buildid/$id/$part"
                is "$(cat "$tmp/theirs.code") $code" "200 200" "elfutils' debuginfod has from us: ${part%%/*}"
                ok "  the same bytes" cmp "$tmp/theirs" "$tmp/body"
        done
        is "$(curl -sS -o /dev/null -w '%{http_code}' "$down/buildid/00112233/debuginfo")" 404 \
                "unknown parts are found on neither server"
fi

ok "the service is healthy" healthy
is "$(metric 'cairn_debuginfod_requests_total{outcome="transient"}')" 0 "the service had no internal error"
done_testing
