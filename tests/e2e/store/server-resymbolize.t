# SPDX-License-Identifier: Apache-2.0
# Samples of a stripped program arrive first, its debuginfo later: past samples then have functions, files and lines.
. tests/e2e/lib.sh

cat >"$tmp/program.c" <<'EOF'
volatile int sink;
static inline __attribute__((always_inline)) void inlined_part(int n)
{
        sink += n * 3;
}
__attribute__((noinline)) void outer_part(int n)
{
        inlined_part(n);
}
int main(int argc, char **argv)
{
        (void)argv;
        outer_part(argc);
        return 0;
}
EOF
build() { gcc -g -O1 -DBUILD="$1" -Wl,--build-id="0x00000000000000000000000000000000000000$1" -o "$tmp/program-$1" \
        "$tmp/program.c"; }
address() { nm "$tmp/program-$1" | awk -v name="$2" '$3 == name { print $1 }'; }
# ingest BUILD SERVICE: one sample of value 7 and period 7 whose stack is outer_part called by main.
ingest() {
        python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" "build_id=$(build_id_of "$tmp/program-$1")" "service=$2" \
                values=7 period=7 \
                "addresses=$(address "$1" outer_part),$(address "$1" main)" "mapping_file=program-$1"
        request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
        is "$code" 200 "samples of program $1 are accepted"
}
folded() {
        curl -sS -G "$url/api/v1/query/folded" --data-urlencode "selector={service_name=\"$1\"}" \
                --data-urlencode from=now-1h \
                --data-urlencode to=now
}
resolved='^main;outer_part(;inlined_part)? 7$'
missing() { curl -sS "$url/api/v1/debuginfo/missing" |
        jq -c "[.missing[] | select(.build_id | endswith(\"$1\")) | [.mapping, .state, .samples]]"; }

for b in 01 02 03; do build $b; done

# ---- in the head ----

start_server --flush-interval 3600
ingest 01 one
unlike "$(folded one)" 'outer_part' "no names yet"
like "$(folded one)" ' 7$' "the samples without names have their value"
is "$(missing 01)" '[["program-01","no_debuginfo",1]]' "the object is missing"
began_ns=$(date +%s%N)
put_object debuginfo "$tmp/program-01"
is "$code" 201 "its debuginfo is uploaded"
wait_metric cairn_resymbolize_rounds_total 1
took_s=$((($(date +%s%N) - began_ns) / 1000000000))
like "$(folded one)" "$resolved" "the past samples have names"
is "$(metric cairn_resymbolize_delays_total)" 1 "the time since the upload is counted"
ok "  as more than 5 s only if it was ($took_s s)" \
        test "$(metric cairn_resymbolize_long_delays_total)" -le $((took_s >= 5))
is "$(missing 01)" '[]' "nothing is missing any more"

# ---- in parts ----

ingest 02 two
stop_server
start_server --flush-interval 3600
becomes 0 "a clean stop has flushed" metric cairn_queue_batches
unlike "$(folded two)" 'outer_part' "no names in the parts"
put_object debuginfo "$tmp/program-02"
wait_metric cairn_resymbolize_locations_total 2
like "$(folded two)" "$resolved" "the rows of locations are rewritten"
like "$(folded one)" "$resolved" "the rows of other objects stay"
like "$(curl -sS -G "$url/api/v1/query/top" --data-urlencode 'selector={service_name="two"}' \
        --data-urlencode from=now-1h --data-urlencode to=now)" \
        'program\.c' "the rewritten rows have the file"
is "$("$cairn" debuginfo list --server "$url" --json | jq -c '[.objects[] | .index.state]')" '["indexed","indexed"]' \
        "cairn debuginfo list"
like "$("$cairn" debuginfo list --data "$data")" 'dwarf.*indexed.*program-01' \
        "cairn debuginfo list reads the directory, as a table"

# ---- a crash between storing and indexing, and between indexing and re-symbolization ----

ingest 03 three
stop_server
start_server --flush-interval 3600
put_object debuginfo "$tmp/program-03"
kill_server
start_server --flush-interval 3600
is "$code" 201 "an object is stored; the service dies"
resymbolized() { folded three | grep -Eq "$resolved"; }
wait_for "the past to be re-symbolized" resymbolized
pass "the next start re-symbolizes the past"
wait_for "the re-symbolization queue to be empty" test ! -s "$data/resymbolize-queue"
pass "and the re-symbolization queue is empty"

