# SPDX-License-Identifier: Apache-2.0
# X-Request-Id: a client's id is returned and logged; an id with unsafe characters is replaced.
. tests/e2e/lib.sh
. tests/e2e/venv.sh
command -v jq >/dev/null || skip_all "jq is not installed"

# id_of CURL-ARGUMENT...: X-Request-Id of the response.
id_of() { curl -sS --max-time 60 -o "$tmp/body" -D - "$@" | tr -d '\r' | sed -n 's/^X-Request-Id: //p'; }
random='^[0-9a-f]{32}$'

printf 'the-admin admin,read,ingest,upload\n' >"$tmp/tokens"
start_server --token-file "$tmp/tokens" --log-format json --listen-otlp-grpc 127.0.0.1:0
wait_for "the gRPC listener" grep -q 'over gRPC' "$server_log"
admin='Authorization: Bearer the-admin'

is "$(id_of -H 'X-Request-Id: Root=1-abc/d:e_f~+@.0' "$url/healthz")" Root=1-abc/d:e_f~+@.0 "an id is answered"
first=$(id_of "$url/healthz")
like "$first" "$random" "without one it is random"
ok "  each time another" test "$first" != "$(id_of "$url/healthz")"
for bad in '' 'a b' 'x"y' 'a,b' "$(printf 'a\303\251')" "$(printf '%129s' '' | tr ' ' a)"; do
        like "$(id_of -H "X-Request-Id: $bad" "$url/healthz")" "$random" "'$(printf '%.20s' "$bad")' is not one"
done
like "$(id_of -H 'X-Request-Id: one' -H 'X-Request-Id: two' "$url/healthz")" "$random" \
        "  two ids are replaced by one that is generated"
is "$(id_of -H "X-Request-Id: $(printf '%128s' '' | tr ' ' a)" "$url/healthz" | wc -c)" 129 "128 characters are"
for path in / /metrics /nothing /api/v1/query/top /api/v1/query/nothing /store/ /readyz; do
        is "$(id_of -H 'X-Request-Id: here' -H "$admin" "$url$path")" here "$path has it"
done
is "$(id_of -X POST -H 'X-Request-Id: here' -H "$admin" "$url/metrics")" here "a wrong method has it"

is "$(id_of -H 'X-Request-Id: in-body' "$url/api/v1/query/top")" in-body "a refusal has the id in its header"
is "$(jq -r .request_id "$tmp/body")" in-body "  the body of a refusal has the id"
id_of -H "$admin" "$url/api/v1/query/top?from=never" >"$tmp/made"
is "$(jq -r .request_id "$tmp/body")" "$(cat "$tmp/made")" "  where it is random too"
logged() { jq -r 'select(.subsystem == "audit") | .request_id' "$server_log" | grep -qx "$1"; }
wait_for "the refusal in the log" logged in-body
pass "the log has it"
id_of -X POST -H "$admin" -H 'X-Request-Id: a-change' "$url/api/v1/resymbolize" >"$tmp/made"
wait_for "the change in the log" logged a-change
pass "  of a request that a thread of a pool answers too"
is "$(jq -r 'select(.msg | startswith("listening")) | has("request_id")' "$server_log")" false \
        "a line without a request has none"

grpc_port=$(sed -n 's/.*over gRPC on 127.0.0.1:\([0-9]*\).*/\1/p' "$server_log")
report_checks "$PYTHON" tests/e2e/server/request-ids.py "$grpc_port"
wait_for "the refusal over gRPC in the log" logged refused-grpc
pass "the log has that of a call"
done_testing
