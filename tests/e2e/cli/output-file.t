#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A file that the user names as output and that exists stays what it is: a device, a FIFO, a link, a mounted file.
. tests/e2e/lib.sh
for tool in jq xz unshare; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
node=$tmp/null
mknod "$node" c 1 3 2>/dev/null && echo >"$node" || skip_all "device nodes cannot be made here"

tar -C "$tmp" -xf tests/corpus/data_directory/0.1.0-resymbolized.tar.xz || bail_out "the data directory does not unpack"
id=$("$cairn" debuginfo list --json --data "$data" | jq -r '.. | .build_id? // empty' | head -1)
printf 'main;work 100\n' >"$tmp/folded"
echo 'main;other 100' >"$tmp/before"

# every NAME COMMAND...: with `--output FILE` added, it writes to a device, a FIFO, a link, a dangling link, and a file
# with another mode; each stays what it is.
every() {
        every_name=$1; shift
        "$@" --output "$tmp/want" >"$tmp/log" 2>&1 || fail "$every_name" "$(cat "$tmp/log")"
        ok "$every_name: to a device" "$@" --output "$node"
        is "$(stat -c '%F %t %T' "$node")" "character special file 1 3" "  the device stays a device"
        mkfifo "$tmp/fifo"
        cat "$tmp/fifo" >"$tmp/read" &
        "$@" --output "$tmp/fifo" >"$tmp/log" 2>&1
        is $? 0 "  to a FIFO"
        wait $!
        ok "  whose reader gets the content" cmp "$tmp/read" "$tmp/want"
        is "$(stat -c %F "$tmp/fifo")" fifo "  it stays a FIFO"
        echo old >"$tmp/target"
        chmod 0600 "$tmp/target"
        ln -s target "$tmp/link"
        ln -s created "$tmp/dangling"
        ok "  to a link" "$@" --output "$tmp/link"
        ok "  to a dangling link" "$@" --output "$tmp/dangling"
        is "$(readlink "$tmp/link") $(readlink "$tmp/dangling")" "target created" "  the links stay"
        ok "  their target has the content" cmp "$tmp/target" "$tmp/want"
        ok "  and is created" cmp "$tmp/created" "$tmp/want"
        is "$(stat -c %a "$tmp/target")" 600 "  a file's mode is kept"
        (umask 077; "$@" --output "$tmp/private") >"$tmp/log" 2>&1
        is "$(stat -c %a "$tmp/private")" 600 "  a new file has the mode of the umask"
        is "$(find "$tmp" -name '.tmp-*')" "" "  no temporary file is left"
        rm -f "$tmp/fifo" "$tmp/link" "$tmp/dangling" "$tmp/target" "$tmp/created" "$tmp/private" "$tmp/want"
}
every "cairn flame" "$cairn" flame --format folded --profile "$tmp/folded"
every "cairn top" "$cairn" top --profile "$tmp/folded"
every "cairn query" "$cairn" query --profile "$tmp/folded"
every "cairn diff" "$cairn" diff "$tmp/before" "$tmp/folded"
every "cairn symbolize" "$cairn" symbolize --no-debuginfod --folded "$tmp/folded"
every "cairn store export" "$cairn" store export --format csv --data "$data"
every "cairn debuginfo get" "$cairn" debuginfo get "$id" --data "$data"

# ---- the suffix of a file and its content ----

for command in top query flame diff gate; do
        case $command in
        diff) set -- "$tmp/before" "$tmp/folded" ;;
        gate) set -- --base "$tmp/before" --head "$tmp/folded" ;;
        *) set -- --profile "$tmp/folded" ;;
        esac
        "$cairn" $command "$@" --output "$tmp/x.svg" 2>"$tmp/err"
        is $? 64 "cairn $command refuses a suffix of another format"
        like "$(cat "$tmp/err")" "no format has the suffix of '.*/x.svg': use one of \." "  the refusal names its own"
        ok "  no file is there" test ! -e "$tmp/x.svg"
