#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Options that a command does not use in what it was asked to do are refused, never ignored. cairn store: store-options.t.
. tests/e2e/lib.sh

run() { "$cairn" "$@" >"$tmp/out" 2>"$tmp/err"; }

# refused OPTION SUBJECT ARGUMENT...: exit status 64, nothing on standard output, and a message with both.
refused() {
        option=$1 subject=$2; shift 2
        run "$@"
        is "$? $(cat "$tmp/out") $(cat "$tmp/err")" "64  cairn $1: option '--$option' does not apply to '$subject' (try --help)" \
                "$subject refuses --$option"
}
# wrong PATTERN NAME ARGUMENT...: the same with another message.
wrong() {
        pattern=$1 name=$2; shift 2
        run "$@"
        like "$? $(cat "$tmp/out") $(cat "$tmp/err")" "^64  cairn $1: $pattern" "$name"
}

# ---- debuginfo ----
id=00112233445566778899aabbccddeeff00112233
for verb in list "show $id" "get $id" "rm $id" "pin $id" "unpin $id" gc; do
        # shellcheck disable=SC2086  # a verb and its argument
        refused profile "cairn debuginfo ${verb%% *}" debuginfo $verb --profile "$tmp/x"
        # shellcheck disable=SC2086
        refused from "cairn debuginfo ${verb%% *}" debuginfo $verb --from now-1h
        # shellcheck disable=SC2086
        wrong '--server and --data exclude each other' "${verb%% *} is of one place" debuginfo $verb --server http://127.0.0.1:1 --data "$data"
done
refused server 'cairn debuginfo verify' debuginfo verify --server http://127.0.0.1:1
refused data 'cairn debuginfo upstreams' debuginfo upstreams --data "$data"
refused json 'cairn debuginfo get' debuginfo get $id --json
refused output 'cairn debuginfo list' debuginfo list --output "$tmp/x"
refused dry-run 'cairn debuginfo rm' debuginfo rm $id --dry-run
refused retain 'cairn debuginfo list' debuginfo list --retain age=1d
refused kind 'cairn debuginfo show' debuginfo show $id --kind executable
refused limit 'cairn debuginfo list' debuginfo list --limit 1
wrong 'show takes one build-id$' "a missing build-id is named" debuginfo show
wrong "unknown command 'check': expected list, show, missing, get, rm, pin, unpin, upstreams, gc or verify$" "an unknown verb is named" \
        debuginfo check
is "$("$cairn" debuginfo gc --help | sed -n 's/^  *--\([a-z-]*\).*/\1/p' | paste -sd ' ')" "server data token-file ca tenant retain dry-run json" \
        "a verb has a page of its own"

# ---- index ----
for verb in stat dump; do
        refused no-debuginfod "cairn index $verb" index $verb $id --no-debuginfod
        refused debug-dir "cairn index $verb" index $verb $id --debug-dir "$tmp"
done
refused debug-dir 'cairn index verify' index verify --debug-dir "$tmp"
wrong 'stat takes one file or build-id$' "a missing object is named" index stat
like "$("$cairn" index stat --help | head -1)" '^Usage: cairn index stat FILE' "a verb has a page of its own"
done_testing
