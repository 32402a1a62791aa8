#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Buckets with demands: one with object locks, which takes only what has a checksum; encryption by the store.
. tests/e2e/lib.sh
for tool in jq python3 curl; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh
. tests/e2e/object-store.sh
object_store() { "$PYTHON" tests/e2e/store/object-store.py "$@"; }
flushed() { [ "$(metric cairn_queue_batches)" -eq 0 ]; }
import_stack() {
        printf 'main;work 100\n' >"$tmp/in.folded"
        "$cairn" import --server "$url" --time $(($(date +%s) - 3600)) --type process_cpu:cpu:nanoseconds:: \
                "$tmp/in.folded" >"$tmp/import.log" 2>&1
}

object_store lock "$store_port"
start_server --store s3://cairn-locked/fleet --flush-interval 1
ok "samples are taken" import_stack
wait_for "the flush" flushed
is "$(metric cairn_flush_failures_total)" 0 "a bucket with object locks takes what is flushed"
head -c 40000000 /dev/urandom >"$tmp/noise" # more than an upload without parts
printf 'int main(void) { return 0; }\n' | cc -g -Wl,--build-id -x c - -o "$tmp/program"
objcopy --only-keep-debug --add-section .noise="$tmp/noise" "$tmp/program" "$tmp/program.debug"
ok "it takes an upload in parts, too" "$CAIRN_BUILD/cairn-upload" --server "$url" "$tmp/program.debug"
stop_server

export AWS_SERVER_SIDE_ENCRYPTION=aws:kms AWS_SSE_KMS_KEY_ID=key-of-the-fleet
start_server --data "$tmp/encrypted" --store s3://cairn-test/fleet --flush-interval 1
is "$(object_store encryption "$store_port" fleet/tables/probe/passed)" 'aws:kms key-of-the-fleet' \
        "objects are encrypted with the key of the environment"
ok "what is uploaded in parts" "$CAIRN_BUILD/cairn-upload" --server "$url" "$tmp/program.debug"
id=$(readelf -n "$tmp/program.debug" | awk '/Build ID/ { print $3 }')
key=$(keys | grep "fleet/objects/$(echo "$id" | cut -c1-2)/$(echo "$id" | cut -c3-)/")
is "$(object_store encryption "$store_port" "$key")" 'aws:kms key-of-the-fleet' \
        "its object is encrypted, too"
stop_server
AWS_SERVER_SIDE_ENCRYPTION=yes
like "$("$cairn" serve --data "$tmp/wrong" --store s3://cairn-test/fleet --listen 127.0.0.1:0 2>&1)" \
        "AWS_SERVER_SIDE_ENCRYPTION is 'yes': give AES256, aws:kms or aws:kms:dsse" "another encryption is refused"
done_testing
