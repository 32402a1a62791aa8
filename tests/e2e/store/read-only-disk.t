#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The data directory's file system becomes read-only while the service runs, as after a disk error, or is read-only at
# its start: it serves reads, refuses everything else with a reason, and works again once the disk is writable.
. tests/e2e/lib.sh
for tool in gcc curl jq python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

gcc -shared -fPIC -D_GNU_SOURCE -I. -o "$tmp/fault_fs.so" tests/faults/fault_fs.c tests/faults/fault_calls.c ||
        bail_out "the preload library does not build"
printf 'int main(void) { return 0; }\n' >"$tmp/program.c"
build() { gcc -g -Wl,--build-id="0x00000000000000000000000000000000000000$1" -o "$tmp/program-$1" "$tmp/program.c"; }
build aa
build bb
id() { printf '%038d%s' 0 "$1"; }
sanitized=$cairn
cairn=$CAIRN_BUILD/cairn # a sanitizer's runtime would have to be preloaded first

FAULT_FS_DIR=$data FAULT_FS_READ_ONLY=$tmp/read-only LD_PRELOAD=$tmp/fault_fs.so
export FAULT_FS_DIR FAULT_FS_READ_ONLY LD_PRELOAD
start_server --flush-interval 1
unset FAULT_FS_DIR FAULT_FS_READ_ONLY LD_PRELOAD
sample() {
        python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" build_id="$(id aa)" service=disk values=7 \
                mapping_file=program addresses=401000
        request -H 'Content-Type: application/x-protobuf' -H "X-Cairn-Batch: $(printf '%032x' "$1")" \
                --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
}
put() {
        request -T "$tmp/program-$1" -H "X-Cairn-Size: $(stat -c %s "$tmp/program-$1")" \
                -H "X-Cairn-SHA256: $(sha256sum "$tmp/program-$1" | cut -d' ' -f1)" \
                "$url/api/v1/debuginfo/$(id "$1")/debuginfo"
}
sum() { "$cairn" top --server "$url" --json '{service_name="disk"}' | jq 'map(.flat) | add // 0'; }
total_is() { [ "$(sum)" = "$1" ]; }

put aa
is "$code" 201 "an object is stored"
wait_metric cairn_objects_indexed_total 1
sample 1
is "$code" 200 "a batch is accepted"
wait_metric cairn_flushes_total 1

: >"$tmp/read-only"
sample 2
is "$code" 503 "on a read-only disk a batch is answered with 503: its sender keeps it"
like "$body" 'Read-only file system.*(remount|writable)' "the response to a batch has a remedy"
put bb
is "$code" 503 "an upload is answered with 503"
like "$body" 'Read-only file system.*disk_read_only' "the response to an upload has the reason"
answers 200 . "what is stored is served" "$url/buildid/$(id aa)/debuginfo"
is "$(sum)" 7 "queries are answered on a read-only disk"
"$cairn" debuginfo rm --server "$url" "$(id aa)" --kind debuginfo >"$tmp/out" 2>&1
is $? 1 "what is stored cannot be removed"
like "$(cat "$tmp/out")" 'Read-only file system' "  the reason why it cannot be removed is reported"
"$cairn" debuginfo gc --server "$url" --retain size=1 >"$tmp/out" 2>&1
is $? 1 "what is stored cannot be collected"
answers 200 . "what could not be removed is served still" "$url/buildid/$(id aa)/debuginfo"
ok "the service is healthy" healthy

rm "$tmp/read-only"
put bb
is "$code" 201 "on a disk that is writable again the upload succeeds"
wait_metric cairn_objects_indexed_total 2
pass "and is indexed"
taken() { sample 2; [ "$code" = 200 ]; }
wait_for "the queue to recover" taken # which is attempted every second
pass "a batch that is sent again is taken"
wait_for "both batches" total_is 14
pass "each batch counts once"
stop_server

# At startup.
FAULT_FS_DIR=$data FAULT_FS_READ_ONLY=$tmp LD_PRELOAD=$tmp/fault_fs.so "$cairn" serve --data "$data" \
        --listen 127.0.0.1:0 2>"$tmp/err"
is $? 1 "on a read-only disk the service does not start"
like "$(cat "$tmp/err")" 'read-only file system.*--read-only' "the message says that --read-only would start"

if unshare -m true 2>/dev/null; then
        cat >"$tmp/inside.sh" <<'END'
mount --bind "$2" "$2" && mount -o remount,bind,ro "$2" || exit 77
exec "$1" serve --read-only --data "$2" --listen 127.0.0.1:0 --port-file "$3"
END
        rm -f "$tmp/port"
        unshare -m sh "$tmp/inside.sh" "$sanitized" "$data" "$tmp/port" 2>>"$server_log" &
        server_pid=$!
        wait_for "the service to start" test -s "$tmp/port"
        url=http://127.0.0.1:$(cat "$tmp/port")
        is "$(sum)" 14 "queries are answered with --read-only on a disk that is mounted so"
        answers 200 . "and debuginfo is served" "$url/buildid/$(id aa)/debuginfo"
        stop_server
fi
done_testing
