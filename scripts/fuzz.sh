#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs the fuzz targets under libFuzzer, each for FUZZ_SECONDS, starting from
# its corpus. What crashes is left in build/fuzz/NAME/.
#   scripts/fuzz.sh          all targets
#   scripts/fuzz.sh elf otlp some
set -eu
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-60}
out=build/fuzz

make --no-print-directory CC=clang O="$out" SAN=address,undefined CFLAGS=-fsanitize=fuzzer-no-link \
        -j"$(nproc)" modules
if [ $# -eq 0 ]; then
        for f in tests/fuzz/fuzz_*.c; do
                name=$(basename "$f" .c)
                set -- "$@" "${name#fuzz_}"
        done
fi
for name in "$@"; do
        make --no-print-directory CC=clang O="$out" SAN=address,undefined CFLAGS=-fsanitize=fuzzer-no-link \
                "$out/fuzzer/$name"
        mkdir -p "$out/$name/corpus"
        seeds=
        [ -d "tests/corpus/$name" ] && seeds=$(find -L "tests/corpus/$name" -type d)
        echo "fuzz $name for ${seconds}s"
        # shellcheck disable=SC2086  # a list of folders on purpose
        "$out/fuzzer/$name" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
                -artifact_prefix="$out/$name/" "$out/$name/corpus" $seeds
done
