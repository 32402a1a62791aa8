#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Run by `make run`. Starts the service and the agent on this machine, uploads
# the debuginfo it finds, runs a stripped demo program whose debuginfo is
# uploaded later, and prints the URL and commands to look at the result.
# Ctrl-C, or the end of RUN_SECONDS, stops everything; acknowledged data is
# not lost.
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

# The agent is stopped first, so that it can still send its last samples to the service.
stop() {
        [ -z "$stopping" ] || return 0
        stopping=1
        [ -z "$demo_pid" ] || kill "$demo_pid" 2>/dev/null || true
        if [ -n "$agent_pid" ]; then
                # The shell's built-in kill: a minimal Debian has no other.
                # shellcheck disable=SC2086  # $sudo may be empty
                $sudo sh -c 'kill -TERM "$1"' sh "$(cat "$logs/agent.pid")" 2>/dev/null || true
                wait "$agent_pid" 2>/dev/null || true
        fi
        if [ -n "$server_pid" ]; then
                [ -z "$seconds" ] || report || true
                kill -TERM "$server_pid" 2>/dev/null || true
                wait "$server_pid" 2>/dev/null || true
        fi
        echo
        echo "stopped; the recorded profiles are kept in $data/ (to query them again: build/cairn top --data $data)"
}
# upload NAME...: prints one line with the result; the log has a line for each file.
upload() {
        build/cairn-upload --server "$url" "$@" 2>>"$logs/upload.log" || tail -n 3 "$logs/upload.log"
}

# Uploads sampled files without debuginfo: they still have a symbol table or exported names.
upload_missing() {
        build/cairn query --server "$url" --missing | awk '$NF ~ /^\// { print $NF }' | while read -r path; do
                [ ! -r "$path" ] || echo "$path"
        done >"$logs/missing"
        [ ! -s "$logs/missing" ] || tr '\n' '\0' <"$logs/missing" |
                xargs -0 build/cairn-upload --server "$url" 2>>"$logs/upload.log" || true
}
# Sets sudo to "sudo" if it can be used, else leaves it empty: without root, the agent profiles fewer processes.
find_rights() {
        [ "$(id -u)" -ne 0 ] || return 0
        if ! command -v sudo >/dev/null 2>&1; then
                echo "Not running as root and sudo is not installed: only your own processes can be profiled."
        elif sudo -n true 2>/dev/null; then
                sudo=sudo
        elif [ ! -t 0 ]; then
                echo "sudo needs a password and stdin is not a terminal: only your own processes can be profiled."
        else
                echo "Profiling all processes needs root; without it, only your own are profiled."
                if sudo -v; then sudo=sudo; else echo "sudo failed: continuing without it."; fi
        fi
}

# Prints how the agent can sample on this machine; false when it cannot.
examine() {
        can_profile=1
        # shellcheck disable=SC2086  # $sudo may be empty
        $sudo build/cairn-agent --doctor >"$logs/doctor" || can_profile=
        if [ -n "$can_profile" ] && ! grep -q 'by perf events alone' "$logs/doctor"; then
                cat "$logs/doctor"
                return 0
        fi
        echo "BPF can't be used here. Failed checks:"
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
# In its own session: the terminal's Ctrl-C must not stop it before the agent has sent its last samples.
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
        say "Demo: a stripped program is running; its debuginfo is uploaded a few seconds later"
        setsid build/demo/cairn-demo >"$logs/demo.log" 2>&1 &
        demo_pid=$!
fi

say "Agent: sampling this machine"
find_rights
if examine; then
        rm -f "$logs/agent.pid" # the PID of an older run may have been reused
        # The shell execs the agent, so the file has the PID to signal: sudo does not relay signals sent from this script.
        # shellcheck disable=SC2016,SC2086  # expanded in the inner shell; $sudo may be empty
        $sudo sh -c 'echo $$ >"$1"; exec build/cairn-agent --server "$2" --interval 5' sh "$logs/agent.pid" "$url" \
                2>"$logs/agent.log" &
        agent_pid=$!
else
        echo "The agent can't sample here (see above). The service is running without it:"
        echo "send it profiles with OTLP or pprof, or run: build/cairn import --server $url FILE"
fi

say "Debuginfo: uploading the debuginfo of this machine"
for dir in /usr/lib/debug build/cairn build/cairn-agent; do
        [ ! -e "$dir" ] || upload "$dir"
done

if [ "$demo" != 0 ]; then
        wait_for=$((${seconds:-30} / 3))
        [ "$wait_for" -le 10 ] || wait_for=10
        sleep "$wait_for"
        say "Before the upload of its debuginfo: the demo's frames are addresses"
        build/cairn top --server "$url" --limit 5 '{service_name="cairn-demo"}' || true
        upload build/demo/cairn-demo.debug
        sleep 3
        say "After the upload: the same samples, now with functions, files and lines"
        build/cairn top --server "$url" --limit 5 '{service_name="cairn-demo"}' || true
fi

upload_missing

say "Where to look"
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
