#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Makes docs/images/flame-graph.png, the README's picture: the web UI of a service with the recorded profile of
# tests/browser, in headless Chromium. Needs the packages of the browser tests (scripts/deps.sh all) and built programs.
#   make screenshot
set -u # without -e: the functions of tests report failures themselves
cd "$(dirname "$0")/.." || exit 1
export CAIRN_NEED_ORACLES=1
: "${CAIRN_BUILD:=$PWD/build}" "${CAIRN_SAN:=$CAIRN_BUILD}"
. tests/e2e/lib.sh
. tests/browser/lib.sh
. tests/browser/load_data.sh
picture=docs/images/flame-graph.png

start_server --flush-interval 1
load_recorded
run_browser screenshot.js "$url" "$PWD/$picture"
ok "it has less than 150 kB ($(stat -c %s "$picture") bytes)" test "$(stat -c %s "$picture")" -lt 150000
done_testing
