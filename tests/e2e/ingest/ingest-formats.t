# SPDX-License-Identifier: Apache-2.0
# Formats that Pyroscope's clients send to /ingest: forms with sample_type_config and prev_profile, types by suffix,
# unit and rate, tries, trees, lines and speedscope.
. tests/e2e/lib.sh

# contentions NAME VALUE COUNT: a profile as written by Go for mutexes and for blocks.
cat >"$tmp/contentions.py" <<'END'
import sys
sys.path.insert(0, "tests/e2e")
from profiles import Strings, blob, num, packed
import time
s = Strings()
value = lambda a, b: num(1, s(a)) + num(2, s(b))
types = blob(1, value("contentions", "count")) + blob(1, value("delay", "nanoseconds"))
body = types + blob(2, packed(1, [1]) + packed(2, [int(sys.argv[2]), int(sys.argv[3])]))
body += blob(4, num(1, 1) + blob(4, num(1, 1))) + blob(5, num(1, 1) + num(2, s("main.lock")))
body += blob(11, value("contentions", "count")) + num(9, int(sys.argv[4]) if len(sys.argv) > 4 else time.time_ns()) + num(12, 1)
open(sys.argv[1], "wb").write(body + b"".join(blob(6, t) for t in s.items))
END
make_contentions() { python3 "$tmp/contentions.py" "$@"; }
# ingest QUERY CURL-ARGUMENT...
ingest() { ingest_query=$1; shift; request "$@" "$url/ingest?from=$(date +%s)&$ingest_query"; }
# total SERVICE TYPE: the sum of its values.
total() {
        "$cairn" query --server "$url" --from now-1h --json --type "$2" "{service_name=\"$1\"}" 2>/dev/null |
                jq '[.sides[].total] | add'
}
types_of() { curl -sS -G "$url/api/v1/query/types" --data-urlencode from=now-1h \
        --data-urlencode "selector={service_name=\"$1\"}" | jq -c .; }

start_server

# ---- pprof in forms ----

make_contentions "$tmp/locks" 3 30
printf '{"contentions":{"display-name":"mutex_count","units":"lock_samples"},"delay":{"display-name":"mutex_duration"}}' >"$tmp/mutex.json"
printf '{"contentions":{"display-name":"block_count"},"delay":{"display-name":"block_duration"}}' >"$tmp/block.json"
for kind in mutex block; do
        ingest "name=go&spyName=gospy&n=$kind" -F "profile=@$tmp/locks" -F "sample_type_config=@$tmp/$kind.json"
        is "$code" 200 "a $kind profile with its config is taken"
done
is "$(total go mutex:delay:nanoseconds:contentions:count) $(total go block:delay:nanoseconds:contentions:count)" \
        "30 30" \
        "mutex and block profiles are two types"
is "$("$cairn" query --server "$url" --from now-1h --type mutex:delay \
        --json '{service_name="go",pyroscope_spy="gospy"}' | jq '.sides[0].total')" 30 \
        "the spy is a label"
ingest "name=go" -F "profile=@$tmp/locks" -F 'sample_type_config={'
is "$code" 400 "a malformed config is refused"
like "$body" 'sample_type_config' "the message names the malformed config"
printf '{%65536s' '}' >"$tmp/wide.json"
ingest "name=go" -F "profile=@$tmp/locks" -F "sample_type_config=<$tmp/wide.json"
is "$code" 413 "a config of more than 64 KiB is refused"
like "$body" 'sample_type_config is larger than 65536 bytes' "the message names the config that is too large"

make_contentions "$tmp/before" 1 10
printf '{"contentions":{"cumulative":true},"delay":{"cumulative":true}}' >"$tmp/cumulative.json"
ingest "name=cumulative&format=pprof" -F "profile=@$tmp/locks" -F "prev_profile=@$tmp/before" \
        -F "sample_type_config=@$tmp/cumulative.json"
is "$code $(total cumulative delay:delay:nanoseconds)" "200 20" \
        "the previous profile is subtracted from a cumulative one"
ingest "name=gauge&format=pprof" -F "profile=@$tmp/locks" -F "prev_profile=@$tmp/before" -F 'sample_type_config={}'
is "$code $(total gauge delay:delay:nanoseconds)" "200 30" "the previous profile is not subtracted from a gauge"
ingest "name=cumulative" -F "profile=@$tmp/locks" -F 'prev_profile=x'
is "$code" 400 "a malformed previous profile is refused"

