# SPDX-License-Identifier: Apache-2.0
# cairn gate: exit status and reports, of files and of a service, whose numbers are those of cairn diff.
. tests/e2e/lib.sh

command -v jq >/dev/null || skip_all "jq is not installed"
# run NAME VALUE NOISE: folded stacks of one run, in which `slow` has the value.
run() {
        printf 'main;slow %d\nmain;other %d\nmain;loop 500000\n' $(($2 + $3 * 100)) $((300000 - $3 * 150)) \
                >"$tmp/$1.folded"
}
for i in 1 2 3 4 5; do
        run "base$i" 100000 $i
        run "same$i" 100000 $((6 - i))
        run "slow$i" 120000 $i
done
cd "$tmp" || exit 1
gate() { "$cairn" gate "$@"; }
code() { gate "$@" >out 2>err; echo $?; }

is "$(code --base base?.folded --head slow?.folded)" 1 "a function that is slower is a regression"
like "$(cat out)" 'function>2%: failed, \+1[0-9]\.[0-9]%' "the rule says by how much"
like "$(cat out)" '^slow: 501,500 -> 601,500' "the function is named, with the sums of the runs"
like "$(cat out)" '  called by: main \(\+100,000\)' "the report names its caller"
like "$(cat out)" 'an increase of [0-9.]+% would have been seen' "the smallest visible change is stated"
is "$(code --base base?.folded --head same?.folded)" 0 "equal runs are no regression"
for i in 1 2 3 4 5; do sed 's/loop 500000/loop 250000/' base$i.folded >fast$i.folded; done
is "$(code --base base?.folded --head fast?.folded)" 0 \
        "a function that is faster makes no others slower, whose shares rise"
like "$(cat err)" '2 functions have a greater share, but no greater cost, since the total fell: no regression$' \
        "  standard error says so"
is "$(code --base base?.folded --head fast?.folded --fail-if 'slow>5%')" 0 "  a rule that names one of them passes"
like "$(cat out)" 'slow>5%: passed, \+[23][0-9]\.[0-9]%; only its share rose, not its cost; an increase of' \
        "  the report shows how much the share rose"
is "$(code --base base1.folded --head fast1.folded --fail-if 'slow>5%')" 0 "  the same, of one file on a side"
like "$(cat out)" 'slow>5%: passed, \+[23][0-9]\.[0-9]%; only its share rose, not its cost$' \
        "  the report shows the same number"
is "$(code --base base1.folded --head fast1.folded)" 0 \
        "a function that is faster is no regression in one file on a side"
for i in 1 2 3 4 5; do sed 's/loop 500000/loop 250000/' slow$i.folded >both$i.folded; done
is "$(code --base base?.folded --head both?.folded)" 1 "  one that is slower meanwhile is a regression"
is "$(gate --base base?.folded --head both?.folded --json | jq -c '[.rows[] | select(.is_failure) | .function]')" \
        '["slow"]' "  only that one is named"
is "$(code --base base1.folded --head slow1.folded)" 1 "one file on a side is compared with the thresholds"
like "$(cat out)" 'one file on a side: compared with thresholds only' "the report of one file says what is compared"
is "$(code --base base?.folded --head same?.folded --fail-if 'function>0.0001%')" 3 \
        "a change too small to be seen is not called passed"
is "$(code --base base?.folded --head slow?.folded --fail-if 'total>50%')" 0 "only the rules that are given count"
is "$(code --base base?.folded --head slow?.folded --fail-if 'slow>5%' --fail-if 'total>50%')" 1 \
        "a rule may name a function"
is "$(code --base base?.folded)" 64 "a side is missing"
is "$(code --base base?.folded --head slow?.folded --fail-if 'slow>x')" 64 "a rule is malformed"
for rules in '--fail-if=' '--fail-if total>5% --fail-if='; do
        # shellcheck disable=SC2086
        is "$(code --base base?.folded --head slow?.folded $rules)" 64 "a rule is empty: $rules"
done
like "$(cat err)" "fail-if '' is no rule" "  standard error says so"
is "$(code --server http://127.0.0.1:9 --base-from now-2h --format sraif)" 64 \
        "a format is checked before the comparison"
