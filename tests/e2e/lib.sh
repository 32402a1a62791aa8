# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# Shared by the shell tests. A test starts with:
#
#     . tests/e2e/lib.sh
#
# and ends with done_testing. $tmp is its scratch directory, which is removed
# at the end; every process that was started here is killed then. $cairn is
# the program under test, built with sanitizers; whatever they find is in the
# server's log and fails the test at stop_server.

set -u
: "${CAIRN_BUILD:=$PWD/build}" "${CAIRN_SAN:=$PWD/build/san}"
cairn=$CAIRN_SAN/cairn
tmp=$(mktemp -d "${TMPDIR:-/tmp}/cairn-e2e-XXXXXX")
test_count=0
test_failed=0
server_pid=
server_log=$tmp/serve.log
data=$tmp/data
url=
unset DEBUGINFOD_URLS
export CAIRN_CACHE_DIR= CAIRN_CONFIG=
export PYTHONPATH="$PWD/tests/e2e${PYTHONPATH:+:$PYTHONPATH}" # modules that scripts of several folders import

# list_below PID...: their descendants.
list_below() {
        for parent; do
                # Word splitting is meant.
                # shellcheck disable=SC2046
                set -- $(cat "/proc/$parent/task/"*/children 2>/dev/null)
                [ $# -eq 0 ] || { echo "$@"; list_below "$@"; }
        done
}

# Every process below this shell is killed, including those without a variable and those started by a wrapper.
# background_pids contains processes that may have left this process tree.
cleanup() {
        # shellcheck disable=SC2046,SC2086
        kill -9 $(list_below $$) $server_pid ${background_pids:-} 2>/dev/null
        wait 2>/dev/null
        rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# ---- TAP ----

diag() { printf '%s\n' "$*" | sed 's/^/# /'; }

# pass NAME / fail NAME [DETAIL]
pass() { test_count=$((test_count + 1)); printf 'ok %d - %s\n' "$test_count" "$1"; }
fail() {
        test_count=$((test_count + 1)); test_failed=$((test_failed + 1))
        printf 'not ok %d - %s\n' "$test_count" "$1"
        [ $# -lt 2 ] || diag "$2"
}

# ok NAME COMMAND...: the command succeeds.
ok() {
        ok_name=$1; shift
        [ "$1" != healthy ] || "$@"
        if ok_out=$("$@" 2>&1); then pass "$ok_name"; else fail "$ok_name" "failed: $* : $ok_out"; fi
}

# is GOT WANT NAME
is() { if [ "$1" = "$2" ]; then pass "$3"; else fail "$3" "got '$1', want '$2'"; fi; }

# like GOT PATTERN NAME: PATTERN is an extended regular expression.
like() { if printf '%s\n' "$1" | grep -Eq -e "$2"; then pass "$3"; else fail "$3" "'$1' does not match /$2/"; fi; }
unlike() { if printf '%s\n' "$1" | grep -Eq -e "$2"; then fail "$3" "'$1' matches /$2/"; else pass "$3"; fi; }

# report_tap FILE: its lines "ok - NAME" and "not ok - NAME", numbered or not, are tests, other lines are diagnostics.
report_tap() {
        while IFS= read -r line; do
                case $line in
                'ok '*) pass "${line#*- }" ;;
                'not ok '*) fail "${line#*- }" ;;
                *) diag "${line#\# }" ;;
                esac
        done <"$1"
}

# report_checks COMMAND...: reports its output like report_tap, and tests that it exits with 0.
report_checks() {
        "$@" >"$tmp/checks" 2>"$tmp/checks.err" </dev/null
        checks_code=$?
        report_tap "$tmp/checks"
        [ "$checks_code" = 0 ] || sed 's/^/# /' "$tmp/checks.err"
        is "$checks_code" 0 "all checks were run"
}

skip_all() { printf '1..0 # SKIP %s\n' "$1"; exit 0; }
bail_out() { printf 'Bail out! %s\n' "$1"; exit 1; }

done_testing() {
        [ -z "$server_pid" ] || stop_server
        printf '1..%d\n' "$test_count"
        [ "$test_failed" -eq 0 ]
        exit $?
}

# Tries of 50 ms that waits have: two minutes, more on a loaded machine (tests/run-one).
wait_most=$((2400 * ${CAIRN_WAIT_FACTOR:-1}))

# wait_for NAME COMMAND...: waits until the command succeeds; then bails out.
wait_for() {
        wait_name=$1; shift
        wait_tries=0
        until "$@" >/dev/null 2>&1; do
                wait_tries=$((wait_tries + 1))
                if [ "$wait_tries" -ge "$wait_most" ]; then
                        [ ! -f "$server_log" ] || tail -20 "$server_log" | sed 's/^/# /'
                        bail_out "waited in vain for: $wait_name"
                fi
                [ -z "$server_pid" ] || kill -0 "$server_pid" 2>/dev/null || {
                        sed 's/^/# /' "$server_log"
                        bail_out "the service ended while waiting for: $wait_name"
                }
                sleep 0.05
        done
}

# ---- the service ----

# start_server [OPTION]...: starts it on $data with a free port; sets $url, $port, $server_pid. Fixtures have fixed
# times in the past.
start_server() {
        rm -f "$tmp/port"
        "$cairn" serve --data "$data" --listen 127.0.0.1:0 --port-file "$tmp/port" \
                --max-age any "$@" 2>>"$server_log" &
        server_pid=$!
        wait_for "the service to start" test -s "$tmp/port"
        port=$(cat "$tmp/port")
        # Shared with the tests that use this library.
        # shellcheck disable=SC2034
        url=http://127.0.0.1:$port
}

