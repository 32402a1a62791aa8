#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Change points: a function that costs more since a version, one whose cost went away again, the filters and formats,
# from samples and from the history of functions. Random series: tests/unit/query/test_changes.c.
. tests/e2e/lib.sh

command -v jq >/dev/null || skip_all "jq is not installed"
start_server --flush-interval 1
. tests/e2e/query/changing_service.sh
changes() { "$cairn" query --server "$url" --changes --from "$first" --to $((first + 48 * 3600)) "$@"; }
at() { date -u -d "@$((first + $1 * 3600))" '+%Y-%m-%d %H:%M:%S'; }

changes >"$tmp/out" 2>&1
like "$(cat "$tmp/out")" \
        "^$(at 30)  regression   api  hash  4\.[0-9]*% -> [67]\.[0-9]*% \(\+[0-9.]*%\), version 1.0 -> 2.0\$" \
        "a function that costs more since a version is named, with the version"
is "$(wc -l <"$tmp/out")" 1 "what went away, and shares that fell because of it, are none"
changes --json --all >"$tmp/all"
ends='.rows | sort_by(.time_ms)[] | select(.function == "swing") | "\(.state) \((.returned_ms - .time_ms) / 3600000)"'
is "$(jq -r "$ends" "$tmp/all")" \
        "went_away 6
went_away -6" "with --all both ends of a change that went away are listed"
is "$(jq '.counts.regression, .services, .tested' "$tmp/all" | tr '\n' ' ')" "1 1 27 " \
        "the answer counts what was tested"
is "$(jq '.rows | map(.state) | index("regression")' "$tmp/all")" 0 "regressions come first"
is "$(changes --min-change 90%)" "no changes found in 1 service over 48 hours" \
        "smaller changes than asked for are none"
like "$(changes --csv | tr -d '\r')" ',regression,api,hash,,0\.04.*,version,,,1\.0,2\.0$' "the answer as CSV"
like "$(changes '{service.name="other"}' 2>&1)" 'matches service.name="other"; its values are api$' \
        "without samples the answer says which values there are"
like "$(changes --min-change x 2>&1)" "min_change 'x' is not a percentage" "a malformed percentage is refused"
like "$("$cairn" query --server "$url" --changes --from now-2h 2>&1)" 'ranges of at least 6 hours' \
        "a range that is too short is named"

# The check for CI of docs/quick-starts/ci.md, a day before and after the function became slower.
check=$(sed -n "s/^  jq -e '\(.*\)'$/\1/p" docs/quick-starts/ci.md)
check_at() { changes --json "$2" | jq -e "${check%%now*}$((first + $1 * 3600))${check#*now}" >/dev/null 2>&1; echo $?; }
is "$(check_at 40 '{service.name="api"}')" 1 "the check for CI fails within a day after the regression"
is "$(check_at 56 '{service.name="api"}')" 0 "the check for CI passes when the regression is older"
is "$(check_at 56 '{service.name="other"}')" 1 "the check for CI fails when there is nothing to compare"

wait_for "the queue to be in the tables" metric_equals cairn_queue_batches 0
changes --json | jq -S 'del(.history_hours, .sample_hours)' >"$tmp/from-samples"
"$cairn" store compact --server "$url" >"$tmp/out" 2>&1 || fail "the history is updated" "$(cat "$tmp/out")"
changes --json >"$tmp/from-history"
is "$(jq '.history_hours > 40' "$tmp/from-history")" true "the history of functions is read"
is "$(jq -S 'del(.history_hours, .sample_hours)' "$tmp/from-history")" "$(cat "$tmp/from-samples")" \
        "the history gives the same changes as the samples"
stop_server
done_testing
