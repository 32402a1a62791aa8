#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Concurrent requests of every kind need many times the memory that the service may use: it stays within the limit, and
# others are served in the meantime. Without sanitizers, since these use additional memory.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip_all "python3 is not installed"
cairn=$CAIRN_BUILD/cairn
limit_mib=512

out=$("$cairn" serve --data "$data" --memory 100M 2>&1)
is "$?" 64 'with less than the minimum it does not start'
like "$out" 'at least 256 MiB' 'and says how much is needed'

# Eight million brackets; 1 GiB of zeros with a window of 8 MiB; 16 bytes that require a window of 128 MiB.
{ printf '{"files":[[]'; head -c 8000000 /dev/zero | tr '\0' ' ' | sed 's/   /,[]/g'; printf ']}'; } |
        gzip -1 >"$tmp/brackets.gz"
head -c 1073741824 /dev/zero | zstd -q -3 --zstd=wlog=23 >"$tmp/bomb.zst"
head -c 67108864 /dev/zero | zstd -q -3 --long=27 >"$tmp/wide.zst"
awk 'BEGIN { for (i = 0; i < 100000; i++) printf "main;wide%d;work%d;leaf%d 1\n", i % 100, i % 5000, i }' \
        >"$tmp/wide.folded"

start_server --memory "${limit_mib}M"
request -X PUT -H 'Content-Encoding: zstd' -H 'X-Cairn-Size: 67108864' -H "X-Cairn-SHA256: $(printf '%064d' 0)" \
        -T "$tmp/wide.zst" "$url/api/v1/debuginfo/00112233445566778899/debuginfo"
is "$code" 400 'an upload with a window of 128 MiB is refused'
like "$body" 'more than 8 MiB.*--long=23' 'and says how to compress it'
answers 200 '' 'a wide profile is taken' -H 'Content-Type: text/plain' --data-binary "@$tmp/wide.folded" \
        "$url/ingest?name=wide&format=folded"

python3 tests/e2e/server/memory-budget.py "$port" "${MEMORY_BUDGET_ROUNDS:-200}" "$tmp" "$tmp/brackets.gz" \
        "$tmp/bomb.zst" "$tmp/wide.zst" \
        "$tmp/wide.folded" >"$tmp/result" 2>"$tmp/client.err"
is "$?" 0 'the clients ended'
diag "$(cat "$tmp/client.err")"
value() { python3 -c 'import json, sys; print(round(json.load(open(sys.argv[1]))[sys.argv[2]]))' "$tmp/result" "$1"; }
peak=$(peak_memory_kb)
diag "peak $((peak >> 10)) MiB of $limit_mib; $(cat "$tmp/result")"
ok 'the service is running' healthy
ok "its peak is within --memory" test "$peak" -le $((limit_mib << 10))
is "$(value health_answered)" "${MEMORY_BUDGET_ROUNDS:-200}" 'every health check was answered'
is "$(value ingest_answered)" "$((${MEMORY_BUDGET_ROUNDS:-200} / 3 + 1))" 'every honest batch was acknowledged'
ok 'memory was refused meanwhile' \
        test "$(curl -sS "$url/metrics" | awk '/^cairn_memory_refused_total/ { n += $2 } END { print n + 0 }')" -gt 0
is "$(value retry_after_missing)" 0 'refused requests have Retry-After'
limit=$(metric cairn_memory_limit_bytes)
is "$limit" $((limit_mib << 20)) 'the limit is a metric'
held() { [ "$(metric 'cairn_memory_bytes{use="bodies"}')" = 0 ] &&
        [ "$(metric 'cairn_memory_bytes{use="answers"}')" = 0 ] &&
        [ "$(metric 'cairn_memory_bytes{use="uploads"}')" = 0 ]; }
wait_for 'all that was held to be given back' held
pass 'what clients held is given back to the byte'
stop_server
done_testing
