#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# clang-tidy with the checks of .clang-tidy over the programs' C files, or the ones named; compile_commands.json says how
# they are compiled.
#   scripts/tidy.sh JOBS [FILE]...
set -u
cd "$(dirname "$0")/.." || exit 1
command -v clang-tidy >/dev/null || {
        echo "check-tidy: clang-tidy is missing (make deps installs it)" >&2
        exit 1
}
jobs=$1
shift
# shellcheck disable=SC2046  # a list of files on purpose
[ $# -gt 0 ] || set -- $(git ls-files '*.c' | grep -vE '^(bpf|tests|scripts)/')
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# A file's findings are printed together; what clang-tidy says on stderr is how many it left out.
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
