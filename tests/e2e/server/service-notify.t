#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Notifications of the service and the agent to systemd: ready, reloading, watchdog, stopping.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip_all "python3 is not installed"

# A socket like systemd's, which writes each message with its sender's pid to $tmp/told.
cat >"$tmp/listen.py" <<'END_OF_PYTHON'
import socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
open(sys.argv[2] + ".bound", "w").close()
while True:
    data, ancillary, _, _ = s.recvmsg(4096, socket.CMSG_SPACE(12))
    pid = struct.unpack("iii", ancillary[0][2])[0]
    with open(sys.argv[2], "a") as f:
        f.write(f"{pid} {data.decode().replace(chr(10), ' ')}\n")
END_OF_PYTHON
: >"$tmp/told"
python3 "$tmp/listen.py" "$tmp/notify" "$tmp/told" &
background_pids=$!
wait_for "the socket" test -e "$tmp/told.bound"
told() { grep -Ec -e "^$1 $2" "$tmp/told"; }
has_told() { [ "$(told "$1" "$2")" -ge "$3" ]; }

export NOTIFY_SOCKET="$tmp/notify" WATCHDOG_USEC=200000
start_server
unset NOTIFY_SOCKET WATCHDOG_USEC
wait_for "READY" has_told "$server_pid" 'READY=1$' 1
pass "the service says that it is ready"
wait_for "signs of life" has_told "$server_pid" 'WATCHDOG=1$' 3
pass "  and that it is alive, again and again"
kill -HUP "$server_pid"
wait_for "the end of the reload" has_told "$server_pid" 'READY=1$' 2
is "$(told "$server_pid" 'RELOADING=1 MONOTONIC_USEC=[0-9]+$')" 1 "a reload is reported, with its time"
is "$(awk -v pid="$server_pid" '$1 == pid && $2 != "WATCHDOG=1" { print $2 }' "$tmp/told" | tr '\n' ' ')" \
        'READY=1 RELOADING=1 READY=1 ' \
        "  before its end"
main_pid=$server_pid
stop_server
wait_for "its last message, which the listener may not have read yet" has_told "$main_pid" 'STOPPING=1$' 1
pass "and that it stops"

export NOTIFY_SOCKET="$tmp/notify" WATCHDOG_USEC=60000000 WATCHDOG_PID=1
start_server
unset NOTIFY_SOCKET WATCHDOG_USEC WATCHDOG_PID
wait_for "READY" has_told "$server_pid" 'READY=1$' 1
kill -HUP "$server_pid"
wait_for "the reload" has_told "$server_pid" 'READY=1$' 2
is "$(told "$server_pid" WATCHDOG=1)" 0 "a watchdog of another process is ignored"
stop_server

# A main loop that hangs, here in a reload of tokens from a pipe without a writer, must not send watchdog messages,
# whatever its other threads do. The process that kills it replaces systemd, from the reload on: a slow machine may be
# late before.
cat >"$tmp/manage.py" <<'END_OF_PYTHON'
import os, select, signal, socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
open(sys.argv[2], "w").close()
is_reloading = False
while select.select([s], [], [], float(sys.argv[3]) if is_reloading else None)[0]:
    data, ancillary, _, _ = s.recvmsg(4096, socket.CMSG_SPACE(12))
    pid = struct.unpack("iii", ancillary[0][2])[0]
    is_reloading |= data.startswith(b"RELOADING=1")
os.kill(pid, signal.SIGABRT)
END_OF_PYTHON
python3 "$tmp/manage.py" "$tmp/manager" "$tmp/managed" 2 &
background_pids="$background_pids $!"
wait_for "the manager's socket" test -e "$tmp/managed"
printf 'a-secret-of-all admin\n' >"$tmp/tokens"
# shellcheck disable=SC3045  # of dash and bash
ulimit -c 0
export NOTIFY_SOCKET="$tmp/manager" WATCHDOG_USEC=2000000
start_server --token-file "$tmp/tokens"
unset NOTIFY_SOCKET WATCHDOG_USEC
rm "$tmp/tokens"
mkfifo "$tmp/tokens"
kill -HUP "$server_pid"
wait "$server_pid"
is $? 134 "a service that hangs is ended by SIGABRT"
server_pid=
start_server
answers 200 '' "  and starts again" "$url/readyz"
stop_server

agent=$CAIRN_SAN/cairn-agent
if "$agent" --doctor >"$tmp/doctor"; then
        NOTIFY_SOCKET=$tmp/notify WATCHDOG_USEC=200000 "$agent" --server http://127.0.0.1:9 --interval 60 --pid $$ \
                --no-upload \
                2>"$tmp/agent.log" &
        agent_pid=$!
        background_pids="$background_pids $agent_pid"
        wait_for "the agent to be ready" has_told "$agent_pid" 'READY=1$' 1
        pass "the agent says that it is ready"
        wait_for "its signs of life" has_told "$agent_pid" 'WATCHDOG=1$' 3
        pass "  and that it is alive, also between two requests"
        kill -TERM "$agent_pid"
        wait_for "its end" has_told "$agent_pid" 'STOPPING=1$' 1
        pass "  and that it stops"
fi
done_testing
