# SPDX-License-Identifier: Apache-2.0
# Profiles of other tools are imported and queried: cairn import, top, flame, diff and query, with the server and on its
# directory.
. tests/e2e/lib.sh

json() { python3 -c "import json,sys; d=json.load(open(sys.argv[1])); print($2)" "$1"; }
corpus=tests/corpus

ok "a dry run reads every format" "$cairn" import --dry-run $corpus/pprof/good/go-cpu.pb.gz \
        $corpus/otlp/good/official-message $corpus/perf_script/good/busy $corpus/folded/good/two-stacks
like "$(gzip -c $corpus/folded/good/two-stacks | "$cairn" import --dry-run -)" '^-: folded, 10 samples, 2 stacks' \
        "a dry run reads standard input"
like "$("$cairn" import --dry-run $corpus/otlp_json/good/official-message.json)" ': otlp, 9 samples, 3 stacks' \
        "a dry run reads OTLP in JSON"
err=$("$cairn" import --dry-run $corpus/otlp/bad/stack-index-past-table 2>&1)
is $? 2 "a damaged file ends in 2"
like "$err" 'OTLP stack index 3 is outside the table of 3 entries' "the message says what is wrong with a damaged file"
err=$("$cairn" import --dry-run README.md 2>&1)
is $? 2 "a file of another kind ends in 2"
like "$err" 'unknown format' "the message says that the format is unknown"
for content in '' '# only a comment' 'main;idle 0' '{"traceEvents":[]}'; do
        err=$(printf '%s' "$content" | "$cairn" import --dry-run - 2>&1)
        is $? 2 "content without samples ends in 2: '$content'"
        like "$err" 'empty|no samples|a Chrome trace; open it in speedscope' "the message has the reason: '$content'"
