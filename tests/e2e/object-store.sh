# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: Apache-2.0
# An S3-compatible store behind a proxy that fails requests on order. Sourced after lib.sh and venv.sh; sets $store_port
# and the environment of Cairn's object stores.

PYTHONPATH='' "$PYTHON" tests/e2e/store/object-store.py serve 7 "$tmp/store-port" >"$tmp/store.log" 2>&1 &
background_pids="${background_pids:-} $!"
wait_for "the object store" test -s "$tmp/store-port"
store_port=$(cat "$tmp/store-port")
order() { curl -sS -X PUT "http://127.0.0.1:$store_port/-/$1"; }
# stall_store [N]: until resume_store no request but the next N reaches the store. stall_commits: no commit of a table
# does. stall_files: no file of a table is read. stalled_at_least N [paths]: so many requests wait, or of so many paths.
stall_store() { order "stall/${1:-0}" >"$tmp/order"; }
stall_commits() { order stall/commits >"$tmp/order"; }
stall_files() { order stall/files >"$tmp/order"; }
stalled_at_least() { [ "$(curl -sS "http://127.0.0.1:$store_port/-/stalled/${2:-}")" -ge "$1" ]; }
resume_store() { order resume >"$tmp/order"; }
AWS_ENDPOINT_URL_S3=http://127.0.0.1:$store_port
AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret
export AWS_ENDPOINT_URL_S3 AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
unset AWS_REGION AWS_PROFILE
# Signed by curl 7.88, which neither hashes the body nor encodes the path.
curl_store() {
        curl -sS --aws-sigv4 aws:amz:us-east-1:s3 --user key:secret -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' "$@"
}
keys() { curl_store "$AWS_ENDPOINT_URL_S3/cairn-test?list-type=2" | grep -o '<Key>[^<]*' | sed 's/<Key>//'; }
# change METHOD KEY [CURL-ARGUMENT]...: behind the service's back.
change() {
        change_method=$1; change_key=$(echo "$2" | sed 's/=/%3D/g'); shift 2
        curl_store -X "$change_method" "$@" "$AWS_ENDPOINT_URL_S3/cairn-test/$change_key"
}