is "$(code --base base?.folded --head slow?.folded --fail-if 'solw>5%')" 3 "a rule of an absent function does not pass"
is "$(code --base base1.folded --head slow1.folded --fail-if 'solw>5%')" 3 \
        "a rule of an absent function does not pass with thresholds only"
like "$(cat out)" 'solw>5%: unknown; no function of either side has this name' "the report says why it does not pass"
is "$(code --server http://127.0.0.1:9 --base-from now-2h)" 2 "a comparison that fails is not a regression"
ok "the report is written by the suffix of its file" sh -c \
        "! '$cairn' gate --base base?.folded --head slow?.folded -o gate.md"
like "$(cat gate.md)" '^\| `slow` \| 501,500 \| 601,500 \| \+' "Markdown has a row of the function"
gate --base base?.folded --head slow?.folded --format sarif >out
is "$(jq -r '.runs[0].results[0].ruleId, .runs[0].results[0].level' out | tr '\n' ' ')" "regression error " \
        "SARIF has a result"
for i in 1 2 3 4 5; do sed 's/ \(.*\)/ \1000/' base$i.folded >all$i.folded; done
is "$(code --base base?.folded --head all?.folded --format sarif)" 1 "a cost that rises everywhere is a regression"
is "$(jq -r '.runs[0].results[] | .message.text' out | sed 's/ [^ ]* -> [^ ]*,/ .../')" "total: ... +99900.0%" \
        "SARIF has a result of the total when only it failed"
is "$(code --base base?.folded --head all?.folded)" 1 "a cost that rises everywhere fails the total"
is "$(grep -A2 '^no function fails a rule' out)" "no function fails a rule; the cost of these rose most:

loop: 2,500,000 -> 2,500,000,000, +99900.0%" "the report names the functions whose cost rose most when no share did"
is "$(gate --base base?.folded --head all?.folded --json | jq -c '.details_are, [.details[].function]' | tr '\n' ' ')" \
        '"risen" ["loop","other","slow"] ' "JSON says that the functions are not failures"
like "$(gate --base base?.folded --head all?.folded --format markdown | tr '\n' ';')" \
        'no function fails a rule; the cost of these rose most:;;\| function' "Markdown names them"
gate --base base?.folded --head slow?.folded --format junit >out
junit="import xml.etree.ElementTree as t; s = t.parse('out').getroot()"
is "$(python3 -c "$junit; print(s.get('tests'), s.get('failures'))" 2>&1)" "2 1" "JUnit has two tests, one failed"
is "$(python3 -c "$junit; print(s.find('.//failure').text.splitlines()[0])" 2>&1)" "regression" \
        "the text of a failure has the lines of the report"
# Two types, of which the note names one, and two functions that fail.
types() {
        printf '{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"main"},
                {"name":"slow"},{"name":"slower"}]},"profiles":[{"type":"sampled","name":"p","unit":"none",
                "startValue":0,"endValue":1,"samples":[[0],[0,1],[0,2]],"weights":[300,%d,%d]},
                {"type":"sampled","name":"q","unit":"bytes","startValue":0,"endValue":1,"samples":[[0]],"weights":[9]}]}' "$2" "$3" >"$1.json"
}
types before 100 100
types after 200 300
is "$(code --base before.json --head after.json)" 1 "files of two types"
is "$(grep -c '^slow' out) $(grep -c . err)" "2 1" "a note is printed once, not again for each function that fails"
# Names with what ends code, cells, elements or lines, and a path that is no reference of a URI.
hostile() {
        printf '{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"main"},
                {"name":"sl|`\\u001b[1m\\uffff\\u202eow","file":"/src/a b%%41#?.c","line":3}]},
                "profiles":[{"type":"sampled","name":"p","unit":"none","startValue":0,"endValue":1,
                "samples":[[0],[0,1]],"weights":[300,%d]}]}' \
                "$2" >"$1.json"
}
hostile plain 100
hostile worse 150
for format in markdown sarif junit; do
        is "$(code --base plain.json --head worse.json --format $format)" 1 "hostile names, as $format"
        mv out hostile.$format
done
like "$(cat hostile.markdown)" '^\| `sl\\\|.\\x1b\[1m.*\\u\{202e\}ow` \| 100 \|' \
        "Markdown escapes controls, ends of code and of cells"