make_contentions "$tmp/old" 1 7 "$(date +%s)000000"
ingest "name=old&format=pprof" --data-binary "@$tmp/old"
is "$code $(total old mutex:delay:nanoseconds)" "200 7" "a time in microseconds is replaced by that of the request"

# ---- labels ----

ingest 'name=process%7Bservice_name%3Dshop%2Cregion%3Deu%7D&format=folded' -d 'a;b 5'
is "$(total shop samples)" 5 "a service_name label is used"
is "$("$cairn" query --server "$url" --from now-1h --json '{app_name="process",region="eu"}' | jq '.sides[0].total')" \
        5 "the application's name is the label app_name"

# ---- stacks and their types ----

ingest 'name=hand&format=folded' -d 'a;b 5'
is "$(types_of hand)" '["samples:samples:count::"]' "folded stacks are counts by default"
ingest 'name=ruby.cpu&format=groups&units=samples&sampleRate=50&spyName=rbspy&aggregationType=sum' -d 'a;b 5'
is "$(types_of ruby) $(total ruby cpu)" '["process_cpu:cpu:nanoseconds:cpu:nanoseconds"] 100000000' \
        "a suffix gives the type, a rate the time"
ingest 'name=plain&units=samples&sampleRate=100' -d 'a;b 5'
is "$(types_of plain) $(total plain cpu)" '["process_cpu:cpu:nanoseconds:cpu:nanoseconds"] 50000000' "as units do"
ingest 'name=none&units=samples&sampleRate=0' -d 'a;b 5'
is "$(types_of none) $(total none samples)" '["process_cpu:samples:count::"] 5' "without a rate they stay counts"
for rate in fast 99.5 -1 2000000000; do
        ingest "name=rate.cpu&sampleRate=$rate" -d 'a;b 5'
        like "$code $body" "^400 .*sampleRate '$rate' is not a whole number" "a rate of $rate is refused"
done
answers 200 '' "parameters without a value are absent" -d 'a;b 5' \
        "$url/ingest?name=absent.cpu&format=&units=&sampleRate=&from=&until=&spyName="
is "$(total absent cpu)" 50000000 "  a rate without a value is that of Pyroscope"
ingest 'name=heap.alloc_space&format=folded&sampleRate=100' -d 'a;b 5'
is "$(types_of heap) $(total heap alloc_space)" '["memory:alloc_space:bytes::"] 5' "bytes have no rate"
ingest 'name=big.cpu&sampleRate=1' -d 'a 9223372036854775807'
is "$code" 400 "a time over 63 bits is refused"
printf 'a;b\na;b\na;c\n' >"$tmp/lines"
ingest 'name=lines&format=lines' --data-binary "@$tmp/lines"
is "$code $(total lines samples)" "200 3" "lines count one each"
for kind in trie tree; do
        ingest "name=$kind.cpu&format=$kind&sampleRate=1000" --data-binary "@tests/corpus/stack_trie/good/$kind"
        is "$code $(total $kind cpu)" "200 315000000" "a $kind is taken"
        ingest "name=by-type-$kind" -H "Content-Type: binary/octet-stream+$kind" \
                --data-binary "@tests/corpus/stack_trie/good/$kind"
        is "$code $(total by-type-$kind samples)" "200 315" "a $kind is taken by its content type"
done
ingest 'name=cut&format=trie' --data-binary "@tests/corpus/stack_trie/bad/cut"
is "$code" 400 "a truncated one is not"
ingest 'name=scope&format=speedscope' --data-binary @tests/corpus/speedscope/good/sampled.json
is "$code $(types_of scope) $(total scope cpu)" '200 ["process_cpu:cpu:nanoseconds:cpu:nanoseconds"] 1750000000' \
        "speedscope is taken"

# ---- requests that add no samples ----

# remark CURL-ARGUMENT...: the response's status and X-Cairn-Message.
remark() { curl -sS -o "$tmp/body" -D "$tmp/head" "$@"; tr -d '\r' <"$tmp/head" |
        sed -n 's/^HTTP[^ ]* //p; s/^[Xx]-[Cc]airn-[Mm]essage: //p' | tr '\n' ' '; }
is "$(remark -d '# no stack' "$url/ingest?name=x")" "200 OK the profile has no samples " \
        "folded stacks without a stack are taken, and the answer says so"
