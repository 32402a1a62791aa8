#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Profiles a benchmark of two checkouts in turn, pushes debuginfo and profiles to the service, and compares them:
#   benchmark-gate.sh BASE HEAD
#
# Both directories are built: `make bench` runs the benchmark, and the programs are in build/. cairn and cairn-upload
# are installed. The report is written to gate.md, gate.xml (JUnit) and gate.sarif. The exit status is that of
# cairn gate: 0 no regression, 1 regression, 2 no comparison, 3 not enough data to see a change that small. It is 2, too,
# when a step before fails.
#
# CAIRN_URL     the service, such as https://cairn.example
# CAIRN_TOKEN   a token with the scopes upload, ingest and read
# CAIRN_JOB     a name of this run of the job, such as github-123-1, which no other one has
# RUNS          of each side (default 6): with more of them, smaller changes are seen
# RULES         of cairn gate --fail-if, separated by spaces (default: 'total>5% function>2%')
set -eu
rm -f gate.md gate.xml gate.sarif # of another run
: "${CAIRN_URL:?}" "${CAIRN_TOKEN:?}" "${CAIRN_JOB:?}" "${RUNS:=6}" "${RULES:=total>5% function>2%}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
(umask 077 && printf '%s\n' "$CAIRN_TOKEN" >"$dir/token")

for side in base head; do
        [ "$side" = base ] && checkout=$1 || checkout=$2
        cairn-upload --server "$CAIRN_URL" --tag ci "$checkout/build/" || exit 2
done

# In turn, so that what changes on the machine meanwhile is the same for both. Runs of one number are compared as pairs.
started=$(($(date +%s) - 60)) # the clocks of other machines may differ
run=1
while [ "$run" -le "$RUNS" ]; do
        for side in base head; do
                [ "$side" = base ] && checkout=$1 || checkout=$2
                profile=$dir/$side-$run.pb.gz
                cairn record -o "$profile" -- make -C "$checkout" bench || exit 2
                cairn import --server "$CAIRN_URL" --token-file "$dir/token" \
                        --label "service.version=$(git -C "$checkout" rev-parse HEAD)" --label "ci_job=$CAIRN_JOB" \
                        --label "ci_side=$side" --label "ci_run=$run" "$profile" || exit 2
        done
        run=$((run + 1))
done

# gate OUTPUT: the suffix selects the format.
gate() {
        set -- --output "$1"
        for rule in $RULES; do
                set -- "$@" --fail-if "$rule"
        done
        cairn gate --server "$CAIRN_URL" --token-file "$dir/token" --from "$started" --cluster ci_run --part none --compare values \
                --base "{ci_job=\"$CAIRN_JOB\",ci_side=\"base\"}" --head "{ci_job=\"$CAIRN_JOB\",ci_side=\"head\"}" "$@"
}
gate gate.xml 2>/dev/null || true
gate gate.sarif 2>/dev/null || true
status=0
gate gate.md || status=$?
[ ! -e gate.md ] || cat gate.md
exit "$status"
