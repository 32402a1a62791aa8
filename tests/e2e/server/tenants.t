#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tenants have separate samples. Every route is called as another tenant; restart and kill -9; retention; limits.
. tests/e2e/lib.sh
. tests/e2e/venv.sh
. tests/e2e/tenants.sh
for tool in gcc curl python3 zstd; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

# send TOKEN FILE [CURL-ARGUMENT]...
send() { send_token=$1 send_file=$2; shift 2; as "$send_token" -H 'Content-Type: application/x-protobuf' \
        --data-binary "@$send_file" "$@" "$url/v1development/profiles"; }
sample_rows() { curl -sS -H 'Authorization: Bearer any-token' "$url/metrics" |
        awk -v name="cairn_tenant_sample_rows{tenant=\"$1\"}" '$1 == name { print $2 }'; }

printf 'int main(void) { return 0; }\n' >"$tmp/program.c"
gcc -g -Wl,--build-id=0x00112233445566778899aabbccddeeff00112233 -o "$tmp/program" "$tmp/program.c"
id=$(build_id_of "$tmp/program")

# ---- contents of the files ----
tokens() {
        cat <<'EOF'
alpha-token    admin tenant=alpha
beta-token     admin tenant=beta
operator-token admin
any-token      admin tenant=*
EOF
}
tokens >"$tmp/tokens"
printf '# teams\nalpha\nbeta\n' >"$tmp/tenants"
refuses() {
        "$cairn" serve --data "$tmp/none" --listen 127.0.0.1:0 "$@" 2>"$tmp/err" &&
                bail_out "the service started with a bad file"
        cat "$tmp/err"
}
like "$(refuses --token-file "$tmp/tokens")" "line 1.*no tenant without --tenants" "a token's tenant needs --tenants"
for bad in ../x Beta a.b '-a' "$(printf '%040d' 7)" anonymous 'a keep 7' 'a retain age=soon' 'a rate 0' 'a bytes x' \
        '#'; do
        printf '%s\n' "$bad" >"$tmp/bad"
        like "$(refuses --tenants "$tmp/bad")" "bad'( line 1|: | holds no tenant)" \
                "a tenants file with '$bad' is refused"
done
i=0
while [ $i -le 32 ]; do echo "t$i"; i=$((i + 1)); done >"$tmp/bad"
like "$(refuses --tenants "$tmp/bad")" "line 33.*more than 32 tenants" "as are too many tenants"
printf 'beta retain size=2' >"$tmp/bad" # cut off from size=200G
like "$(refuses --tenants "$tmp/bad")" "bad' does not end with a line end" "a tenants file that is cut off is refused"
printf 'some-token read tenant=gamma\n' >"$tmp/bad"
like "$(refuses --tenants "$tmp/tenants" --token-file "$tmp/bad")" "line 1.*a tenant of the tenants file" \
        "a token of a tenant that is not configured is refused"

# ---- every route ----
for tenant in alpha beta anonymous; do
        python3 tests/e2e/profiles.py otlp "$tmp/$tenant.otlp" "names=marker-of-$tenant-function,main" \
                "service=marker-of-$tenant" "label=where=marker-of-$tenant-value" values=7
        python3 tests/e2e/profiles.py otlp "$tmp/$tenant-head.otlp" "addresses=401000" "build_id=${id%3}4" \
                "mapping_file=marker-of-$tenant-program" "service=marker-of-$tenant" values=5
        python3 tests/e2e/profiles.py otlp "$tmp/$tenant-object.otlp" "addresses=401000" "build_id=$id" \
                "mapping_file=program" "service=marker-of-$tenant" "host=marker-of-$tenant-host" values=3
done
grpc_port=$(free_port)
start_server --flush-interval 3600 --tenants "$tmp/tenants" --token-file "$tmp/tokens" \
        --listen-otlp-grpc "127.0.0.1:$grpc_port"
like "$(cat "$server_log")" "tokens' line 3: 1 token without tenant= acts for the whole service.*anonymous" \
        "a token without a tenant is a warning"
send alpha-token "$tmp/alpha.otlp"; is "$code" 200 "alpha sends its samples"
send any-token "$tmp/beta.otlp" -H 'X-Scope-OrgID: beta'; \
        is "$code" 200 "beta's samples come from a token of any tenant"
send operator-token "$tmp/anonymous.otlp" -H 'X-Scope-OrgID: anonymous'; is "$code" 200 "the operator sends"
stop_server
like "$(ls "$data/tenants" | tr '\n' ' ')" '^alpha beta $' "each tenant has a directory"
start_server --flush-interval 3600 --tenants "$tmp/tenants" --token-file "$tmp/tokens" \
        --listen-otlp-grpc "127.0.0.1:$grpc_port"
all_rows() { echo "$(sample_rows alpha) $(sample_rows beta) $(sample_rows anonymous)"; }
becomes "1 1 1" "each has its sample in a part" all_rows
for tenant in alpha beta; do
        send $tenant-token "$tmp/$tenant-head.otlp"
        send $tenant-token "$tmp/$tenant-object.otlp"
        is "$code" 200 "$tenant has samples in its queue"
        send $tenant-token "$tmp/tenants" -A "marker-of-$tenant-agent"
        is "$code" 400 "$tenant has sent a batch that is refused"
done
python3 tests/e2e/tenants.py routes "$url" "$id" "$tmp/alpha.otlp" "$tmp/beta.otlp" >"$tmp/tap" ||
        bail_out "the client failed"
report_tap "$tmp/tap"
"$PYTHON" tests/e2e/tenants.py grpc "$grpc_port" "$tmp/alpha.otlp" >"$tmp/tap" || bail_out "the gRPC client failed"
report_tap "$tmp/tap"
is "$(folded operator-token | grep -c 'marker-of-anonymous')" 1 "the operator's tenant is the default one"
is "$(folded any-token -H 'X-Scope-OrgID: beta' | grep -c 'marker-of-beta-function')" 1 \
        "a token of any tenant names one"
answers 400 'not the name of one tenant' "two names are none" -H 'Authorization: Bearer any-token' \
        -H 'X-Scope-OrgID: beta' \
        -H 'X-Scope-OrgID: alpha' "$url/api/v1/query/types"
answers 400 'not the name of one tenant' "  also of the token's own" -H 'Authorization: Bearer alpha-token' \
        -H 'X-Scope-OrgID: alpha' \
        -H 'X-Scope-OrgID: alpha' "$url/api/v1/query/types"
answers 403 tenant "metrics are not for a tenant" -H 'Authorization: Bearer alpha-token' "$url/metrics"
like "$(cat "$server_log")" 'audit: 403 DELETE /api/v1/debuginfo/' "refusals are in the audit log"

# ---- a crash ----
kill_server
start_server --flush-interval 3600 --tenants "$tmp/tenants" --token-file "$tmp/tokens"
is "$(folded beta-token | grep -c 'marker-of-beta')" 2 "after kill -9 beta has its samples"
is "$(folded alpha-token | grep -c 'marker-of-beta')" 0 "alpha has no samples of beta after kill -9"
done_testing
