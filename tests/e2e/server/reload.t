#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SIGHUP: reloadable settings change while the service runs, others are reported as needing a restart, and an invalid
# file changes nothing.
. tests/e2e/lib.sh
for tool in curl jq python3 openssl; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

config=$tmp/cairn.yaml
export CAIRN_CONFIG="$config"
# reload: sends SIGHUP and waits until it is done; $log has the new lines of the log.
reload() {
        before=$(wc -l <"$server_log")
        kill -HUP "$server_pid"
        wait_for "the reload" reload_is_done
        log=$(tail -n "+$((before + 1))" "$server_log")
}
reload_is_done() { tail -n "+$((before + 1))" "$server_log" | grep -Eq 'reload: (done|[0-9]+ of the parts failed)'; }
# get TOKEN PATH [CURL-ARGUMENT]...: sets $code and $body.
get() { get_token=$1; get_path=$2; shift 2; request -H "Authorization: Bearer $get_token" "$@" "$url$get_path"; }
get_metric() { get admin-of-all /metrics; printf '%s\n' "$body" | awk -v name="$1" '$1 == name { print $2 }'; }

mkdir -p "$tmp/one/files" "$tmp/two/files"
for up in one two; do
        python3 tests/e2e/upstream.py "$tmp/$up" &
        background_pids="${background_pids:-} $!"
        wait_for "upstream $up" test -s "$tmp/$up/port"
done
one=http://127.0.0.1:$(cat "$tmp/one/port")
two=http://127.0.0.1:$(cat "$tmp/two/port")

# configure LINE...: the section of the service with these lines.
configure() {
        printf 'serve:\n  token-file: %s\n  tenants: %s\n' "$tmp/tokens" "$tmp/tenants" >"$config.new"
        for line; do printf '  %s\n' "$line" >>"$config.new"; done
        mv "$config.new" "$config"
}
printf 'admin-of-all admin name=ops\nsecret-of-a ingest,read tenant=team-a\n' >"$tmp/tokens"
printf 'team-a\nteam-b\n' >"$tmp/tenants"
configure "upstreams: $tmp/upstreams" 'retain: tag=old,age=30d'
printf '%s\n' "$one" >"$tmp/upstreams"
start_server --flush-interval 1

# ---- nothing changed ----

reload
like "$log" 'reload: done, 0 options wait for a restart' "a reload without changes succeeds"
unlike "$log" 'reload: --' "a reload without changes names no option"
get admin-of-all /readyz
is "$body" ready "  the service is ready after a reload without changes"

# ---- options of the file ----

get admin-of-all /api/v1/debuginfo/upstreams
is "$(printf '%s' "$body" | jq -r '.upstreams[].url')" "$one" "one upstream is queried"
get admin-of-all /buildid/00000000000000000000000000000000000000a1/debuginfo
is "$code" 404 "it does not have a file"
asked=$(wc -l <"$tmp/one/asked")
printf '%s\n%s token=secret-of-two\n' "$one" "$two" >"$tmp/upstreams"
configure "upstreams: $tmp/upstreams" 'rate: 5' 'retain: age=1s' 'max-age: 1d' 'query-timeout: 7' 'listen: 127.0.0.1:9'
reload
for option in rate retain; do
        like "$log" "reload: --$option was changed and is applied" "--$option is applied"
done
like "$log" 'reload: --query-timeout was changed and takes effect at the next start' "--query-timeout needs a restart"
unlike "$log" 'reload: --(listen|data|max-age|port-file)' "options of the command line are not reported as changed"
like "$log" 'reload: done, 1 option waits for a restart' "  the option that needs a restart is counted"
is "$(get_metric cairn_reload_restart_options)" 1 "a metric has the settings that need a restart"
get admin-of-all /api/v1/debuginfo/upstreams
is "$(printf '%s' "$body" | jq -r '[.upstreams[].url] | join(" ")')" "$one $two" \
        "the new upstream is queried after the other"
