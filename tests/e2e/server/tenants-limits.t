#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tenants: separate retention and limits; debuginfo symbolizes the samples of all; commands with --tenant; a snapshot
# has all tenants; a tenant whose tables cannot be written and whose queue is full does not affect others.
. tests/e2e/lib.sh
for tool in gcc curl python3 zstd; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

cat >"$tmp/tokens" <<'EOF'
alpha-token    admin tenant=alpha
beta-token     admin tenant=beta
operator-token admin
any-token      admin tenant=*
EOF
# otlp FILE KEY=VALUE...
otlp() { otlp_file=$1; shift; python3 tests/e2e/profiles.py otlp "$otlp_file" "$@"; }
# send TENANT FILE [CURL-ARGUMENT]...
send() {
        send_tenant=$1 send_file=$2; shift 2
        request "$@" -D "$tmp/headers" -H "Authorization: Bearer $send_tenant-token" \
                -H 'Content-Type: application/x-protobuf' \
                --data-binary "@$send_file" "$url/v1development/profiles"
}
folded() { curl -sS -H "Authorization: Bearer $1-token" "$url/api/v1/query/folded?from=0&to=now"; }
tenant_metric() {
        curl -sS -H 'Authorization: Bearer operator-token' "$url/metrics" |
                awk -v name="cairn_tenant_$2{tenant=\"$1\"}" '$1 == name { print $2 }'
}
tenant_metric_is() { [ "$(tenant_metric "$1" "$2")" = "$3" ]; }
tenant_metric_reached() { [ "$(tenant_metric "$1" "$2")" -ge "$3" ]; }

# ---- shared debuginfo ----
printf 'int main(void) { return 0; }\n' >"$tmp/program.c"
gcc -g -o "$tmp/program" "$tmp/program.c"
main_at=$(nm "$tmp/program" | awk '$3 == "main" { print $1 }' | sed 's/^0*//')
printf 'alpha\nbeta\n' >"$tmp/tenants"
start_server --flush-interval 1 --tenants "$tmp/tenants" --token-file "$tmp/tokens"
for tenant in alpha beta; do
        otlp "$tmp/object.otlp" "addresses=$main_at" "build_id=$(build_id_of "$tmp/program")" mapping_file=program \
                values=3
        send $tenant "$tmp/object.otlp"
        wait_for "the flush of $tenant" tenant_metric_is $tenant sample_rows 1
done
unlike "$(folded beta)" '^main 3$' "without debuginfo an address has no name"
put_object debuginfo "$tmp/program" -H 'Authorization: Bearer alpha-token'
is_named() { folded "$1" | grep -q '^main 3$'; }
wait_for "the names of alpha" is_named alpha
wait_for "the names of beta" is_named beta
pass "what alpha uploads names the samples of both"

# ---- retention ----
python3 -c 'import time; print(time.time_ns() - 5 * 86400 * 10**9)' >"$tmp/then"
for tenant in alpha beta; do
        python3 - "$tmp/old.otlp" "$(cat "$tmp/then")" <<'END'
import sys
sys.path.insert(0, "tests/e2e")
import profiles
open(sys.argv[1], "wb").write(profiles.otlp(names=("old",), values=(11,), at_ns=int(sys.argv[2])))
END
        send $tenant "$tmp/old.otlp"
        wait_for "the flush of $tenant" tenant_metric_is $tenant sample_rows 2
done
stop_server
printf 'alpha\nalpha retain age=2d\nbeta\n' >"$tmp/tenants"
start_server --flush-interval 1 --tenants "$tmp/tenants" --token-file "$tmp/tokens"
expire() {
        request -X POST -H "Authorization: Bearer $1-token" -H 'Content-Type: application/json' -d '{}' \
                "$url/api/v1/store/expire"
}
expire beta
is "$code $(printf '%s' "$body" | grep -o '"rows":[0-9]*' | tail -1)" '200 "rows":0' "beta has no retention"
expire alpha
wait_for "the retention of alpha" tenant_metric_is alpha sample_rows 1
unlike "$(folded alpha)" '^old ' "alpha's old samples are gone"
like "$(folded beta)" '^old 11$' "beta's are not"
send alpha "$tmp/old.otlp" -H 'X-Cairn-Batch: 00000000000000000000000000000001'
otlp "$tmp/new.otlp" names=new values=13
send alpha "$tmp/new.otlp"
wait_for "the next samples" tenant_metric_is alpha sample_rows 2
unlike "$(folded alpha)" '^old ' "samples that retention would remove again are not accepted"
stop_server

