# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154  # what tests/e2e/lib.sh sets
#
# To be sourced after tests/e2e/lib.sh in a test that needs a browser. The npm packages of
# tests/browser/package-lock.json are installed once, and again when the list changes. Without Chromium or npm the
# test is skipped, or fails if CAIRN_NEED_ORACLES is set.

# lack_browser REASON: skips or fails
lack_browser() {
        [ -z "${CAIRN_NEED_ORACLES:-}" ] || bail_out "$1: scripts/deps.sh all"
        skip_all "$1"
}
for tool in chromium node npm jq; do command -v $tool >/dev/null || lack_browser "$tool is not installed"; done

browser_kept=$CAIRN_BUILD/browser
mkdir -p "$browser_kept"
exec 8>"$browser_kept/.lock"
flock 8
if ! cmp -s tests/browser/package-lock.json "$browser_kept/installed.json"; then
        cp tests/browser/package.json tests/browser/package-lock.json "$browser_kept"
        # Without --prefix, because npm would look there for global settings such as cafile.
        (cd "$browser_kept" && npm ci --silent --no-audit --no-fund --ignore-scripts >npm.log 2>&1 8>&-) ||
                lack_browser "tests/browser/package-lock.json cannot be installed, see $browser_kept/npm.log"
        cp tests/browser/package-lock.json "$browser_kept/installed.json"
fi
exec 8>&-

# run_browser SCRIPT [ARGUMENT]...: its lines "ok - NAME" and "not ok - NAME" are tests; other lines are diagnostics.
run_browser() {
        browser_script=$1; shift
        HOME=$tmp NODE_PATH=$browser_kept/node_modules timeout -k 5 $((560 * ${CAIRN_WAIT_FACTOR:-1})) \
                node "tests/browser/$browser_script" "$@" \
                >"$tmp/browser.out" 2>"$tmp/browser.err" </dev/null
        browser_code=$?
        while IFS= read -r line; do
                case $line in
                'ok - '*) pass "${line#ok - }" ;;
                'not ok - '*) fail "${line#not ok - }" ;;
                *) diag "$line" ;;
                esac
        done <"$tmp/browser.out"
        [ "$browser_code" = 0 ] || sed 's/^/# /' "$tmp/browser.err"
        is "$browser_code" 0 "$browser_script exits with 0"
}
