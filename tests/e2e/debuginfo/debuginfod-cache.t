#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Cairn's commands and gdb share libdebuginfod's cache: each finds files fetched by the other without network access.
# The variables of debuginfod_find_debuginfo(3) have their documented meaning.
. tests/e2e/lib.sh
for tool in gdb gcc objcopy strip debuginfod-find python3 jq; do
        command -v $tool >/dev/null || skip_all "$tool is not installed"
done
for variable in $(env | sed -n 's/^\(DEBUGINFOD_[A-Z_]*\)=.*/\1/p'); do unset "$variable"; done
unset XDG_CACHE_HOME
HOME=$tmp/home
export HOME
mkdir "$HOME"

cat >"$tmp/tree.c" <<'END'
#include <time.h>
volatile int sink;
static inline __attribute__((always_inline)) int inlined_part(int n) { return n * 3; }
__attribute__((noinline)) void outer_part(int n) { sink += inlined_part(n); }
int main(int argc, char **argv) { (void)argv; while (clock() < CLOCKS_PER_SEC / 10 * argc) outer_part(argc); return 0; }
END
gcc -g -O1 -Wl,--build-id -o "$tmp/tree.whole" "$tmp/tree.c"
objcopy --only-keep-debug "$tmp/tree.whole" "$tmp/tree-debug"
strip -o "$tmp/tree" "$tmp/tree.whole"
id=$(build_id_of "$tmp/tree")
address=$(nm "$tmp/tree.whole" | awk '$3 == "outer_part" { print $1 }')

# with CACHE COMMAND...: runs it with the service as debuginfod server and the cache of this name. Sets $out; stderr
# is in $tmp/err.
with() {
        with_cache=$tmp/$1; shift
        out=$(DEBUGINFOD_URLS=$url DEBUGINFOD_CACHE_PATH=$with_cache "$@" 2>"$tmp/err" </dev/null)
}
symbolize() { with "$1" "$cairn" symbolize -e "$tmp/tree" "0x$address"; }
named='outer_part .*tree\.c:[34]'
flat() { printf '%s' "$out" | tr '\n' ' '; }
gdb_line() { with "$1" gdb -nx -batch -iex 'set debuginfod enabled on' -iex 'set debug-file-directory /nonexistent' \
        -ex 'info line outer_part' "$tmp/tree"; }

# ---- without DEBUGINFOD_URLS ----

start_server
ok "debuginfo is uploaded" "$CAIRN_BUILD/cairn-upload" --server "$url" "$tmp/tree-debug"
out=$("$cairn" symbolize -e "$tmp/tree" "0x$address" 2>&1)
unlike "$(flat)" 'tree\.c' "without DEBUGINFOD_URLS nothing is fetched"
out=$(DEBUGINFOD_URLS='' "$cairn" symbolize -e "$tmp/tree" "0x$address" 2>&1)
unlike "$(flat)" 'tree\.c' "nothing is fetched with an empty DEBUGINFOD_URLS"
is "$(ls -A "$HOME")" "" "no cache is created if nothing is fetched"
with unused "$cairn" symbolize --no-debuginfod -e "$tmp/tree" "0x$address"
unlike "$(flat)" 'tree\.c' "nothing is fetched with --no-debuginfod"
asked() { curl -sS "$url/metrics" | awk '/^cairn_debuginfod_requests_total/ { n += $2 } END { print n + 0 }'; }
is "$(asked)" 0 "the service got no request"

# ---- a file fetched by gdb ----

gdb_line gdb
like "$out" 'Line [34] of ".*tree\.c"' "gdb fetches the debuginfo"
ok "  from the service" test "$(asked)" -ge 1
symbolize cairn
like "$(flat)" "$named" "cairn symbolize fetches it into another cache"
is "$(cat "$tmp/err")" "" "  silently, without a terminal"
ok "  byte for byte" cmp "$(find "$tmp/cairn" -type f -path "*$id*" -size +0)" "$tmp/tree-debug"

stop_server
symbolize gdb
like "$(flat)" "$named" "without network cairn symbolize uses the file that gdb fetched"
with gdb "$cairn" why "$tmp/tree" "0x$address"
like "$out" "from debuginfod" "cairn why says that the file is from debuginfod"
like "$out" "outer_part" "  cairn why resolves the address"
with gdb "$cairn" index --data "$tmp/index" "$tmp/tree"
like "$out" "from dwarf" "cairn index reads it"
with gdb "$cairn" record --sampler perf -d 5 -- "$tmp/tree" 1 2 3 4 5 6 7 8 9
if grep -q '^recorded' "$tmp/err"; then
        like "$out" "tree\.c" "cairn record names lines with it"
else
        pass "cairn record # SKIP $(head -1 "$tmp/err")"
