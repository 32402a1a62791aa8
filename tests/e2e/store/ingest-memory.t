#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A node with the role ingest runs in 256 MiB: it takes batches from several senders at once, each as large as an agent
# sends them, in a memory cgroup of that size where one can be made, else its peak is measured. Without sanitizers,
# since these use additional memory.
# Time limit: 900 s.
. tests/e2e/lib.sh
for tool in jq python3 curl; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh
. tests/e2e/object-store.sh
. tests/e2e/several-nodes.sh
cairn=$CAIRN_BUILD/cairn
# Read by several-nodes.sh.
# shellcheck disable=SC2034
address=s3://cairn-test/fleet
limit_mib=256

# The cgroup of version 2 or 1; empty where it cannot be made.
group=
for parent in /sys/fs/cgroup/memory /sys/fs/cgroup; do
        mkdir "$parent/cairn-test-$$" 2>/dev/null || continue
        for file in memory.max memory.limit_in_bytes; do
                [ ! -e "$parent/cairn-test-$$/$file" ] || ! echo $((limit_mib << 20)) >"$parent/cairn-test-$$/$file" ||
                        group=$parent/cairn-test-$$
        done
        [ -z "$group" ] || break
        rmdir "$parent/cairn-test-$$"
done 2>/dev/null
[ -n "$group" ] && diag "a memory cgroup of $limit_mib MiB" || diag "no memory cgroup can be made: the peak is measured"

# 40,000 stacks and 24,000 functions in each batch; the others have other ones.
batch() {
        awk -v n="$1" 'BEGIN { for (i = 0; i < 40000; i++)
                printf "main;serve%d_%d;handle%d_%d;work%d_%d %d\n", n, i % 200, n, i % 4000, n, i % 20000, i + 1 }'
}
for i in $(seq 12); do batch "$i" | gzip -1 >"$tmp/batch-$i.gz"; done

start_node small --role ingest --memory ${limit_mib}M --flush-interval 2
[ -z "$group" ] || pid_of small >"$group/cgroup.procs"
# Senders repeat what is refused with 429 or 503, as an agent does.
send_batches() { # FIRST
        for sent in $(seq "$1" 4 12); do
                until curl -sSf --max-time 60 --retry 100 --retry-delay 1 -o "$tmp/answer-$sent" \
                        -H 'Content-Encoding: gzip' -H 'Content-Type: text/plain' --data-binary "@$tmp/batch-$sent.gz" \
                        "$(url_of small)/ingest?name=app&format=folded"; do
                        kill -0 "$(pid_of small)" || return 1
                done
        done
}
senders=
for i in 1 2 3 4; do
        send_batches $i 2>"$tmp/sender-$i" &
        senders="$senders $!"
done
taken=0
for sender in $senders; do wait "$sender" && taken=$((taken + 1)); done
is $taken 4 "four senders have all their batches acknowledged"
ok "the service is still running" kill -0 "$(pid_of small)"
peak=$(awk '/^VmHWM:/ { print $2 }' "/proc/$(pid_of small)/status")
diag "peak $((peak >> 10)) MiB, $(metric_of small cairn_flushes_total) flushes"
ok "its peak is within $limit_mib MiB" test "$peak" -le $((limit_mib << 10))
stop_node small
is "$(rows_and_sum | cut -d' ' -f2)" $((12 * 40000 * 40001 / 2)) "each sample is in the tables once"
[ -z "$group" ] || { is "$(sed -n 's/^oom_kill //p' "$group/memory.events" "$group/memory.oom_control" 2>/dev/null)" 0 \
        "nothing was killed for its memory"; rmdir "$group"; }
done_testing
