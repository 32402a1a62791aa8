# SPDX-License-Identifier: Apache-2.0
# Stacks with negative values, as in differences of heap profiles: sums have them, and no flame graph of any interface
# has a bar that is wider than its parent.
. tests/e2e/lib.sh

start_server
python3 tests/e2e/negative-values.py make "$tmp/a" 1
python3 tests/e2e/negative-values.py make "$tmp/b" 2
for side in a b; do
        "$cairn" import --server "$url" --format folded --label service.name=negative --label "version=$side" \
                "$tmp/$side" >"$tmp/sent" 2>&1
        is $? 0 "the stacks of version $side are sent"
done
report_checks python3 tests/e2e/negative-values.py check "$url" "$tmp/a" "$tmp/b"

done_testing