# ---- limits ----
printf 'alpha\nbeta\nbeta bytes 1K\n' >"$tmp/tenants"
start_server --flush-interval 1 --tenants "$tmp/tenants" --token-file "$tmp/tokens"
n=0 code=200
while [ "$code" = 200 ] && [ "$n" -lt 20 ]; do
        n=$((n + 1))
        otlp "$tmp/more.otlp" "names=more-$n" values=1
        send beta "$tmp/more.otlp"
done
is "$code" 429 "beta is refused over its daily bytes"
like "$(cat "$tmp/headers")" '^Retry-After: [0-9]+' "  the refusal has Retry-After"
is "$(tenant_metric beta limited_total)" 1 "  the refusal is counted"
send alpha "$tmp/more.otlp"
is "$code" 200 "alpha is not"
stop_server

# ---- bodies without a Content-Length ----
printf 'alpha\nbeta\n' >"$tmp/tenants"
start_server --memory 256M --tenants "$tmp/tenants" --token-file "$tmp/tokens"
# Two bodies of alpha that arrive without end; then one of beta, and the end of alpha's second.
python3 - "$port" >"$tmp/bodies" 2>"$tmp/bodies.err" <<'END'
import socket
import sys
import time
import urllib.request

MIB = 1 << 20
port = int(sys.argv[1])


def metrics():
    ask = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Authorization": "Bearer operator-token"})
    return dict(line.rsplit(" ", 1) for line in urllib.request.urlopen(ask).read().decode().splitlines() if line[0] != "#")


def begin(tenant, header):
    s = socket.create_connection(("127.0.0.1", port), timeout=60)
    s.sendall(f"POST /ingest?name=a&format=pprof HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {tenant}-token\r\n"
              f"{header}\r\n\r\n".encode())
    return s


def send_pieces(s):
    for _ in range(17):
        s.sendall(b"%x\r\n" % MIB + bytes(MIB) + b"\r\n")


def wait_until(test):
    until = time.monotonic() + 60
    while not test(metrics()):
        assert time.monotonic() < until, "in vain"
        time.sleep(0.02)


def held(m):
    return int(m['cairn_memory_bytes{use="ingest"}'])


def refused(m):
    return int(m.get('cairn_memory_refused_total{use="ingest"}', 0))


first = begin("alpha", "Transfer-Encoding: chunked")
send_pieces(first)
wait_until(lambda m: held(m) >= 17 * MIB)
second = begin("alpha", "Transfer-Encoding: chunked")
send_pieces(second)
wait_until(lambda m: held(m) >= 2 * 17 * MIB or refused(m))
third = begin("beta", f"Content-Length: {10 * MIB}")
third.sendall(bytes(10 * MIB))
print(third.recv(100).split()[1].decode())
second.sendall(b"0\r\n\r\n")
print(second.recv(100).split()[1].decode())
END
is "$(head -1 "$tmp/bodies")" 400 "a large body of beta is read while those of alpha arrive"
is "$(sed -n 2p "$tmp/bodies") $(cat "$tmp/bodies.err")" '429 ' \
        "  as alpha's have at most half of the memory, also without Content-Length"
stop_server

# ---- commands ----
# run COMMAND...: of cairn
run() { "$cairn" "$@" 2>"$tmp/err"; }
like "$(run flame --data "$data" --tenant beta --from 0 --to now)" '^old 11$' "flame --data --tenant"
unlike "$(run flame --data "$data" --tenant alpha --from 0 --to now)" '^old 11$' \
        "  another tenant does not have these samples"