is "$(cat "$tmp/body")" "the profile has no samples" "the body says that the profile has no samples"
is "$(remark -d 'a;b 5' "$url/ingest?name=x&from=$(date +%s)")" "200 OK " "a profile with samples has no remark"
is "$(remark -H 'Content-Type: application/json' -d '{"resourceSpans":[]}' \
        "$url/v1development/profiles") $(jq -r .partialSuccess.errorMessage "$tmp/body")" \
        "200 OK  the profile has no samples: this is OTLP traces; profiles have the member resourceProfiles" \
        "OTLP of another signal, too"
is "$(remark -H 'Content-Type: application/json' -d '{}' "$url/v1development/profiles") $(cat "$tmp/body")" \
        "200 OK  {}" "an empty request is a success"
ingest 'name=x&format=folded' -d '{"traceEvents":[]}'
is "$code" 400 "a Chrome trace is not folded stacks"
like "$body" 'this is a Chrome trace; open it in speedscope' "the answer names the Chrome trace"
printf 'main;a 5\n' | gzip >"$tmp/folded.gz"
for format in folded speedscope; do
        ingest "name=packed&format=$format" --data-binary "@$tmp/folded.gz"
        like "$code $body" "^400 .*this is gzip data; send pprof as such .*'Content-Encoding: gzip'" \
                "compressed data of the format $format has to be declared as such"
done
ingest 'name=packed&format=folded' -H 'Content-Encoding: gzip' --data-binary "@$tmp/folded.gz"
is "$code $(total packed samples)" "200 5" "declared gzip data is folded stacks"

# ---- equal requests ----

for i in 1 2 3; do answers 200 '' "equal stacks without a time, $i" -d 'main;a 5' \
        "$url/ingest?name=equal&format=folded"; done
is "$(total equal samples)" 15 "equal profiles without a time are different samples"
for i in 1 2; do answers 200 '' "  of one batch, $i" -H 'X-Cairn-Batch: 0123456789abcdef0123456789abcdef' \
        -d 'main;a 5' "$url/ingest?name=batch&format=folded"; done
is "$(total batch samples)" 5 "profiles of one batch count once"
now=$(date +%s)
for i in 1 2; do answers 200 '' "  of one time, $i" -d 'main;a 5' "$url/ingest?name=timed&format=folded&from=$now"; done
is "$(total timed samples)" 5 "equal profiles of one time count once"
like "$(remark -d 'main;a 5' "$url/ingest?name=timed&format=folded&from=$now")" \
        '200 OK this batch was received before' "the answer says that the batch was received before"
for i in 1 2; do answers 200 '' "equal pprof, $i" --data-binary "@$tmp/locks" "$url/ingest?name=pprof&format=pprof"; \
        done
is "$(total pprof mutex:delay:nanoseconds)" 30 "  has a time of its own, and counts once"

make_contentions "$tmp/timeless" 2 20 0
make_contentions "$tmp/mixed" 3 30
raw_profile() { printf '{"rawProfile":"%s"}' "$(base64 -w0 "$1")"; }
printf '{"series":[{"labels":[{"name":"service_name","value":"pushed"}],"samples":[%s]}]}' \
        "$(raw_profile "$tmp/timeless")" >"$tmp/pushed.json"
sed 's/pushed/marked/' "$tmp/pushed.json" >"$tmp/marked.json"
printf '{"series":[{"labels":[{"name":"service_name","value":"mixed"}],"samples":[%s,%s]}]}' \
        "$(raw_profile "$tmp/timeless")" "$(raw_profile "$tmp/mixed")" >"$tmp/mixed.json"
for i in 1 2; do
        answers 200 '' "a pushed profile without a time, $i" -H 'Content-Type: application/json' \
                --data-binary "@$tmp/pushed.json" "$url/push.v1.PusherService/Push"
        answers 200 '' "  with an identity, $i" -H 'Content-Type: application/json' \
                -H 'X-Cairn-Batch: 00112233445566778899aabbccddeeff' --data-binary "@$tmp/marked.json" \
                "$url/push.v1.PusherService/Push"
        answers 200 '' "  and with one that has a time, $i" -H 'Content-Type: application/json' \
                --data-binary "@$tmp/mixed.json" "$url/push.v1.PusherService/Push"
done
is "$(total mixed block:delay:nanoseconds)" 50 "a repeated request with a time in it counts once"
is "$(total pushed block:delay:nanoseconds) $(total marked block:delay:nanoseconds)" "40 20" \
        "pushed profiles without a time are different samples, those of one batch count once"
make_contentions "$tmp/before-1970" 2 20 -5000000000
"$cairn" import --server "$url" --label service.name=old "$tmp/before-1970" >/dev/null 2>&1
is "$(total old block:delay:nanoseconds)" 20 "a time before 1970 is none"

