#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Configurable limits take effect (docs/operations.md, Limits): uploads, threads, time limits, workers.
. tests/e2e/lib.sh
for tool in gcc curl python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

printf 'int main(void) { return 0; }\n' >"$tmp/main.c"
# compile NAME: a program with a build-id of its own.
compile() { gcc -g -Wl,--build-id=0x"$(printf %s "$1" | sha1sum | cut -c1-40)" -o "$tmp/$1" "$tmp/main.c" ||
        bail_out "gcc fails"; }
for name in a c; do compile $name; done
size=$(stat -c %s "$tmp/a")
# put NAME [CURL-ARGUMENT...]: uploads it unchanged.
put() {
        put_name=$1; shift
        request -X PUT -T "$tmp/$put_name" -H "X-Cairn-Size: $(stat -c %s "$tmp/$put_name")" \
                -H "X-Cairn-SHA256: $(sha256sum "$tmp/$put_name" | cut -d' ' -f1)" "$@" \
                "$url/api/v1/debuginfo/$(build_id_of "$tmp/$put_name")/debuginfo"
}
mkdir -p "$tmp/far"
python3 tests/e2e/upstream.py "$tmp/far" &
background_pids=$!
wait_for "the upstream" test -s "$tmp/far/port"

settings() {
        cat >"$tmp/cairn.yaml" <<END
serve:
  max-upload: $1
  max-uploads: $2
  upload-threads: 3
  symbolize-timeout: 2
  debuginfod-threads: 5
  upstream-timeout: 2
  worker-cpu: $3
END
}
settings 4K 4 77
start_server --config "$tmp/cairn.yaml" --upstream "http://127.0.0.1:$(cat "$tmp/far/port")"

# ---- threads ----

threads() { cat "/proc/$server_pid/task"/*/comm | grep -cx "$1"; }
is "$(threads upload)" 3 "--upload-threads sets the number of upload threads"
is "$(threads debuginfod)" 5 "--debuginfod-threads sets the number of debuginfod threads"

# ---- uploads ----

put a
is "$code" 413 "--max-upload: an object of $size bytes is refused with 4K"
like "$body" 'more than 4096 bytes' "  the response names the limit of bytes"
offer="{\"files\":[{\"build_id\":\"$(build_id_of "$tmp/a")\",\"kind\":\"debuginfo\",\"quality\":\"dwarf\",\"size\":$size}]}"
request -H 'Content-Type: application/json' --data-binary "$offer" "$url/api/v1/debuginfo/want"
like "$body" 'too_big' "  the response to an offer says that the object is too big"
mkfifo "$tmp/go"
python3 tests/e2e/upload-limits.py "$port" 127.0.0.1 none 1 <"$tmp/go" >"$tmp/held" &
exec 9>"$tmp/go"
wait_for "an upload to be in progress" grep -q ready "$tmp/held"
wait_for "the service to count it" sh -c "curl -sS $url/metrics | grep -qx 'cairn_uploads_receiving 1'"
settings 1M 4 77
kill -HUP "$server_pid"
wait_for "the reload" grep -q 'reload: done' "$server_log"
like "$(grep -o 'reload: --.*' "$server_log")" 'reload: --max-upload was changed and is applied' \
        "it is applied by a reload"
put a
is "$code" 429 "--max-uploads: a quarter of four is in progress"
like "$body" '1 uploads of this token and address are in progress' "  the response names the uploads in progress"
settings 1M 8 77
kill -HUP "$server_pid"
wait_for "the reload" sh -c "[ \$(grep -c 'reload: done' $server_log) -ge 2 ]"
python3 tests/e2e/catch-worker.py "$server_pid" symbols >"$tmp/caught" &
wait_for "the catcher" grep -q ready "$tmp/caught"
put a
is "$code" 201 "  the next upload is accepted once a quarter is two"
exec 9>&-

# ---- workers and times ----

wait_for "a worker" sh -c "[ \$(wc -l <$tmp/caught) -eq 2 ]"
worker=$(tail -1 "$tmp/caught")
like "$(cat "/proc/$worker/limits")" 'Max cpu time +77 +78 ' "--worker-cpu limits the processor time of a worker"
kill -CONT "$worker"
wait_for "the object to be indexed" sh -c "curl -sS $url/metrics | grep -q '^cairn_objects_indexed_total 1'"

python3 tests/e2e/catch-worker.py "$server_pid" explain >"$tmp/caught" &
wait_for "the catcher" grep -q ready "$tmp/caught"
request "$url/api/v1/why?build_id=$(build_id_of "$tmp/a")&address=0x1000"
is "$code" 504 "--symbolize-timeout ends a report"
like "$(cat "$server_log")" ' warn http: [A-Z]+ /[^ ?]*: answered 504 timeout: ' "  the log has the path and the reason"
ok "  and its time is a metric" test "$(metric cairn_http_last_5xx_timestamp_seconds)" -gt 1700000000

id=$(build_id_of "$tmp/c")
mkdir -p "$tmp/far/files/$id"
cp "$tmp/c" "$tmp/far/files/$id/debuginfo"
echo hold >"$tmp/far/mode"
curl -sS -o "$tmp/fetched" "$url/buildid/$id/debuginfo" 2>/dev/null
wait_for "--upstream-timeout to end a transfer" grep -Eq "$id.* timed out after [2-9][0-9]{3} milliseconds" \
        "$server_log"
touch "$tmp/far/go"

# ---- out of range ----

for option in max-upload=5G max-upload=0 max-uploads=0 max-uploads=4097 upload-threads=257 symbolize-timeout=86401 \
        debuginfod-threads=0 upstream-timeout=0 worker-cpu=86401; do
        "$cairn" serve --data "$tmp/none" "--$option" >"$tmp/out" 2>&1
        is $? 64 "--$option is refused"
        like "$(cat "$tmp/out")" "option '--${option%=*}' takes " "  by its name"
done
done_testing
