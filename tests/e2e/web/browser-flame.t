#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Flame graphs, tables, callers and callees, and comparison in a browser: with keyboard and pointer, with malicious
# names, in the service's UI and in a standalone page.
. tests/e2e/lib.sh
. tests/browser/lib.sh
start_server --flush-interval 1
import() { "$cairn" import --server "$url" --time now --type process_cpu:cpu:nanoseconds:cpu:nanoseconds "$@" \
        >>"$tmp/import.log" 2>&1; }

# One second in total. Functions with malicious names cost only a nanosecond each, but are in the table.
{
        printf 'main;%s\n' 'work;leaf 500000000' 'work;sys_read_[k] 150000000' 'rec;rec;rec 250000000'
        printf 'idle;leaf 100000000\n'
        printf 'odd;%s 1\n' '<img src=x onerror=window.reached=1>' '</script><script>window.reached=1</script>' \
                "$(printf '\033')[31mred" "safe$(printf '\342\200\256')gpj.exe" "bad$(printf '\377\376')bytes" \
                "$(printf 'f%.0s' $(seq 5000))"
} >"$tmp/shapes.folded"
ok "profiles are accepted" import --format folded --label service.name=shapes "$tmp/shapes.folded"
printf '%s\n' 'base 690000000' 'tick 10000000' 'write_log 100000000' 'read_file 100000000' 'gone 100000000' \
        >"$tmp/1.folded"
printf '%s\n' 'base 790000000' 'tick 10000000' 'write_log 900000000' 'read_file 300000000' >"$tmp/2.folded"
for version in 1 2; do import --label service.name=builds --label version=$version "$tmp/$version.folded"; done
ok "  and a recorded one" "$cairn" import --server "$url" --time now --label of=recorded tests/browser/data/build.pb.gz
ok "a page of a flame graph is written" "$cairn" flame --server "$url" --from now-1h --output "$tmp/flame.html" \
        '{service_name="shapes"}'
ok "  and one of a comparison" "$cairn" diff --server "$url" --from now-1h --format html --base '{version="1"}' \
        --output "$tmp/diff.html" '{version="2"}'
run_browser flame.js "$url" "$tmp/flame.html" "$tmp/diff.html"
done_testing
