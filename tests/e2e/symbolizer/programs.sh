# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# Shared by tests that compile programs and look up their addresses. A test begins with
#
#     . tests/e2e/symbolizer/programs.sh
#     needs g++ readelf
#
# and ends with done_testing. It runs in $dir, an empty folder that goes away; $top is the project's. $cairn is the
# program as it is installed: a test asks it hundreds of times.

set -u
# shellcheck disable=SC2034  # for the tests
top=$PWD cairn=${CAIRN_BUILD:-$PWD/build}/cairn
count=0

# needs TOOL...: skips the test if one is not installed.
needs() {
        for tool; do
                command -v "$tool" >/dev/null || { echo "1..0 # SKIP $tool is not installed"; exit 0; }
        done
}

ok() { # STATUS NAME
        count=$((count + 1))
        if [ "$1" -eq 0 ]; then echo "ok $count - $2"; else echo "not ok $count - $2"; fi
}
same() { # NAME FILE FILE: both have the same content, which is not empty
        if [ -s "$2" ] && cmp -s "$2" "$3"; then ok 0 "$1"; else ok 1 "$1"; diff "$2" "$3" | head -20 | sed 's/^/# /'; \
                fi
}
is() { # GOT WANT NAME
        if [ "$1" = "$2" ]; then ok 0 "$3"; else ok 1 "$3"; echo "# got '$1', want '$2'"; fi
}
cannot() { echo "Bail out! cannot $1"; exit 1; }
done_testing() { echo "1..$count"; }

dir=$(mktemp -d) || exit 1
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir" || exit 1
