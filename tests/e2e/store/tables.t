#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The three tables read by deltalake and DuckDB: the same rows and sums as Cairn's own scan, before and after
# re-symbolization.
set -eu
. tests/e2e/venv.sh
: "${CAIRN_SAN:=$PWD/build/san}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

CK_VERBOSITY=silent STORE_SAMPLES=$dir "$CAIRN_SAN/tests/unit/profile-store/test_store_tables" >"$dir/log" 2>&1 || {
        sed 's/^/# /' "$dir/log"
        echo "Bail out! the tables were not written"
        exit 1
}
"$PYTHON" tests/e2e/store/tables.py "$dir"