done
err=$("$cairn" top --server http://127.0.0.1:1 2>&1)
is $? 1 "no server ends in 1"
like "$err" '127.0.0.1' "the message names the server that does not answer"

start_server --flush-interval 3600
is "$("$cairn" top --server "$url" 2>&1 >/dev/null)" \
        "cairn top: there are no samples yet; cairn-agent, cairn scrape and cairn import send some" \
        "an empty service says what sends samples"
import() { "$cairn" import --server "$url" --time now "$@" >>"$tmp/import.log" 2>&1; }
printf 'main;work;leaf 5000000000\nmain;work 1000000000\nmain;read;sys_read_[k] 500000000\n' >"$tmp/a.folded"
printf 'main;work;leaf 9000000000\n' >"$tmp/b.folded"
cpu=process_cpu:cpu:nanoseconds:cpu:nanoseconds
ok "folded stacks are accepted" import --type $cpu --label service.name=api --label version=1 "$tmp/a.folded"
ok "  and others" import --type $cpu --label service.name=api --label version=2 "$tmp/b.folded"
ok "perf script is accepted" import $corpus/perf_script/good/busy
samples=$(metric cairn_ingest_samples_total)
touch -d '1 hour ago' "$tmp/a.folded"
ok "the same file is accepted again" "$cairn" import --server "$url" --time 1700000000 --label v=1 "$tmp/a.folded"
ok "  and again" "$cairn" import --server "$url" --time 1700000000 --label v=1 "$tmp/a.folded"
is "$(metric cairn_ingest_samples_total)" $((samples + 3)) "the second import of the same file counts nothing"

for where in "--server $url" "--data $data"; do
        # shellcheck disable=SC2086  # word splitting is intended
        "$cairn" top $where --from yesterdayish 2>"$tmp/err"
        is $? 64 "a wrong time ends in 64 with ${where%% *}"
        is "$(cat "$tmp/err")" \
                "cairn top: 'yesterdayish' is not a time: use now-1h, 2026-01-31T12:00:00Z or Unix seconds" \
                "the message says why the time is wrong with ${where%% *}"
done

# Empty answers say what to change.
no_samples() { # TEXT NAME COMMAND ARGUMENT...
        text=$1 name=$2 command=$3; shift 3
        "$cairn" $command --server "$url" "$@" >"$tmp/out" 2>"$tmp/err"
        is "$? $(cat "$tmp/err")" "0 cairn ${command%% *}: $text" \
                "an answer without samples says why: $name"
}
nope='no sample in this time range matches service.name="nope"; its values are api, ключ'
printf 'main;ключ 1\n' >"$tmp/key.folded"
ok "a value may be of another script" import --type $cpu --label service.name=ключ "$tmp/key.folded"
old="$cairn import --server $url --time 1500000000 --label service.name=old $tmp/key.folded"
ok "samples of a past time are accepted" $old --label version=3 --type $cpu
ok "samples of a second type are accepted" $old --label version=4
for command in top flame "query --series" "query --spans" "query --types" "query --values version"; do
        no_samples "$nope" "cairn $command names an unknown value" "$command" \
                '{service.name="nope",version=~".*"}'
done
no_samples "$nope; the side before has no samples, so nothing is compared" "cairn diff names it" diff \
        --base-from now-2h --base-to now-1h '{service.name="nope"}'
no_samples 'no sample in this time range matches zone=~"eu.+"; no sample has this label' "no sample has the label" top \
        '{service.name="api",zone=~"eu.+"}'
no_samples 'no sample in this time range matches all of the selector' "values occur, not together" top \
        '{service.name="ключ",version="1"}'
no_samples 'no selected sample has the label zone' "the label whose values are listed is unknown" "query --values zone"
no_samples "no selected sample has the type $cpu; there are samples:samples:count::" "the type is another one" top \
        --type $cpu --from 2017-07-14T00:00:00Z --to 2017-07-15T00:00:00Z '{version="4"}'
"$cairn" top --server "$url" --from 2001-01-01T00:00:00Z --to 2001-01-02T00:00:00Z >"$tmp/out" 2>"$tmp/err"
like "$(cat "$tmp/err")" \
        '^cairn top: no samples are in this time range; there are some from 2017-07-14 02:40:00 to 20' \
        "an answer without samples says which time range has some"

no_samples "the side before has no samples, so nothing is compared; $nope" "cairn diff, of the base" diff \
        --base '{service.name="nope"}' '{service.name="api"}'
no_samples "$nope" "cairn query --missing names it" "query --missing" '{service.name="nope"}'
for command in top flame query "query --sandwich leaf"; do
        no_samples 'no selected stack passes the filters' "filters of cairn $command" "$command" \
                --focus nope '{service.name="api"}'
done
for command in "top --function nope" "query --lines --function nope" "query --lines --file nope" \
        "query --sandwich nope" "flame --callees-of nope" "flame --callers-matching nope" "query --trend nope" \
        "diff --base-from now-1h --function nope"; do
        no_samples 'no selected sample has such a function' "a function of cairn $command" "$command" \
                '{service.name="api"}'
done
"$cairn" gate --server "$url" --base '{service.name="nope"}' --head '{service.name="api"}' >"$tmp/out" 2>"$tmp/err"
is "$? $(cat "$tmp/err")" "3 cairn gate: the side before has no samples; $nope" "cairn gate says why it cannot judge"
"$cairn" query --server "$url" --disassembly --function nope >"$tmp/out" 2>"$tmp/err"
is "$? $(cat "$tmp/err")" "1 cairn query: no selected sample is in such a function of an object with a build-id" \
        "a function without code is not found"

# The range is fixed, so that both queries have the same result, and has what is imported later.
from=$(($(date +%s) - 3600)) to=$(($(date +%s) + 3600))
both() {
        operation=$1; shift
        "$cairn" "$operation" --server "$url" --from $from --to $to "$@" >"$tmp/by-server" 2>"$tmp/err" &&
                "$cairn" "$operation" --data "$data" --from $from --to $to "$@" >"$tmp/by-data" 2>"$tmp/err" &&
                cmp "$tmp/by-server" "$tmp/by-data" || { cat "$tmp/err"; return 1; }
}
api='{service.name="api"}'
ok "top, from the head" both top --json "$api"
is "$(json "$tmp/by-data" '[(r["function"], r["flat"], r["cumulative"]) for r in d[:2]]')" \
        "[('leaf', 14000000000, 14000000000), ('work', 1000000000, 15000000000)]" \
        "top counts flat and cumulative values"
ok "flame, folded" both flame "$api"
is "$(sort "$tmp/by-data" | tr '\n' ' ')" \
        "main;read;sys_read_[k] 500000000 main;work 1000000000 main;work;leaf 14000000000 " \
        "folded flame graphs merge equal stacks"
ok "flame, JSON" both flame --format json "$api"
is "$(json "$tmp/by-data" 'd["nodes"][0][3]')" 15500000000 "the root of the flame graph's JSON has the total"
ok "flame, a page" both flame --format html "$api"
like "$(head -c 15 "$tmp/by-data")" '<!doctype html>' "flame --format html writes a page"
unlike "$(cat "$tmp/by-data")" 'https?://' "the page of a flame graph fetches nothing"
ok "flame, for the Firefox Profiler" both flame --format firefox "$api"
is "$(python3 tests/e2e/query/firefox-folded.py "$tmp/by-data" 2>&1)" \
        "$("$cairn" flame --data "$data" --from $from --to $to "$api" | LC_ALL=C sort)" \
        "Firefox's format has the same stacks and values"
is "$(json "$tmp/by-data" 'd["threads"][0]["samples"]["weightType"]')" tracing-ms \
        "values in Firefox's format are milliseconds"
ok "  by label, and few nodes" both flame --format firefox --by version --max-nodes 4 "$api"
like "$(python3 tests/e2e/query/firefox-folded.py "$tmp/by-data" 2>&1)" 'version.*\(other\) [0-9]+$' \
        "frames past --max-nodes are one frame in Firefox's format"
ok "flame, pprof" both flame --format pprof --output - "$api"
ok "  which cairn reads back" "$cairn" import --dry-run "$tmp/by-data"
# Names: the full form is stored, the short one is used for labels, and both and the linkage name find a function.
name='std::vector<int, std::allocator<int> >::push_back(int const&)'
printf 'main;%s 7\nmain;net/http.(*conn).serve 2\n' "$name" >"$tmp/names.folded"
ok "names of languages are taken" import --type $cpu --label service.name=names "$tmp/names.folded"
named='{service.name="names"}'
ok "flame, short names" both flame --names short "$named"
is "$(sort "$tmp/by-data" | tr '\n' ' ')" "main;http.(*conn).serve 2 main;std::vector<...>::push_back 7 " \
        "short names have no arguments and import paths"
ok "flame, full names" both flame "$named"
like "$(cat "$tmp/by-data")" 'allocator<int> >::push_back\(int const&\) 7$' "folded stacks have full names by default"
ok "top, short names" both top --names short --json "$named"
is "$(json "$tmp/by-data" '[r["function"] for r in d if r["flat"]]')" \
        "['std::vector<...>::push_back', 'http.(*conn).serve']" \
        "top --names short has short names"
for pattern in 'std::vector<int.*' 'std::vector<\.\.\.>::push_back' '.*serve'; do
        ok "top of a function by $pattern" both top --function "$pattern" --json "$named"
        is "$(json "$tmp/by-data" 'len(d)')" 1 "top of a function by $pattern has one row"
done
ok "callees of a function by its short name" both flame --callees-of 'std::vector<...>::push_back' "$named"
like "$(cat "$tmp/by-data")" '^std::vector<int.* 7$' "callees of a function with a short name are found"
"$cairn" top --data "$data" --names long 2>"$tmp/err"
is $? 64 "an unknown form of names ends in 64"
ok "flame, a page of them" both flame --format html "$named"
ok "flame, JSON of them" both flame --format json "$named"
if command -v node >/dev/null; then
        scripts=$(printf 'web/script/%s.js,' units times names search flame_layout)
        timeout 300 node tests/e2e/query/flame-names.js "${scripts%,}" "$tmp/by-data" >"$tmp/names"
        is "$(sed -n 1p "$tmp/names")" "main std::vector<...>::push_back http.(*conn).serve | 1 1 1 1 1 0" \
                "the page's labels are short, and its search knows both forms"
        is "$(sed -n 2p "$tmp/names")" "0, 0, 1, 11, 9, 0, 0, 0, 1" \
                "no pattern of the page's search backtracks, and all agree with RegExp"
        is "$(sed -n 3p "$tmp/names")" "0 stopped" "a search of the page that takes too many steps is abandoned"
else
        pass "the page's labels are short, and its search knows both forms # SKIP no node"
fi

ok "diff" both diff --base '{version="1"}' --json '{version="2"}'
is "$(json "$tmp/by-data" '[(r["function"], r["flat"], r["flat_after"]) for r in d[:2]]')" \
        "[('leaf', 5000000000, 9000000000), ('work', 1000000000, 0)]" "diff sorts by change"
ok "values of a label" both query --values version "$api"
is "$(tr '\n' ' ' <"$tmp/by-data")" "1 2 " "query --values lists the values of a label"
is "$(curl -sS -G "$url/api/v1/query/labels" -d from=0 -d counts=1 --data-urlencode "selector=$api" |
        jq -c '[.[] | select(.name == "version" or .name == "service_name")]')" \
        '[{"name":"service_name","values":1},{"name":"version","values":2}]' \
        "names of labels, with how many values the selection has of each"
