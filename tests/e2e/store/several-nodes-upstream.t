#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Of several nodes with the same upstream one fetches the debuginfo of samples for all; another one does when that is
# paused or killed.
# Time limit: 900 s.
. tests/e2e/lib.sh
for tool in jq python3 curl gcc; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh
. tests/e2e/object-store.sh
. tests/e2e/several-nodes.sh
# Read by several-nodes.sh.
# shellcheck disable=SC2034
address=s3://cairn-test/fleet

port=$(free_port)
mkdir "$tmp/upstream"
python3 -u -m http.server --bind 127.0.0.1 --directory "$tmp/upstream" "$port" >"$tmp/upstream.log" 2>&1 &
background_pids="${background_pids:-} $!"
wait_for "the upstream" curl -sS "http://127.0.0.1:$port/"
# requests ID: how often its debuginfo was requested from the upstream.
requests() { grep -c "GET /buildid/$1/debuginfo" "$tmp/upstream.log"; }

# make_program NUMBER: the upstream has the debuginfo of the build-id $(id_of NUMBER), with the function workNUMBER.
id_of() { printf 'abcdef012345%04d' "$1"; }
make_program() {
        cat >"$tmp/program.c" <<END
int work$1(int n) { return n + 1; }
int main(int n, char **v) { (void)v; return work$1(n); }
END
        mkdir -p "$tmp/upstream/buildid/$(id_of "$1")"
        gcc -g -O0 -no-pie -Wl,--build-id=0x"$(id_of "$1")" -o "$tmp/program" "$tmp/program.c"
        cp "$tmp/program" "$tmp/upstream/buildid/$(id_of "$1")/debuginfo"
        work=$(nm "$tmp/program" | awk -v f="work$1" '$3 == f { print $1 }')
}
# sample NODE NUMBER: of a program; the node acknowledges it.
sample() {
        python3 tests/e2e/profiles.py otlp "$tmp/sample.otlp" build_id="$(id_of "$2")" service="node-$1" values=7 \
                "addresses=${work:-1000}" mapping_file="/opt/program$2"
        request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/sample.otlp" \
                "$(url_of "$1")/v1development/profiles"
        [ "$code" = 200 ] || diag "node $1: $code $body"
}
is_named() {
        "$cairn" top --server "$(url_of "$1")" --from now-1d --json 2>"$tmp/top.log" |
                jq -r '.[].function' | grep -qx "work$2"
}
start() { start_node "$1" --flush-interval 1 --lease-time 20 --upstream "http://127.0.0.1:$port"; }
# Samples of programs that no upstream has, until a node requests one: it has the lease then. Its requests are those
# after $seen lines of the log, since the other node is paused or killed.
count_lines() { wc -l <"$tmp/upstream.log"; }
unknown=100
leads() {
        unknown=$((unknown + 1))
        sample "$1" $unknown
        wait_flushed "$1"
        [ "$(count_lines)" -gt "$seen" ]
}

start a
start b
make_program 1
sample a 1
sample b 1
wait_for "the name at node a" is_named a 1
wait_for "the name at node b" is_named b 1
is "$(requests "$(id_of 1)")" 1 "one node fetches what both need"

kill -STOP "$(pid_of a)"
seen=$(count_lines)
wait_for "node b to request something" leads b
make_program 2
sample b 2
wait_for "the name at node b" is_named b 2
is "$(holder_of fetches)" "$(identity_of b)" "the other node fetches when the holder is paused"
kill -CONT "$(pid_of a)"
wait_for "the name at node a" is_named a 2
is "$(requests "$(id_of 2)")" 1 "the paused one does not fetch it again"

kill_node b
seen=$(count_lines)
wait_for "node a to request something" leads a
make_program 3
sample a 3
wait_for "the name at node a" is_named a 3
is "$(holder_of fetches)" "$(identity_of a)" "a node fetches after the holder was killed"
stop_node a
done_testing
