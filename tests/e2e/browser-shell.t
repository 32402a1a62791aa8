#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The service's page in a browser, with a recorded profile: views, selection, accessibility, policy.
. tests/e2e/lib.sh
. tests/browser/lib.sh
. tests/browser/load_data.sh
start_server --flush-interval 1
load_recorded
run_browser shell.js "$url"
done_testing
