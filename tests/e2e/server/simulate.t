#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make simulate: figures that follow from the service times by hand, the first limit, and the number of nodes.
. tests/e2e/lib.sh
command -v jq >/dev/null || skip_all "jq is not installed"

cat >"$tmp/times.json" <<'END'
{"times": {"idle_second": 0.01, "ingest_batch": 0.001, "ingest_row": 0.00001, "page_batch": 0.0001, "page_row": 0.00001,
 "gateway_batch": 0.001, "gateway_row": 0, "flush": 0.1, "flush_batch": 0, "flush_row": 0.000002, "follow_commit": 0.02,
 "merge_row": 0.000001, "query": 0.5, "lookup_address": 0, "flush_duration": 1, "flush_duration_of_three": 2,
 "bytes_row_queued": 100, "bytes_row_flushed": 10,
 "requests_idle_second": {"PUT": 0.1, "GET": 0, "HEAD": 0}, "requests_flush": {"PUT": 2, "GET": 10, "HEAD": 1},
 "requests_flush_of_three": {"PUT": 1, "GET": 20, "HEAD": 1}}}
END
simulate() { python3 tests/bench/simulate.py --times "$tmp/times.json" --queries 0 "$@"; }
value_of() { # JQ-PATH OPTION...
        value_path=$1; shift
        simulate --json "$@" | jq "$value_path * 1000 | round"
}

# 1,000 hosts: 100 batches and 20,000 samples a second. 200,000 samples in a flush, of 20 MB in the queue.
is "$(value_of '.results[0].cpu.ingest' --hosts 1000)" 300 \
        "a service ingests 100 batches of 1 ms and 20,000 samples of 10 us"
is "$(value_of '.results[0].cpu.flush' --hosts 1000)" 50 "it flushes once in ten seconds, and 20,000 samples a second"
is "$(value_of '.results[2].cpu.ingest' --hosts 1000)" 100 "three services have a third of the ingest each"
is "$(value_of '.results[2].cpu.follow' --hosts 1000)" 2 "each reads the commits of the others"
is "$(value_of '.results[0].requests_day.PUT' --hosts 1000)" 25920000 \
        "8,640 flushes a day need two PUT each, and idle ones"
is "$(value_of '.results[0].rewrites' --hosts 1000)" 2000 "34 flushes in a final file are merged twice"
is "$(value_of '.results[0].stored_bytes_day' --hosts 1000)" 15552000000000 "a stored sample has 9 bytes"
is "$(value_of '.results[0].cpu.ingest' --hosts 1000 --gateways 2)" 210 "batches of gateways cost a service less"
# Ten times the samples: 20 MB arrive in a second.
is "$(value_of '.results[0].flush_period_s' --hosts 10000 --cpus 8)" 3355 "a flush begins when 64 MiB are queued"
# 100 batches a second leave 0.09 CPUs for a flush of 20,000 samples a second: 2.11 s / (1 - 0.04 / 0.09).
is "$(value_of '.results[0].flush_period_s' --hosts 1000 --cpus 0.4 --flush-interval 1)" 3800 \
        "a flush takes longer if other work uses the processor"
# A minute has 6^0.6 = 2.93 times the samples of ten seconds if many of its stacks are equal.
is "$(value_of '.results[0].samples_second' --hosts 1000 --interval 60 --growth 0.6)" 9767187 \
        "batches of a minute have fewer samples in total"

is "$(simulate --json --hosts 1000 | jq .enough)" 1 "1,000 hosts need one service"
like "$(simulate --hosts 10000)" 'first limit' "a table is printed"
is "$(simulate --json --hosts 10000 --cpus 8 | jq -r '.results[0].first')" "connections of a node" \
        "10,000 hosts have more connections than a service takes"
is "$(simulate --json --hosts 10000 --cpus 4 --gateways 4 | jq -r '.results[0].first')" "CPU of the node that merges" \
        "behind gateways the processor limits first"
like "$(simulate --hosts 1000000)" 'enough.*not up to 64 nodes' \
        "no number of services is enough if one thread merges all"
is "$(make -s simulate HOSTS=100 NODES=2 ARGS=--json | jq '.results | length')" 2 \
        "make simulate passes its variables on"
done_testing
