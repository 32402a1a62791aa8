# SPDX-License-Identifier: Apache-2.0
# Functions across builds: one program built by two compilers, with and without inlining, link-time optimization and
# debuginfo, and from changed sources. The rows of a diff join the functions that belong together.
. tests/e2e/lib.sh

for tool in python3 g++ clang++ llvm-symbolizer objdump readelf; do
        command -v $tool >/dev/null || skip_all "$tool is not installed"
done
mkdir "$tmp/builds"
python3 tests/e2e/query/across-builds.py "$CAIRN_BUILD/cairn" "$tmp/builds" >"$tmp/figures" 2>"$tmp/err"
is "$? $(cat "$tmp/err")" "0 " "the builds are compared"
grep '^#' "$tmp/figures"
# is_at_least WORD MINIMUM NAME: the number after the word in the line of matched functions.
is_at_least() {
        awk -v word="$1" -v minimum="$2" \
                '$1 == "functions" { for (i = 2; i < NF; i++) if ($i == word) exit !($(i + 1) >= minimum) }' \
                "$tmp/figures" && pass "$3" || fail "$3" "$(grep '^functions' "$tmp/figures")"
}
is_at_least precision 0.99 "99 of 100 rows that join both builds join the same function"
is_at_least recall 0.95 "95 of 100 functions in both builds have one row"
done_testing
