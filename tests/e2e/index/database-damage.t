# SPDX-License-Identifier: Apache-2.0
# Damaged pages of the LMDB databases: named by 'cairn store verify' and 'cairn doctor', and no reason for a crash or an
# endless loop of the service. The index is rebuilt; the records of objects are not, and the start is refused.
. tests/e2e/lib.sh
for tool in gcc python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
upload=$CAIRN_SAN/cairn-upload

id=0123456789abcdef0123456789abcdef01234567
printf 'int main(int argc, char **argv) { (void)argv; return argc; }\n' >"$tmp/main.c"
gcc -O2 -g -Wl,--build-id=0x$id -o "$tmp/main" "$tmp/main.c" || bail_out "gcc"

# damage FILE KIND: `loop` lets all branches and trees refer to the first tree page, `zero` clears all pages but the two
# meta pages, `cut` shortens the file to them.
damage() {
        python3 - "$@" <<'PY'
import sys
path, kind = sys.argv[1:]
data = bytearray(open(path, 'rb').read())
if kind == 'cut':
    data = data[:2 * 4096]
for page in range(2, len(data) // 4096):
    at = page * 4096
    if kind == 'zero':
        data[at:at + 4096] = bytes(4096)
    else:
        data[at + 10] = 1                 # a branch page
        data[at + 16:at + 18] = (4000).to_bytes(2, 'little')
        data[at + 12:at + 16] = (18).to_bytes(2, 'little') + (4000).to_bytes(2, 'little')
        data[at + 4000:at + 4008] = page.to_bytes(4, 'little') + bytes(4)
open(path, 'wb').write(data)
PY
}
verify() { "$cairn" store verify --data "$data" >"$tmp/out" 2>"$tmp/err"; }
quiet() { metric_equals cairn_index_queue 0; }
function_of_main() {
        "$cairn" symbolize --server "$url" --build-id "$id" --format=llvm \
                "$(nm "$tmp/main" | awk '$3 == "main" { print $1 }')" 2>/dev/null
}

start_server
"$upload" --server "$url" "$tmp/main" >"$tmp/out" 2>&1 || bail_out "$(cat "$tmp/out")"
wait_metric cairn_objects_indexed_total 1
request --data-binary 'main;work 1' "$url/ingest?name=app&format=folded" >/dev/null
stop_server
verify
is $? 0 "sound databases have no problem"
"$cairn" doctor --data "$data" data >"$tmp/out" 2>&1
unlike "$(cat "$tmp/out")" "damaged" "  'cairn doctor' finds no damage in sound databases"
cp -a "$data" "$tmp/sound"

for kind in loop zero cut; do
        rm -rf "$data"
        cp -a "$tmp/sound" "$data"
        damage "$data/index/data.mdb" $kind
        verify
        is $? 2 "$kind: 'store verify' finds the damaged index"
        like "$(cat "$tmp/out")" "^index/data.mdb: .*is damaged" "  the damaged index is named"
        "$cairn" doctor --data "$data" data >"$tmp/out" 2>&1
        like "$(cat "$tmp/out")" "index.*is damaged" "  as does 'cairn doctor'"
        start_server
        like "$(cat "$server_log")" "index/data.mdb' is damaged: .*rebuilt from the stored objects" \
                "  the service starts and says so"
        wait_metric cairn_objects_indexed_total 1
        wait_for "an empty index queue" quiet
        like "$(function_of_main)" "main" "  the service rebuilds the index"
        stop_server
        verify
        is $? 0 "  the rebuilt index is sound"
        is "$(ls "$data/index")" "data.mdb
data.mdb.damaged
lock.mdb
writer.lock" "  the damaged file is kept"
done

for kind in loop zero cut; do
        rm -rf "$data"
        cp -a "$tmp/sound" "$data"
        damage "$data/debuginfo/meta/data.mdb" $kind
        verify
        is $? 2 "$kind: 'store verify' finds the damaged records of objects"
        like "$(cat "$tmp/out")" "^debuginfo/meta/data.mdb: .*is damaged" "  the damaged records are named"
        "$cairn" serve --data "$data" --listen 127.0.0.1:0 >"$tmp/out" 2>"$tmp/err"
        is $? 2 "  the service does not start"
        like "$(cat "$tmp/err")" "debuginfo/meta/data.mdb' is damaged: .*Restore '.*/debuginfo' from a backup" \
                "  the message says what to restore"
        like "$(cat "$tmp/err")" "mv '$data/debuginfo' '$data/debuginfo.damaged'" \
                "  the message has the command that moves the directory away"
        mv "$data/debuginfo" "$data/debuginfo.damaged"
        start_server
        ok "  which works" healthy
        stop_server
done

# ---- SIGTERM during the start ----

rm -rf "$data"
mkdir "$data"
mkfifo "$data/format" # reading it blocks
"$cairn" serve --data "$data" --listen 127.0.0.1:0 2>"$tmp/err" &
server_pid=$!
waits_for_signals() { grep -qx start "/proc/$server_pid"/task/*/comm; }
wait_for "the thread that waits for signals" waits_for_signals
kill -TERM $server_pid
wait $server_pid
is $? 0 "a service that has not started yet ends with SIGTERM"
server_pid=
like "$(cat "$tmp/err")" "stopped during the start" "  the log says that the start was stopped"
done_testing
