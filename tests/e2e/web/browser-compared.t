#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The view Source in a browser, opened from Compare: the lines of two builds beside each other.
. tests/e2e/lib.sh
. tests/browser/lib.sh
start_server --flush-interval 1
. tests/e2e/query/two_builds.sh
run_browser compared.js "$url"
stop_server
done_testing
