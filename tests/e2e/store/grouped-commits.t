#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Of several nodes one commits the samples of all. When it does not answer, each commits alone, and no sample is there
# twice, whatever the node that did not answer does later.
# Time limit: 900 s.
. tests/e2e/lib.sh
for tool in jq python3 curl; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh
. tests/e2e/object-store.sh
. tests/e2e/several-nodes.sh
# Read by several-nodes.sh.
# shellcheck disable=SC2034
address=s3://cairn-test/fleet
port_a=$(free_port) port_b=$(free_port) port_c=$(free_port)
printf 'all-token read,ingest name=all\nnode-token node name=node\n' >"$tmp/tokens"
echo node-token >"$tmp/node-token"
# start NAME: all have the same list of peers, with themselves in it. They lack the role maintain, whose merges would be
# further commits.
start() {
        eval "listen=\$port_$1"
        # shellcheck disable=SC2154
        start_node "$1" --role ingest,query --listen "127.0.0.1:$listen" --flush-interval 2 \
                --peer "http://127.0.0.1:$port_a" --peer "http://127.0.0.1:$port_b" \
                --peer "http://127.0.0.1:$port_c" --peer-timeout 5000
}
sum_metrics() { # NAME: of all nodes
        sum=0
        for node in a b c; do sum=$((sum + $(metric_of "$node" "$1"))); done
        echo $sum
}
commits() { keys | grep -c '/samples/_delta_log/0.*json$'; }
# number: of the next batch, whose value it is, so that each is another one.
number=0 wanted=0
send_next() {
        number=$((number + 1)) wanted=$((wanted + number))
        send "$1" "" "main;work $number"
}
sum_is_right() { is "$(rows_and_sum | cut -d' ' -f2) $(doubled)" "$wanted locations 0 stacks 0" "$1"; }

# ---- three nodes, fewer commits than flushes ----

for node in a b c; do start $node; done
send_round() {
        for node in a b c; do send_next "$node"; done
        wait_flushed a b c
}
# Nodes whose flushes do not begin together yet make commits of their own; their answers bring them together.
is_grouped() {
        send_round
        [ $(($(sum_metrics cairn_flushes_total) - $(commits) + 1)) -ge 4 ]
}
wait_for "flushes of several nodes in one commit" is_grouped
sum_is_right "the tables have each sample of all nodes once"
ok "nodes had their samples committed by another one" test "$(sum_metrics cairn_commits_handed_total)" -ge 4
wait_for_sum "$wanted" a b c
holder=
for node in a b c; do [ "$(holder_of commits)" = "$(identity_of $node)" ] && holder=$node; done
like "$holder" '^[abc]$' "one node has the lease"
others=$(echo a b c | tr -d "$holder")
is "$(metric_of "$holder" cairn_commits_handed_total)" 0 "  it hands nothing to others"
# shellcheck disable=SC2086
set -- $others
first=$1 second=$2

# ---- what is not a commit of a node is refused ----

commit_url="$(url_of "$holder")/api/v1/node/commits"
request -X POST --data-binary '{}' "$commit_url"
is "$code $(echo "$body" | jq -r .reason)" "400 usage" "a request without its parameters is refused"
about="holder=$(identity_of "$first")&tables=x&after=0&columns=0"
request -X POST --data-binary '{}' "$commit_url?$about"
is "$code" 404 "a commit for another holder is refused"
about="holder=$(identity_of "$holder")&tables=x&after=0&columns=0"
request -X POST --data-binary '{}' "$commit_url?$about"
is "$code $(echo "$body" | jq -r .reason)" "400 usage" "a commit of other tables is refused"
log=$(keys | grep '/samples/_delta_log/0.*0\.json$' | head -1)
tables=$("$PYTHON" tests/e2e/store/object-store.py read "$store_port" "$log" | jq -r 'select(.metaData).metaData.id')
about="holder=$(identity_of "$holder")&tables=$tables&after=0&columns=0"
last=$(keys | grep '/samples/_delta_log/0.*json$' | tail -1)
"$PYTHON" tests/e2e/store/object-store.py read "$store_port" "$last" >"$tmp/commit.json"
request -X POST --data-binary "@$tmp/commit.json" "$commit_url?$about"
is "$code $(echo "$body" | jq -r .reason)" "400 bad_data" "a commit that was made before is refused"
head -c 2000000 /dev/zero >"$tmp/large"
request -X POST --data-binary "@$tmp/large" "$commit_url?$about"
is "$code" 413 "one that is too long is refused"
sum_is_right "nothing of it is in the tables"

# ---- the holder is stopped, and goes on after the node has committed alone ----

kill -STOP "$(pid_of "$holder")"
send_next "$first"
wait_flushed "$first"
sum_is_right "a node whose holder is stopped commits alone"
ok "  after it has asked" test "$(metric_of "$first" cairn_commit_hand_failures_total)" -ge 1
kill -CONT "$(pid_of "$holder")"
send_next "$holder"
wait_flushed "$holder"
sum_is_right "the holder goes on, and commits nothing twice"

# ---- the holder is killed between receiving and committing ----

has_handed() {
        send_next "$second"
        wait_flushed "$second"
        [ "$(metric_of "$second" cairn_commits_handed_total)" -gt "$before" ]
}
before=$(metric_of "$second" cairn_commits_handed_total)
wait_for "a commit of the holder" has_handed
before=$(commits)
stall_commits
send_next "$second"
wait_for "the commit of the holder" stalled_at_least 1
is "$(metric_of "$second" cairn_queue_batches)" 1 "a node waits for the holder, which has written nothing to the log"
kill_node "$holder"
wait_for "the commit of the node" stalled_at_least 2
resume_store
wait_flushed "$second"
is "$(commits)" $((before + 1)) "one of both commits is made"
sum_is_right "the samples are there once"

# ---- the lease passes on ----

start "$holder"
has_joined() {
        send_round
        [ "$(sum_metrics cairn_commits_handed_total)" -gt "$before" ]
}
before=$(sum_metrics cairn_commits_handed_total)
wait_for "a commit of one node for another one" has_joined
sum_is_right "the node that was killed takes part again"
for node in a b c; do
        like "$("$cairn" store verify --data "$tmp/data-$node" 2>&1)" " 0 problems" "cairn store verify finds no fault"
        stop_node $node
done
sum_is_right "the tables are whole when all have stopped"

# ---- tokens ----

address=s3://cairn-test/tokens
start_node t --token-file "$tmp/tokens"
request -X POST -H 'Authorization: Bearer all-token' --data-binary '{}' "$(url_of t)/api/v1/node/commits"
is "$code" 403 "a token of another scope hands no commits"
request -X POST -H 'Authorization: Bearer node-token' --data-binary '{}' "$(url_of t)/api/v1/node/commits?$about"
is "$code" 404 "a node without peers makes no commits for others"
stop_node t
done_testing