fi

# ---- a file fetched by cairn ----

gdb_line cairn
like "$out" 'Line [34] of ".*tree\.c"' "without network gdb uses the file that cairn fetched"
with cairn debuginfod-find debuginfo "$id"
ok "and so does debuginfod-find" cmp "$out" "$tmp/tree-debug"

# ---- the cache directory ----

start_server
DEBUGINFOD_URLS=$url "$cairn" symbolize -e "$tmp/tree" "0x$address" >/dev/null 2>&1
ok "the default cache is elfutils'" test -d "$HOME/.cache/debuginfod_client/$id"
DEBUGINFOD_URLS=$url XDG_CACHE_HOME=$tmp/xdg "$cairn" symbolize -e "$tmp/tree" "0x$address" >/dev/null 2>&1
ok "XDG_CACHE_HOME moves it" test -d "$tmp/xdg/debuginfod_client/$id"
mkdir "$tmp/old" "$tmp/old/.debuginfod_client_cache"
HOME=$tmp/old DEBUGINFOD_URLS=$url "$cairn" symbolize -e "$tmp/tree" "0x$address" >/dev/null 2>&1
ok "the deprecated one is used where it exists" test -d "$tmp/old/.debuginfod_client_cache/$id"
out=$(DEBUGINFOD_URLS=file://$tmp/tree-of-files DEBUGINFOD_CACHE_PATH=$tmp/from-file sh -c '
        mkdir -p "$1/buildid/$2" && cp "$3" "$1/buildid/$2/debuginfo" && exec "$4" symbolize -e "$5" "0x$6"' \
        sh "$tmp/tree-of-files" "$id" "$tmp/tree-debug" "$cairn" "$tmp/tree" "$address" 2>"$tmp/err")
like "$(flat)" "$named" "a file:// URL works"

# ---- the other variables ----

DEBUGINFOD_MAXSIZE=100
export DEBUGINFOD_MAXSIZE
symbolize maxsize
unlike "$(flat)" 'tree\.c' "DEBUGINFOD_MAXSIZE limits the size"
unset DEBUGINFOD_MAXSIZE
DEBUGINFOD_PROGRESS=1
export DEBUGINFOD_PROGRESS
symbolize progress
like "$(cat "$tmp/err")" "^downloading debuginfo of tree" "DEBUGINFOD_PROGRESS shows progress"
unset DEBUGINFOD_PROGRESS
DEBUGINFOD_VERBOSE=1
export DEBUGINFOD_VERBOSE
symbolize verbose
like "$(cat "$tmp/err")" "debuginfod_find_debuginfo $id" "DEBUGINFOD_VERBOSE shows libdebuginfod's messages"
unset DEBUGINFOD_VERBOSE
stop_server

cat >"$tmp/server.py" <<'END'
"""Writes its port to DIR/port and each request with its header X-Test to DIR/requests. Mode: silent, slow, busy, or flaky N."""
import http.server, os, socket, struct, sys, time
where, mode = sys.argv[1], sys.argv[2]
failures = int(sys.argv[3]) if len(sys.argv) > 3 else 0
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass
    def do_GET(self):
        global failures
        with open(where + "/requests", "a") as f:
            f.write(f"{self.path} {self.headers['X-Test']}\n")
        if mode == "silent":
            time.sleep(600)
        if mode == "slow":
            self.send_response(200)
            self.send_header("Content-Length", "100000000")
            self.end_headers()
            while True:
                self.wfile.write(bytes(1000))
                time.sleep(0.1)
        if mode == "flaky" and failures:
            failures -= 1
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # reset at close
            os.close(self.connection.detach())
            return
        self.send_response(503)
        self.send_header("Retry-After", "77")
        self.send_header("Content-Length", "0")
        self.end_headers()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(where + "/port", "w") as f:
    f.write(str(server.server_port))
server.serve_forever()
END
# start_other NAME MODE...: sets $url.
start_other() {
        other=$tmp/$1; shift
        mkdir "$other"
        python3 "$tmp/server.py" "$other" "$@" 2>/dev/null &
        background_pids="${background_pids:-} $!"
        wait_for "a server to start" test -s "$other/port"
        url=http://127.0.0.1:$(cat "$other/port")
}

start_other silent silent
printf 'X-Test: from the file\n' >"$tmp/headers"
DEBUGINFOD_TIMEOUT=1 DEBUGINFOD_HEADERS_FILE=$tmp/headers
export DEBUGINFOD_TIMEOUT DEBUGINFOD_HEADERS_FILE
begin=$(date +%s)
symbolize timeout
ok "DEBUGINFOD_TIMEOUT limits the wait" test $(($(date +%s) - begin)) -lt 60
like "$(cat "$tmp/silent/requests")" "from the file$" "DEBUGINFOD_HEADERS_FILE adds a header"
unset DEBUGINFOD_TIMEOUT DEBUGINFOD_HEADERS_FILE

start_other slow slow
DEBUGINFOD_MAXTIME=1
export DEBUGINFOD_MAXTIME
begin=$(date +%s)
symbolize maxtime
ok "DEBUGINFOD_MAXTIME limits the time of a running download" test $(($(date +%s) - begin)) -lt 60
unset DEBUGINFOD_MAXTIME

start_other flaky flaky 100
for retries in 0 3; do
        : >"$tmp/flaky/requests"
        DEBUGINFOD_RETRY_LIMIT=$retries
        export DEBUGINFOD_RETRY_LIMIT
        symbolize "retry-$retries"
        is "$(grep -c . "$tmp/flaky/requests")" $((1 + retries)) \
                "DEBUGINFOD_RETRY_LIMIT=$retries: broken connections are retried that often"
done
unset DEBUGINFOD_RETRY_LIMIT

start_other silent-too silent
: >"$tmp/silent-too/requests"
# Ctrl-C ends the download, not the command. A shell without job control starts background commands with SIGINT ignored.
cat >"$tmp/interrupt.py" <<'END'
import os, signal, subprocess, sys, time
requests, command = sys.argv[1], sys.argv[2:]
before = os.path.getsize(requests)
signal.signal(signal.SIGINT, signal.SIG_DFL)
process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
signal.signal(signal.SIGINT, signal.SIG_IGN)
while os.path.getsize(requests) == before:
    time.sleep(0.05)
begin = time.monotonic()
process.send_signal(signal.SIGINT)
code = process.wait()
print(f"code {code} after {'no time' if time.monotonic() - begin < 60 else 'long'}", file=sys.stderr)
END
with cancelled python3 "$tmp/interrupt.py" "$tmp/silent-too/requests" "$cairn" symbolize -e "$tmp/tree" "0x$address"
like "$(cat "$tmp/err")" "^cairn symbolize: downloads cancelled; continuing with local files" \
        "Ctrl-C cancels a download"
like "$(cat "$tmp/err")" "^code 0 after no time" "  the command continues after a cancelled download"
is "$(find "$tmp/cancelled" -type f -path "*$id*" -size +0)" "" "  the cache has no partial file"

# ---- https, confined to the cache and the system's certificates ----

if command -v openssl >/dev/null && unshare -m true 2>/dev/null && [ -f /etc/ssl/certs/ca-certificates.crt ]; then
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=127.0.0.1 \
                -addext subjectAltName=IP:127.0.0.1 -keyout "$tmp/key.pem" -out "$tmp/cert.pem" 2>/dev/null
        start_server --tls-cert "$tmp/cert.pem" --tls-key "$tmp/key.pem"
        url=https://127.0.0.1:$port
        with https unshare -m sh \
                -c 'mount --bind "$1" /etc/ssl/certs/ca-certificates.crt && exec "$2" symbolize -e "$3" "0x$4"' \
                sh "$tmp/cert.pem" "$cairn" "$tmp/tree" "$address"
        like "$(flat)" "$named" "an https server with a certificate of a system authority works"
        with https-unknown "$cairn" symbolize -e "$tmp/tree" "0x$address"
        unlike "$(flat)" 'tree\.c' "another certificate is rejected"
        stop_server
else
        pass "https # SKIP needs openssl and the right to mount"
fi

# ---- information that libdebuginfod does not return, but the service's own client needs ----

start_other busy busy
with busy-cache debuginfod-find debuginfo "$id"
like "$(cat "$tmp/err")" "No such file or directory" "libdebuginfod reports a 503 as a file that does not exist"
with busy-cache debuginfod-find debuginfo "$id"
is "$(grep -c . "$tmp/busy/requests")" 1 "  libdebuginfod caches that answer"
upstream=$url
start_server --upstream "$upstream"
curl -sS --max-time 60 -o /dev/null "$url/buildid/$id/executable" 2>/dev/null
upstreams=$("$cairn" debuginfo upstreams --server "$url" --json)
is "$(printf '%s' "$upstreams" | jq -r '.upstreams[0] | "\(.missing) \(.failed) \(.breaker)"')" "0 1 open" \
        "the service's federation counts it as a failure of the upstream"
like "$(printf '%s' "$upstreams" | jq -r '.upstreams[0].last_error')" "503" \
        "  the last error of the upstream is the 503"
retry=$(printf '%s' "$upstreams" | jq -r '.upstreams[0].retry_in_s')
ok "  and waits as long as Retry-After says" test "$retry" -gt 60 -a "$retry" -le 77
ok "the service is healthy" healthy
done_testing