is "$(printf '%s' "$body" | jq -r '.upstreams[0].missing')" 1 "the statistics of an upstream that stays are kept"
get admin-of-all /buildid/00000000000000000000000000000000000000a1/debuginfo
is "$code" 404 "the missing file is still not found"
is "$(wc -l <"$tmp/one/asked")" $((asked + 1)) "the missing file is requested again, as the new upstream may have it"
like "$(cat "$tmp/two/asked")" '00a1/debuginfo' "the missing file is requested from both upstreams"
asked=$(wc -l <"$tmp/two/asked")
printf '%s\n%s token=another-secret\n' "$one" "$two" >"$tmp/upstreams"
reload
get admin-of-all /buildid/00000000000000000000000000000000000000a1/debuginfo
is "$(wc -l <"$tmp/two/asked")" $((asked + 1)) "as it is with another token of an upstream"
rm -f "$tmp/one/go"
echo late >"$tmp/one/mode"
printf '%s\n' "$one" >"$tmp/upstreams"
reload
asked=$(wc -l <"$tmp/one/asked")
curl -sS -o "$tmp/late.body" -w '%{http_code}' -H 'Authorization: Bearer admin-of-all' \
        "$url/buildid/00000000000000000000000000000000000000a2/debuginfo" >"$tmp/late.code" &
late=$!
is_asked() { [ "$(wc -l <"$tmp/one/asked")" -gt "$asked" ]; }
wait_for "the first upstream to be asked" is_asked
printf '%s\n%s\n' "$one" "$two" >"$tmp/upstreams"
reload
: >"$tmp/one/go"
wait $late
is "$(cat "$tmp/late.code")" 404 "an object requested while upstreams were replaced is not found"
rm "$tmp/one/mode"
get admin-of-all /buildid/00000000000000000000000000000000000000a2/debuginfo
like "$(cat "$tmp/two/asked")" '00a2/debuginfo' "an object is requested again when its upstreams were replaced"
reload
like "$log" 'reload: --query-timeout was changed and takes effect at the next start' \
        "settings that need a restart are reported until then"
unlike "$log" 'reload: --(rate|retain) ' "settings that were applied are not reported"
wait_for "an address to be limited" sh \
        -c "for i in \$(seq 80); do curl -sS -o /dev/null -w '%{http_code}\n' '$url/metrics'; done | grep -q 429"
pass "the new rate is in use"

printf '# none\n' >"$tmp/upstreams"
configure "upstreams: $tmp/upstreams" 'rate: 100000'
reload
like "$log" 'reload: done, 0 options wait for a restart' "an option with its initial value again needs none"
is "$(get_metric cairn_reload_restart_options)" 0 "the metric says that no restart is needed"
get admin-of-all /api/v1/debuginfo/upstreams
is "$(printf '%s' "$body" | jq '.upstreams | length')" 0 "upstreams can be removed"

# ---- new rules apply to debuginfo and samples ----

printf 'int main(void) { return 0; }\n' | gcc -g -x c -o "$tmp/prog" - && objcopy --only-keep-debug "$tmp/prog" \
        "$tmp/prog.debug"
put_object debuginfo "$tmp/prog.debug" -H 'Authorization: Bearer admin-of-all'
is "$code" 201 "debuginfo is uploaded"
indexed() { [ "$(get_metric cairn_objects_indexed_total)" -ge 1 ]; }
wait_for "its symbols" indexed
configure 'retain: age=1s'
reload
gone() { [ "$(get_metric 'cairn_debuginfo_removed_total{reason="age"}')" -ge 1 ]; }
size=0
# Unchanged rules start no collection, so the size, which never applies, differs each time.
reload_and_look() {
        size=$((size + 1))
        configure "retain: age=1s,size=${size}T"
        kill -HUP "$server_pid"
        gone
}
wait_for "the object to go" reload_and_look
pass "a new rule of --retain removes objects, without waiting for the hour"
before=0
wait_for "the reloads" reload_is_done