# with_clock COMMAND...: runs it with the clock of tests/faults/fault_clock.c. $cairn must be built without
# sanitizers, whose runtime would have to be loaded first.
with_clock() {
        [ -e "$tmp/fault_clock.so" ] ||
                gcc -shared -fPIC -D_GNU_SOURCE -I. -o "$tmp/fault_clock.so" tests/faults/fault_clock.c ||
                bail_out "the preload library does not build"
        LD_PRELOAD=$tmp/fault_clock.so
        export LD_PRELOAD
        "$@"
        unset LD_PRELOAD
}

# free_port: prints a port for listening, for tests that must know it in advance. It is below the ephemeral port range,
# so that no other process gets it by chance before, or between uses.
free_port() {
        echo >>"$tmp/ports"
        python3 - $$ "$(wc -l <"$tmp/ports")" <<'END'
import socket, sys
pid, count = map(int, sys.argv[1:])
for more in range(0, 22000, 1000):
    port = 10000 + (pid * 8 + count + more) % 22000
    with socket.socket() as s:
        try:
            s.bind(("", port))
        except OSError:
            continue
    print(port)
    break
END
}

# stop_server: sends SIGTERM, and tests that the server exits with 0 and no sanitizer reported an error.
stop_server() {
        kill -TERM "$server_pid"
        wait "$server_pid"
        is $? 0 "the service stops cleanly"
        server_pid=
        check_log
}

check_log() {
        if grep -Eq '(ERROR|WARNING): (Address|Leak|Thread)Sanitizer|runtime error:' "$server_log"; then
                fail "no sanitizer report" "$(grep -E -A15 'Sanitizer|runtime error:' "$server_log" | head -60)"
                mv "$server_log" "$server_log.seen"
        else
                pass "no sanitizer report"
        fi
}

# kill_server: simulates a crash.
kill_server() {
        kill -9 "$server_pid"
        wait "$server_pid" 2>/dev/null
        server_pid=
}

# metric_at URL NAME [CURL-ARGUMENT]...: its value (0 before its first event), nothing if the service does not answer;
# NAME may have labels.
metric_at() {
        metric_url=$1 metric_name=$2; shift 2
        metric_lines=$(curl -sSf --max-time 60 "$@" "$metric_url/metrics") || return
        printf '%s\n' "$metric_lines" |
                awk -v name="$metric_name" '$1 == name { print $2; found = 1 } END { if (!found) print 0 }'
}
metric() { metric_at "$url" "$1"; }

metric_reached() { [ "$(metric "$1")" -ge "$2" ]; }
metric_equals() { [ "$(metric "$1")" -eq "$2" ]; }

# becomes VALUE NAME COMMAND...: tests that the command prints the value within two minutes. For values that are not
# ordered with an earlier response: a log line written by another thread, or figures of tables, for which /metrics and
# the status API return cached values if the store takes more than 100 ms to respond.
becomes() {
        becomes_want=$1 becomes_name=$2; shift 2
        becomes_tries=0
        until becomes_got=$("$@"); [ "$becomes_got" = "$becomes_want" ] || [ "$becomes_tries" -ge "$wait_most" ]; do
                becomes_tries=$((becomes_tries + 1))
                sleep 0.05
        done
        is "$becomes_got" "$becomes_want" "$becomes_name"
}

# wait_metric NAME VALUE: waits until it is at least VALUE.
wait_metric() { wait_for "$1 >= $2" metric_reached "$1" "$2"; }

# request CURL-ARGUMENT...: sets $code and $body.
request() {
        : >"$tmp/body"
        code=$(curl -sS --max-time 120 -o "$tmp/body" -w '%{http_code}' "$@" 2>"$tmp/curl.err")
        # shellcheck disable=SC2034
        body=$(tr -d '\000' <"$tmp/body")
}

# answers CODE PATTERN NAME CURL-ARGUMENT...: tests status and body of a response.
answers() {
        want_code=$1; want_body=$2; answers_name=$3; shift 3
        request "$@"
        if [ "$code" = "$want_code" ] && printf '%s\n' "$body" | grep -Eq -e "$want_body"; then
                pass "$answers_name"
        else
                fail "$answers_name" "got $code '$body' $(cat "$tmp/curl.err"), want $want_code /$want_body/"
        fi
}

# healthy: tests that it responds. Ends the test if the service has exited.
healthy() {
        kill -0 "$server_pid" 2>/dev/null || { sed 's/^/# /' "$server_log" | tail -60; bail_out "the service is gone"; }
        [ "$(curl -sS --max-time 60 "$url/healthz")" = ok ]
}

# peak_memory_kb: the peak memory of the service.
peak_memory_kb() { awk '/^VmHWM:/ { print $2 }' "/proc/$server_pid/status"; }

# ---- debuginfo ----

build_id_of() { readelf -n "$1" 2>/dev/null | sed -n 's/ *Build ID: //p' | head -1; }

# put_object KIND FILE [CURL-ARGUMENT]...: uploads with curl; sets $code and $body.
put_object() {
        put_kind=$1; put_file=$2; shift 2
        zstd -q -c "$put_file" >"$tmp/put.zst"
        request -X PUT -T "$tmp/put.zst" -H 'Content-Encoding: zstd' -H "X-Cairn-Size: $(stat -c %s "$put_file")" \
                -H "X-Cairn-SHA256: $(sha256sum "$put_file" | cut -d' ' -f1)" \
                "$url/api/v1/debuginfo/$(build_id_of "$put_file")/$put_kind?name=$(basename "$put_file")" "$@"
}
