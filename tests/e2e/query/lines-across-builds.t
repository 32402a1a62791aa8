#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lines of two builds whose sources differ: the cost before is at the line after that corresponds to it, by a diff of
# the texts, and lines that were removed are rows of their own.
. tests/e2e/lib.sh

command -v gcc >/dev/null || skip_all "gcc is not installed"
command -v jq >/dev/null || skip_all "jq is not installed"
for has_moved in '' moved; do
diag "directory of the builds: ${has_moved:-the same}"
rm -rf "$data"
start_server
. tests/e2e/query/two_builds.sh
compare() { "$cairn" diff --server "$url" --lines --function work --base '{version="old"}' "$@" '{version="new"}'; }
compare --json >"$tmp/out" 2>"$tmp/err" || diag "$(cat "$tmp/err")"
rows='.rows[] | "\(.line_before) \(if .is_removed then "-" else .line end) \(.flat) \(.flat_after) " +
        (.source | ltrimstr("        ") | ltrimstr("        "))'
is "$(jq -r "$rows" "$tmp/out")" \
        "4 6 10 11 sink += x;
5 - 20 0 sink -= 1;
6 7 30 31 for (int i = 0; i < x; i++)
7 8 40 44 sink ^= i * 2;
null 9 0 5 sink |= 4;
8 10 50 51 return sink;" "each line has its cost before and after, with the text of its version"
is "$(jq '[.rows[].flat, 0] | add' "$tmp/out") $(jq '[.rows[].flat_after, 0] | add' "$tmp/out")" "150 142" \
        "no cost is lost or counted twice"
compare >"$tmp/text"
like "$(cat "$tmp/text")" ' 5      -  +sink -= 1;$' "text shows a removed line"
like "$(cat "$tmp/text")" ' -      9  +sink \|= 4;$' "text shows a new line without one before"
curl -sS -G "$url/api/v1/query/lines" --data-urlencode 'selector={version="new"}' \
        --data-urlencode 'base_selector={version="old"}' -d function=work -d source=file >"$tmp/file"
is "$(jq -c '.files[0].lines_before' "$tmp/file")" "[0,0,1,2,3,4,6,7,0,8,9,10]" \
        "the line before is listed for each line after"
is "$(jq -r '.files[0].base_text' "$tmp/file")" "$(cat "$tmp/old/app.c")" "the answer has the whole text before"
is "$("$cairn" diff --server "$url" --lines --function work --base '{version="new"}' --json '{version="new"}' |
        jq '.rows[0] | has("line_before")')" \
        false "one build is not aligned"
stop_server
done
done_testing
