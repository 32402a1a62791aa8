# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# load_recorded: the recorded profile six times in the last quarter of an hour: version 1, then 2, on two hosts in turns.
# Source it after start_server.
load_recorded() {
        load_at=$(($(date +%s) - 840))
        for load_round in 1 2 3 4 5 6; do
                "$cairn" import --server "$url" --time "$load_at" --label version=$((1 + load_round / 4)) \
                        --label "zone=$(echo ab | cut -c $((1 + load_round % 2)))" tests/browser/data/build.pb.gz >>"$tmp/load.log" 2>&1 ||
                        bail_out "the recorded profile cannot be imported: $(cat "$tmp/load.log")"
                load_at=$((load_at + 140))
        done
}
