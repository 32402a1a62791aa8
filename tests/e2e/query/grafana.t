# SPDX-License-Identifier: Apache-2.0
# deploy/grafana: the metrics, labels and profiles used by the dashboards exist, and the data source settings work
# with a service.
. tests/e2e/lib.sh

cpu=process_cpu:cpu:nanoseconds:cpu:nanoseconds
heap=memory:inuse_space:bytes:space:bytes
now=$(($(date +%s) / 3600 * 3600 - 1800))
printf 'reader-secret read\nsender-secret ingest\n' >"$tmp/tokens"
echo sender-secret >"$tmp/sender"
start_server --token-file "$tmp/tokens"

# store TYPE VALUE LABEL...: a profile of one stack.
store() {
        type=$1 value=$2; shift 2
        for label; do set -- "$@" --label "$label"; shift; done
        echo "main;work $value" >"$tmp/stack.folded"
        ok "$type of $value is accepted" "$cairn" import --server "$url" --token-file "$tmp/sender" --time $now \
                --type "$type" "$@" \
                "$tmp/stack.folded"
}

# As from an agent with a custom label, twice; as from cairn scrape, without a host; of another service; and other
# types. Each value is a distinct bit in the sums expected by grafana.py.
store $cpu 1 service.name=shop host.name=host-1 instance=shop-1:6060
store $cpu 2 service.name=shop host.name=host-2 instance=shop-2:6060
store $cpu 4 service.name=shop instance=shop-3:6060
store $cpu 8 service.name=other host.name=host-1 instance=shop-1:6060
store $heap 16 service.name=shop host.name=host-1 instance=shop-1:6060
store $heap 32 service.name=shop host.name=host-2 instance=shop-2:6060
store $heap 64 service.name=shop instance=shop-3:6060
store $heap 128 service.name=other host.name=host-1 instance=shop-1:6060
store memory:alloc_space:bytes:space:bytes 256 service.name=shop host.name=host-1 instance=shop-1:6060
store process_cpu:samples:count:cpu:nanoseconds 512 service.name=shop host.name=host-1 instance=shop-1:6060

report_checks python3 tests/e2e/query/grafana.py "$url" reader-secret
report_checks python3 tests/e2e/query/grafana-profiles.py "$url" reader-secret $now
done_testing
