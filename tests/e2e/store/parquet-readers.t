#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Cairn's Parquet files and tables read by pyarrow, DuckDB and deltalake, and their files read by Cairn.
set -eu
. tests/e2e/venv.sh
: "${CAIRN_SAN:=$PWD/build/san}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/ours" "$dir/tables" "$dir/foreign"

CK_VERBOSITY=silent PARQUET_SAMPLES=$dir/ours "$CAIRN_SAN/tests/unit/parquet/test_parquet_samples" >"$dir/log" 2>&1 || {
        cat "$dir/log"
        echo "Bail out! the samples were not written"
        exit 1
}
CK_VERBOSITY=silent DELTA_SAMPLES=$dir/tables "$CAIRN_SAN/tests/unit/profile-store/test_delta_log" >"$dir/log" 2>&1 || {
        cat "$dir/log"
        echo "Bail out! the tables were not written"
        exit 1
}
"$PYTHON" tests/e2e/store/parquet-readers.py write "$dir/foreign"
# After a failure here files are missing, which the comparison reports.
PARQUET_FOREIGN=$dir/foreign "$CAIRN_SAN/tests/unit/parquet/test_parquet_samples" >"$dir/log" 2>&1 ||
        sed 's/^/# /' "$dir/log"
# deltalake appends to a table written by Cairn and writes a checkpoint; then Cairn opens it again.
"$PYTHON" tests/e2e/store/parquet-readers.py append "$dir/tables/table"
DELTA_FOREIGN=$dir/tables/table "$CAIRN_SAN/tests/unit/profile-store/test_delta_log" >"$dir/log" 2>&1 || {
        sed 's/^/# /' "$dir/log"
        echo "Bail out! our log does not read what deltalake appended"
        exit 1
}
"$PYTHON" tests/e2e/store/parquet-readers.py compare "$dir"
