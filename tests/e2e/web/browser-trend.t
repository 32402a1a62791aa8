#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The view Trend in a browser: the cost of a function over time, with the deploys, and the ways that lead to it.
. tests/e2e/lib.sh
. tests/browser/lib.sh
start_server --flush-interval 1
. tests/e2e/query/changing_service.sh
run_browser trend.js "$url"
stop_server
done_testing
