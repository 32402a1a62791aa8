#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The table of services: cost, change, share with names, versions; by the command and the API, from the head and from
# the tables.
. tests/e2e/lib.sh
for tool in curl jq; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
start_server --flush-interval 3600
now=$(($(date +%s) / 60 * 60))
cpu=process_cpu:cpu:nanoseconds:cpu:nanoseconds

# load SECONDS-AGO SERVICE MS [LABEL=VALUE]...: CPU time of a service
load() {
        load_at=$((now - $1)); load_name=$2
        printf 'main;work %d000000\n' "$3" >"$tmp/load.folded"
        shift 3
        for load_label; do set -- "$@" --label "$load_label"; shift; done
        "$cairn" import --server "$url" --time $load_at --type $cpu --label "service.name=$load_name" "$@" \
                "$tmp/load.folded" >>"$tmp/load.log" 2>&1 || bail_out "$(cat "$tmp/load.log")"
}
load 5400 api 1800000 version=1.4
load 2400 api 1800000 version=1.4
load 1200 api 1800000 version=1.5
load 5000 web 900000 service.version=7 version=ignored
load 1000 web 900000 service.version=7
load 4000 old 100000
load 900 new 100000 container.image.tags=v3
services() { "$cairn" query --server "$url" --services --from $((now - 3600)) --to $now "$@"; }

# step_of SECONDS-AGO: the start of its step of 10 minutes, from now
step_of() { echo $(((now - $1) / 600 * 600 - now)); }

# hold WHEN
hold() {
        services --json --step 10m >"$tmp/all.json"
        is "$(jq -c '.rows[] | [.labels.service_name, .value, .value_before, .named]' "$tmp/all.json")" \
                '["api",3600000000000,1800000000000,3600000000000]
["web",900000000000,900000000000,900000000000]
["new",100000000000,0,100000000000]
["old",0,100000000000,0]' "each service has its cost, and that of the hour before, $1"
        is "$(jq -c --argjson now $now '.rows[] | [.versions[] | .label, .value, .first_ms / 1000 - $now]' \
                "$tmp/all.json")" \
                "[\"version\",\"1.4\",$(step_of 5400),\"version\",\"1.5\",$(step_of 1200)]
[\"service_version\",\"7\",$(step_of 5000)]
[\"container_image_tags\",\"v3\",$(step_of 900)]
[]" "  versions are those of the first label that tells them"
        is "$(jq -c '.rows[0].points | [.[] / 1e9]' "$tmp/all.json" | tr -d ' ')" \
                "$(curl -sS "$url/api/v1/query/series?selector=service_name=api&from=$((now - 3600))&to=$now&step=10m" |
                jq -c '[.points[][1] / 1e9]')" "  points are those of the series"
        like "$(services)" '^ +1\.00 cores  78\.26%  \+100\.0% 100\.00% .* service_name="api"  1\.4 -> 1\.5$' \
                "  the text has cores, share, change and versions"
        like "$(services)" '^ +0\.02[78] cores +2\.17% +new .* service_name="new"  v3$' \
                "  a service without cost before is new"
        like "$(services)" '^ +0\.00 cores +0\.00% +gone .* service_name="old"$' "  a service without cost now is gone"
        is "$(services --csv --by service.name,version | tr -d '\r' | grep -E "^service|1\.5")" \
                "service.name,version,value,samples,named,value_before,samples_before,version
api,1.5,1800000000000,1,1800000000000,0,0,1.5" "  rows of other labels are printed as CSV"
        is "$(services --json --by service_name --groups 1 | jq -c '.rows[] | [.labels, .value, .value_before]')" \
                '[{"service_name":"api"},3600000000000,1800000000000]
[null,1000000000000,1000000000000]' "  services beyond the number of groups are combined"
        is "$(services --json --focus nothing | jq -c '[.total, (.rows | length)]')" '[0,0]' \
                "  filters apply to the table"
        is "$(curl -sS -G --data-urlencode 'base_selector={version="1.4"}' --data-urlencode 'selector={version="1.5"}' \
                "$url/api/v1/query/services?from=$((now - 3600))&to=$now" |
                jq -c '.rows[] | [.value, .value_before]')" \
                '[1800000000000,1800000000000]' "  another selector is compared in the same range"
}
hold "from the head"
stop_server
start_server --flush-interval 1
hold "from the tables"

