#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Upstreams from a file, with their credentials: these are only sent to their upstream, and never displayed.
. tests/e2e/lib.sh
for tool in gcc jq python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

secret=a-secret-that-is-nowhere-to-be-seen
printf 'int main(void) { return 0; }\n' >"$tmp/a.c"
id() { printf '%038d%s' 0 "$1"; }
gcc -g -Wl,--build-id="0x$(id 11)" -o "$tmp/program" "$tmp/a.c"

# ---- another service that requires a token ----

echo "$secret read,upload" >"$tmp/far.tokens"
mkdir "$tmp/far"
"$cairn" serve --data "$tmp/far/data" --listen 127.0.0.1:0 --port-file "$tmp/far/port" --token-file "$tmp/far.tokens" \
        2>"$tmp/far/log" &
background_pids=$!
wait_for "the upstream" test -s "$tmp/far/port"
far=http://127.0.0.1:$(cat "$tmp/far/port")
CAIRN_TOKEN=$secret "$CAIRN_BUILD/cairn-upload" --server "$far" "$tmp/program" >/dev/null 2>&1
is $? 0 "another service has a program, and asks for a token"

# ---- a server that records requests, and one that redirects ----

cat >"$tmp/server.py" <<'END'
import http.server, os, sys
dir, = sys.argv[1:]
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open(dir + '/asked', 'a') as f:
            f.write('%s %s %s\n' % (self.path, self.headers.get('X-Key'), self.headers.get('Authorization')))
        to = open(dir + '/to').read().strip() if os.path.exists(dir + '/to') else ''
        self.send_response(302 if to else 404)
        if to:
            self.send_header('Location', to + self.path)
        self.send_header('Content-Length', '0')
        self.end_headers()
    def log_message(self, *args):
        pass
s = http.server.HTTPServer(('127.0.0.1', 0), H)
open(dir + '/port.new', 'w').write('%d\n' % s.server_port)
os.rename(dir + '/port.new', dir + '/port')
s.serve_forever()
END
for n in noting other; do
        mkdir "$tmp/$n"
        python3 "$tmp/server.py" "$tmp/$n" &
        background_pids="$background_pids $!"
        wait_for "the server $n" test -s "$tmp/$n/port"
done
noting=http://127.0.0.1:$(cat "$tmp/noting/port")

printf '# upstreams\n%s token=%s\n%s header=X-Key: %s two\n' "$far" "$secret" "$noting" "$secret" >"$tmp/upstreams"
start_server --upstreams "$tmp/upstreams"
is "$(curl -sS "$url/metadata?key=buildid&value=$(id 11)" | jq -c '[.results[].buildid]')" "[\"$(id 11)\"]" \
        "metadata is requested with it, too"
rm "$tmp/noting/asked"
answers 200 . "what it has comes by its token" "$url/buildid/$(id 11)/debuginfo"
answers 404 . "what nobody has" "$url/buildid/$(id 12)/debuginfo"
is "$(cat "$tmp/noting/asked")" "/buildid/$(id 12)/debuginfo $secret two None" \
        "a header goes to the upstream whose line has it, and no other secret does"
printf 'http://127.0.0.1:%s' "$(cat "$tmp/other/port")" >"$tmp/noting/to"
request "$url/buildid/$(id 13)/debuginfo"
ok "a redirect to another port is not followed" test ! -e "$tmp/other/asked"
printf '%s/moved' "$noting" >"$tmp/noting/to"
request "$url/buildid/$(id 14)/debuginfo"
is "$(grep -m 1 "^/moved/buildid" "$tmp/noting/asked")" "/moved/buildid/$(id 14)/debuginfo $secret two None" \
        "one to the same port has the header"
unlike "$(cat "$server_log"; curl -sS "$url/api/v1/debuginfo/upstreams"; curl -sS "$url/metrics"; tr '\0' ' ' \
        <"/proc/$server_pid/cmdline")" \
        "$secret" "no log, no status, no metric and no argument shows it"
like "$(cat "$server_log")" "secret header for upstream $noting is sent unencrypted" "sending it over http is reported"
stop_server

printf '%s token=%s-not\n' "$far" "$secret" >"$tmp/upstreams"
start_server --upstreams "$tmp/upstreams"
request "$url/buildid/$(id 15)/debuginfo"
like "$(curl -sS "$url/api/v1/debuginfo/upstreams" | jq -r '.upstreams[0].last_error')" 'status 401' \
        "a wrong token is a failure of the upstream, not a miss"
stop_server

printf '%s token=ab' "$far" >"$tmp/upstreams" # cut off from token=abcdef
"$cairn" serve --data "$data" --listen 127.0.0.1:0 --upstreams "$tmp/upstreams" 2>"$tmp/err"
is $? 2 "a file that is cut off keeps the service from starting"
like "$(cat "$tmp/err")" "upstreams' does not end with a line end" "its message says what is missing"

printf '%s %s\n' "$far" "$secret" >"$tmp/upstreams"
"$cairn" serve --data "$data" --listen 127.0.0.1:0 --upstreams "$tmp/upstreams" 2>"$tmp/err"
is $? 2 "a line that is malformed keeps the service from starting"
like "$(cat "$tmp/err")" "line 1: write URL" "  the malformed line is named"
unlike "$(cat "$tmp/err")" "$secret" "  without what it says"
done_testing
