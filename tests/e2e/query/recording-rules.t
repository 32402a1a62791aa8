#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Recording rules: the file and Pyroscope's API, limits, and the metrics that Prometheus would scrape, whose values are
# those of the query API.
. tests/e2e/lib.sh

command -v jq >/dev/null || skip_all "jq is not installed"
cpu=process_cpu:cpu:nanoseconds:cpu:nanoseconds
slow=process_cpu:cpu:microseconds:wall:microseconds
cat >"$tmp/rules.json" <<END
{"rules": [{"id": "parse", "metricName": "parse_cpu_cores",
            "matchers": ["{__profile_type__=\"$cpu\"}", "{service_name=\"api\"}"],
            "externalLabels": [{"name": "team", "value": "a\"b"}],
            "stacktraceFilter": {"functionName": {"functionName": "json::parse(int*)"}}}]}
END
start_server --flush-interval 1 --recording-rules "$tmp/rules.json"
rpc() { curl -sS -X POST -H 'Content-Type: application/json' -d "$2" "$url/settings.v1.RecordingRulesService/$1"; }
recorded() { curl -sS "$url/api/v1/recorded"; }

is "$(rpc ListRecordingRules '{}' | jq -r '.rules[] | "\(.id) \(.profileType) \(.provisioned)"')" "parse $cpu true" \
        "a rule of the file is listed, with its type"
like "$(rpc UpsertRecordingRule '{"id": "parse", "metricName": "x"}')" 'of the file of rules' "it cannot be changed"
rule='{"metricName": "service_cores", "matchers": ["{}"], "groupBy": ["service_name"]}'
id=$(rpc UpsertRecordingRule "$rule" | jq -r .rule.id)
like "$id" '^[0-9a-f]{16}$' "a rule can be added"
is "$(rpc GetRecordingRule "{\"id\": \"$id\"}" | jq -r .rule.generation)" 1 "it can be read"
changed="{\"id\": \"$id\", \"generation\": \"1\", \"metricName\": \"cores\", \"matchers\": [\"{}\"],
          \"groupBy\": [\"service_name\"]}"
is "$(rpc UpsertRecordingRule "$changed" | jq -r '.rule.metricName, .rule.generation' | tr '\n' ' ')" "cores 2 " \
        "it can be replaced"
is "$(rpc UpsertRecordingRule "$changed" | jq -r .code)" failed_precondition "an old generation cannot replace it"
is "$(rpc GetRecordingRule '{"id": "none"}' | jq -r .code)" not_found "an unknown rule is not found"
for wrong in '"metricName": "2x"' '"metricName": "x", "matchers": ["{a=}"]' '"metricName": "x", "groupBy": ["a b"]' \
        '"metricName": "x", "groupBy": ["a"], "externalLabels": [{"name": "a", "value": "1"}]' \
        '"metricName": "x", "groupBy": ["a","b","c","d","e","f","g","h","i"]'; do
        is "$(rpc UpsertRecordingRule "{$wrong}" | jq -r .code)" invalid_argument "a rule with $wrong is refused"
done

# ---- metrics ----

# The window is a whole minute that ended at least a minute ago; all samples of the last minutes are equal.
now=$(date +%s)
for back in 1 2 3 4 5; do
        at=$((now - now % 60 - back * 60 + 30))
        printf 'main;json::parse(int*) 6000000000\nmain;other 12000000000\n' >"$tmp/api.folded"
        "$cairn" import --server "$url" --time $at --type $cpu --label service.name=api "$tmp/api.folded" \
                >/dev/null 2>&1
        printf 'main 30000000\n' >"$tmp/web.folded"
        "$cairn" import --server "$url" --time $at --type $slow --label service.name=web "$tmp/web.folded" \
                >/dev/null 2>&1
done
is "$(recorded | grep -v '^#' | sort)" "cores{rule_id=\"$id\",service_name=\"api\"} 0.29999999999999999
cores{rule_id=\"$id\",service_name=\"web\"} 0.5
parse_cpu_cores{rule_id=\"parse\",team=\"a\\\"b\"} 0.10000000000000001" \
        "each series has the cores of its selection and function"
is "$(recorded | grep -c '^# TYPE [a-z_]* gauge')" 2 "each metric has a type"
if command -v promtool >/dev/null; then
        ok "promtool accepts the text" sh -c "curl -sS '$url/api/v1/recorded' | promtool check metrics"
fi
slow_id=$(rpc UpsertRecordingRule \
        "{\"metricName\": \"slow\", \"matchers\": [\"{__profile_type__=\\\"$slow\\\"}\"]}" | jq -r .rule.id)
is "$(recorded | sed -n 's/^slow{.*} //p')" 0.5 "a rule of CPU time in microseconds has cores, too"
rpc DeleteRecordingRule "{\"id\": \"$slow_id\"}" >/dev/null
# In one request, so that the window has not moved on before the answer.
python3 - "$tmp/many.push" <<'END'
import sys, time
sys.path.insert(0, "tests/e2e")
from profiles import Strings, blob, num, packed
body, minute = b"", int(time.time()) // 60 * 60
for i in range(1, 121):
    labels = b"".join(blob(1, blob(1, key) + blob(2, value))
                      for key, value in (("__name__", "process_cpu"), ("service_name", f"s{i}")))
    for at in (minute - 90, minute - 30, minute + 30):
        s = Strings()
        kind = num(1, s("cpu")) + num(2, s("nanoseconds"))
        raw = blob(1, kind) + blob(2, packed(1, [1]) + packed(2, [10**6])) + blob(4, num(1, 1) + blob(4, num(1, 1)))
        raw += blob(5, num(1, 1) + num(2, s("main"))) + num(9, at * 10**9) + blob(11, kind) + num(12, 10**6)
        body += blob(1, labels + blob(2, blob(1, raw + b"".join(blob(6, text) for text in s.items))))
open(sys.argv[1], "wb").write(body)
END
answers 200 '' "many services are accepted" -H 'Content-Type: application/proto' --data-binary "@$tmp/many.push" \
        "$url/push.v1.PusherService/Push"
like "$(recorded | grep -c '^cores')" '^101$' "a rule has at most 100 series and the rest"
like "$(recorded)" 'service_name="\(other\)"' "the rest is one series"

# ---- durability and limits ----

kill_server
start_server --flush-interval 1
is "$(rpc ListRecordingRules '{}' | jq -r '.rules[].id')" "$id" \
        "a rule outlives the service; those of the file are gone with it"
for _ in $(seq 1 31); do rpc UpsertRecordingRule '{"metricName": "m"}' >/dev/null; done
is "$(rpc UpsertRecordingRule '{"metricName": "m"}' | jq -r .code)" resource_exhausted "a tenant has 32 rules at most"
rpc DeleteRecordingRule "{\"id\": \"$id\"}" >/dev/null
is "$(rpc DeleteRecordingRule "{\"id\": \"$id\"}" | jq -r .code)" not_found "a deleted rule is gone"
like "$(curl -sS "$url/api/v1/recorded/changes")" '# TYPE cairn_function_change_per_second gauge' \
        "the changes of functions are a metric"
stop_server
printf '{"rules": [{"id": "a", "metricName": "not a name"}]}' >"$tmp/bad.json"
like "$("$cairn" serve --data "$tmp/other" --listen 127.0.0.1:0 --recording-rules "$tmp/bad.json" 2>&1)" \
        "bad.json': 'not a name' is not the name of a metric" "a malformed file ends the start with the reason"
done_testing
