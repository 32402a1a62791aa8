#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The debuginfo and status views in a browser: the recorded profile, objects with and without debuginfo, an upstream
# that fails, hosts with malicious names.
. tests/e2e/lib.sh
. tests/browser/lib.sh
. tests/browser/load_data.sh
for tool in gcc strip nm python3 zstd; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

cat >"$tmp/work.c" <<'EOC'
volatile int sink;
__attribute__((noinline)) void work(int n) { sink += n; }
int main(int argc, char **argv) { (void)argv; work(argc); return 0; }
EOC
id_of() { printf '%038d%s' 0 "$1"; }
for n in 01 02 03; do (cd "$tmp" && gcc -g -O1 -Dwork="work_$n" -Wl,--build-id="0x$(id_of $n)" -o "work-$n" work.c) ||
        bail_out "cannot build a program"; done
strip -g -o "$tmp/named" "$tmp/work-02"
at=$(nm "$tmp/work-01" | awk '$3 == "work_01" { print $1 }')
# send AGENT NAME=VALUE...: one batch.
send() {
        send_agent=$1; shift
        python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" "$@"
        request -A "$send_agent" -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/one.otlp" \
                "$url/v1development/profiles"
}

mkdir -p "$tmp/up/files"
echo 'status 500' >"$tmp/up/mode"
python3 tests/e2e/upstream.py "$tmp/up" &
background_pids=$!
wait_for "the upstream" test -s "$tmp/up/port"
upstream=http://127.0.0.1:$(cat "$tmp/up/port")
mkdir -p "$data/profiles/queue/quarantine"
printf 'no batch' >"$data/profiles/queue/quarantine/00000000000000000099-00112233445566778899aabbccddeeff.batch"

start_server --flush-interval 1 --upstream "$upstream" --retain-samples age=30d
load_recorded
send cairn-agent/1.2.3 "build_id=$(id_of 01)" mapping_file=/opt/work-01 "addresses=$at" host=web-71 service=full
send cairn-agent/1.2.3 "build_id=$(id_of 02)" mapping_file=/opt/named "addresses=$at" host=web-2 service=named
send cairn-agent/1.2.3 "build_id=$(id_of 03)" "addresses=$at" service=nobody values=1,2,3 \
        "mapping_file=/opt/nobody<img src=x onerror=\"window.reached=1\">$(printf '\342\200\256\033')" \
        "host=<img src=x onerror=\"window.reached=1\">$(printf '\342\200\256')"
is "$code" 200 "samples are accepted"
send cairn-agent/1.1.0 names=leaf host=late "at_ns=$(($(date +%s) - 432000))000000000"
send cairn-agent/1.1.0 names=leaf host=ahead at_ns=4102444800000000000
request -A broken/0.1 -H 'Content-Type: application/x-protobuf' --data-binary 'not protobuf' \
        "$url/v1development/profiles"
is "$code" 400 "a batch that is no protobuf is refused"
# Samples flushed with symbols need no re-symbolization, which is waited for below.
wait_for "the samples to be in the tables" metric_equals cairn_queue_batches 0
put_object debuginfo "$tmp/work-01" --url-query tag=release
is "$code" 201 "debuginfo is stored"
put_object debuginfo "$tmp/named"
is "$code" 201 "a symbol table is stored"
wait_metric cairn_objects_indexed_total 2
wait_metric cairn_resymbolize_locations_total 2
wait_metric "cairn_upstream_requests_total{upstream=\"$upstream\",outcome=\"failed\"}" 1

jq -n --arg missing "$(id_of 03)" --arg named "$(id_of 02)" --arg full "$(id_of 01)" --arg at "0x$(printf %x "0x$at")" \
        --arg upstream "$upstream" \
        '{missing: $missing, named: $named, named_function: "work_02", full: $full, full_address: $at, upstream: $upstream}' >"$tmp/data.json"
run_browser debuginfo.js "$url" "$tmp/data.json"
stop_server
done_testing
