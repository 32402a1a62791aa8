#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Clients whose host disappears without closing its connections: these end within a minute, whatever their state, and
# others are served in the meantime.
#
# Runs in a network namespace of its own, with another one behind a veth pair for the host that disappears: the link
# is taken down.
if [ -z "${CAIRN_OWN_NETWORK:-}" ] && unshare -rn sh -c 'ip link set lo up && ip link add s0 type veth peer name c0' \
        2>/dev/null; then
        CAIRN_OWN_NETWORK=1 exec unshare -rn sh "$0"
fi
. tests/e2e/lib.sh
[ -n "${CAIRN_OWN_NETWORK:-}" ] ||
        skip_all "no rights to make a network of one's own (unshare -rn, ip link add type veth)"
for tool in python3 nsenter ss zstd objcopy gcc; do command -v $tool >/dev/null || skip_all "$tool is not installed"; \
        done

count=20
syns=3000
{ echo 'the-writer upload,read,ingest'; echo 'the-reader read,ingest'; } >"$tmp/tokens"
printf 'header = "Authorization: Bearer the-writer"\n' >"$tmp/.curlrc"
export CURL_HOME="$tmp"
descriptors() { find "/proc/$server_pid/fd" -mindepth 1 | wc -l; }
kernel_has() { ss -Hnt state established "( sport = :$port )" dst 10.77.0.2 | wc -l; }

ip link set lo up
mkfifo "$tmp/go"
unshare -n python3 \
        -c 'import os, sys; open(sys.argv[1]).read(); a = open(sys.argv[2]).read().split(); os.execvp(a[0], a)' \
        "$tmp/go" "$tmp/command" >"$tmp/clients" 2>"$tmp/clients.err" &
clients=$!
background_pids=$clients
other_network() { [ "$(readlink "/proc/$clients/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }
wait_for "the other network" other_network
ip link add s0 type veth peer name c0 netns "$clients"
ip addr add 10.77.0.1/24 dev s0
ip link set s0 up
there() { nsenter -t "$clients" -n "$@"; }
there ip addr add 10.77.0.2/24 dev c0
there ip link set c0 up

start_server --listen 0.0.0.0:0 --token-file "$tmp/tokens"
# A response that takes long to read: random data, so that compression does not shorten it.
printf 'int main(void) { return 0; }\n' >"$tmp/a.c"
head -c 100M /dev/urandom >"$tmp/noise"
gcc -g -Wl,--build-id=0x000000000000000000000000000000000000000a -o "$tmp/a" "$tmp/a.c"
objcopy --add-section .noise="$tmp/noise" "$tmp/a"
rm "$tmp/noise"
put_object debuginfo "$tmp/a" --max-time 280
is "$code" 201 "a large object is stored"
rm "$tmp/a" "$tmp/put.zst"
before=$(descriptors)

echo "python3 tests/e2e/server/half-open.py 10.77.0.1 $port /buildid/$(printf '%039da' 0)/debuginfo $count $syns" \
        >"$tmp/command"
: >"$tmp/go"
wait_for "the clients to be at it" grep -q ready "$tmp/clients"
wait_for "them to be counted" metric_equals cairn_http_connections $((4 * count + 1))
pass "no connection is counted of those that never got beyond their first packet"
ok "others are served beside $syns of these" healthy

# Idle ones are closed before that, but clients that wait for a slow response are only detected this way.
timers=$(ss -Hnto state established "( sport = :$port )" dst 10.77.0.2 | grep -Ec 'timer:\(keepalive,[0-9.]+(sec|ms)')
ok "the kernel probes silent connections within a minute" test "$timers" -ge $((3 * count))

ip link set s0 down # the link
there ip link set c0 down
is "$(kernel_has)" $((4 * count)) "the host disappears, and the kernel does not notice"
ok "others are served" healthy
few_left() { [ "$(metric cairn_http_connections)" -le $((count + 1)) ]; }
wait_for "idle ones, half headers and half bodies to end" few_left
pass "who sent half a request, or none, is gone soon"
wait_for "the readers to end" metric_equals cairn_http_connections 1
pass "and who had a long answer on its way, though much of it had come"
closed() { [ "$(descriptors)" -le $((before + 1)) ]; } # shortly after they are no longer counted
wait_for "their descriptors to be closed" closed
pass "no descriptor is left of them"
ok "others are served" healthy
done_testing
