#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The agent uploads symbols that the service lacks: of running programs, with their debug files, also inside a
# container's root.
. tests/e2e/lib.sh
agent=$CAIRN_BUILD/cairn-agent

command -v cc >/dev/null || skip_all "cc is not installed"
"$agent" --doctor >/dev/null || skip_all "the agent cannot profile here"
cd "$tmp" || exit 1

# program NAME: starts a static program with DWARF that differs from others; its pid is in $pid
program() {
        cat >"$1.c" <<END
#include <string.h>
volatile unsigned long sink;
static inline __attribute__((always_inline)) void inner_$1(void) { sink += strlen("$1"); }
__attribute__((noinline)) void hot_$1(void) { for (int i = 0; i < 1000000; i++) inner_$1(); }
int main(void) { for (;;) hot_$1(); }
END
        cc -g -O1 -static -Wl,--build-id -o "$1" "$1.c"
}
# run COMMAND...: waits until its last word is running, and neither a shell nor chroot
run() {
        "$@" & pid=$!
        background_pids="${background_pids:-} $pid"
        while [ $# -gt 1 ]; do shift; done
        wait_for "$1 to run" is_running "$(basename "$1")"
}
is_running() { [ "$(basename "$(readlink "/proc/$pid/exe")")" = "$1" ]; }
# profile OPTION...: runs the agent until nothing is left to upload; its metrics are in ./metrics, its log in ./log
profile() {
        rm -f metrics
        "$agent" --server "$url" --interval 1 --frequency 99 --metrics-file metrics "$@" 2>log &
        agent_pid=$!
        background_pids="$background_pids $agent_pid"
        wait_for "the uploads to end" settled
        kill -TERM $agent_pid
        wait $agent_pid
}
count() { awk -v name="cairn_agent_$1" '$1 == name { print $2 }' metrics; }
settled() { [ "$(count samples_total)" -gt 0 ] && grep -q 'uploads_total.* [1-9]' metrics &&
        [ "$(count uploads_waiting)" -eq 0 ]; }
stored() { curl -sS -o fetched -w '%{http_code}' "$url/buildid/$1/debuginfo"; }

start_server

# ---- running programs, uploaded once ----
program plain
run ./plain
plain=$pid
id=$(build_id_of plain)
profile --pid "$plain"
is "$(stored "$id")" 200 "a running program's symbols are uploaded"
like "$(readelf -SW fetched)" '\.text +NOBITS' "the uploaded debuginfo has no code"
address=$(nm plain | awk '$3 == "hot_plain" { print "0x" $1 }')
like "$(eu-addr2line -fi -e fetched "$address")" hot_plain "the uploaded debuginfo has the program's names"
is "$(count 'uploads_total{result="sent"}')" 1 "the upload is counted"
like "$(count upload_bytes_total)" '^[1-9]' "the bytes of the upload are counted"
like "$(cat log)" "uploaded the symbols of '.*/plain' \($id\)" "the upload is logged"
profile --pid "$plain"
is "$(count 'uploads_total{result="sent"}') $(count 'uploads_total{result="there"}')" "0 1" \
        "a second agent asks and sends nothing"
is "$(count upload_questions_total)" 1 "a second agent sends one query"
kill "$plain"

# ---- the order of uploads: samples per byte ----
program alarge
cc -g -O1 -Wl,--build-id -o small alarge.c # not static
for name in alarge small; do
        run ./$name
        eval "$name=\$pid"
done
# shellcheck disable=SC2154
profile --pid "$alarge" --pid "$small" --interval 4
is "$(sed -n "s:.*uploaded the symbols of '.*/\\([a-z]*\\)' .*:\\1:p" log | tr '\n' ' ')" "small alarge " \
        "the smaller one of equally busy programs is sent first"
# shellcheck disable=SC2154
kill "$alarge" "$small"

# ---- a debug file that libdebuginfod finds ----
program remote
objcopy --only-keep-debug remote remote.debug
strip remote
run ./remote
remote=$pid
id=$(build_id_of remote.debug)
mkdir -p "served/buildid/$id"
cp remote.debug "served/buildid/$id/debuginfo"
"$agent" --server "$url" --interval 1 --frequency 99 --pid "$remote" --duration 3 2>log
is "$(stored "$id")" 404 "without DEBUGINFOD_URLS a stripped program has nothing to upload"
export DEBUGINFOD_URLS="file://$tmp/served" DEBUGINFOD_CACHE_PATH="$tmp/debuginfod-cache"
profile --pid "$remote"
unset DEBUGINFOD_URLS DEBUGINFOD_CACHE_PATH
is "$(stored "$id")" 200 "the debug file that libdebuginfod finds is uploaded"
like "$(readelf -SW fetched)" '\.debug_info' "the debug file of libdebuginfod has DWARF"
kill "$remote"

# ---- a program that its users may execute, but not read ----
program sealed
chmod 711 sealed
run ./sealed
sealed=$pid
id=$(build_id_of sealed)
profile --pid "$sealed"
like "$(stored "$id") $(count 'uploads_total{result="sent"}') $(count 'uploads_total{result="no_symbols"}')" \
        "^404 0 [1-9]" \
        "nothing is sent of a program that may be executed but not read"
like "$(cat log)" "'.*/sealed' may be executed but not read by some, so its symbols are not sent" "  the log says so"
kill "$sealed"
program owned
chmod 750 owned
run ./owned
owned=$pid
id=$(build_id_of owned)
profile --pid "$owned"
is "$(stored "$id")" 200 "one that others can neither execute nor read is sent, as its users can read it"
kill "$owned"

# ---- disabled uploads ----
program quiet
run ./quiet
quiet=$pid
id=$(build_id_of quiet)
"$agent" --server "$url" --interval 1 --frequency 99 --no-upload --pid "$quiet" --duration 2 --metrics-file metrics \
        2>log
is "$(stored "$id") $(count upload_questions_total)" "404 0" "--no-upload sends no queries"
profile --pid "$quiet" --upload-max-size 10000
is "$(stored "$id") $(count 'uploads_total{result="too_big"}')" "404 1" "--upload-max-size skips larger files"
like "$(cat log)" "the symbols of '.*/quiet' are [0-9]* bytes, more than --upload-max-size" \
        "the log names the file that is too large"
kill "$quiet"

# ---- debug files ----
program linked
objcopy --only-keep-debug linked linked.debug
strip --strip-all linked
objcopy --add-gnu-debuglink=linked.debug linked
mkdir .debug
mv linked.debug .debug
run ./linked
id=$(build_id_of linked)
profile --pid "$pid"
is "$(stored "$id")" 200 "the debug file that .gnu_debuglink names is uploaded"
like "$(readelf -SW fetched)" debug_info "the debug file of .gnu_debuglink has DWARF"
kill "$pid"

# In a root of its own, as in a container: neither path exists on the host.
program inside
id=$(build_id_of inside)
if mkdir -p root/usr/lib/debug/.build-id/"$(echo "$id" | cut -c1-2)" && chroot root /nothing 2>/dev/null; \
        [ $? -eq 127 ]; then
        objcopy --only-keep-debug inside \
                "root/usr/lib/debug/.build-id/$(echo "$id" | cut -c1-2)/$(echo "$id" | cut -c3-).debug"
        strip --strip-all inside
        mv inside root/inside-the-root
        run chroot root /inside-the-root
        profile --pid "$pid"
        is "$(stored "$id")" 200 "debug files are found inside of a process's root"
        like "$(readelf -SW fetched)" debug_info "the debug file inside of the root is found by build-id"
        kill "$pid"
else
        pass "debug files are found inside of a process's root # SKIP no right to change the root"
fi

program bare
strip --strip-all -R .eh_frame -R .eh_frame_hdr bare
run ./bare
profile --pid "$pid"
# The kernel and its modules are included if they were sampled.
like "$(count 'uploads_total{result="no_symbols"}') $(count upload_questions_total)" '^[1-9][0-9]* 0$' \
        "a program without symbols and unwind tables causes no query"
kill "$pid"

# ---- stripped libraries ----
# exporting NAME: starts a program whose time is spent in exported_NAME of libNAME.so, which is stripped
exporting() {
        cat >"$1.c" <<END
volatile unsigned long sink_$1;
__attribute__((noinline)) static void hidden_$1(void) { for (int i = 0; i < 1000; i++) sink_$1++; }
void exported_$1(void) { for (int i = 0; i < 1000000; i++) { sink_$1++; if (i % 1000 == 0) hidden_$1(); } }
END
        cc -g -O1 -shared -fPIC -Wl,--build-id -o "lib$1.so" "$1.c"
        cp "lib$1.so" "lib$1.full"
        strip --strip-all "lib$1.so"
        echo "void exported_$1(void); int main(void) { for (;;) exported_$1(); }" >"main_$1.c"
        cc -O1 -Wl,--build-id,-rpath,"$tmp" -s -o "main_$1" "main_$1.c" "./lib$1.so"
}
quality() { curl -sS "$url/api/v1/debuginfo" |
        jq -r --arg id "$1" '.objects[] | select(.build_id == $id) | "\(.kind) \(.quality)"'; }

exporting dynamic
run ./main_dynamic
id=$(build_id_of libdynamic.so)
profile --pid "$pid"
is "$(quality "$id")" "symbols dynsym" "the exported names of a stripped library are uploaded as a symbol file"
is "$(stored "$id")" 404 "exported names are not served as debuginfo"
like "$(sed -n "s/.*libdynamic.so' ($id): \([0-9]*\) bytes.*/\1/p" log)" '^[1-9][0-9]?[0-9]?$' \
        "the exported names are less than a kilobyte"
named() { curl -sS -G "$url/api/v1/query/folded" --data-urlencode from=now-1h --data-urlencode to=now \
        --data-urlencode 'selector={}' | grep -q "$1"; }
wait_for "samples to get the library's names" named exported_dynamic
pass "samples stored before the upload get the names"
"$CAIRN_BUILD/cairn-upload" --server "$url" libdynamic.full >/dev/null
wait_for "samples to get the names of debuginfo" named hidden_dynamic
pass "debuginfo that arrives later replaces the symbol file"
kill "$pid"

program unnamed
cp unnamed unnamed.full
strip --strip-all unnamed
run ./unnamed
id=$(build_id_of unnamed)
profile --pid "$pid"
is "$(quality "$id")" "symbols dynsym" "stubs and the boundaries of functions of a stripped program are uploaded"
start=$(nm unnamed.full | awk '$3 == "hot_unnamed" { sub("^0*", "", $1); print $1 }')
wait_for "samples to get them" named "fn@0x$start \[unnamed\]"
pass "functions of a stripped program are named by their start and the file"
"$CAIRN_BUILD/cairn-upload" --server "$url" unnamed.full >/dev/null
wait_for "samples to get the names of debuginfo" named hot_unnamed
pass "debuginfo of a stripped program replaces the boundaries"
kill "$pid"

exporting packed
nm libpacked.full --defined-only -f posix | awk '$2 ~ /[Tt]/ && !/exported/ { print $1 }' >keep
objcopy --only-keep-debug libpacked.full packed.debug
objcopy -S --remove-section .gdb_index --remove-section .comment --keep-symbols=keep packed.debug packed.mini
xz packed.mini
objcopy --add-section .gnu_debugdata=packed.mini.xz libpacked.so
run ./main_packed
id=$(build_id_of libpacked.so)
profile --pid "$pid"
is "$(quality "$id")" "symbols minidebuginfo" "the names of minidebuginfo are uploaded as a symbol file"
wait_for "samples to get the library's names" named hidden_packed
pass "minidebuginfo names functions that are not exported"
kill "$pid"

# ---- files that a service cannot identify ----
cc -g -O1 -static -Wl,--build-id=none -o nameless plain.c
cc -g -O1 -static -Wl,--build-id=0x0000 -o zeros plain.c
run ./nameless
nameless=$pid
run ./zeros
"$agent" --server "$url" --interval 1 --frequency 99 --pid "$nameless" --pid "$pid" --metrics-file metrics 2>log &
agent_pid=$!
background_pids="$background_pids $agent_pid"
wait_for "both files to be seen" eval "grep -q nameless log && grep -q zeros log"
unidentified() { [ "$(count 'frames_unidentified_total{reason="no_build_id"}')" -gt 0 ]; }
wait_for "their frames" unidentified
kill -TERM $agent_pid "$nameless" "$pid"
wait $agent_pid
like "$(cat log)" "'.*/nameless' gets no names: it has no build-id; link it with --build-id" \
        "a file without a build-id is named once"
like "$(cat log)" "'.*/zeros' gets no names: the build-id of the file is a placeholder.*link it with --build-id" \
        "a file with a placeholder for its build-id is named once"
is "$(grep -c 'gets no names' log)" 2 "no other file is"

# ---- a token without the scope ----
stop_server
echo 'secret-of-agents ingest' >tokens
echo secret-of-agents >token
start_server --token-file tokens
program denied
run ./denied
"$agent" --server "$url" --token-file token --interval 1 --frequency 99 --pid "$pid" --metrics-file metrics 2>log &
agent_pid=$!
background_pids="$background_pids $agent_pid"
wait_for "the refusal" grep -q 'pausing symbol uploads for 3600 s' log
sent() { [ "$(count batches_sent_total)" -ge 1 ]; }
wait_for "batches" sent
kill -TERM $agent_pid
wait $agent_pid
is $? 0 "samples arrive without the right to upload"
like "$(cat log)" 'HTTP 403.*a token with the scope upload, or --no-upload' "the log says which right is missing"

# ---- findings of the doctor ----
doctor() { "$agent" --doctor --json "$@" >doctor.json; \
        jq -r '.items[] | select(.name == "uploads") | "\(.state) \(.fix)"' doctor.json; }
like "$(doctor --server "$url" --token-file token)" '^warning give a token with the scope upload' \
        "the doctor checks the token, and reports the missing scope"
is "$(doctor --server "$url" --token-file token --no-upload)" "" "unless nothing would be uploaded"
stop_server
like "$(doctor --server "$url" --token-file token)" '^warning start the service' \
        "an unreachable service is distinguished"
echo 'secret-of-agents ingest,upload' >tokens
start_server --token-file tokens
like "$(doctor --server "$url" --token-file token)" '^ok ' "the doctor finds no problem with the scope upload"
done_testing
