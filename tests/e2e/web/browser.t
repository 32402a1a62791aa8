#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Requests that pages of other origins, and of a name rebound to the service's address (DNS rebinding), can send through
# a browser on the host to a service without tokens: nothing may be stored, removed or read. The service's own page must
# work.
. tests/e2e/lib.sh
for tool in gcc curl jq zstd python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
command -v chromium >/dev/null || {
        [ -z "${CAIRN_NEED_ORACLES:-}" ] || bail_out "chromium is not installed: scripts/deps.sh all"
        skip_all "chromium is not installed"
}

# open_page URL: writes the page, after its scripts have finished, to $tmp/dom.
open_page() {
        rm -rf "$tmp/profile"
        HOME=$tmp timeout -k 1 $((40 * ${CAIRN_WAIT_FACTOR:-1})) chromium --headless --no-sandbox --disable-gpu \
                --disable-quic \
                --disable-dev-shm-usage --no-first-run \
                --disable-background-networking --disable-component-update --disable-sync --disable-breakpad \
                --disable-crash-reporter \
                --user-data-dir="$tmp/profile" --host-resolver-rules="MAP evil.example 127.0.0.2" \
                --virtual-time-budget=8000 \
                --dump-dom "$1" >"$tmp/dom" 2>"$tmp/chromium.err" </dev/null
}
# saw PATTERN NAME: the page contains the pattern.
saw() { if grep -Eq -e "$1" "$tmp/dom"; then pass "$2"; \
        else fail "$2" "no /$1/ in: $(head -c 3000 "$tmp/dom") $(tail -5 "$tmp/chromium.err")"; fi; }
saw_not() { if grep -Eq -e "$1" "$tmp/dom"; then fail "$2" "$(grep -E -e "$1" "$tmp/dom")"; else pass "$2"; fi; }
objects() { "$cairn" debuginfo list --server "$url" --json | jq -c '[.objects[] | [.build_id, .kind]]'; }
refused() { metric 'cairn_http_requests_total{code="4xx"}'; }
# nothing_changed NAME
nothing_changed() {
        is "$(objects)" "$stored" "$1: no object was added or removed"
        is "$(metric cairn_ingest_batches_total)" 1 "  no batch was accepted"
        is "$(grep ' audit: ' "$server_log" | grep -Ec ' audit: 2..')" "$audited" "  no change was logged"
}

printf 'int main(void) { return 0; }\n' >"$tmp/program.c"
id=00000000000000000000000000000000000000aa
gcc -g -Wl,--build-id=0x$id -o "$tmp/program" "$tmp/program.c"
start_server --flush-interval 1
put_object executable "$tmp/program"
is "$code" 201 "an object is stored"
wait_metric cairn_objects_indexed_total 1
answers 200 '' "a batch is taken" --data-binary 'main;render_honest 3' \
        "$url/ingest?name=honest&format=folded&from=$(date +%s)"
wait_metric cairn_flushes_total 1
stored=$(objects)
audited=$(grep -Ec ' audit: 2..' "$server_log")
mkdir "$tmp/site"
python3 tests/e2e/web/browser.py "$tmp/site" "$port" $id 2>"$tmp/site.err" &
wait_for "the attacker's site" test -s "$tmp/site/port"

before=$(refused)
open_page "http://127.0.0.1:$(cat "$tmp/site/port")/#$url"
saw '^attempts: all made' "another origin tries everything"
ok "  the service refused it" test $(($(refused) - before)) -ge 12
saw_not '(basic|cors|default) [0-9]' "  no answer could be read"
nothing_changed "another origin"

before=$(refused)
open_page "http://evil.example:$port/attack.html"
saw '^attempts: all made' "a name that is rebound to the service tries everything"
saw '^read-list: basic 421 ' "  it may read answers, which are 421"
saw_not 'basic ([^4]|4[^2])' "  and nothing else"
ok "  the service refused it" test $(($(refused) - before)) -ge 18
nothing_changed "a rebound name"

open_page "$url/#view=top"
saw '<title>Cairn' "the service's own page is shown"
saw 'render_honest' "  with functions"
done_testing