run flame --data "$data" --tenant ../beta --from 0 >/dev/null
is "$?" 64 "  accepts only names"
ok "store verify --tenant" run store verify --data "$data" --tenant beta
ok "store compact --tenant" run store compact --data "$data" --tenant beta
ok "resymbolize --tenant" run resymbolize --data "$data" --tenant beta
ok "a snapshot" run store snapshot "$tmp/copy" --data "$data"
like "$(run flame --data "$tmp/copy" --tenant beta --from 0 --to now)" '^old 11$' "  has every tenant"
printf 'any-token\n' >"$tmp/token"
printf 'alpha\nbeta\n' >"$tmp/tenants"
start_server --flush-interval 1 --tenants "$tmp/tenants" --token-file "$tmp/tokens"
like "$(run flame --server "$url" --token-file "$tmp/token" --tenant beta --from 0 --to now)" '^old 11$' \
        "flame --server --tenant"
otlp "$tmp/in.otlp" names=imported values=17
ok "import --tenant" run import --server "$url" --token-file "$tmp/token" --tenant beta --format otlp "$tmp/in.otlp"
like "$(folded beta)" '^imported 17$' "  the imported samples arrive at the tenant"
unlike "$(folded alpha)" '^imported' "  the imported samples arrive nowhere else"
stop_server

# ---- the tables of one tenant cannot be written ----
gcc -shared -fPIC -D_GNU_SOURCE -I. -o "$tmp/fault_fs.so" tests/faults/fault_fs.c tests/faults/fault_calls.c ||
        bail_out "the preload library does not build"
sanitized=$cairn
cairn=$CAIRN_BUILD/cairn # a sanitizer's runtime would have to be preloaded first
rm -rf "$data"
FAULT_FS_DIR=$data FAULT_FS_FULL=$tmp/full LD_PRELOAD=$tmp/fault_fs.so
export FAULT_FS_DIR FAULT_FS_FULL LD_PRELOAD
start_server --flush-interval 1 --memory 256M --tenants "$tmp/tenants" --token-file "$tmp/tokens"
unset FAULT_FS_DIR FAULT_FS_FULL LD_PRELOAD
cairn=$sanitized
printf /tenants/alpha/profiles/tables/ >"$tmp/full.new"
mv "$tmp/full.new" "$tmp/full"
n=0 code=200
while [ "$code" = 200 ] && [ "$n" -lt 200 ]; do
        n=$((n + 1))
        python3 -c 'import sys; print("\n".join("r;%06x%s %d" % (k, sys.argv[1], k + 1) for k in range(8000)))' "$n" \
                >"$tmp/large.folded"
        request -H 'Authorization: Bearer alpha-token' --data-binary "@$tmp/large.folded" \
                "$url/ingest?name=flood&format=folded"
done
is "$code" 429 "alpha is refused once its queue is full"
like "$body" 'queue is full' "  the refusal gives the reason"
otlp "$tmp/beta.otlp" names=through values=19
send beta "$tmp/beta.otlp"
is "$code" 200 "beta's batch is accepted"
wait_for "beta's flush" tenant_metric_reached beta sample_rows 1
pass "  and flushed"
request "$url/readyz"
like "$body" '^warning queue_full: tenant alpha: ' "/readyz warns of the queue of one tenant"
like "$body" '^warning flush_failing: tenant alpha: cannot flush: ' \
        "  /readyz names the tenant whose tables cannot be written"
is "$code" 200 "  the service stays ready for the other tenants"
unlike "$body" 'tenant (beta|anonymous)' "  /readyz names no other tenant"
rm "$tmp/full"
alpha_is_well() { curl -sS "$url/readyz" | grep -q '^ready' && ! curl -sS "$url/readyz" | grep -q alpha; }
wait_for "alpha's flush" alpha_is_well
pass "all is well again once they can"
done_testing
