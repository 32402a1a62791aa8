#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The web UI in a browser: the table of services, and how many interactions frequent questions take.
. tests/e2e/lib.sh
. tests/browser/lib.sh
start_server --flush-interval 1
now=$(date +%s)

# load SECONDS-AGO FILE SERVICE LABEL=VALUE...: imports CPU time of a service; load_type is for folded stacks
load_type=
load() {
        load_at=$((now - $1)) load_file=$2 load_name=$3
        shift 3
        for load_label; do set -- "$@" --label "$load_label"; shift; done
        "$cairn" import --server "$url" --time $load_at ${load_type:+--type $load_type} \
                --label "service.name=$load_name" "$@" "$load_file" \
                >>"$tmp/load.log" 2>&1 || bail_out "a profile cannot be imported: $(cat "$tmp/load.log")"
}
# write_checkout MS: a profile in which hash() has this time, with lines
write_checkout() {
        cat >"$tmp/checkout.speedscope.json" <<END
{"\$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [{"name": "main"},
 {"name": "hash", "file": "shop/hash.c", "line": 7}, {"name": "render", "file": "shop/page.c", "line": 3},
 {"name": "malloc"}]},
 "profiles": [{"type": "sampled", "name": "checkout", "unit": "milliseconds", "startValue": 0, "endValue": 100000,
 "samples": [[0, 1], [0, 2], [0, 2, 3]], "weights": [$1, 300000, 50000]}]}
END
}
write_checkout 300000
load 100000 "$tmp/checkout.speedscope.json" checkout version=1.4.2 container.name=shop-1
load 90000 "$tmp/checkout.speedscope.json" checkout version=1.4.2 container.name=shop-1
write_checkout 700000
load 60000 "$tmp/checkout.speedscope.json" checkout version=1.5.0 container.name=shop-1
load 300 "$tmp/checkout.speedscope.json" checkout version=1.5.0 container.name=shop-1
load_type=process_cpu:cpu:nanoseconds:cpu:nanoseconds
printf 'main;escape 400000000000\nmain;malloc 90000000000\n' >"$tmp/other.folded"
load 200 "$tmp/other.folded" frontend container.name=web-1
load 1000 "$tmp/other.folded" frontend container.name=web-1
printf 'main;lz 200000000000\nmain;malloc 10000000000\n' >"$tmp/other.folded"
load 250 "$tmp/other.folded" batch container.name=batch-1 trace_id=4bf92f3577b34da6a3ce929d0e0e4736
printf 'main;sort 50000000000\nmain;merge 6000000000\nmain;copy 4000000000\n' >"$tmp/other.folded"
load 500 "$tmp/other.folded" worker version=3 process.executable.name=workd \
        process.executable.build_id.gnu=aaaaaaaa00000000000000000000000000000001
printf 'main;sort 70000000000\nmain;merge 6000000000\nmain;copy 4000000000\n' >"$tmp/other.folded"
load 100 "$tmp/other.folded" worker version=3 process.executable.name=workd \
        process.executable.build_id.gnu=bbbbbbbb00000000000000000000000000000002

run_browser answers.js "$url"
stop_server
done_testing