# ---- CPU time in other units, as Node.js sends it ----

printf 'main;work 1800000000\n' >"$tmp/node.folded"
"$cairn" import --server "$url" --history --time $((now - 200000)) --label service.name=node \
        --type process_cpu:cpu:microseconds:wall:microseconds "$tmp/node.folded" >/dev/null 2>&1
like "$("$cairn" query --server "$url" --services --from $((now - 203000)) --to $((now - 199400)))" \
        '^ +0\.50 cores 100\.00% ' "microseconds are cores, too"
is "$("$cairn" flame --server "$url" --format firefox --from $((now - 203000)) --to $((now - 199400)) |
        jq -c '.threads[0].samples | [.weightType, .weight[0]]')" '["tracing-ms",1800000]' \
        "  the Firefox Profiler shows them as times"

# ---- builds of programs: a change of the build alone is one, too ----

# run SERVICE MINUTES PROGRAM BUILD [LABEL=VALUE]: a sample after so many minutes
printf 'main;work 1000000\n' >"$tmp/run.folded"
first=$((now / 3600 * 3600 - 300000))
run() {
        run_service=$1 run_minutes=$2 run_name=$3 run_build=$4
        shift 4
        "$cairn" import --server "$url" --history --time $((first + run_minutes * 60)) --type $cpu \
                --label "service.name=$run_service" --label "process.executable.name=$run_name" \
                --label "process.executable.build_id.gnu=$run_build" ${1:+--label "$1"} "$tmp/run.folded" \
                >>"$tmp/load.log" 2>&1 || bail_out "$(cat "$tmp/load.log")"
}
run shop 0 shopd 1111111111111111 version=1
run shop 20 shopd 2222222222222222 version=1
run shop 40 shopd 3333333333333333 version=2
run shop 10 sh 4444444444444444 version=1
run plain 0 plaind 1111111111111111
run plain 20 sh 5555555555555555
run plain 30 plaind 2222222222222222
builds() { "$cairn" query --server "$url" --services --from $first --to $((first + 3600)) --step 1m "$@"; }
is "$(builds --json | jq -c --argjson first $first '.rows[] | .labels.service_name as $name | .versions[] |
        [$name, .value, .program, .version, .first_ms / 60000 - $first / 60]')" \
        '["shop","1111111111111111","shopd","1",0]
["shop","1",null,null,0]
["shop","2222222222222222","shopd","1",20]
["shop","2",null,null,40]
["plain","1111111111111111","plaind","",0]
["plain","5555555555555555","sh","",20]
["plain","2222222222222222","plaind","",30]' "builds are listed if a program had several with one version, or has none"
like "$(builds)" ' service_name="plain"  111111111111 -> 222222222222$' \
        "  the text has the build before of the same program"
like "$(builds)" ' service_name="shop"  1 -> 2$' "  the last change is that of the version"
is "$(builds --csv --by service.name | tr -d '\r' | sed -n 's/^\(plain\|shop\),.*,//p')" \
        "2
2222222222222222" "  and is the last column of CSV"

# ---- the share with names: what `top` has ----

"$cairn" import --server "$url" --time now --label recorded=1 tests/browser/data/build.pb.gz >/dev/null 2>&1
recorded="from=now-5m&selector=recorded=1"
curl -sS "$url/api/v1/query/top?$recorded" >"$tmp/top.json"
is "$(curl -sS "$url/api/v1/query/services?$recorded" | jq -c '[.total, .named]')" \
        "$(jq -c '[.total, ([.rows[] | select(.kind != "unresolved") | .flat] | add)]' "$tmp/top.json")" \
        "named is the cost of functions with a name"
ok "  some functions have no name" jq -e '[.rows[] | select(.kind == "unresolved")] | length > 0' "$tmp/top.json"
stop_server
done_testing
