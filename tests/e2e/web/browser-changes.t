#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The view Changes in a browser: what it lists, and the comparison that a row leads to.
. tests/e2e/lib.sh
. tests/browser/lib.sh
start_server --flush-interval 1
. tests/e2e/query/changing_service.sh
run_browser changes.js "$url"
stop_server
done_testing
