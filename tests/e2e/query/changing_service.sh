# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154  # what tests/e2e/lib.sh sets
#
# To be sourced with a running service: 48 hours of a service from $first on. The function hash costs more from version
# 2.0 on, which comes in hour 30; swing does from hour 12 to 18. The compiler of version 2.0 calls
# the other functions clones.

now=$(date +%s)
first=$((now - now % 3600 - 48 * 3600))

# hour N VERSION HASH SWING: one hour of a service with 25 functions that do not change
hour() {
        clone=
        [ "$2" = 1.0 ] || clone=.isra.0
        awk -v n="$1" -v clone="$clone" -v hash="$3" -v swing="$4" '
                function noise() { return 0.98 + 0.04 * rand() }
                BEGIN {
                        srand(7000 + n)
                        for (i = 0; i < 25; i++) printf "main;f%d%s %d\n", i, clone, 400 * noise()
                        printf "main;hash %d\nmain;swing %d\n", hash * noise(), swing * noise()
                }' >"$tmp/hour.folded"
        "$cairn" import --server "$url" --time $((first + $1 * 3600 + 1800)) --label service.name=api \
                --label "service.version=$2" "$tmp/hour.folded" >"$tmp/import.log" 2>&1 ||
                bail_out "an hour cannot be imported: $(cat "$tmp/import.log")"
}
for n in $(seq 0 47); do
        version=1.0 hash=500 swing=500
        [ "$n" -ge 30 ] && version=2.0 hash=800
        [ "$n" -ge 12 ] && [ "$n" -lt 18 ] && swing=1000
        hour "$n" $version $hash $swing
done