# old_sample TENANT-TOKEN N DAYS: a batch that is this many days old.
old_sample() {
        python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" build_id=00000000000000000000000000000000000000a1 \
                service=old \
                values=7 mapping_file=a.so addresses=1000 "at_ns=$((($(date +%s) - $3 * 86400) * 1000000000))"
        request -H "Authorization: Bearer $1" -H 'Content-Type: application/x-protobuf' \
                -H "X-Cairn-Batch: $(printf '%032x' "$2")" --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
}
rows_of_a() { get_metric 'cairn_tenant_sample_rows{tenant="team-a"}'; }
old_sample secret-of-a 1 40
is "$code" 200 "samples of 40 days ago are accepted"
old_sample secret-of-a 2 0
is "$code" 200 "samples of today are accepted"
has_rows() { [ "$(rows_of_a)" = 2 ]; }
wait_for "their rows" has_rows
printf 'team-a retain age=30d\nteam-b\n' >"$tmp/tenants"
reload
like "$log" 'reload: done' "the tenants file is reloaded"
has_one_row() { [ "$(rows_of_a)" = 1 ]; }
wait_for "the old row to go" has_one_row
pass "a tenant's new rule removes its old samples"
old_sample secret-of-a 3 40
is "$(get_metric 'cairn_ingest_rejections_total{reason="too_old"}')" 1 \
        "samples that the new rule would remove are rejected"
expired=$(get_metric cairn_store_expired_rows_total)
printf 'team-a retain {service.name="old"},age=2d\nteam-b\n' >"$tmp/tenants"
reload
old_sample secret-of-a 4 20
has_expired_more() { [ "$(get_metric cairn_store_expired_rows_total)" -gt "$expired" ]; }
wait_for "the row of 20 days ago to go" has_expired_more
pass "a tenant's new rule with labels removes its old samples"

# ---- tenants ----

printf 'team-a bytes 1K\nteam-b\nteam-c\n' >"$tmp/tenants"
reload
like "$log" "reload: 1 tenant was added to '.*tenants' and 0 removed from it, which takes effect at the next start" \
        "a new tenant needs a restart"
head -c 4096 /dev/zero >"$tmp/zeros"
is_limited() {
        get secret-of-a /v1development/profiles -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/zeros"
        [ "$code" = 429 ]
}
wait_for "the bytes to be counted, which is after an answer" is_limited
pass "a tenant's new limit is in use"
like "$body" 'tenant team-a has sent the bytes' "the refusal names the tenant at its limit"
printf 'team-a\nteam-b\n' >"$tmp/tenants"
reload

# ---- invalid files ----

printf 'short\n' >"$tmp/tokens"
reload
like "$log" "reload: .*tokens' line 1: .*; the previous settings stay in use" \
        "an invalid token file is reported, with its line"
like "$log" 'reload: 1 of the parts failed' "  an invalid token file is counted in the last line"
is "$(get_metric 'cairn_reload_failures_total{file="tokens"}')" 1 "a metric counts the failed reload of the tokens"
get admin-of-all /readyz
like "$body" "^warning reload_failing: tokens could not be reloaded, and the log names file and line; the previous settings stay in use; correct the file and send SIGHUP" "/readyz says so"
unlike "$body" 'line 1' "/readyz does not quote the file, as it needs no token"
is "$code" 200 "  the service stays ready with the previous tokens"
printf 'admin-of-all admin name=ops\nsecret-of-a ingest,read tenant=team-a\nsecret-of-b read tenant=team-b\n' \
        >"$tmp/tokens"
get secret-of-b /readyz
printf 'serve:\n  retain: nonsense\n' >"$config"
reload
like "$log" "reload: .*nonsense.*; the previous settings stay in use" "an invalid configuration is reported"
is "$(get_metric 'cairn_reload_failures_total{file="configuration"}')" 1 "  an invalid configuration is counted"
get secret-of-b /api/v1/query/label/service.name/values
is "$code" 200 "a valid token file is applied beside an invalid configuration"
printf 'serve:\n  token-file: %s\n  tenants: %s\n  rate: 1' "$tmp/tokens" "$tmp/tenants" >"$config" # of 100000
reload
like "$log" "reload: '.*cairn.yaml' does not end with a line end: .*; the previous settings stay in use" \
        "a configuration that is cut off is reported"
unlike "$log" 'reload: --' "  a configuration that is cut off changes nothing"
: >"$config"
reload
like "$log" "reload: '.*cairn.yaml' is empty: .*; the previous settings stay in use" \
        "  a configuration without text is reported"
