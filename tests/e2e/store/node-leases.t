#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Of several nodes one maintains the tables. A holder of the lease that is paused beyond it, at any request, or killed,
# does no harm when it goes on.
# Time limit: 900 s.
. tests/e2e/lib.sh
for tool in jq python3 curl; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh
. tests/e2e/object-store.sh
. tests/e2e/several-nodes.sh
# Read by several-nodes.sh.
# shellcheck disable=SC2034
address=s3://cairn-test/fleet
start() { start_node "$1" --flush-interval 1 --lease-time "$2"; }
has_lease() { [ "$(holder_of maintenance)" = "$(identity_of "$1")" ]; }

# ---- one has the lease, which does not end meanwhile, and gives it back when it stops ----

start a 600
wait_for "the lease of node a" has_lease a
start b 600
send a "" "main;work 1"
wait_flushed a
ok "a node that joins leaves the lease to its holder" has_lease a
is "$(metric_of b cairn_leases_taken_total)" 0 "  node b has not taken it"
stop_node a
wait_for "the lease of node b" has_lease b
stop_node b
start b 2
wait_for "the lease of node b" has_lease b
start a 2

# ---- the holder is paused at a request of a merge, beyond its lease ----

# merge NODE: with a request that waits for the result.
merge() { "$cairn" store compact --server "$(url_of "$1")" >"$tmp/merge-$1.log" 2>&1; }
pause_at() {
        for i in 1 2 3; do
                wanted=$((wanted + i + $1))
                send a "" "main;work $((i + $1))" "main;paused_$1_$i 1"
                wanted=$((wanted + 1))
                wait_flushed a
        done
        stall_store "$1"
        merge b &
        merging=$!
        wait_for "a request of the merge" stalled_at_least 1
        kill -STOP "$(pid_of b)"
        resume_store
        wait_for "the lease of node a" has_lease a
        merge a
        sum=$(rows_and_sum | cut -d' ' -f2)
        kill -CONT "$(pid_of b)"
        wait "$merging" 2>/dev/null
        send b "" "main;resumed_$1 1"
        wanted=$((wanted + 1))
        wait_flushed b
        is "$sum $(rows_and_sum | cut -d' ' -f2) $(doubled)" "$((wanted - 1)) $wanted locations 0 stacks 0" \
                "a merge that is paused at request $1 changes no sum"
        # The next round pauses b while it has the lease.
        kill -STOP "$(pid_of a)"
        wait_for "the lease of node b" has_lease b
        kill -CONT "$(pid_of a)"
}
wanted=1
for at in 0 3 9 18; do pause_at $at; done
like "$("$cairn" store verify --data "$tmp/data-a" 2>&1)" " 0 problems" "cairn store verify finds no fault"
ok "leases were taken over" test "$(metric_of b cairn_leases_taken_total)" -ge 4
ok "the nodes that lost them noticed" test $(($(metric_of a cairn_leases_lost_total) + \
        $(metric_of b cairn_leases_lost_total))) -gt 0

# ---- the holder is killed ----

kill_node b
wait_for "the lease of node a" has_lease a
is "$(rows_and_sum | cut -d' ' -f2)" "$wanted" "the tables are whole"
is "$(sum_of a)" "$wanted" "  the other node serves them"
stop_node a
done_testing
