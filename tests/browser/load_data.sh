# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154  # what tests/e2e/lib.sh sets
#
# To be sourced after start_server.
#
# load_recorded: imports the recorded profile six times within the last 15 minutes: first version 1, then 2, alternating
# between two zones.
load_recorded() {
        load_at=$(($(date +%s) - 840))
        for load_round in 1 2 3 4 5 6; do
                "$cairn" import --server "$url" --time "$load_at" --label version=$((1 + load_round / 4)) \
                        --label "zone=$(echo ab | cut -c $((1 + load_round % 2)))" tests/browser/data/build.pb.gz \
                        >>"$tmp/load.log" 2>&1 ||
                        bail_out "the recorded profile cannot be imported: $(cat "$tmp/load.log")"
                load_at=$((load_at + 140))
        done
}

# load_types: CPU time and memory of one program, 12 hours ago.
load_types() {
        for load_type in process_cpu:cpu:nanoseconds:cpu:nanoseconds memory:inuse_space:bytes:space:bytes; do
                printf 'main;grow 4096\n' >"$tmp/types.folded"
                "$cairn" import --server "$url" --time $(($(date +%s) - 43200)) --type "$load_type" \
                        --label service.name=types "$tmp/types.folded" \
                        >>"$tmp/load.log" 2>&1 ||
                        bail_out "a profile of $load_type cannot be imported: $(cat "$tmp/load.log")"
        done
}

# load_hostile: a profile from six hours ago whose labels contain markup, bidirectional control characters, and very
# long text.
load_hostile() {
        "$cairn" import --server "$url" --time $(($(date +%s) - 21600)) \
                --label team='<img src=x onerror="window.reached=1">' \
                --label "turned=$(printf 'a\342\200\256b\033[31mc')" --label "long=$(printf '%04000d' 7)" \
                tests/corpus/perf_script/good/busy \
                >>"$tmp/load.log" 2>&1 || bail_out "the hostile profile cannot be imported: $(cat "$tmp/load.log")"
}
