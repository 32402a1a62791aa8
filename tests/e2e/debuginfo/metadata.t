#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# /metadata of the debuginfod web API: the build-ids of files in the store, in scanned trees and at upstreams.
. tests/e2e/lib.sh
for tool in gcc objcopy dpkg-deb jq python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

tree=$tmp/tree
mkdir -p "$tree" "$tmp/deb/usr/bin" "$tmp/deb/DEBIAN" "$tmp/upstream"
printf 'int main(void) { return 0; }\n' >"$tmp/program.c"
build() { gcc -g -Wl,--build-id="0x00000000000000000000000000000000000000$1" -o "$2" "$tmp/program.c"; }
id() { printf '%038d%s' 0 "$1"; }
build 11 "$tmp/whole"
objcopy --strip-all "$tmp/whole" "$tmp/deb/usr/bin/thing"
printf 'Package: thing\nVersion: 1\nArchitecture: all\nMaintainer: nobody <n@example.org>\nDescription: x\n' \
        >"$tmp/deb/DEBIAN/control"
dpkg-deb --root-owner-group -b "$tmp/deb" "$tree/thing.deb" >/dev/null 2>&1
build 12 "$tree/plain"
build 13 "$tmp/stored.debug"

# ask KEY VALUE [JQ]: the response, or the result of jq for it.
ask() { curl -sS -G "$url/metadata" --data-urlencode "key=$1" --data-urlencode "value=$2" | jq -cS "${3:-.}"; }

# ---- an upstream, and a simulated one ----

"$cairn" serve --data "$tmp/upstream/data" --listen 127.0.0.1:0 --port-file "$tmp/upstream/port" --scan "$tree" \
        2>"$tmp/upstream/log" &
background_pids=$!
wait_for "the upstream" test -s "$tmp/upstream/port"
upstream=http://127.0.0.1:$(cat "$tmp/upstream/port")
wait_for "its scan" sh -c "curl -sS $upstream/metrics | grep -q '^cairn_scan_rounds_total 1'"
url=$upstream

is "$(ask file /usr/bin/thing)" \
        "{\"complete\":true,\"results\":[{\"archive\":\"$tree/thing.deb\",\"buildid\":\"$(id 11)\",\"file\":\"/usr/bin/thing\",\"type\":\"executable\"}]}" \
        "a member of a package by its path"
is "$(ask glob '/usr/*/thi*' '[.results[].buildid]')" "[\"$(id 11)\"]" "a member of a package is found by a pattern"
is "$(ask glob '/usr/*' .results)" '[]' "whose star does not match a slash"
is "$(ask file "$tree/plain" '[.results[] | [.type, .archive]]')" '[["executable",null],["debuginfo",null]]' \
        "a plain file has both kinds"
is "$(ask buildid "$(id 12)" '[.results[].file]')" "[\"$tree/plain\",\"$tree/plain\"]" \
        "the files of a build-id are found"
is "$(ask buildid "$(id 99)")" '{"complete":true,"results":[]}' "an unknown one"
answers 400 'file, glob or buildid' "another key is refused" "$url/metadata?key=size&value=1"
answers 400 'file, glob or buildid' "as is none" "$url/metadata"
answers 400 'not a build-id' "and what is no build-id" "$url/metadata?key=buildid&value=xyz"

# ---- federated ----

cat >"$tmp/server.py" <<'END'
import http.server, sys
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        open(sys.argv[2], 'a').write('%s %s\n' % (self.path, self.headers.get('X-Forwarded-For')))
        body = open(sys.argv[1], 'rb').read()
        self.send_response(int(body[7:]) if body.startswith(b'status ') else 200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
s = http.server.HTTPServer(('127.0.0.1', 0), H)
open(sys.argv[3], 'w').write('%d\n' % s.server_port)
s.serve_forever()
END
printf '{"results":[{"type":"debuginfo","buildid":"aabb","file":"/x"},{"type":"debuginfo","buildid":"zz"},7],"complete":true}' >"$tmp/answer"
python3 "$tmp/server.py" "$tmp/answer" "$tmp/asked" "$tmp/made.port" &
made_pid=$!
background_pids="$background_pids $made_pid"
wait_for "the made-up upstream" test -s "$tmp/made.port"

start_server --upstream "$upstream" --upstream "http://127.0.0.1:$(cat "$tmp/made.port")"
put_object debuginfo "$tmp/stored.debug"
is "$code" 201 "an object is stored"
is "$(ask file stored.debug '[.results[] | select(.file == "stored.debug") | [.type, .buildid]]')" \
        "[[\"debuginfo\",\"$(id 13)\"]]" "it is found by its name"
is "$(ask buildid "$(id 11)" '[.complete, [.results[].buildid]]')" "[true,[\"$(id 11)\",\"aabb\"]]" \
        "what upstreams know comes too, without what is malformed"
like "$(tail -1 "$tmp/asked")" "^/metadata\?key=buildid&value=$(id 11) .*_cairn-[0-9a-f]{16}" \
        "they receive the forwarding path of the request"
is "$(curl -sS -H 'X-Forwarded-For: a, b, c, d, e, f, g, h' "$url/metadata?key=buildid&value=$(id 11)" |
        jq -c '[.complete, .results]')" '[true,[]]' \
        "a question that has come far enough is not asked any further"
printf '{"results":[],"complete":false}' >"$tmp/answer"
is "$(ask buildid "$(id 11)" .complete)" false "an upstream that is not complete makes the answer incomplete"
printf 'status 404' >"$tmp/answer"
is "$(ask buildid "$(id 11)" '[.complete, (.results | length)]')" '[false,1]' \
        "as does one that does not respond, and other results are returned"
printf '{"results":[' >"$tmp/answer"
is "$(ask buildid "$(id 11)" .complete)" false "a truncated response of an upstream makes the result incomplete"
python3 -c 'print("{\"results\":[],\"complete\":true}" + " " * (16 << 20))' >"$tmp/answer"
is "$(ask buildid "$(id 11)" .complete)" false "a response above 16 MiB makes the result incomplete"
made=http://127.0.0.1:$(cat "$tmp/made.port")
outcome() { metric "cairn_upstream_requests_total{upstream=\"$made\",outcome=\"$1\"}"; }
is "$(outcome found) $(outcome missing) $(outcome refused)" "3 1 2" "the requests are counted for the upstream"
stop_server

start_server --upstream "$made" --upstream "$upstream"
printf '{"results":[{"type":"debuginfo","buildid":"aabb","file":"/x"}],"complete":false}' >"$tmp/answer"
is "$(ask buildid "$(id 11)" '[.complete, [.results[].buildid]]')" "[false,[\"aabb\",\"$(id 11)\"]]" \
        "what comes after an answer that is not complete counts too"

# ---- breakers ----

breaker() { curl -sS "$url/api/v1/debuginfo/upstreams" | jq -r ".upstreams[] | select(.url == \"$made\") | .breaker"; }
printf 'status 500' >"$tmp/answer"
for i in 1 2 3 4 5 6; do request "$url/metadata?key=file&value=/$i"; done
is "$(breaker)" closed "a server without support for metadata is not treated as failing"
kill "$made_pid"
for i in 1 2 3 4 5; do request "$url/metadata?key=file&value=/$i"; done
is "$(breaker)" open "an unreachable one is"
asked=$(outcome skipped)
is "$(ask buildid "$(id 11)" '[.complete, [.results[].buildid]]')" "[false,[\"$(id 11)\"]]" \
        "while its breaker is open the answer is incomplete"
is "$(outcome skipped) $(outcome failed)" "$((asked + 1)) 5" "  without a request to it"
done_testing