is "$(curl -sS -G "$url/api/v1/query/labels" -d from=0 -d counts=1 --data-urlencode 'selector={service_name="none"}')" \
        '[]' "labels without values are left out of the counts"
ok "types" both query --types
like "$(cat "$tmp/by-data")" "^$cpu\$" "query --types lists the types"
ok "series" both query --series --step 1h --json "$api"
is "$(json "$tmp/by-data" 'sum(p[1] for p in d["points"])')" 15500000000 "the points of a series sum up to the total"
ok "a call tree" both query '{comm="busy"}'
like "$(cat "$tmp/by-data")" '100.00% .* __libc_start_call_main' "query prints the call tree of the perf recording"
ok "missing debuginfo" both query --missing

# Grouping, filters, CSV, and two types of one selection.
ok "top by label, as CSV" both top --by version --focus leaf --hide work --csv --type $cpu "$api"
is "$(tr -d '\r' <"$tmp/by-data" | sed -n '1,3p' | tr '\n' ' ')" \
        "version,function,file,line,object,kind,flat,cumulative 2,leaf,,0,,native,9000000000,9000000000 2,main,,0,,native,0,9000000000 " \
        "CSV by label has a line per label and function"
ok "a flame graph by label" both flame --by version --callers-matching '^le' "$api"
is "$(sort "$tmp/by-data" | tr '\n' ' ')" "version=1;leaf;work;main 5000000000 version=2;leaf;work;main 9000000000 " \
        "a flame graph by label has the labels on top"