# ---- a dwz supplementary file that arrives last ----

if command -v dwz >/dev/null; then
        for b in 04 05; do build $b; objcopy --only-keep-debug "$tmp/program-$b" "$tmp/program-$b.debug"; done
        (cd "$tmp" && dwz -m common.debug program-04.debug program-05.debug 2>/dev/null)
        if [ -s "$tmp/common.debug" ]; then
                ingest 04 four
                put_object debuginfo "$tmp/program-04.debug"
                is "$code" 201 "debuginfo that needs a supplementary file arrives first"
                wait_for "it to be indexed" metric_equals cairn_index_queue 0
                kill_server
                start_server --flush-interval 3600
                ok "its missing companion persists across a crash" grep -q "$(build_id_of "$tmp/common.debug")" \
                        "$data/missing-companions"
                put_object debuginfo "$tmp/common.debug"
                is "$code" 201 "the supplementary file arrives"
                wait_metric cairn_objects_indexed_total 1
                complete() { folded four | grep -Eq "$resolved"; }
                wait_for "all names" complete
                pass "and the object is indexed again with it"
                wait_for "the supplementary file's turn" metric_equals cairn_index_queue 0
                supplement=$(curl -sS "$url/api/v1/debuginfo" | jq -c --arg id "$(build_id_of "$tmp/common.debug")" \
                        '.objects[] | select(.build_id == $id) | [.index.state, .index.ranges]')
                is "$supplement" '["supplement",0]' "the supplementary file itself is listed as one"
                ok "and is no failure" metric_equals cairn_objects_failed_total 0
                ok "nothing is missing any more" test ! -s "$data/missing-companions"
        fi
fi

# ---- on request ----

request -X POST "$url/api/v1/resymbolize"
is "$code $(printf '%s' "$body" | jq -c .locations_changed)" "200 0" "resymbolize finds nothing left to change"
is "$(curl -sS "$url/api/v1/resymbolize" | jq -c '[.running, .locations_done == .locations_all, .locations_all > 0]')" \
        '[0,true,true]' "the service says how far it is"
is "$("$cairn" resymbolize --server "$url" --dry-run | tail -1)" \
        "no locations or samples are without symbols" "reasons are headed only where there are some"
build 06
ingest 06 six
"$cairn" resymbolize --server "$url" --dry-run --since now-1h --json >"$tmp/dry"
is "$(jq -c '[.dry_run, .locations_changed, .unresolved_samples.before.no_debuginfo, .unresolved_samples.after]' \
        "$tmp/dry")" \
        '[true,0,1,null]' "a dry run counts unresolved samples by reason"
"$cairn" resymbolize --server "$url" --build-id "$(build_id_of "$tmp/program-06")" >"$tmp/text"
like "$(cat "$tmp/text")" '^  no_debuginfo +1 samples before, 1 after$' \
        "the text of a run has the counts before and after"
is "$(metric 'cairn_unresolved_samples{when="after",reason="no_debuginfo"}')" 1 "a metric has the count after the run"
build 07
ingest 07 seven
ingest 07 seven-again
put_object debuginfo "$tmp/program-06"
unresolved() { echo "$(metric "cairn_unresolved_samples{when=\"before\",reason=\"no_debuginfo\"}") $(metric "cairn_unresolved_samples{when=\"after\",reason=\"no_debuginfo\"}")"; }
becomes "1 2" "automatic re-symbolization updates the metric: other samples came meanwhile" unresolved
put_object debuginfo "$tmp/program-07"
becomes "2 0" "  and so does the next one" unresolved
request -X POST -H 'Content-Type: application/json' -d '{"since":"yesterday-ish"}' "$url/api/v1/resymbolize"
is "$code" 400 "a malformed time is refused"
for where in "--server $url" "--data $data"; do
        # shellcheck disable=SC2086  # word splitting is intended
        "$cairn" resymbolize $where --since yesterday-ish 2>"$tmp/err"
        is "$? $(cat "$tmp/err")" \
                "64 cairn resymbolize: 'yesterday-ish' is not a time: use now-1h, 2026-01-31T12:00:00Z or Unix seconds" \
                "  by the command too, with ${where%% *}"
done

is "$(grep -c -- "--upstream http.* fetches what the distribution" "$server_log")" 1 \
        "the log says once that an upstream may have the debuginfo"
done_testing
