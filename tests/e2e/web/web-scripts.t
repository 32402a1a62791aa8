#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Computations of the pages' scripts: call trees, comparison, colours and their contrast, search, filters, malicious
# names; times, selections and selectors.
. tests/e2e/lib.sh
command -v node >/dev/null || {
        [ -z "${CAIRN_NEED_ORACLES:-}" ] || bail_out "node is not installed: scripts/deps.sh all"
        skip_all "node is not installed"
}
# run_script SCRIPT FILE...: its lines are tests.
run_script() {
        timeout $((300 * ${CAIRN_WAIT_FACTOR:-1})) node "$@" >"$tmp/out" 2>"$tmp/err"
        status=$?
        while IFS= read -r line; do
                case $line in
                'ok - '*) pass "${line#ok - }" ;;
                'not ok - '*) fail "${line#not ok - }" ;;
                *) diag "$line" ;;
                esac
        done <"$tmp/out"
        is "$status" 0 "$1 exits with 0"
        [ ! -s "$tmp/err" ] || sed 's/^/# /' "$tmp/err"
}
run_script tests/e2e/web/web-scripts.js "$CAIRN_BUILD/gen/web/shared.js" web/script/offline_api.js
run_script tests/e2e/web/web-selection.js "$CAIRN_BUILD/gen/web/shared.js" web/script/api.js web/script/recent.js \
        web/script/notes.js \
        web/script/time_picker.js web/script/traces_view.js \
        web/script/chart.js web/script/series.js web/script/services_view.js web/script/changes_view.js \
        web/script/trend_view.js
size=$(cat "$CAIRN_BUILD"/gen/web/*.js "$CAIRN_BUILD/gen/web/style.css" web/index.html | wc -c)
ok "the page has less than 350 kB ($size bytes)" test "$size" -lt 350000
done_testing
