#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A request is cancelled when its client disconnects: waits for upstreams end, and workers are killed.
. tests/e2e/lib.sh
for tool in gcc curl python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

# An upstream that accepts requests and never responds.
python3 - "$tmp" <<'END' &
import http.server, sys, time
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        open(sys.argv[1] + '/asked', 'a').write(self.path + '\n')
        time.sleep(600)
    do_HEAD = do_GET
    def log_message(self, *args):
        pass
s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H)
open(sys.argv[1] + '/upstream', 'w').write('%d\n' % s.server_port)
s.serve_forever()
END
background_pids=$!
wait_for "the upstream" test -s "$tmp/upstream"
start_server --upstream "http://127.0.0.1:$(cat "$tmp/upstream")"

metric() { curl -sS "$url/metrics" | sed -n "s/^$1 //p"; }
# idle_within SECONDS POOL: no request of the pool runs or waits any more.
idle_within() {
        for _ in $(seq $(($1 * 5))); do
                [ "$(metric "cairn_http_pool_busy{pool=\"$2\"}")" = 0 ] && [ "$(metric cairn_http_waiting)" = 0 ] &&
                        return
                sleep 0.2
        done
        return 1
}

waits_for_one() { [ "$(metric cairn_http_waiting)" = 1 ]; } # the upstream may get its request slightly earlier

id=0123456789abcdef0123456789abcdef01234567
for path in "/buildid/$id/debuginfo" "/buildid/$id/section/.text" "/buildid/$id/source/a.c" \
        "/metadata?key=file&value=/x"; do
        rm -f "$tmp/asked"
        curl -sS "$url$path" >/dev/null 2>&1 &
        curl_pid=$!
        wait_for "the upstream to be asked" test -s "$tmp/asked"
        wait_for "the request to wait" waits_for_one
        pass "$path waits for the upstream"
        kill $curl_pid
        ok "and stops when the client disconnects" idle_within 60 debuginfod
done

# ---- a worker ----

printf 'int main(void) { return 0; }\n' >"$tmp/a.c"
gcc -g -Wl,--build-id -o "$tmp/a" "$tmp/a.c" || bail_out "cannot compile"
"$CAIRN_BUILD/cairn-upload" --server "$url" "$tmp/a" >/dev/null 2>"$tmp/err" || bail_out "$(cat "$tmp/err")"
wait_for "the object to be indexed" sh -c "curl -sS $url/metrics | grep -q '^cairn_objects_indexed_total 1'"
# Stops the first worker of a report, which then never finishes by itself.
python3 - "$server_pid" "$tmp/stopped" <<'END' &
import glob, os, signal, sys
open(sys.argv[2] + '.ready', 'w').close()
while True:
    for name in glob.glob(f'/proc/{sys.argv[1]}/task/*/children'):
        try:
            for pid in map(int, open(name).read().split()):
                if b'\0explain\0' in open(f'/proc/{pid}/cmdline', 'rb').read():
                    os.kill(pid, signal.SIGSTOP)
                    open(sys.argv[2], 'w').write(f'{pid}\n')
                    sys.exit()
        except OSError:
            pass
END
background_pids="$background_pids $!"
wait_for "the script to watch" test -e "$tmp/stopped.ready"
is_stopped_or_answered() { [ -s "$tmp/stopped" ] || ! kill -0 $curl_pid 2>/dev/null; }
# A worker may start and end between two looks of the script.
until [ -s "$tmp/stopped" ]; do
        curl -sS "$url/api/v1/why?build_id=$(build_id_of "$tmp/a")&address=0x1000&second_opinion=true" >/dev/null 2>&1 &
        curl_pid=$!
        wait_for "a worker to be stopped, or its work to be done" is_stopped_or_answered
done
worker=$(cat "$tmp/stopped")
kill $curl_pid 2>/dev/null
ok "a report stops when the client disconnects" idle_within 60 symbolize
is_gone() { ! kill -0 "$worker" 2>/dev/null; }
wait_for "the worker's end" is_gone
pass "and its worker is killed"

done_testing