is "$(jq -r '.runs[0].results[].locations[].physicalLocation.artifactLocation.uri' hostile.sarif)" \
        '/src/a%20b%2541%23%3F.c' "paths in SARIF are references of a URI"
like "$(python3 -c "import xml.dom.minidom as m; print(m.parse('hostile.junit').documentElement.toxml())" 2>&1)" \
        'sl\|' "JUnit has no character that XML lacks"
gate --base base?.folded --head slow?.folded --json >out
is "$(jq -r '.verdict, .rows[0].function, .details[0].callers[0]' out | tr '\n' ';')" "failed;slow;main (+100,000);" \
        "JSON has the verdict"

# Clocks that were not set, whose times in nanoseconds look like other units.
for age in '10 seconds' '1000 seconds' '100 days'; do
        touch -d "1970-01-01 00:00:00 UTC + $age" base1.folded slow1.folded
        is "$(code --base base1.folded --head slow1.folded)" 1 "files of $age after 1970 are compared"
        is "$("$cairn" top --profile base1.folded --json 2>/dev/null | jq 'map(.flat) | add')" 899950 \
                "  cairn top has all their samples"
done
printf 'main;slow -5\n' >negative.folded
is "$(code --base negative.folded --head slow1.folded)" 3 "a negative total is not judged"
like "$(cat out)" 'total>5%: unknown' "  no rule passes"
like "$(cat err)" 'the total before is negative' "  the reason is on standard error"
is "$(code --base base1.folded --head slow1.folded --focus nope)" 3 "filters can leave nothing to judge"
like "$(cat err)" 'the side before has no samples that pass the filters$' "  the reason is on standard error"
printf 'main;other 5\n' >other.folded
like "$("$cairn" diff --focus slow other.folded slow1.folded 2>&1 >table)" \
        'the side before has no samples that pass the filters, so nothing is compared' "  cairn diff says so, too"

# ---- a service ----

cd "$OLDPWD" || exit 1
start_server
for side in base slow; do
        for i in 1 2 3 4 5; do
                "$cairn" import --server "$url" --time now --label "host.name=h$i" --label "version=$side" \
                        --label service.name=shop "$tmp/$side$i.folded" >/dev/null 2>&1
        done
done
is "$("$cairn" gate --server "$url" --base '{version="base"}' --head '{version="slow"}' >"$tmp/out" 2>&1; echo $?)" 1 \
        "a service gives the same verdict"
like "$(cat "$tmp/out")" "^$url/#view=diff&shown=table&selector=%7Bversion%3D%22slow%22%7D&base_selector=" \
        "the report of a service has the link to the comparison"
"$cairn" gate --server "$url" --base '{version="base"}' --head '{version="slow"}' --focus 'sl.w' >"$tmp/out" 2>&1
like "$(cat "$tmp/out")" '&focus=sl.w' "the link has the filters of the comparison"
"$cairn" gate --server "$url" --tenant team-a --base '{version="base"}' --head '{version="slow"}' \
        >"$tmp/out" 2>&1
like "$(cat "$tmp/out")" '&tenant=team-a' "the link has the tenant"
"$cairn" gate --server "$url" --base '{version="none"}' --head '{version="slow"}' --format sarif \
        >"$tmp/out" 2>"$tmp/err"
is "$?" 3 "without samples before there is too little data"
like "$(cat "$tmp/err")" 'the side before has no samples; .*matches version="none"; its values are base, slow' \
        "the reason is on standard error"
is "$(jq -c '.runs[0].results' "$tmp/out")" '[]' "SARIF has no result when a side has no samples"
"$cairn" gate --server "$url" --base '{version="base"}' --head '{version="slow"}' --json |
        jq -c '[.rows[] | {function, flat, flat_after}] | sort_by(.function)' >"$tmp/gate"
"$cairn" diff --server "$url" --base '{version="base"}' --json '{version="slow"}' |
        jq -c '[.[] | select(.flat > 0) | {function, flat, flat_after}] | sort_by(.function)' >"$tmp/diff"
is "$(cat "$tmp/gate")" "$(cat "$tmp/diff")" "the costs are those of cairn diff"
stop_server
done_testing