ok "the greatest series" both query --series --step 1h --by version --groups 1 --json "$api"
is "$(json "$tmp/by-data" '[(g["labels"], g["total"]) for g in d["groups"]]')" \
        "[({'version': '2'}, 9000000000), (None, 6500000000)]" "series beyond --groups are summed as the rest"
ok "a sandwich view" both query --sandwich work --json "$api"
is "$(json "$tmp/by-data" '(d["rows"][0]["cumulative"], d["callers"]["nodes"][0][3], d["callees"]["nodes"][0][3])')" \
        "(15000000000, 15000000000, 15000000000)" "  has callers and callees"
is "$("$cairn" top --data "$data" --from $from --to $to --csv 'service.name=api' 2>&1)" \
        "$("$cairn" top --data "$data" --from $from --to $to --csv '{service.name="api"}' 2>&1)" \
        "values need no quotes"
ok "a diff as CSV" both diff --base '{version="1"}' --format csv '{version="2"}'
like "$(cat "$tmp/by-data")" '^leaf,,0,,native,5000000000,5000000000,9000000000,9000000000' \
        "CSV of a diff has the values as they are"
ok "a diff as text" both diff --base '{version="1"}' --sort cumulative '{version="2"}'
like "$(cat "$tmp/by-data")" '^  76.92%  100.00%  \+23.08 pp   76.92%  100.00%  \+23.08 pp  leaf$' \
        "a diff as text compares shares"
