#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Several nodes write the tables of one object store: each sample, location and stack is there once.
# Time limit: 900 s.
. tests/e2e/lib.sh
for tool in jq python3 curl; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh
. tests/e2e/object-store.sh
. tests/e2e/several-nodes.sh
# Read by several-nodes.sh.
# shellcheck disable=SC2034
address=s3://cairn-test/fleet
start() { start_node "$1" --flush-interval 1; }

# ---- both see the same locations and stacks at once ----

start a
start b
for i in 1 2 3; do
        stall_commits
        send a "" "main;work $((i * 100))" "main;work;new_$i;only_a 1"
        send b "" "main;work $((i * 100 + 1))" "main;work;new_$i;only_b 1"
        wait_for "the commits of both" stalled_at_least 2
        resume_store
        wait_flushed a b
        is "$(doubled)" "locations 0 stacks 0" "round $i: no location and no stack is there twice"
done
is "$(rows_and_sum)" "12 1209" "the tables have the samples of both nodes"
wait_for_sum 1209 a b
like "$("$cairn" store verify --data "$tmp/data-a" 2>&1)" " 0 problems" "cairn store verify finds no fault"
like "$(keys)" 'samples/date=[-0-9]+/part-[0-9a-f]{16}-0{19}1-' "names of files have the node"
ok "commits lost races" test $(($(metric_of a cairn_commit_conflicts_total) + \
        $(metric_of b cairn_commit_conflicts_total))) -gt 0

# ---- both add label columns at once ----

stall_commits
send a left=1 "main;work 10"
send b right=1 "main;work 20"
wait_for "the commits of both" stalled_at_least 2
resume_store
wait_flushed a b
is "$(rows_and_sum)" "14 1239" "no commit of a new column hides another one"
wait_for_sum 1239 a
is "$(sum_of a '{left="1"}') $(sum_of a '{right="1"}')" "10 20" \
        "both columns are there"

# ---- a batch is sent again to another node ----

id=00112233445566778899aabbccddeeff
stall_commits
send_batch a $id 5000
send_batch b $id 5000
wait_for "the commits of both" stalled_at_least 2
resume_store
wait_flushed a b
is "$(rows_and_sum)" "15 6239" "a batch that two nodes commit at once counts once"
wait_for_sum 6239 a b
send_batch b $id 5000
send_batch a $id 5000
is "$(sum_of b)" 6239 "a batch that is sent again after its commit counts once"
wait_flushed a b
is "$(rows_and_sum)" "15 6239" "neither flush adds it"

id=ffeeddccbbaa99887766554433221100
stall_store
send_batch a $id 300
kill_node a
resume_store
send_batch b $id 300
wait_flushed b
is "$(rows_and_sum)" "16 6539" "another node takes the batch of a node that is away"
start a
is "$(sum_of a)" 6539 "the node that is back has it once, though it is in its queue"
is "$(metric_of a cairn_batches_elsewhere_total)" 1 "it counts the batch as committed elsewhere"
send a "" "main;work 1"
wait_flushed a
is "$(rows_and_sum)" "17 6540" "its next flush does not add it"

start c
send_batch c $id 300
wait_flushed c
is "$(sum_of c) $(rows_and_sum)" "6540 17 6540" "a node that joins knows the batches of before"
stop_node c

# ---- answers of the store are lost ----

order faults/20 >"$tmp/order"
wanted=6540
for i in 1 2 3 4; do
        send a "" "main;work $i" && wanted=$((wanted + i))
        send b "" "main;work $((i * 10))" && wanted=$((wanted + i * 10))
        wait_flushed a b
done
order faults/0 >"$tmp/order"
is "$(rows_and_sum)" "25 $wanted" "each sample is there once though requests failed"
is "$wanted" $((6540 + 110)) "no node refused any"
is "$(doubled)" "locations 0 stacks 0" "each location and stack is there once"
wait_for_sum "$wanted" a b
stop_node b

# ---- copies of a directory ----

stop_node a
cp -a "$tmp/data-a" "$tmp/data-d"
start a
start d
send a "" "main;work 7"
wait_flushed a
send d "" "main;work 8"
failed_flush() { [ "$(metric_of d cairn_flush_failures_total)" -gt 0 ]; }
wait_for "the flush of the copy" failed_flush
like "$("$cairn" status --server "$(url_of d)" 2>&1)" 'another process runs with a copy of' \
        "a copy of a node's directory is recognized"
is "$(rows_and_sum)" "26 $((wanted + 7))" "it changes nothing in the tables"
kill_node d
stop_node a
done_testing
