#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tenants with their own debuginfo space: every route that refers to objects is tested from both sides; late symbols;
# restart; snapshots; commands with --tenant; upstreams; retention; reload.
. tests/e2e/lib.sh
. tests/e2e/venv.sh
. tests/e2e/tenants.sh
for tool in gcc curl python3 zstd jq objcopy; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

token_metric() { curl -sS --max-time 20 -H 'Authorization: Bearer any-token' "$url/metrics" |
        awk -v name="$1" '$1 == name { print $2; found = 1 } END { if (!found) print 0 }'; }
token_metric_is() { [ "$(token_metric "$1")" = "$2" ]; }
# named TOKEN PATTERN: the sum of the samples with such a name; each object has 7.
named() { folded "$1" | awk -v pattern="$2" '$0 ~ pattern { n += $NF } END { print n + 0 }'; }
has_named() { [ "$(named "$1" "$2")" = "$3" ]; }
# upload TOKEN ARGUMENT...
upload() { printf '%s\n' "$1" >"$tmp/token"; shift; \
        "$CAIRN_SAN/cairn-upload" --server "$url" --token-file "$tmp/token" "$@"; }

# ---- objects: one that only this side has, and one with the same build-id on both sides ----

both=b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0
only_alpha=a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1
only_shared=51515151515151515151515151515151515151aa
parca_id=ca1aca1aca1aca1aca1aca1aca1aca1aca1aca1a
only_of() { if [ "$1" = alpha ]; then echo $only_alpha; else echo $only_shared; fi; }
# program SIDE BUILD-ID FILE
program() {
        mkdir -p "$tmp/src"
        cat >"$tmp/src/marker_of_$1.c" <<EOF
__attribute__((noinline)) int marker_of_$1(int n) { volatile int v = n; return v; }
int main(int argc, char **argv) { (void)argv; return marker_of_$1(argc); } /* marker_of_$1 */
EOF
        gcc -g -O1 -fPIE -pie -Wl,--build-id="0x$2" -o "$3" "$tmp/src/marker_of_$1.c" || bail_out "gcc"
}
for side in alpha shared; do
        mkdir "$tmp/$side"
        program $side "$(only_of $side)" "$tmp/$side/only_marker_of_$side"
        program $side $both "$tmp/$side/both_marker_of_$side"
done
program alpha $parca_id "$tmp/parca_marker_of_alpha"
address=$(nm "$tmp/alpha/only_marker_of_alpha" | awk '$3 == "marker_of_alpha" { print $1 }')
is "$(nm "$tmp/shared/both_marker_of_shared" | awk '$3 == "marker_of_shared" { print $1 }')" "$address" \
        "the functions of both sides have one address"
for id in $only_alpha $only_shared $both; do
        python3 tests/e2e/profiles.py otlp "$tmp/$id.otlp" "addresses=$address" "build_id=$id" "mapping_file=program" \
                "service=service" values=7
done

cat >"$tmp/tokens" <<'EOF'
alpha-token    admin tenant=alpha
beta-token     admin tenant=beta
operator-token admin
any-token      admin tenant=*
EOF
printf 'alpha\nalpha debuginfo own\nbeta\nbeta debuginfo shared\n' >"$tmp/tenants"
printf 'alpha\nalpha debuginfo mine\n' >"$tmp/bad"
"$cairn" serve --data "$tmp/none" --listen 127.0.0.1:0 --tenants "$tmp/bad" 2>"$tmp/err"
is $? 2 "a setting of debuginfo that is neither own nor shared ends the service"
like "$(cat "$tmp/err")" "line 2.*debuginfo 'mine' is neither own nor shared" \
        "  the message has the line and the wrong value"

# ---- late symbols ----

grpc_port=$(free_port)
start() { start_server --flush-interval 1 --tenants "$tmp/tenants" --token-file "$tmp/tokens" \
        --listen-otlp-grpc "127.0.0.1:$grpc_port" "$@"; }
start
like "$(cd "$data" && find tenants -maxdepth 2 -mindepth 2 -name index | tr '\n' ' ')" '^tenants/alpha/index $' \
        "only the tenant of that setting has an index of its own"
