# SPDX-License-Identifier: Apache-2.0
# An upload whose connections break is resumed, also after the service was killed; the resulting object is complete.
. tests/e2e/lib.sh
for tool in python3 jq curl zstd; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

big=$CAIRN_SAN/cairn
id=$(build_id_of "$big")
upload() { "$CAIRN_SAN/cairn-upload" --server "http://127.0.0.1:$(cat "$tmp/proxy")" "$@"; }
proxy() {
        rm -f "$tmp/proxy" "$tmp/passed"
        python3 tests/e2e/uploader/cutting-proxy.py "$tmp/proxy" "$tmp/port" "$1" "$2" "$tmp/passed" &
        proxy_pid=$!
        background_pids="${background_pids:-} $proxy_pid"
        wait_for "the proxy" test -s "$tmp/proxy"
}
stored() { "$cairn" debuginfo verify --data "$data" "$id"; }
offset() { curl -sS "$url/api/v1/debuginfo/$id/executable/partial?sha256=$sha" | jq .offset; }

start_server
proxy 3 600000
ok "an upload succeeds though its connections are cut three times" upload --json "$big"
is "$(grep -c cut "$tmp/passed")" 3 "each was cut"
passed_whole() { grep -q whole "$tmp/passed"; }
wait_for "the last connection to end" passed_whole
sent=$(awk '{ n += $2 } END { print n }' "$tmp/passed")
size=$("$cairn" debuginfo show "$id" --server "$url" --json | jq '.objects[0].stored_bytes')
ok "data sent before a cut was not sent again ($sent bytes for $size)" test "$sent" -lt $((size * 14 / 10))
like "$(stored)" '^1 object is whole, 0 damaged' "the object is complete"
is "$(ls "$data/debuginfo/partial")" '' "no partial files remain"

# With curl: half of it, then a crash of the service, then the rest.
sha=$(sha256sum "$big" | cut -d' ' -f1)
size=$(stat -c %s "$big")
half=$((size / 2))
part() { # part OFFSET COUNT
        tail -c +$(($1 + 1)) "$big" | head -c "$2" | zstd -q -c >"$tmp/part.zst"
        request -X PUT -T "$tmp/part.zst" -H 'Content-Encoding: zstd' -H "X-Cairn-Size: $size" \
                -H "X-Cairn-SHA256: $sha" \
                -H "X-Cairn-Offset: $1" "$url/api/v1/debuginfo/$id/executable?name=cairn"
}
part 0 "$half"
is "$code $(printf '%s' "$body" | jq -c .)" "202 {\"state\":\"partial\",\"offset\":$half}" \
        "a part is accepted and stored"
kill_server
start_server
is "$(offset)" "$half" "it persists across a crash of the service"
part 0 1000
is "$code $(printf '%s' "$body" | jq -r .reason)" "409 offset" "a part that is already stored is refused"
part "$half" 0
is "$code" 202 "an empty part changes nothing"
part "$half" $((size - half))
is "$code" 201 "the rest completes it"
is "$(curl -sS "$url/buildid/$id/executable" | sha256sum | cut -d' ' -f1)" "$sha" "byte for byte"
part 0 "$half"
part "$half" $((size - half))
is "$code $(printf '%s' "$body" | jq -r .state)" "200 same" "uploading it again creates no other object"

# The possible effect of a power cut on a part that was never synced.
printf 'X' >"$tmp/wrong"
"$cairn" debuginfo rm --kind executable "$id" --server "$url" >/dev/null
part 0 "$half"
dd if="$tmp/wrong" of="$(ls "$data"/debuginfo/partial/*)" bs=1 seek=4000 conv=notrunc 2>/dev/null
part "$half" $((size - half))
is "$code $(printf '%s' "$body" | jq -r .reason)" "400 hash_mismatch" "damage of a part is found"
is "$(offset)" 0 "the damaged part is deleted"

# The service is killed during an upload; the uploader resumes with the next one.
"$cairn" debuginfo rm "$id" --server "$url" >/dev/null
kill "$proxy_pid"
proxy 1 1500000
upload "$big" >"$tmp/out" 2>&1 &
uploader=$!
wait_for "the first cut" test -s "$tmp/passed"
kill_server
start_server
wait "$uploader"
is $? 0 "an upload outlives a crash of the service"
like "$(stored)" '^2 objects|^1 object ' "the upload is complete after the crash"

# A connection that was lost without being closed is not waited for.
"$cairn" debuginfo rm "$id" --server "$url" >/dev/null 2>&1
"$cairn" debuginfo rm --kind executable "$id" --server "$url" >/dev/null 2>&1
python3 - "$port" "$id" "$size" "$sha" "$big" "$tmp/silent" <<'EOF' &
import socket, sys, time
port, ident, size, sha, path, mark = sys.argv[1:]
s = socket.create_connection(("127.0.0.1", int(port)))
s.sendall(("PUT /api/v1/debuginfo/%s/executable?name=cairn HTTP/1.1\r\nHost: localhost\r\nX-Cairn-Size: %s\r\nX-Cairn-SHA256: %s\r\n"
           "X-Cairn-Offset: 0\r\nContent-Length: %s\r\n\r\n" % (ident, size, sha, size)).encode()
                      + open(path, "rb").read(100000))
open(mark, "w").write("sent")
time.sleep(600)
EOF
background_pids="${background_pids:-} $!"
silent=$!
wait_for "the silent client" test -s "$tmp/silent"
arrived() { [ "$(offset)" -gt 0 ]; }
wait_for "its bytes" arrived
# More bytes of it may arrive until it is replaced.
taken_over() { here=$(offset); part "$here" $((size - here)); [ "$code" = 201 ]; }
wait_for "its place" taken_over
ok "after it was idle for a while, a new connection replaces it" kill -0 "$silent"
is "$(curl -sS "$url/buildid/$id/executable" | sha256sum | cut -d' ' -f1)" "$sha" \
        "  the object that replaced it is correct"
kill "$silent"

# Two concurrent uploaders with the same files.
"$cairn" debuginfo rm "$id" --server "$url" >/dev/null 2>&1
"$cairn" debuginfo rm --kind executable "$id" --server "$url" >/dev/null
"$CAIRN_SAN/cairn-upload" --server "$url" --executables "$big" >"$tmp/first" 2>&1 &
first=$!
"$CAIRN_SAN/cairn-upload" --server "$url" --executables "$big" >"$tmp/second" 2>&1
status=$?
[ $status -eq 0 ] || diag "$(cat "$tmp/second")"
is $status 0 "one of two uploaders of the same files is done"
wait "$first"
status=$?
[ $status -eq 0 ] || diag "$(cat "$tmp/first")"
is $status 0 "  the other uploader is done too"
like "$(stored)" '^2 objects are whole, 0 damaged' "  each object is stored once, complete"
done_testing
