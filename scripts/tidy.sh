#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs clang-tidy with the checks of .clang-tidy on the programs' C files or on the named files, with the compiler options
# of compile_commands.json.
#   scripts/tidy.sh JOBS [FILE]...
set -u
cd "$(dirname "$0")/.." || exit 1
command -v clang-tidy >/dev/null || {
        echo "check-tidy: clang-tidy is missing (make deps installs it)" >&2
        exit 1
}
jobs=$1
shift
# shellcheck disable=SC2046  # intentionally a list of files
[ $# -gt 0 ] || set -- $(git ls-files '*.c' | grep -vE '^(bpf|tests|scripts)/')
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# The findings of a file are printed together. On stderr, clang-tidy only prints how many warnings it suppressed.
printf '%s\n' "$@" | OUT=$out xargs -P "$jobs" -n 1 sh -c '
        said=$OUT/$$
        clang-tidy --quiet "$0" >"$said" 2>"$said.err" && exit 0
        [ -s "$said" ] || cp "$said.err" "$said"
        cat "$said"
        echo "$0" >>"$OUT/bad"' || {
        echo "check-tidy: interrupted" >&2
        exit 1
}
if [ -e "$out/bad" ]; then
        echo "check-tidy: findings in $(wc -l <"$out/bad") of $# files" >&2
        exit 1
fi
echo "check-tidy: clean, $# files"