for token in alpha-token beta-token operator-token; do
        for id in $only_alpha $only_shared $both; do
                as $token -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/$id.otlp" \
                        "$url/v1development/profiles"
                is "$code" 200 "$token sends samples"
        done
done
flushed() { for tenant in alpha beta anonymous; do token_metric_is "cairn_tenant_sample_rows{tenant=\"$tenant\"}" 3 ||
        return 1; done; }
wait_for "the samples to be in the tables" flushed
unnamed() { echo "$(named alpha-token marker) $(named beta-token marker) $(named operator-token marker)"; }
is "$(unnamed)" "0 0 0" "no tenant has names yet"
ok "alpha uploads its objects" upload alpha-token --executables --sources "$tmp/src" "$tmp/alpha"
wait_for "alpha's samples to have names" has_named alpha-token marker_of_alpha 14
is "$(unnamed)" "14 0 0" "its stored samples get names, those of the others do not"
ok "beta uploads, with the same build-id too" upload beta-token --executables --sources "$tmp/src" "$tmp/shared"
for token in beta-token operator-token; do
        wait_for "shared names of $token" has_named $token marker_of_shared 14
        is "$(named $token marker_of_alpha)" 0 "$token has names of shared objects, and none of alpha's"
done
is "$(named alpha-token marker_of_shared) $(named alpha-token marker_of_alpha)" "0 14" \
        "alpha's samples keep their names"
is "$(folded any-token -H 'X-Scope-OrgID: alpha' | grep -c marker_of_alpha)" 1 \
        "a token that chooses the tenant has its names"

# ---- every route ----

# part SIDE TOKEN FILE: begins an upload; sets $sha.
part() {
        sha=$(sha256sum "$3" | cut -d' ' -f1)
        head -c 4000 "$3" | zstd -q -c >"$tmp/part.zst"
        as "$2" -X PUT -T "$tmp/part.zst" -H 'Content-Encoding: zstd' -H "X-Cairn-Size: $(stat -c %s "$3")" \
                -H "X-Cairn-SHA256: $sha" \
                -H 'X-Cairn-Offset: 0' "$url/api/v1/debuginfo/$(only_of "$1")/dwp?name=part"
        is "$code" 202 "$1 begins an upload"
}
part alpha alpha-token "$tmp/alpha/only_marker_of_alpha"
part_alpha=$sha
part shared operator-token "$tmp/shared/only_marker_of_shared"
part_shared=$sha
place() { # place SIDE ONLY PARTIAL
        jq -n --arg side "$1" --arg only "$2" --arg both $both --arg address "0x$address" --arg source \
                "$tmp/src/marker_of_$1.c" --arg partial "$3" \
                '{marker: ("marker_of_" + $side), only: $only, both: $both, address: $address, source: $source,
                 name: ("only_marker_of_" + $side), partial: $partial}'
}
jq -n --argjson alpha "$(place alpha $only_alpha "$part_alpha")" --argjson shared \
        "$(place shared $only_shared "$part_shared")" \
        --arg file "$tmp/parca_marker_of_alpha" --arg id $parca_id \
        '{alpha: $alpha, shared: $shared, parca: {file: $file, only: $id}}' >"$tmp/places"
"$PYTHON" tests/e2e/server/tenant-spaces.py "$url" "$grpc_port" "$tmp/places" >"$tmp/tap" ||
        bail_out "the client failed"
report_tap "$tmp/tap"

# ---- restart ----

kill_server
start
is "$(named alpha-token marker_of_alpha) $(named beta-token marker_of_shared) $(named alpha-token marker_of_shared)" \
        "14 14 0" "after kill -9 each has its names"
objects_of() { curl -sS -H "Authorization: Bearer $1" "$url/api/v1/debuginfo" |
        jq -c '[.objects[].build_id] | unique'; }
is "$(objects_of alpha-token)" "[\"$only_alpha\",\"$both\",\"$parca_id\"]" "  alpha has its objects after kill -9"
is "$(objects_of operator-token)" "[\"$only_shared\",\"$both\"]" "  as have those that share a space"

# ---- commands with the service ----

