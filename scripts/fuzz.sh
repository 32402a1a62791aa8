#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the fuzz targets under libFuzzer, each for FUZZ_SECONDS, starting from
# its corpus. Only one process runs at a time, so `nice` limits its load. A
# target that crashes does not stop the others: its input is kept in
# build/fuzz/NAME/, and the script fails at the end.
#   scripts/fuzz.sh              all targets
#   scripts/fuzz.sh elf otlp     the named targets
#   scripts/fuzz.sh --report     CPU time and runs of each target so far
#   scripts/fuzz.sh --minimize   put inputs that reach code not reached by the
#                                committed corpus into tests/corpus/NAME/found
# FUZZ_ROUNDS=N runs all targets N times in turn.
set -eu
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-60}
rounds=${FUZZ_ROUNDS:-1}
out=build/fuzz
found_bytes=40000 # total of one target's found/, so that the corpora of all targets stay below 3 MB
found_file_bytes=4096
found_files=60 # for one target, spread over all sizes

action=run
case "${1:-}" in
--report) action=report && shift ;;
--minimize) action=minimize && shift ;;
esac
if [ $# -eq 0 ]; then
        for f in tests/fuzz/fuzz_*.c; do
                name=$(basename "$f" .c)
                set -- "$@" "${name#fuzz_}"
        done
fi

build() {
        make --no-print-directory CC=clang O="$out" SAN=address,undefined CFLAGS=-fsanitize=fuzzer-no-link \
                -j"${JOBS:-$(nproc)}" "$@"
}

seeds_of() {
        [ ! -d "tests/corpus/$1" ] || find -L "tests/corpus/$1" -type d
}

# One line per run: CPU seconds, runs, edges covered.
run_target() {
        local name=$1 log="$out/$1/log" status=0 seeds cpu
        mkdir -p "$out/$name/corpus"
        seeds=$(seeds_of "$name")
        echo "fuzz $name for ${seconds}s"
        TIMEFORMAT='%U %S'
        # shellcheck disable=SC2086  # intentionally a list of folders
        cpu=$({ time "$out/fuzzer/$name" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 \
                -print_final_stats=1 -artifact_prefix="$out/$name/" "$out/$name/corpus" $seeds >"$log" 2>&1; } 2>&1) || status=$?
        echo "$cpu" | awk -v runs="$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
                -v edges="$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' "$log" | tail -n 1)" \
                '{ printf "%.1f %d %d\n", $1 + $2, runs, edges }' >>"$out/$name/runs"
        tail -n 1 "$out/$name/runs" | awk '{ printf "  %.0f CPU seconds, %d runs, %d edges\n", $1, $2, $3 }'
        if [ "$status" -ne 0 ]; then
                tail -n 40 "$log"
                echo "fuzz $name FAILED; its input is in $out/$name/"
                failed="$failed $name"
        fi
}

report_target() {
        [ ! -s "$out/$1/runs" ] ||
                awk -v name="$1" '{ cpu += $1; runs += $2; if ($3 > edges) edges = $3 }
                        END { printf "%-22s %9.0f %12d %8d\n", name, cpu, runs, edges }' "$out/$1/runs"
}

# Keeps the committed files; from the rest, keeps the inputs that reach new code, smallest first.
minimize_target() {
        local name=$1 work="$out/$1/merge" kept=0 size file
        [ -d "$out/$name/corpus" ] || return 0
        rm -rf "$work" && mkdir -p "$work/known" "$work/small" "$work/new"
        for file in $(seeds_of "$name"); do
                case $file in */found) continue ;; esac
                find -L "$file" -maxdepth 1 -type f -exec cp -t "$work/known" {} +
        done
        find -L "$out/$name/corpus" "tests/corpus/$name/found" -type f -size -"$((found_file_bytes + 1))"c \
                -exec cp -t "$work/small" {} + 2>/dev/null || :
        ls "$work/known" >"$work/before"
        "$out/fuzzer/$name" -set_cover_merge=1 -timeout=20 -rss_limit_mb=4096 -artifact_prefix="$out/$name/" \
                "$work/known" "$work/small" >"$work/log" 2>&1 || { tail -n 20 "$work/log"; failed="$failed $name"; return 0; }
        rm -rf "tests/corpus/$name/found"
        # shellcheck disable=SC2010,SC2013  # the names are hashes, and ls sorts them by size
        for file in $(ls -Sr "$work/known" | grep -vxFf "$work/before" | awk -v most="$found_files" '
                { found[NR] = $0 }
                END { for (i = 1; i <= NR; i += NR > most ? NR / most : 1) print found[int(i)] }'); do
                size=$(stat -c %s "$work/known/$file")
                [ $((kept + size)) -le "$found_bytes" ] || break
                kept=$((kept + size))
                mkdir -p "tests/corpus/$name/found"
                cp "$work/known/$file" "tests/corpus/$name/found/${file:0:16}"
        done
        echo "$name: $kept bytes found"
}

failed=
case $action in
run)
        build modules
        for name in "$@"; do
                build "$out/fuzzer/$name"
        done
        for ((round = 0; round < rounds; round++)); do
                for name in "$@"; do
                        run_target "$name"
                done
        done
        ;;
report)
        printf '%-22s %9s %12s %8s\n' target CPU-s runs edges
        for name in "$@"; do
                report_target "$name"
        done
        cat "$out"/*/runs | awk '{ cpu += $1; runs += $2 } END { printf "%-22s %9.0f %12d\n", "all", cpu, runs }'
        ;;
minimize)
        for name in "$@"; do
                minimize_target "$name"
        done
        ;;
esac
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
