#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Keys of an object store from an instance, a container and a role, keys that expire, and stores that refuse requests.
. tests/e2e/lib.sh
for tool in jq python3 curl; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh
. tests/e2e/object-store.sh
address=s3://cairn-test/fleet

"$PYTHON" tests/e2e/store/object-store.py keys "$tmp/keys-port" >"$tmp/keys.log" 2>&1 &
background_pids="$background_pids $!"
wait_for "the services that give keys" test -s "$tmp/keys-port"
keys_url=http://127.0.0.1:$(cat "$tmp/keys-port")
last_key() { curl -sS "$AWS_ENDPOINT_URL_S3/-/key"; }
# key_is PATTERN: of the last request. The clients of tables and of debuginfo notice by themselves that a key is
# refused.
key_is() { last_key | grep -Eq "^$1\$"; }
sum_of() { "$cairn" top --from now-1d --type process_cpu:cpu "$@" --json 2>"$tmp/top.log" | jq '[.[].flat] | add'; }
import_stack() {
        printf 'main;work %d\n' "$1" >"$tmp/in.folded"
        "$cairn" import --server "$url" --time $(($(date +%s) - 7200)) \
                --type process_cpu:cpu:nanoseconds:: "$tmp/in.folded" \
                >"$tmp/import.log" 2>&1
}
flushed() { [ "$(metric cairn_queue_batches)" -eq 0 ]; }
refused() {
        timeout -s KILL 120 "$cairn" serve --listen 127.0.0.1:0 --data "$tmp/refused-data" --store "$address" "$@" \
                >"$tmp/refused" 2>&1
        refused_status=$?
        rm -rf "$tmp/refused-data"
        [ $refused_status -ne 0 ] && [ $refused_status -ne 137 ]
}

# ---- where keys come from ----

unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
HOME=$tmp
AWS_EC2_METADATA_SERVICE_ENDPOINT=$keys_url
export HOME AWS_EC2_METADATA_SERVICE_ENDPOINT
start_server --store "$address" --flush-interval 1
like "$(last_key)" '^INSTANCE-[12]$' "the keys of the instance's role are used"
for number in 1 2; do order expire/INSTANCE-$number >"$tmp/order"; done # of debuginfo and tables
ok "samples are taken when the keys have expired" import_stack 5
wait_for "the flush" flushed
wait_for "new keys" key_is 'INSTANCE-[3-9]'
pass "a flush gets new keys when the store says that they expired"
stop_server

# write_keys KEY: as a program does that replaces keys before they are deleted
write_keys() { printf '[default]\naws_access_key_id = %s\naws_secret_access_key = secret\n' "$1" >"$tmp/credentials"; }
export AWS_SHARED_CREDENTIALS_FILE="$tmp/credentials"
write_keys FILE-1
start_server --flush-interval 1
is "$(last_key)" FILE-1 "the keys of a file come before those of the instance"
write_keys FILE-2
order forget/FILE-1 >"$tmp/order"
ok "samples are taken when the keys have been replaced" import_stack 6
wait_for "the flush with the keys that replaced them" flushed
wait_for "the other key" key_is FILE-2
pass "the file is read again when the store does not know the key"
order forget/FILE-2 >"$tmp/order"
rm "$tmp/credentials"
failures=$(metric cairn_flush_failures_total)
ok "samples are taken when the store does not know the key, and the file is gone" import_stack 3
more_failures() { [ "$(metric cairn_flush_failures_total)" -gt "$failures" ]; }
wait_for "a flush to fail" more_failures
write_keys FILE-3
wait_for "the flush with the keys of the file that is back" flushed
wait_for "the key of the file that is back" key_is FILE-3
pass "the file is read again when it is back"
stop_server
unset AWS_SHARED_CREDENTIALS_FILE

AWS_CONTAINER_CREDENTIALS_FULL_URI=$keys_url/container AWS_CONTAINER_AUTHORIZATION_TOKEN=container-token
export AWS_CONTAINER_CREDENTIALS_FULL_URI AWS_CONTAINER_AUTHORIZATION_TOKEN
start_server --flush-interval 1
like "$(last_key)" '^CONTAINER-' "the keys of a container come before those of the instance"
stop_server
AWS_CONTAINER_AUTHORIZATION_TOKEN=wrong
ok "a container's service that refuses the token ends the start" refused
like "$(cat "$tmp/refused")" "cannot get the container's keys.*401" "the refusal says which service refused"
AWS_CONTAINER_CREDENTIALS_FULL_URI=http://192.0.2.1/container
ok "keys are not sent over plain HTTP to another host" refused
like "$(cat "$tmp/refused")" 'is neither https nor an address of this host' "the refusal says why"

