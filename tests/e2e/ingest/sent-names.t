# SPDX-License-Identifier: Apache-2.0
# Names that senders do not demangle: in pprof and OTLP as system name alone or in both fields, in stacks, speedscope
# and perf script. Each is one function with its readable name, and keeps its linkage name.
. tests/e2e/lib.sh

# One function per service: the same mangled name in the places where senders put it.
cat >"$tmp/names.py" <<'END'
import json, os, sys, time
sys.path.insert(0, "tests/e2e")
from profiles import Strings, blob, num, packed

def pprof(path, name, system_name):
    s = Strings()
    body = blob(1, num(1, s("cpu")) + num(2, s("nanoseconds"))) + blob(2, packed(1, [1]) + packed(2, [7]))
    body += blob(4, num(1, 1) + blob(4, num(1, 1)))
    body += blob(5, num(1, 1) + num(2, s(name)) + num(3, s(system_name)))
    body += num(9, time.time_ns()) + num(12, 1)
    open(path, "wb").write(body + b"".join(blob(6, t) for t in s.items))

def otlp(path, name, system_name):
    strings = ["", "cpu", "nanoseconds", name, system_name]
    json.dump({"resourceProfiles": [{"resource": {"attributes": [{"key": "service.name",
        "value": {"stringValue": sys.argv[2]}}]},
        "scopeProfiles": [{"profiles": [{"sampleType": {"typeStrindex": 1, "unitStrindex": 2},
            "timeUnixNano": str(time.time_ns()),
        "samples": [{"stackIndex": 1, "values": [7]}]}]}]}],
        "dictionary": {"stringTable": strings, "mappingTable": [{}],
            "locationTable": [{}, {"lines": [{"functionIndex": 1}]}],
        "functionTable": [{}, {"nameStrindex": 3 if name else 0, "systemNameStrindex": 4 if system_name else 0}],
        "stackTable": [{}, {"locationIndices": [1]}], "linkTable": [{}], "attributeTable": [{}]}}, open(path, "w"))

{"pprof": pprof, "otlp": otlp}[sys.argv[3]](sys.argv[1], sys.argv[4], sys.argv[5])
END
mangled=_ZN3foo3barIiEEvT_
readable='void foo::bar<int>(int)'
# send SERVICE FILE [FORMAT]
send() { "$cairn" import --server "$url" ${3:+--format "$3"} --label "service.name=$1" "$2" >"$tmp/sent" 2>&1; \
        is $? 0 "$1 is sent"; }
# check_names SERVICE WHAT: its function, and the linkage name that an export has.
check_names() {
        is "$("$cairn" top --server "$url" --from now-1h --json "{service_name=\"$1\"}" | jq -r '.[0].function')" \
                "$readable" "$2: the name is demangled"
        "$cairn" flame --server "$url" --from now-1h --format pprof --output "$tmp/out.pb.gz" "{service_name=\"$1\"}"
        is "$(python3 tests/e2e/pprof.py frames "$tmp/out.pb.gz" | grep -om1 "$mangled")" "$mangled" \
                "  the linkage name is kept"
}

start_server
python3 "$tmp/names.py" "$tmp/f" - pprof "" "$mangled"
send pprof-system "$tmp/f"
check_names pprof-system "pprof with a system name alone"
python3 "$tmp/names.py" "$tmp/f" - pprof "$mangled" "$mangled"
send pprof-both "$tmp/f"
check_names pprof-both "pprof with the mangled name in both fields"
python3 "$tmp/names.py" "$tmp/f" - pprof "$mangled" ""
send pprof-name "$tmp/f"
check_names pprof-name "pprof with the mangled name as name"
python3 "$tmp/names.py" "$tmp/f" otlp-system otlp "" "$mangled"
send otlp-system "$tmp/f"
check_names otlp-system "OTLP with a system name alone"
printf 'main;%s 7\n' "$mangled" >"$tmp/f"
send folded "$tmp/f" folded
check_names folded "folded stacks"
printf '{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"%s"}]},"profiles":[{"type":"sampled","name":"p","unit":"none","startValue":0,"endValue":7,"samples":[[0]],"weights":[7]}]}' \
        "$mangled" >"$tmp/f"
send speedscope "$tmp/f"
check_names speedscope "speedscope"
printf 'app  1234 [001]   100.100000:   10101010 cpu-clock:pppH: \n\t    7f0000002000 %s+0x10 (/opt/app)\n\n' \
        "$mangled" >"$tmp/f"
send perf "$tmp/f"
check_names perf "perf script --no-demangle"

# The same function from a sender that demangles, or sends another readable name.
python3 "$tmp/names.py" "$tmp/f" - pprof "$readable" "$mangled"
send readable "$tmp/f"
check_names readable "a sender that demangles"
is "$("$cairn" top --server "$url" --from now-1h --json --type cpu '{service_name=~"pprof-.*|otlp-system|readable"}' |
        jq -c '[.[] | [.function, .flat]]')" \
        "[[\"$readable\",35]]" "all of them are one function"
python3 "$tmp/names.py" "$tmp/f" - pprof "bar" "$mangled"
send own "$tmp/f"
is "$("$cairn" top --server "$url" --from now-1h --json '{service_name="own"}' | jq -r '.[0].function')" bar \
        "a readable name of the sender stays"
for name in _ _start _Zzz _Rust _DYNAMIC __init__ _GLOBAL_; do
        printf 'main;%s 7\n' "$name" >"$tmp/f"
        send "plain$name" "$tmp/f" folded
        is "$("$cairn" top --server "$url" --from now-1h --json "{service_name=\"plain$name\"}" |
                jq -r '.[0].function')" "$name" "$name stays as it is"
done

# Files without a server, and exports for other tools.
python3 "$tmp/names.py" "$tmp/f" - pprof "" "$mangled"
is "$("$cairn" top --json --profile "$tmp/f" | jq -r '.[0].function')" "$readable" "files are read by the same rule"
is "$("$cairn" flame --format folded --profile "$tmp/f" | sed 's/ 7$//')" "$readable" "  for folded stacks, too"

done_testing