printf 'any-token\n' >"$tmp/any"
at() { at_command=$1; shift; "$cairn" "$at_command" --server "$url" --token-file "$tmp/any" "$@"; }
function_of() { at symbolize "$@" --build-id $both "$address" | head -1; }
is "$(function_of --tenant alpha) $(function_of) $(function_of --tenant beta)" \
        "marker_of_alpha marker_of_shared marker_of_shared" "cairn symbolize --tenant"
like "$(at why --tenant alpha $only_alpha "$address")" marker_of_alpha "cairn why --tenant"
unlike "$(at why $only_alpha "$address")" marker_of_alpha "  the shared index has none of alpha's names"
like "$(at debuginfo list --tenant alpha)" "$only_alpha" "cairn debuginfo list --tenant"
like "$(at debuginfo pin --tenant alpha $only_alpha)" "$only_alpha .*pinned" "cairn debuginfo pin --tenant"
like "$(at debuginfo rm $only_alpha 2>&1)" "$only_alpha" "cairn debuginfo rm without it finds nothing"
as alpha-token -A marker-agent --data-binary "@$tmp/tokens" -H 'Content-Type: application/x-protobuf' \
        "$url/v1development/profiles"
is "$code" 400 "alpha sends a batch that is refused"
like "$(at status --tenant alpha)" marker-agent "cairn status --tenant reports it"
unlike "$(at status)" marker-agent "  cairn status without --tenant does not report it"
ok "cairn-upload --tenant" "$CAIRN_SAN/cairn-upload" --server "$url" --token-file "$tmp/any" --tenant alpha \
        --executables "$tmp/shared/only_marker_of_shared"
wait_for "alpha's copy to give names" has_named alpha-token marker_of_shared 7
as alpha-token -X DELETE "$url/api/v1/debuginfo/$only_alpha/source"
is "$code" 200 "a tenant's token may remove what is its own"
as beta-token -X DELETE "$url/api/v1/debuginfo/$only_shared/source"
is "$code" 403 "  a tenant's token may not remove what is shared"

# ---- on the directory, and on a snapshot ----

ok "a snapshot beside the service" "$cairn" store snapshot --data "$data" "$tmp/copy"
stop_server
for dir in "$data" "$tmp/copy"; do
        like "$("$cairn" debuginfo verify --data "$dir" --tenant alpha)" "^[1-9][0-9]* objects are whole, 0 damaged" \
                "alpha's objects are undamaged"
        like "$("$cairn" index stat --data "$dir" --tenant alpha $only_alpha)" "indexed" "cairn index stat --tenant"
        is "$("$cairn" index stat --data "$dir" $only_alpha 2>/dev/null)" "" \
                "  the shared index has no object of alpha's own"
        like "$("$cairn" why --data "$dir" --tenant alpha $both "$address")" marker_of_alpha "cairn why --data --tenant"
        like "$("$cairn" why --data "$dir" $both "$address")" marker_of_shared \
                "  cairn why --data without --tenant uses the shared object"
        is "$("$cairn" resymbolize --data "$dir" --tenant alpha --json --dry-run |
                jq -c '[.locations_seen, .locations_changed]')" "[3,0]" \
                "cairn resymbolize --tenant finds the names that are there"
        is "$("$cairn" resymbolize --data "$dir" --tenant beta --json --dry-run |
                jq -c '[.locations_seen, .locations_changed]')" "[3,0]" \
                "  as it does for a tenant that shares"
done
like "$("$cairn" index stat --data "$data" --tenant beta $only_shared 2>&1)" \
        "tenant 'beta' has no debuginfo of its own" "a tenant without it gets an error"
like "$("$cairn" index --data "$data" --tenant beta "$tmp/program" 2>&1)" "tenant 'beta' has no debuginfo of its own" \
        "  cairn index refuses to add an object for such a tenant"

# ---- upstreams: objects fetched for a tenant belong to it ----

only_upstream=efefefefefefefefefefefefefefefefefefefef
program upstream $only_upstream "$tmp/upstream-program"
python3 tests/e2e/profiles.py otlp "$tmp/upstream.otlp" \
        "addresses=$(nm "$tmp/upstream-program" | awk '$3 == "marker_of_upstream" { print $1 }')" \
        "build_id=$only_upstream" "mapping_file=program" "service=service" values=7
