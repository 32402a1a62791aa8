#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What `make run` does: starts the service and the agent on this machine,
# uploads the debuginfo it finds, keeps a stripped demo program busy whose
# debuginfo arrives late, and prints where to look. Ctrl-C, or the end of
# RUN_SECONDS, stops everything; nothing acknowledged is lost.
# Settings come from the environment: RUN_SECONDS, RUN_DEMO, RUN_PORT, RUN_DATA.
set -eu
cd "$(dirname "$0")/.."
seconds=${RUN_SECONDS:-}
demo=${RUN_DEMO:-1}
port=${RUN_PORT:-7700}
data=${RUN_DATA:-cairn-data}
url=http://127.0.0.1:$port
logs=build/run
mkdir -p "$logs"

server_pid= agent_pid= demo_pid= stopping=
sudo=
say() {
        printf '\n== %s\n' "$*"
}

# The agent goes first, so that its last samples still find the service.
stop() {
        [ -z "$stopping" ] || return 0
        stopping=1
        [ -z "$demo_pid" ] || kill "$demo_pid" 2>/dev/null || true
        if [ -n "$agent_pid" ]; then
                # The shell's own kill: a small Debian has no other.
                # shellcheck disable=SC2086  # no word at all without sudo
                $sudo sh -c 'kill -TERM "$1"' sh "$(cat "$logs/agent.pid")" 2>/dev/null || true
                wait "$agent_pid" 2>/dev/null || true
        fi
        if [ -n "$server_pid" ]; then
                [ -z "$seconds" ] || report || true
                kill -TERM "$server_pid" 2>/dev/null || true
                wait "$server_pid" 2>/dev/null || true
        fi
        echo
        echo "stopped; what was recorded stays in $data/ (look again with: build/cairn top --data $data)"
}
# upload NAME...: a line of result; the files one by one are in the log.
upload() {
        build/cairn-upload --server "$url" "$@" 2>>"$logs/upload.log" || tail -n 3 "$logs/upload.log"
}

# What was sampled and has no debuginfo anywhere still has a symbol table or exported names in its own file.
upload_missing() {
        build/cairn query --server "$url" --missing | awk '$NF ~ /^\// { print $NF }' | while read -r path; do
                [ ! -r "$path" ] || echo "$path"
        done >"$logs/missing"
        [ ! -s "$logs/missing" ] || tr '\n' '\0' <"$logs/missing" |
                xargs -0 build/cairn-upload --server "$url" 2>>"$logs/upload.log" || true
}
# Sets sudo to the word that gives rights, or to nothing: the agent profiles without any, only less.
find_rights() {
        [ "$(id -u)" -ne 0 ] || return 0
        if ! command -v sudo >/dev/null 2>&1; then
                echo "You are not root and there is no sudo: only your own processes can be profiled."
        elif sudo -n true 2>/dev/null; then
                sudo=sudo
        elif [ ! -t 0 ]; then
                echo "sudo asks for a password and this is no terminal: only your own processes can be profiled."
        else
                echo "Profiling every process needs root; without it, only your own are profiled."
                if sudo -v; then sudo=sudo; else echo "sudo says no: going on without it."; fi
        fi
}

# What the agent can do here goes to the screen; false when that is nothing.
examine() {
        can_profile=1
        # shellcheck disable=SC2086  # no word at all for root
        $sudo build/cairn-agent --doctor >"$logs/doctor" || can_profile=
        if [ -n "$can_profile" ] && ! grep -q 'by perf events alone' "$logs/doctor"; then
                cat "$logs/doctor"
                return 0
        fi
        echo "BPF can't be used here. What is missing:"
        grep -A 1 '^fail' "$logs/doctor" | grep -v '^--' || true
        echo
        grep '^ok.*perf sampler' "$logs/doctor" || true
        tail -n 1 "$logs/doctor"
        [ -n "$can_profile" ]
}
report() {
        say "Where this machine spent its time (self, cumulative)"
        build/cairn top --server "$url" --limit 25
}
trap 'stop; exit 0' INT TERM
trap stop EXIT

say "Service: $url (data in $data/, log in $logs/serve.log)"
rm -f "$logs/port"
# In a session of its own: the terminal's Ctrl-C must not stop it before the agent has sent its last samples.
setsid build/cairn serve --data "$data" --listen "127.0.0.1:$port" --flush-interval 5 --port-file "$logs/port" \
        2>"$logs/serve.log" &
server_pid=$!
tries=0
until [ -s "$logs/port" ]; do
        kill -0 "$server_pid" 2>/dev/null || { cat "$logs/serve.log" >&2; server_pid=; exit 1; }
        tries=$((tries + 1))
        [ "$tries" -lt 200 ] || { echo "the service did not start in 20 s; see $logs/serve.log" >&2; exit 1; }
        sleep 0.1
done

if [ "$demo" != 0 ]; then
        say "Demo: a stripped program works; its debuginfo is kept back for some seconds"
        setsid build/demo/cairn-demo >"$logs/demo.log" 2>&1 &
        demo_pid=$!
fi

say "Agent: sampling this machine"
find_rights
if examine; then
        rm -f "$logs/agent.pid" # an older run's process may be somebody else's by now
        # The shell becomes the agent, so the file names the process to stop: sudo does not pass on signals from here.
        # shellcheck disable=SC2016,SC2086  # expanded inside; no word at all for root
        $sudo sh -c 'echo $$ >"$1"; exec build/cairn-agent --server "$2" --interval 5' sh "$logs/agent.pid" "$url" \
                2>"$logs/agent.log" &
        agent_pid=$!
else
        echo "The agent can't sample here (see above). The service runs all the same:"
        echo "send it profiles with OTLP or pprof, or: build/cairn import --server $url FILE"
fi

say "Debuginfo: what this machine has"
for dir in /usr/lib/debug build/cairn build/cairn-agent; do
        [ ! -e "$dir" ] || upload "$dir"
done

if [ "$demo" != 0 ]; then
        wait_for=$((${seconds:-30} / 3))
        [ "$wait_for" -le 10 ] || wait_for=10
        sleep "$wait_for"
        say "Before its debuginfo: the demo's frames are addresses"
        build/cairn top --server "$url" --limit 5 '{service_name="cairn-demo"}' || true
        upload build/demo/cairn-demo.debug
        sleep 3
        say "After: the same past samples, now with functions, files and lines"
        build/cairn top --server "$url" --limit 5 '{service_name="cairn-demo"}' || true
fi

upload_missing

say "Look here"
echo "  flame graph in a browser   $url/"
echo "  on the command line        build/cairn top --server $url"
echo "  files for DuckDB           $data/profiles/tables/"
if [ -n "$seconds" ]; then
        rest=$((seconds - ${wait_for:-0} - 3))
        [ "$rest" -le 0 ] || sleep "$rest"
        upload_missing
        sleep 2
        exit 0
fi
echo "  Ctrl-C stops everything"
wait "$server_pid"