# ---- several files of cairn import ----

printf 'main;early 3\n' >"$tmp/early.folded"
printf '\001\002 damaged\n' >"$tmp/damaged"
printf 'main;late 4\n' >"$tmp/late.folded"
several="$tmp/damaged $tmp/early.folded $tmp/none $tmp/late.folded"
# shellcheck disable=SC2086
"$cairn" import --server "$url" --time now --label service.name=several $several >"$tmp/out" 2>"$tmp/err"
is "$? $(grep -c 'sent$' "$tmp/out") $(grep -c . "$tmp/err")" "2 2 2" \
        "the files after a damaged and an absent one are sent; the status is that of the first failure"
like "$(cat "$tmp/err")" "^cairn import: $tmp/damaged: " "each file that fails is reported"
is "$("$cairn" query --server "$url" --from now-1h --json '{service_name="several"}' | jq '.sides[0].total')" 7 \
        "the samples of the other files are in the service"
# shellcheck disable=SC2086
"$cairn" import --server http://127.0.0.1:9 $several >"$tmp/out" 2>"$tmp/err"
like "$(tail -1 "$tmp/err")" "^cairn import: not tried: 2 files, from '$tmp/none' on$" \
        "without a service the command ends and says which files it did not try"
"$cairn" import --server http://127.0.0.1:9 --label novalue "$tmp/early.folded" "$tmp/late.folded" >"$tmp/out" 2>&1
is "$? $(grep -c . "$tmp/out")" "64 1" "a label without a value is reported once, not for each file"

# ---- rejected requests ----

for range in from=yesterday "until=yesterday" "from=$now&until=$((now - 1))"; do
        answers 400 'time|until is before from' "an unreadable range is refused: $range" -d 'main;a 5' \
                "$url/ingest?name=range&$range"
done
ingest 'name=twice%7Ba%3D1%2Ca%3D2%7D&format=folded' -d 'a;b 5'
is "$("$cairn" query --server "$url" --from now-1h --json '{service_name="twice",a="2"}' | jq '.sides[0].total')" 5 \
        "the last value of a repeated key counts"
cat >"$tmp/twice.json" <<END
{"resourceProfiles": [{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "first"}},
    {"key": "service.name", "value": {"stringValue": "again"}}]},
  "scopeProfiles": [{"profiles": [{"sampleType": {"typeStrindex": 1, "unitStrindex": 2},
    "timeUnixNano": "${now}000000000",
    "samples": [{"stackIndex": 1, "values": ["3"], "attributeIndices": [1, 2]}]}]}]}],
 "dictionary": {"stringTable": ["", "cpu", "nanoseconds", "leaf", "a"], "mappingTable": [{}], "linkTable": [{}],
  "functionTable": [{}, {"nameStrindex": 3}], "locationTable": [{}, {"lines": [{"functionIndex": 1}]}],
  "stackTable": [{}, {"locationIndices": [1]}],
  "attributeTable": [{}, {"keyStrindex": 4, "value": {"stringValue": "1"}},
    {"keyStrindex": 4, "value": {"stringValue": "2"}}]}}
END
answers 200 '' "OTLP with attributes that are there twice is accepted" -H 'Content-Type: application/json' \
        --data-binary "@$tmp/twice.json" "$url/v1development/profiles"
is "$("$cairn" query --server "$url" --from now-1h --json '{service_name="again",a="2"}' | jq '.sides[0].total')" 3 \
        "  the last value of a repeated attribute counts"
sed '/timeUnixNano/d; s/"again"/"timeless"/' "$tmp/twice.json" >"$tmp/timeless.json"
for i in 1 2; do answers 200 '{}' "OTLP without times, $i" -H 'Content-Type: application/json' \
        --data-binary "@$tmp/timeless.json" "$url/v1development/profiles"; done
is "$(total timeless cpu)" 6 "  equal requests without times are different samples"

ingest 'name=java&format=jfr' -F 'jfr=xx' -F 'labels=yy'
is "$code" 400 "a form without a valid recording is refused"
like "$body" 'not a JFR file' "the answer says that the form has no JFR file"
ingest 'name=java' -F 'jfr=xx'
is "$code" 400 "a form without a recording and a format is refused"
ingest 'name=x&format=odd' -d 'a 1'
is "$code" 415 "an unknown format is not"
like "$body" 'send pprof, folded, groups, lines, trie, tree, speedscope or jfr' "the answer names the known formats"
done_testing