"$cairn" serve --data "$tmp/upstream" --listen 127.0.0.1:0 --port-file "$tmp/upstream-port" 2>"$tmp/upstream.log" &
background_pids=$!
wait_for "the upstream" test -s "$tmp/upstream-port"
upstream=http://127.0.0.1:$(cat "$tmp/upstream-port")
ok "the upstream has an object" "$CAIRN_SAN/cairn-upload" --server "$upstream" "$tmp/upstream-program"
data=$tmp/copy
start --upstream "$upstream"
as alpha-token -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/upstream.otlp" \
        "$url/v1development/profiles"
wait_for "the upstream's names" has_named alpha-token marker_of_upstream 7
like "$(objects_of alpha-token)" $only_upstream "an object that alpha's samples mention comes from the upstream"
unlike "$(objects_of operator-token)" $only_upstream "  to alpha alone"
is "$(at debuginfo upstreams --tenant alpha --json |
        jq '[.upstreams[].found > 0]' -c) $(at debuginfo upstreams --json | jq -c '[.upstreams[].found > 0]')" \
        "[true] [false]" "  whose upstream it is counted for"
like "$(token_metric "cairn_upstream_requests_total{upstream=\"$upstream\",tenant=\"alpha\",outcome=\"found\"}")" \
        '^[1-9]' "  in the metrics too"
is "$(named alpha-token marker_of_alpha) $(named beta-token marker_of_shared)" "14 14" "the snapshot has all names"
wait_for "its index to be complete" token_metric_is cairn_index_queue 0
is "$(curl -sS -o /dev/null -w '%{http_code}' "http://x:alpha-token@127.0.0.1:$port/buildid/$only_alpha/debuginfo")" \
        200 "debuginfod clients select the tenant by its token"
is "$(curl -sS -o /dev/null -w '%{http_code}' "http://x:beta-token@127.0.0.1:$port/buildid/$only_alpha/debuginfo")" \
        404 "  another tenant's token gets nothing of it"
like "$(curl -sSI "http://x:alpha-token@127.0.0.1:$port/buildid/$both/debuginfo")" "^Cache-Control: private" \
        "shared caches may not store it"

# ---- the setting changes only with a restart ----

mv "$tmp/tenants" "$tmp/tenants.first"
printf 'alpha\nbeta\nbeta debuginfo own\n' >"$tmp/tenants"
kill -HUP "$server_pid"
wait_for "the reload" grep -q "the setting debuginfo of 2 tenants was changed" "$server_log"
is "$(named alpha-token marker_of_alpha)" 14 "a reload changes nothing of it"
is "$(objects_of beta-token)" "[\"$only_shared\",\"$both\"]" "  for beta neither"
stop_server
start
like "$(cat "$server_log")" "debuginfo of tenant alpha, whose setting is not 'debuginfo own': it is kept, not used" \
        "an unused space is reported"
is "$(objects_of alpha-token) $(objects_of beta-token)" "[\"$only_shared\",\"$both\"] []" \
        "alpha shares now, and beta starts with an empty space"
is "$(named alpha-token marker_of_alpha) $(named beta-token marker_of_shared)" "14 14" \
        "names of stored samples are kept"
stop_server

# ---- retention, separately for each store ----

mv "$tmp/tenants.first" "$tmp/tenants"
start --retain size=1
# The two objects of each side that were pinned through the API are kept.
only_pinned() { [ "$(curl -sS -H "Authorization: Bearer $1" "$url/api/v1/debuginfo" | jq -c '[.objects[].pinned]')" = \
        '[true,true]' ]; }
wait_for "alpha's objects to go" only_pinned alpha-token
wait_for "those that are shared to go" only_pinned operator-token
like "$(cat "$server_log")" "info debuginfo: tenant alpha: removed [1-9]" \
        "retention removes from each store, and says whose it is"
like "$(cat "$server_log")" "info debuginfo: removed [1-9]" "  retention removes from the shared store too"
stop_server
done_testing
