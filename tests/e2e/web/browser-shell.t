#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The service's web UI in a browser, with a recorded profile: views, selection, accessibility, Content-Security-Policy.
. tests/e2e/lib.sh
. tests/browser/lib.sh
. tests/browser/load_data.sh
start_server --flush-interval 1
load_recorded
load_types
load_hostile

# ---- what the page loads ----

curl -sS -D "$tmp/head" -o "$tmp/page.html" "$url/"
like "$(cat "$tmp/head")" "^Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';" \
        "the page has a policy"
unlike "$(cat "$tmp/page.html")" '<script[^>]*>[^<]|<style| (style|on[a-z]+)=|https?://' \
        "  the page has nothing inline, and nothing of other hosts"
for asset in $(grep -Eo '(href|src)="assets/[^"]*' "$tmp/page.html" | cut -d'"' -f2); do
        curl -sS --compressed -D "$tmp/head" -o "$tmp/asset" "$url/$asset"
        like "$(cat "$tmp/head")" '^Cache-Control: public, max-age=[0-9]+, immutable' "$asset may be cached"
        is "$(sha256sum "$tmp/asset" | cut -c1-16)" "$(echo "$asset" | cut -d. -f2)" \
                "  its name contains the hash of its content"
        like "$(cat "$tmp/head")" '^Content-Encoding: ' "  it is sent compressed"
        etag=$(sed -n 's/^ETag: //p' "$tmp/head" | tr -d '\r')
        answers 304 '' "  and not sent again" -H "If-None-Match: $etag" "$url/$asset"
        cat "$tmp/asset" >>"$tmp/assets"
done
ok "the whole page is below 350 kB" test "$(cat "$tmp/page.html" "$tmp/assets" | wc -c)" -lt 350000
answers 404 'reload the page' "an asset of another version is not there" "$url/assets/service.0000000000000000.js"
curl -sS -D "$tmp/head" -o "$tmp/flame.html" "$url/api/v1/query/flame?format=html"
is "$(sed -n "s/^Content-Security-Policy: \(.*\); frame-ancestors 'none'.*/\1/p" "$tmp/head")" \
        "$(sed -n 's/.*http-equiv="Content-Security-Policy" content="\([^"]*\)".*/\1/p' "$tmp/flame.html")" \
        "the page with one flame graph has one policy, in the header and in itself"

run_browser shell.js "$url" "$tmp/flame.html"
done_testing