ok "a diff of values" both diff --base '{version="1"}' --compare values '{version="2"}'
like "$(cat "$tmp/by-data")" '^ +5.00 s +9.00 s +\+4.00 s +5.00 s +9.00 s +\+4.00 s  leaf$' \
        "a diff with --compare values compares values"
ok "a diff of callees" both diff --base '{version="1"}' --callees-of work --format json '{version="2"}'
is "$(json "$tmp/by-data" '(d["focus"], len(d["sides"]), [f[0] for f in d["frames"]][0])')" "('work', 2, 'work')" \
        "  begins at the function"
"$cairn" diff --data "$data" --base '{version="1"}' --callees-of work '{version="2"}' >"$tmp/out" 2>&1
is $? 64 "a table has no callees"
ok "counts of samples are taken" import --type process_cpu:samples:count:cpu:nanoseconds --label service.name=counted \
        "$tmp/b.folded"
for where in "--server $url" "--data $data"; do
        # shellcheck disable=SC2086  # word splitting is intended
        "$cairn" top $where --from $from --to $to '{service.name=~"api|counted"}' >/dev/null 2>"$tmp/err"
        like "$(cat "$tmp/err")" \
                '^cairn top: not included: 1 sample without a period of type process_cpu:samples:count:cpu:nanoseconds$' \
                "counts without a period are named as left out with ${where%% *}"
done

answers 200 'doctype html' "the page is served" "$url/"
answers 200 '^\["1","2"\]$' "label values have a path of their own" \
        "$url/api/v1/query/label/version/values?from=$from&to=$to"
answers 400 'expected' "a broken selector is 400" "$url/api/v1/query/top?selector=%7Ba%3D"
answers 400 "unknown query parameter 'selctor'" "a misspelled parameter is refused" \
        "$url/api/v1/query/top?selctor=a%3Db"
answers 400 'max_nodes is not a parameter of top; operations with it: flame, firefox, diff' \
        "so is a parameter of other operations" "$url/api/v1/query/top?max_nodes=5"
answers 400 "'by' has two different values.*usage" "one with two values, too" "$url/api/v1/query/top?by=a&by=b"
answers 400 "unknown query parameter 'name'" "a second label of values, too" \
        "$url/api/v1/query/label/version/values?name=service_name"
answers 400 "view 'tree' is not one of flame, top" "a view that a comparison does not have, too" \
        "$url/api/v1/query/diff?view=tree"
answers 400 'bad regular expression' "a broken pattern is 400" -G --data-urlencode 'selector={a=~"("}' \
        "$url/api/v1/query/top"
answers 404 'unknown query' "an unknown question is 404" "$url/api/v1/query/drop?table=1"
answers 405 '' "nothing is posted here" -X POST "$url/api/v1/query/top"

# Names of labels with a blank, and one that is there twice.
ok "a label's key may have a blank" "$cairn" import --server "$url" --time 1500000000 --label 'a key=1' \
        --label service.name=blank --type $cpu "$tmp/key.folded"
is "$("$cairn" top --server "$url" --from 2017-07-14T00:00:00Z --to 2017-07-15T00:00:00Z --csv \
        --by 'a key , version,a key' '{service.name="blank"}' | tr -d '\r' | head -2 | tr '\n' ' ')" \
        "a key,version,function,file,line,object,kind,flat,cumulative 1,,ключ,,0,,native,1,1 " \
        "groups of its values; the second time a label is named adds nothing"

"$cairn" top --server "$url" --from $from --to $to --json >"$tmp/before" 2>"$tmp/err"
stop_server
"$cairn" top --data "$data" --from $from --to $to --json >"$tmp/after" 2>"$tmp/err"
ok "parts give the same sums as the head" cmp "$tmp/before" "$tmp/after"
done_testing
