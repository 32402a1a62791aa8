#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The agent sends which build of a program runs, and the service shows when another one was deployed under the same
# name and version, also when the file of the old one was replaced while it ran.
. tests/e2e/lib.sh
agent=$CAIRN_BUILD/cairn-agent
for tool in cc curl jq readelf; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
"$agent" --doctor --sampler bpf >"$tmp/doctor" ||
        skip_all "the agent cannot profile here: $(grep '^error' "$tmp/doctor" | head -1 | tr -s ' ')"
start_server --flush-interval 1

# build N: another build of the program; its build-id is $id
build() {
        printf '%s\n' '#include <unistd.h>' 'volatile unsigned long sink;' \
                "int main(void) { alarm(600); for (;;) sink += $1; }" >"$tmp/shopd.c"
        cc -O1 -Wl,--build-id -o "$tmp/new" "$tmp/shopd.c"
        id=$(readelf -n "$tmp/new" | sed -n 's/.*Build ID: //p')
}
# profile: two seconds of the program $pid
profile() {
        "$agent" --sampler bpf --server "$url" --frequency 199 --duration 2 --interval 1 --pid "$pid" --no-upload \
                --service-name shop --label service.version=7 --log-level error || fail "the agent ends well"
}
start() { mv "$tmp/new" "$tmp/shopd"; "$tmp/shopd" & pid=$!; background_pids="${background_pids:-} $pid"; }

build 1; old=$id; start; old_pid=$pid
build 2; new=$id; start; new_pid=$pid
pid=$old_pid; profile # its file is that of the new one by now
pid=$new_pid; profile
curl -sS "$url/api/v1/query/services?from=now-2m&step=1s" >"$tmp/services.json"
is "$(jq -c '.rows[] | [.labels.service_name, (.versions[] | select(.program) | [.program, .version, .value])]' \
        "$tmp/services.json")" "[\"shop\",[\"shopd\",\"7\",\"$old\"],[\"shopd\",\"7\",\"$new\"]]" \
        "the builds of a program are listed in the order of their deploys"
is "$(curl -sS -G --data-urlencode "selector={process_executable_build_id_gnu=\"$new\"}" -d from=now-2m \
        "$url/api/v1/query/services" | jq -c '[.rows[].labels.service_name], .total < '"$(jq .total "$tmp/services.json")")" \
        '["shop"]
true' "  and select their samples"
kill "$old_pid" "$new_pid"
stop_server
done_testing