done
"$cairn" top --profile "$tmp/folded" --output "$tmp/x.json" 2>/dev/null
is "$(jq 'map(.flat) | add' "$tmp/x.json")" 100 "cairn top writes JSON to a file named .json"
"$cairn" query --profile "$tmp/folded" --types --output "$tmp/x.csv" 2>/dev/null
is "$(tr -d '\r' <"$tmp/x.csv" | head -1)" name "cairn query writes CSV to one named .csv"

# ---- what cannot be an output ----

mkdir "$tmp/directory"
ok "a directory is refused" sh -c "! '$cairn' top --profile '$tmp/folded' --output '$tmp/directory' 2>'$tmp/err'"
like "$(cat "$tmp/err")" "cannot write '.*/directory': it is a directory" \
        "  the refusal of a directory gives the reason"
"$cairn" debuginfo get 00112233445566778899 --data "$data" --output "$tmp/before" 2>/dev/null
is "$? $(cat "$tmp/before")" "1 main;other 100" "a failure leaves the old content"

# ---- standard output by its name, and a file that is a mount ----

{ echo first; "$cairn" flame --format folded --profile "$tmp/folded" --output /dev/stdout; echo last; } >"$tmp/out"
is "$(tr '\n' ' ' <"$tmp/out")" "first main;work 100 last " "/dev/stdout is the open file, at its offset"
"$cairn" store export --data "$data" --format csv >"$tmp/want" 2>/dev/null
"$cairn" store export --data "$data" --format csv --output /dev/stdout >"$tmp/out" 2>/dev/null
ok "  which has the output alone" cmp "$tmp/out" "$tmp/want"
if [ -c /dev/full ]; then
        "$cairn" debuginfo get "$id" --data "$data" --output /dev/full 2>"$tmp/err"
        like "$? $(cat "$tmp/err")" "^1 .*cannot write '/dev/full': No space left on device" "a full device is named"
fi
echo old >"$tmp/outside"
echo hidden >"$tmp/mounted"
# shellcheck disable=SC2016
if unshare -m sh -c 'mount --bind "$1/outside" "$1/mounted"' - "$tmp" 2>/dev/null; then
        unshare -m sh -c 'mount --bind "$1/outside" "$1/mounted" &&
                "$2" flame --format folded --profile "$1/folded" --output "$1/mounted"' - "$tmp" "$cairn"
        is "$? $(cat "$tmp/outside")" "0 main;work 100" "a mounted file is written in place"
fi

# ---- files of the service and the agent ----

mkfifo "$tmp/fifo"
ln -s port-target "$tmp/port-link"
"$cairn" serve --data "$data" --listen 127.0.0.1:0 --port-file "$tmp/fifo" >"$tmp/log" 2>&1
is $? 1 "the service does not wait for the reader of a FIFO"
like "$(cat "$tmp/log")" "cannot write '.*/fifo': no process reads it" \
        "  the message says that no process reads the FIFO"
(umask 077; exec "$cairn" serve --data "$data" --listen 127.0.0.1:0 --port-file "$tmp/port-link" --max-age any \
        2>>"$server_log") &
server_pid=$!
wait_for "the service to start" test -s "$tmp/port-target"
is "$(readlink "$tmp/port-link")" port-target "--port-file follows a link"
is "$(stat -c %a "$tmp/port-target")" 644 "  a new file is readable by all"
stop_server

agent=$CAIRN_SAN/cairn-agent
if "$agent" --doctor --sampler perf >"$tmp/doctor"; then
        ln -s metrics-target "$tmp/metrics"
        "$agent" --sampler perf --pid $$ --duration 1 --output "$node" --metrics-file "$tmp/metrics" 2>"$tmp/log"
        is "$? $(stat -c '%F' "$node")" "0 character special file" "the agent writes to a device"
        is "$(readlink "$tmp/metrics")" metrics-target "  the agent writes its metrics through a link"
        ok "  to its target" grep -q '^cairn_agent_samples_total' "$tmp/metrics-target"
        "$agent" --sampler perf --pid $$ --duration 1 --output "$tmp/fifo" 2>"$tmp/log"
        is $? 1 "  it does not wait for the reader of a FIFO"
        "$cairn" record --format folded --sampler perf --duration 1 --pid $$ -o "$node" 2>"$tmp/log"
        is "$? $(stat -c '%F' "$node")" "0 character special file" "cairn record writes to a device"
fi
done_testing
