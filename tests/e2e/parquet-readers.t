#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Our Parquet files and tables through pyarrow, DuckDB and deltalake, and their files through our reader.
set -eu
. tests/e2e/venv.sh
: "${CAIRN_SAN:=$PWD/build/san}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/ours" "$dir/tables" "$dir/foreign"

CK_VERBOSITY=silent PARQUET_SAMPLES=$dir/ours "$CAIRN_SAN/tests/unit/test_parquet_samples" >"$dir/log" 2>&1 || {
        cat "$dir/log"
        echo "Bail out! the samples were not written"
        exit 1
}
CK_VERBOSITY=silent DELTA_SAMPLES=$dir/tables "$CAIRN_SAN/tests/unit/test_delta_log" >"$dir/log" 2>&1 || {
        cat "$dir/log"
        echo "Bail out! the tables were not written"
        exit 1
}
"$PYTHON" tests/e2e/parquet-readers.py write "$dir/foreign"
# A failure here leaves files unread, which the comparison names.
PARQUET_FOREIGN=$dir/foreign "$CAIRN_SAN/tests/unit/test_parquet_samples" >"$dir/log" 2>&1 ||
        sed 's/^/# /' "$dir/log"
# deltalake appends to a table of ours and checkpoints it; opening it again is ours to do.
"$PYTHON" tests/e2e/parquet-readers.py append "$dir/tables/table"
DELTA_FOREIGN=$dir/tables/table "$CAIRN_SAN/tests/unit/test_delta_log" >"$dir/log" 2>&1 || {
        sed 's/^/# /' "$dir/log"
        echo "Bail out! our log does not read what deltalake appended"
        exit 1
}
"$PYTHON" tests/e2e/parquet-readers.py compare "$dir"