printf 'an.identity\n' >"$tmp/identity"
AWS_WEB_IDENTITY_TOKEN_FILE=$tmp/identity AWS_ROLE_ARN=arn:aws:iam::123456789012:role/cairn
AWS_ENDPOINT_URL_STS=$keys_url
export AWS_WEB_IDENTITY_TOKEN_FILE AWS_ROLE_ARN AWS_ENDPOINT_URL_STS
start_server --flush-interval 1
like "$(last_key)" '^ROLE-' "the keys of a web identity's role come before those of the container"

doctor() { "$cairn" doctor --data "$data" store 2>&1; }
like "$(doctor)" 'ok .*object store.*s3://cairn-test/fleet/tables: of 32 racing creates of one key 1 succeeded' \
        "cairn doctor tries the store that the directory names"
is "$(keys | grep probe)" fleet/tables/probe/passed "cairn doctor leaves no key in the store, the service one"

# ---- the store refuses ----

order deny >"$tmp/order"
ok "samples are taken while the store denies writes" import_stack 7
failed_flush() { [ "$(metric cairn_flush_failures_total)" -gt 0 ]; }
wait_for "a flush to fail" failed_flush
like "$("$cairn" status --server "$url" 2>&1)" 'no right to .* AccessDenied: the permissions needed are in' \
        "cairn status says which right is missing"
like "$(doctor)" 'error .*object store.*no right to PUT' "cairn doctor says which right is missing"
request "$url/readyz"
like "$body" '^error flush_failing: .*AccessDenied' "/readyz says which right is missing"
is "$(sum_of --server "$url")" 21 "a query has the samples that are not in the store"
is "$(metric cairn_quarantined_batches_total)" 0 "no batch is set aside for what the store refuses"
order allow >"$tmp/order"
wait_for "the flush with the rights back" flushed
is "$(sum_of --server "$url")" 21 "nothing is lost"

order fill >"$tmp/order"
failures=$(metric cairn_flush_failures_total)
ok "samples are taken while the store is full" import_stack 9
wait_for "a flush to fail" more_failures
request "$url/readyz"
like "$body" "^error flush_failing: .*bucket 'cairn-test' is full: .* QuotaExceeded; raise its quota" \
        "/readyz says that the store is full"
order empty >"$tmp/order"
wait_for "the flush when there is room again" flushed
is "$(sum_of --server "$url")" 30 "nothing is lost"
stop_server
order deny >"$tmp/order"
ok "a store that denies writes ends the start" refused
like "$(cat "$tmp/refused")" 'no right to [A-Z]+ .*AccessDenied' "the refusal names the right"
order allow >"$tmp/order"

# ---- a wrong address ----

order region/eu-west-1 >"$tmp/order"
ok "a bucket of another region is refused" refused
like "$(cat "$tmp/refused")" "is in the region eu-west-1, not us-east-1: set AWS_REGION=eu-west-1" \
        "the refusal says what to set"
order region/us-east-1 >"$tmp/order"
plain=$AWS_ENDPOINT_URL_S3
AWS_ENDPOINT_URL_S3=https://127.0.0.1:$store_port
start_server
like "$(cat "$server_log")" 'cannot read the tables in .*(TLS|SSL|tls|ssl)' \
        "a store without TLS at an https address is away, and the log says that TLS failed"
stop_server
AWS_ENDPOINT_URL_S3=$plain

# ---- versions, and other programs' files ----

curl -sS -X PUT "$plain/cairn-test?versioning" \
        -d '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>'
curl -sS -X PUT "$plain/cairn-test/fleet/notes.txt" -d note
curl -sS -X PUT "$plain/cairn-test/fleet/tables/samples/other/file.bin" -d other
curl -sS -X PUT "$plain/cairn-test/fleet/objects/README" -d other
start_server --flush-interval 1
ok "samples are taken in a versioned bucket" import_stack 30
wait_for "the flush into a versioned bucket" flushed
ok "compaction succeeds beside files of other programs" "$cairn" store compact --server "$url"
"$cairn" debuginfo gc --server "$url" >"$tmp/gc.log" 2>&1
is "$(sum_of --server "$url")" 60 "the sum is right in a versioned bucket"
stop_server
ok "cairn store verify finds no fault beside them" "$cairn" store verify --data "$data"
is "$(keys | grep -c -e notes.txt -e other/file.bin -e objects/README)" 3 "files of other programs stay"
done_testing
