# SPDX-License-Identifier: Apache-2.0
# Symbols of objects that are neither stored nor sampled are removed from the index; those of sampled or stored ones are
# kept.
. tests/e2e/lib.sh
for tool in gcc jq curl python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

printf 'int work(int n) { return n * 3; }\nint main(int n) { return work(n); }\n' >"$tmp/program.c"
id() { printf '%038d%s' 0 "$1"; }
for b in 01 02 03; do
        gcc -g -O0 -no-pie -Wl,--build-id="0x$(id $b)" -o "$tmp/program-$b" "$tmp/program.c"
done
address=$(nm "$tmp/program-01" | awk '$3 == "work" { print $1 }')
# Whether the index resolves an address of the object to its function.
has_symbols() {
        "$cairn" symbolize --server "$url" --build-id "$(id "$1")" "0x$address" 2>/dev/null | grep -q '^work$'
}

start_server --flush-interval 1 --max-age any
for b in 01 02 03; do put_object debuginfo "$tmp/program-$b"; done
wait_metric cairn_objects_indexed_total 3
python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" service=shop values=7 mapping_file=program-01 build_id="$(id 01)" \
        addresses="$address" \
        at_ns="$(date +%s)000000000"
request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
is "$code" 200 "object 01 is sampled"
wait_metric 'cairn_table_rows{table="samples"}' 1
for b in 01 02; do "$cairn" debuginfo rm "$(id $b)" --server "$url" >"$tmp/out" 2>&1 || fail "rm" "$(cat "$tmp/out")"; \
        done
for b in 01 02 03; do ok "the index has symbols of $b" has_symbols $b; done
stop_server

start_server --flush-interval 1 --max-age any
wait_metric cairn_debuginfo_objects 1
is "$(metric cairn_index_expired_objects_total)" 0 "by default they are kept for a year"
stop_server

"$cairn" serve --data "$data" --keep-symbols soon >"$tmp/out" 2>&1
is $? 64 "an age that is none is refused"
like "$(cat "$tmp/out")" "'--keep-symbols' takes an age .* not 'soon'" "  the refusal names the wrong age"

# Only symbols indexed at least a second ago are removed: wait for the clock.
indexed_before() { [ "$(date +%s)" -gt "$indexed" ]; }
indexed=$(($(date +%s) + 1))
wait_for "a second to pass" indexed_before
start_server --flush-interval 1 --max-age any --keep-symbols 1s
wait_metric cairn_index_expired_objects_total 1
ok "symbols of the sampled object stay" has_symbols 01
ok "symbols of the stored object stay" has_symbols 03
if has_symbols 02; then fail "symbols of the other one are removed"; else pass "symbols of the other one are removed"; \
        fi
wait_for "the log, which is written after the metric" grep -q \
        'info index: removed the symbols of 1 object without a stored file and without samples' "$server_log"
pass "  the removal is in the log"
put_object debuginfo "$tmp/program-02"
wait_metric cairn_objects_indexed_total 1
ok "they return when it is uploaded again" has_symbols 02
stop_server
is "$("$cairn" index verify --data "$data" >"$tmp/out" 2>&1; echo $?)" 0 "the index is undamaged"
done_testing