unlike "$log" 'reload: --' "  a configuration without text changes nothing"
configure "upstreams: $tmp/upstreams"
: >"$tmp/upstreams"
reload
like "$log" "reload: '.*upstreams' is empty: .*; the previous settings stay in use" \
        "an empty list of upstreams is reported"
printf 'serve:\n  - not a mapping\n' >"$config"
reload
like "$log" 'cairn.yaml:2: .*; the previous settings stay' "a file with a wrong structure is reported, with its line"
printf 'team-a retain nonsense\n' >"$tmp/tenants"
configure 'retain-samples: age=300d'
reload
like "$log" "reload: '.*tenants' line 1: .*; the previous settings stay" "an invalid tenants file is reported"
like "$log" 'reload: --retain-samples was changed and is not applied, as --tenants is not' \
        "the service's own rules of samples wait for a valid tenants file"
is "$(get_metric 'cairn_reload_failures_total{file="tenants"}')" 1 "  an invalid tenants file is counted"
printf 'team-a\nteam-b\n' >"$tmp/tenants"
configure
reload
get admin-of-all /readyz
is "$body" ready "valid files make everything healthy again"
is "$(get_metric 'cairn_ready_condition{condition="reload_failing"}')" 0 \
        "the metrics are healthy again with valid files"
stop_server

# ---- a certificate with another path; options that were not set before ----

make_certificate() {
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$1" \
                -addext 'subjectAltName=IP:127.0.0.1' -keyout "$tmp/$1.key" -out "$tmp/$1.pem" 2>/dev/null
}
shown_name() { openssl s_client -connect "127.0.0.1:$port" </dev/null 2>/dev/null | openssl x509 -noout -subject; }
make_certificate first
make_certificate second
printf 'serve:\n  tls-cert: %s\n  tls-key: %s\n' "$tmp/first.pem" "$tmp/first.key" >"$config"
start_server
like "$(shown_name)" 'CN ?= ?first' "the service shows its certificate"
printf 'serve:\n  tls-cert: %s\n  tls-key: %s\n  token-file: %s\n  upstream: %s\n' "$tmp/second.pem" "$tmp/second.key" \
        "$tmp/tokens" "$one" >"$config"
reload
like "$log" 'reload: --tls-cert was changed and is applied' "another certificate is applied"
like "$(shown_name)" 'CN ?= ?second' "  new connections get the other certificate"
like "$log" 'reload: the new value of --token-file takes effect at the next start' \
        "the first token file needs a restart"
like "$log" 'reload: the new value of --upstream takes effect at the next start' "  as does the first upstream"
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=third -keyout "$tmp/third.key" \
        2>/dev/null |
        openssl x509 -req -CA "$tmp/first.pem" -CAkey "$tmp/first.key" -days 2 -out "$tmp/third.pem" 2>/dev/null
cat "$tmp/third.pem" "$tmp/first.pem" >"$tmp/both.pem"
printf 'serve:\n  tls-cert: %s\n  tls-key: %s\n' "$tmp/both.pem" "$tmp/third.key" >"$config"
reload
shown_count() { openssl s_client -showcerts -connect "127.0.0.1:$port" </dev/null 2>/dev/null | grep -c BEGIN; }
is "$(shown_count)" 2 "certificates of issuers are sent"
head -c $(($(wc -c <"$tmp/third.pem") + 8)) "$tmp/both.pem" >"$tmp/cut.pem"
cp "$tmp/cut.pem" "$tmp/both.pem"
reload
like "$log" "reload: .*both.pem' is cut off after its last certificate or key; the previous settings stay in use" \
        "a file of certificates that is cut off is refused"
is "$(shown_count)" 2 "  the certificates before are in use"
printf 'serve:\n  tls-cert: %s\n  tls-key: %s\n' "$tmp/second.pem" "$tmp/first.key" >"$config"
reload
like "$log" 'reload: .*; the previous settings stay in use' "a key of another certificate is refused"
like "$(shown_name)" 'CN ?= ?third' "  new connections get the previous certificate"
done_testing
