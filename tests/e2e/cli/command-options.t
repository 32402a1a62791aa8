#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Options that do not apply to what a command is asked to do are rejected, never ignored. cairn store is tested by
# store-options.t.
. tests/e2e/lib.sh

run() { "$cairn" "$@" >"$tmp/out" 2>"$tmp/err"; }

# refused OPTION SUBJECT ARGUMENT...: exit status 64, nothing on standard output, and a message with both.
refused() {
        option=$1 subject=$2; shift 2
        run "$@"
        is "$? $(cat "$tmp/out") $(cat "$tmp/err")" \
                "64  cairn $1: option '--$option' does not apply to '$subject' (try --help)" \
                "$subject refuses --$option"
}
# wrong PATTERN NAME ARGUMENT...: the same with another message.
wrong() {
        pattern=$1 name=$2; shift 2
        run "$@"
        like "$? $(cat "$tmp/out") $(cat "$tmp/err")" "^64  cairn $1: $pattern" "$name"
}

# ---- commands ----
is "$("$cairn" help top)" "$("$cairn" top --help)" "cairn help COMMAND is its --help"
for typed in tpo help\ tpo; do
        # shellcheck disable=SC2086  # two words
        run $typed
        is "$? $(cat "$tmp/err")" "64 cairn: unknown command 'tpo'; did you mean 'top'? (try 'cairn --help')" \
                "$typed: a slip of the keyboard is recognized"
done
run elephant
is "$? $(cat "$tmp/err")" "64 cairn: unknown command 'elephant' (try 'cairn --help')" \
        "a name that is like none has no suggestion"
run why abcd 1
is "$? $(cat "$tmp/err")" "1 cairn why: there is no file 'abcd' here; a build-id requires --data DIR or --server URL" \
        "a build-id without a place to search is explained"

# ---- queries ----
: >"$tmp/cpu.pb"
wrong "'$tmp/cpu.pb' is no selector but a file: query it with --profile $tmp/cpu[.]pb$" \
        "a file in place of a selector" top "$tmp/cpu.pb"
wrong "'$tmp' is no selector but a directory: query it with --data $tmp$" \
        "a directory in place of a selector" flame "$tmp"

# ---- debuginfo ----
id=00112233445566778899aabbccddeeff00112233
for verb in list "show $id" "get $id" "rm $id" "pin $id" "unpin $id" gc; do
        # shellcheck disable=SC2086  # a verb and its argument
        refused profile "cairn debuginfo ${verb%% *}" debuginfo $verb --profile "$tmp/x"
        # shellcheck disable=SC2086
        refused from "cairn debuginfo ${verb%% *}" debuginfo $verb --from now-1h
        # shellcheck disable=SC2086
        wrong '--server and --data exclude each other' "${verb%% *} is of one place" debuginfo $verb \
                --server http://127.0.0.1:1 --data "$data"
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
wrong "unknown command 'check': expected list, show, missing, get, rm, pin, unpin, upstreams, offsets, gc or verify$" \
        "an unknown verb is named" \
        debuginfo check
is "$("$cairn" debuginfo gc --help | sed -n 's/^  *--\([a-z-]*\).*/\1/p' | paste -sd ' ')" \
        "server data token-file ca tenant retain dry-run json" \
        "a verb has a page of its own"

# ---- index ----
for verb in stat dump; do
        refused no-debuginfod "cairn index $verb" index $verb $id --no-debuginfod
        refused debug-dir "cairn index $verb" index $verb $id --debug-dir "$tmp"
done
refused debug-dir 'cairn index verify' index verify --debug-dir "$tmp"
wrong 'stat takes one file or build-id$' "a missing object is named" index stat
like "$("$cairn" index stat --help | head -1)" '^Usage: cairn index stat FILE' "a verb has a page of its own"

# ---- queries ----
for list in types labels missing; do
        refused type "cairn query --$list" query --$list --type cpu
        refused focus "cairn query --$list" query --$list --focus x
done
refused step 'cairn query' query --step 1m
refused step 'cairn query --spans' query --spans --step 1m
refused limit 'cairn query' query --limit 3
refused csv 'cairn query' query --csv
refused csv 'cairn query --sandwich' query --sandwich x --csv
refused by 'cairn query --sandwich' query --sandwich x --by host
refused by 'cairn query --lines' query --lines --function x --by host
refused function 'cairn query --series' query --series --function x
refused syntax 'cairn query --lines' query --lines --function x --syntax att
refused groups 'cairn query --spans' query --spans --groups 3
for command in query top flame 'diff --base x'; do
        # shellcheck disable=SC2086  # a command and an option
        wrong '--groups needs --by$' "${command%% *} has no groups without labels" $command --groups 3
done
for format in pprof autofdo; do refused callees-of "cairn flame --format $format" flame --format $format \
        --callees-of x; done
refused by 'cairn flame --format autofdo' flame --format autofdo --by host
refused max-nodes 'cairn flame --format folded' flame --max-nodes 3
refused names 'cairn flame --format firefox' flame --format firefox --names short
refused sample-labels 'cairn flame --format html' flame --output "$tmp/x.html" --sample-labels none
refused limit 'cairn diff --format html' diff --base x --format html --limit 3
refused function 'cairn diff --format json' diff --base x --output "$tmp/x.json" --function x
refused by 'cairn diff --lines' diff --base x --lines --function x --by host
refused callees-of 'cairn diff --lines' diff --base x --lines --function x --json --callees-of x
refused file 'cairn diff --format text' diff --base x --file x
refused to 'cairn diff --lines BEFORE AFTER' diff a b --lines --function x --to now
refused from 'cairn diff BEFORE AFTER' diff a b --from now-1h
refused server 'cairn diff BEFORE AFTER' diff a b --server http://127.0.0.1:1
wrong '--json, --csv and --format exclude each other$' "a difference has one format" diff --base x --json --csv

# ---- others ----
wrong '--server and --data exclude each other$' "resymbolize is of one place" resymbolize --server http://127.0.0.1:1 \
        --data "$data"
refused output 'cairn symbolize --exe' symbolize -e "$cairn" --output "$tmp/x" 1000
refused force 'cairn symbolize --exe' symbolize -e "$cairn" --force 1000
refused debug-dir 'cairn symbolize --server' symbolize --server http://127.0.0.1:1 --build-id $id --debug-dir / 1000
refused no-cache 'cairn symbolize of a profile' symbolize --folded "$tmp/x" --no-cache
refused debug-dir 'cairn why --data' why --data "$data" --debug-dir / $id 1000
refused token-file 'cairn why FILE' why --token-file "$tmp/x" "$cairn" 1000
wrong '.*: --type is for folded stacks; this is a file of pprof$' "a profile with types gets no other" \
        import --dry-run --type memory:inuse_space:bytes:space:bytes tests/corpus/pprof/good/go-cpu.pb.gz
wrong "profile type 'cpu:nanoseconds' is not of the form NAME:SAMPLE_TYPE:.*" "a profile type has all its parts" \
        import --dry-run --type cpu:nanoseconds tests/corpus/folded/good/two-stacks
wrong '--json needs --check or --once$' "scrape has no JSON while it runs" scrape --json "$tmp/x"
ok "nothing was written" test ! -e "$tmp/x" -a ! -e "$tmp/x.html" -a ! -e "$tmp/x.json" -a ! -e "$data"
done_testing
