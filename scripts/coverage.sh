#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs tests with the programs of build/cov and reports the lines and branches that they executed; build/coverage/ has a
# page for each file. Without arguments, it runs the unit tests, the fuzz corpora and the end-to-end tests, except the tests
# of the agent, the browser and the documentation and some tests that are slow without optimisation.
set -u
cd "$(dirname "$0")/.." || exit 1
command -v gcovr >/dev/null || {
        echo "coverage: gcovr is missing (make deps installs it)" >&2
        exit 1
}
build=$PWD/build/cov
: "${JOBS:=$(nproc)}"
if [ $# -eq 0 ]; then
        for t in $(find tests/unit -name 'test_*.c' | sort); do
                set -- "$@" "$build/${t%.c}"
        done
        for t in tests/fuzz/fuzz_*.c; do
                set -- "$@" "$t"
        done
        for t in tests/e2e/*/*.t; do
                case $t in
                */agent-*.t | */agent.t | */browser*.t | */docs*.t | */real-python.t | */record.t | */slow-clients.t | */durability.t) ;;
                */memory-budget.t | */accuracy.t | */run-one.t | */store-property.t | */deep-inlining.t) ;;
                *) set -- "$@" "$t" ;;
                esac
        done
fi
find "$build" -name '*.gcda' -delete
# Confined workers may not open files, so code that runs only in them is counted when unit tests and fuzz targets call it.
# A worker's last message is then the error that it cannot write its counts, which fails a few tests of its messages.
CAIRN_BUILD=$build CAIRN_SAN=$build CAIRN_TSAN=$build CAIRN_TEST_LIMIT=900 tests/run --jobs "$@" ||
        echo "coverage: tests failed, see above; the lines that they executed are counted" >&2
rm -rf build/coverage
mkdir -p build/coverage
gcovr --root . --object-directory "$build" -j "$JOBS" --exclude 'tests/' --exclude 'build/' --exclude-unreachable-branches \
        --gcov-ignore-parse-errors --html-details build/coverage/index.html --json-summary build/coverage/summary.json \
        --txt build/coverage/files.txt build/cov || exit 1
python3 - build/coverage/summary.json <<'PYTHON'
import collections, json, sys

folders = collections.defaultdict(lambda: [0, 0, 0, 0])
for file in json.load(open(sys.argv[1], encoding="utf-8"))["files"]:
    for key in (file["filename"].split("/")[0] + "/", "all"):
        for i, name in enumerate(("line_covered", "line_total", "branch_covered", "branch_total")):
            folders[key][i] += file[name]
print("| folder | lines | branches |\n| --- | ---: | ---: |")
for key in sorted(folders, key=lambda k: (k == "all", k)):
    lines, all_lines, branches, all_branches = folders[key]
    print(f"| {key if key == 'all' else f'`{key}`'} | {100 * lines / max(all_lines, 1):.1f}% of {all_lines:,} "
          f"| {100 * branches / max(all_branches, 1):.1f}% of {all_branches:,} |")
PYTHON
echo "coverage: build/coverage/index.html" >&2
