#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Long tables and traces in a browser: sorting, filter, keyboard, rendering of visible rows only; by span, by trace, by
# id.
. tests/e2e/lib.sh
. tests/browser/lib.sh
start_server --flush-interval 1
now=$(date +%s)
cpu=process_cpu:cpu:nanoseconds:cpu:nanoseconds
import() { "$cairn" import --server "$url" --time $((now - 60)) "$@" >>"$tmp/import.log" 2>&1; }

# Function k of 50,000 is in a file and has the line 100 + k % 1000; 50,000 - k samples.
python3 - "$tmp/many.pb" <<'END'
import sys

def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])

def number(field, n): return varint(field << 3) + varint(n)
def piece(field, data): return varint(field << 3 | 2) + varint(len(data)) + data

COUNT = 50000
strings = ["", "samples", "count"] + [f"file_{i:02}.c" for i in range(100)] + [f"function_{i:05}" for i in range(COUNT)]
out = [piece(1, number(1, 1) + number(2, 2))]
for k in range(COUNT):
    out.append(piece(2, piece(1, varint(k + 1)) + piece(2, varint(COUNT - k))))
    out.append(piece(4, number(1, k + 1) + piece(4, number(1, k + 1) + number(2, 100 + k % 1000))))
    out.append(piece(5, number(1, k + 1) + number(2, 103 + k) + number(4, 3 + k % 100)))
out += [piece(6, s.encode()) for s in strings]
open(sys.argv[1], "wb").write(b"".join(out))
END
ok "a profile of 50,000 functions is accepted" import --label service.name=many "$tmp/many.pb"
python3 tests/browser/make_spans.py $((now - 60)) 300 >"$tmp/spans.json"
is "$(curl -sS -o "$tmp/answer" -w '%{http_code}' -H 'Content-Type: application/json' --data-binary "@$tmp/spans.json" \
        "$url/v1development/profiles")" 200 \
        "  a profile with spans is accepted"
printf 'main;old 5000000\n' >"$tmp/old.folded"
ok "  and one with a label" import --type $cpu --label service.name=labelled --label profile_id=77 "$tmp/old.folded"
ok "a page of all functions is written" "$cairn" flame --server "$url" --from now-1h --max-nodes 0 \
        --output "$tmp/many.html" '{service_name="many"}'
run_browser tables.js "$url" "$tmp/many.html"
stop_server
done_testing
