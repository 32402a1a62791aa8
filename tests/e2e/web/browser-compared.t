#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The view Source in a browser, opened from Compare: lines and instructions of two builds beside each other.
. tests/e2e/lib.sh
. tests/browser/lib.sh
start_server --flush-interval 1
. tests/e2e/query/two_builds.sh
"$CAIRN_BUILD/cairn-upload" --server "$url" --executables "$tmp/old/app" "$tmp/new/app" >"$tmp/upload.log" 2>&1 ||
        bail_out "cannot upload: $(cat "$tmp/upload.log")"
run_browser compared.js "$url"
stop_server
done_testing
