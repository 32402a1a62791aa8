#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Debuginfo that one of several nodes stores is served by all, and names samples that any of them flushed.
# Time limit: 900 s.
. tests/e2e/lib.sh
for tool in jq python3 curl gcc; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh
. tests/e2e/object-store.sh
. tests/e2e/several-nodes.sh
# Read by several-nodes.sh.
# shellcheck disable=SC2034
address=s3://cairn-test/fleet
id=abcdef0123456789
printf 'int work(int argc) { return argc + 1; }\nint main(int argc, char **argv) { (void)argv; return work(argc); }\n' \
        >"$tmp/program.c"
gcc -g -O0 -no-pie -Wl,--build-id=0x$id -o "$tmp/program" "$tmp/program.c"
work=$(nm "$tmp/program" | awk '$3 == "work" { print $1 }')

start_node a --flush-interval 1
start_node b --flush-interval 1
# A sample of an address of the program, at node b.
python3 tests/e2e/profiles.py otlp "$tmp/sample.otlp" build_id=$id service=api values=7 "addresses=$work" \
        mapping_file=/opt/program
request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/sample.otlp" \
        "$(url_of b)/v1development/profiles"
is "$code" 200 "node b takes a sample without symbols"
wait_flushed b

url=$(url_of a)
put_object debuginfo "$tmp/program"
is "$code" 201 "node a stores the debuginfo"
served() { curl -sSf -o "$tmp/body" "$(url_of b)/buildid/$id/debuginfo"; }
wait_for "node b to have it" served
ok "node b serves it" cmp "$tmp/body" "$tmp/program"
names_of() { "$cairn" top --server "$(url_of "$1")" --from now-1d --json 2>"$tmp/top.log" | jq -r '.[].function'; }
is_named() { names_of "$1" | grep -qx work; }
wait_for "the name at node b" is_named b
wait_for "the name at node a" is_named a
is "$(names_of a) $(names_of b)" "work work" "both nodes name the sample"
stop_node a
stop_node b
done_testing
