#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# /api/v1/status: ingest and senders, rejected requests and reasons, queue, storage, conditions; for one tenant and
# for all.
. tests/e2e/lib.sh
for tool in curl jq python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

status() { curl -sS --max-time 20 "$url/api/v1/status$1" | jq -c "$2"; }
# otlp FILE [KEY=VALUE]...: a request. send AGENT FILE [CURL-ARGUMENT]...
otlp() { python3 tests/e2e/profiles.py otlp "$@"; }
send() { send_agent=$1 send_file=$2; shift 2; request -A "$send_agent" -H 'Content-Type: application/x-protobuf' \
        --data-binary "@$send_file" "$@" "$url/v1development/profiles"; }

# A persistent condition: a batch in the quarantine.
mkdir -p "$data/profiles/queue/quarantine"
printf 'no batch' >"$data/profiles/queue/quarantine/00000000000000000099-00112233445566778899aabbccddeeff.batch"
begun=$(date +%s)
start_server --flush-interval 3600 --retain-samples age=30d,size=1G --retain-samples '{env=~"dev|te\"st"},age=3d' \
        --retain tag=ci,age=7d

# ---- before any batch ----

is "$(status '' \
        '[.ready, .read_only, .may_see_service, .tenant, .ingest.batches, .ingest.senders,
                .queue.batches, .storage.bytes]')" \
        '[true,false,true,null,0,0,0,0]' "nothing came yet"
is "$(status '' '[.conditions[] | [.name, .severity, .tenant]]')" '[["quarantine","warning",null]]' \
        "the active condition is listed"
like "$(status '' '.conditions[0] | .text + "; " + .next_step')" '1 batch of 8 bytes.*cairn store quarantine list' \
        "  the condition has its cause and a remedy"
becomes '[1,8]' "  and in numbers" status '' '[.queue.quarantined_batches, .queue.quarantined_bytes]'
is "$(status '' '[.retention | .age_s, .size_bytes, .rules[0].selector, .rules[0].age_s]')" \
        '[2592000,1073741824,"{env=~\"dev|te\\\"st\"}",259200]' "retention is told, also that of labels"
is "$(status '' \
        '[(.ingest.minutes | length), ([.ingest.minutes[].batches] | add),
                (.ingest.minutes[59].start_unix_s - .ingest.minutes[0].start_unix_s)]')" \
        '[60,0,3540]' "an hour in minutes"
is "$(status /senders '.now_unix_s |= (. > 1700000000)')" '{"now_unix_s":true,"kept":0,"forgotten":0,"senders":[]}' \
        "the list of senders is empty"

# ---- batches ----

otlp "$tmp/one.otlp" names=leaf,main host=web-1 values=3,4
send cairn-agent/1.0.0 "$tmp/one.otlp"
is "$code" 200 "a host sends"
is "$(status /senders \
        '[.senders[] | [.host, .agent, .address, .batches, .samples, .last_samples, .rejected_samples]]')" \
        '[["web-1","cairn-agent/1.0.0","127.0.0.1",1,2,2,0]]' "it is a sender with host, agent and address"
ok "  with the time of its batch" test "$(status /senders '.senders[0].last_unix_s')" -ge "$begun"
ok "  and that of its newest sample" test "$(status /senders '.senders[0].newest_sample_unix_s')" -ge "$begun"
send cairn-agent/1.0.0 "$tmp/one.otlp"
is "$(status '' '[.ingest | .batches, .duplicate_batches, .samples]') $(status /senders \
        '.senders[0] | [.batches, .samples]')" '[2,1,2] [2,2]' \
        "a batch that is sent again counts as heard from, and adds no samples"
otlp "$tmp/one.otlp" names=leaf host=web-1 values=1
send 'cairn-agent/1.1.0 (x86_64)' "$tmp/one.otlp"
is "$(status /senders '[.senders[] | [.host, .agent, .batches]]')" '[["web-1","cairn-agent/1.1.0 (x86_64)",3]]' \
        "another version of its agent is the same sender"
send other-agent/1.0.0 "$tmp/one.otlp" -H "X-Cairn-Batch: $(printf '%032x' 7)"
otlp "$tmp/one.otlp" names=leaf values=1
send cairn-agent/1.1.0 "$tmp/one.otlp"
is "$(status /senders '[.senders[] | [.host, .agent]]')" \
        '[["","cairn-agent/1.1.0"],["web-1","other-agent/1.0.0"],["web-1","cairn-agent/1.1.0 (x86_64)"]]' \
        "another program on it, and one that names no host, are senders of their own, the latest first"
is "$(status '/senders?limit=1' '[.kept, (.senders | length)]')" '[3,1]' "a limit shortens the list of senders"
answers 400 'not a number' "  that is none" "$url/api/v1/status/senders?limit=x"

# One batch with several hosts, as from a Collector; with host names that other senders use, too.
python3 - "$tmp/many.pprof" <<'END'
import gzip, sys
sys.path.insert(0, "tests/e2e")
from profiles import blob, num, packed
strings, samples = ["", "cpu", "nanoseconds", "main", "hostname", "instance", "db-1", "db-2", "pod-9"], b""
for labels in ((4, 6),), ((4, 7),), ((5, 8), (4, 7)), ((5, 8),):
    samples += blob(2, packed(1, [1]) + packed(2, [5]) + b"".join(blob(3, num(1, k) + num(2, v)) for k, v in labels))
body = blob(1, num(1, 1) + num(2, 2)) + samples + blob(4, num(1, 1) + blob(4, num(1, 1))) + blob(5, num(1, 1) + num(2, 3))
open(sys.argv[1], "wb").write(gzip.compress(body + b"".join(blob(6, s) for s in strings)))
END
request -A alloy/2.0 --data-binary "@$tmp/many.pprof" "$url/ingest?name=many&format=pprof"
is "$code" 200 "a batch of several hosts"
is "$(status /senders '[.senders[] | select(.agent == "alloy/2.0") | [.host, .samples]] | sort')" \
        '[["db-1",1],["db-2",2],["pod-9",1]]' \
        "each host is a sender, by the label that names it best"

# ---- rejected batches ----

printf 'not protobuf' >"$tmp/bad"
send 'broken/0.1' "$tmp/bad"
is "$code" 400 "a malformed batch"
request -A 'broken/0.2' -H 'Content-Type: text/plain' --data-binary x "$url/v1development/profiles"
is "$code" 415 "one of an unknown type"
otlp "$tmp/one.otlp" names=leaf host=web-2 values=1,2 at_ns=4102444800000000000
send cairn-agent/1.1.0 "$tmp/one.otlp"
is "$(status '' '[.ingest.problems[] | [.reason, .of, .count, .agent, .address]]')" \
        '[["bad_data","batches",1,"broken/0.1","127.0.0.1"],["unsupported","batches",1,"broken/0.2","127.0.0.1"],["too_far_ahead","samples",2,"cairn-agent/1.1.0","127.0.0.1"]]' \
        "what was refused is told by reason, and who sent it last"
is "$(status '' \
        '[.ingest.problems[] | (.text | length > 5), (.next_step | length > 10),
                .last_unix_s >= '"$begun"'] | unique')" '[true]' \
        "  each problem has its text, time and remedy"
is "$(status /senders \
        '[.senders[] | select(.rejected_samples > 0) |
                [.host, .agent, .samples, .rejected_samples, .newest_sample_unix_s]]')" \
        '[["web-2","cairn-agent/1.1.0",0,2,4102444800]]' \
        "a host whose clock is wrong, so that all of its samples are rejected, is a sender"
is "$(status '' '[([.ingest.minutes[].batches] | add), ([.ingest.minutes[].refused] | add)]')" \
        "[$(metric cairn_ingest_batches_total),2]" "the minutes have all of it"
is "$(status '' .ingest.samples)" "$(metric cairn_ingest_samples_total)" "the sum of samples is that of the metric"

# ---- hostile names ----

python3 - "$tmp" <<'END'
import subprocess, sys
host = "<img src=x onerror=alert(1)>\u202e\x1b[31m" + "h" * 3000
sys.path.insert(0, "tests/e2e")
from profiles import otlp
open(sys.argv[1] + "/one.otlp", "wb").write(otlp(names=("leaf",), host=host))
END
send "$(printf 'evil<b>/%04000d' 1)" "$tmp/one.otlp"
is "$code" 200 "a host and an agent of 3000 letters"
is "$(status /senders '.senders[0] | [(.host | utf8bytelength), (.agent | utf8bytelength)]')" '[127,95]' \
        "long names of a host and an agent are truncated"
unlike "$(curl -sS "$url/api/v1/status/senders")" "$(printf '\033')" "control characters of the names are escaped"
python3 - "$url" <<'END'
import http.client, sys, urllib.parse
sys.path.insert(0, "tests/e2e")
from profiles import otlp
client = http.client.HTTPConnection(urllib.parse.urlparse(sys.argv[1]).netloc)
for n in range(300):
    client.request("POST", "/v1development/profiles", otlp(names=("leaf",), host=f"fleet-{n}"),
                   {"Content-Type": "application/x-protobuf", "User-Agent": f"fleet/{n}"})
    client.getresponse().read()
END
is "$(status /senders '[.senders[] | select(.host | startswith("fleet-"))] | [length, .[0].host, .[299].host]')" \
        '[300,"fleet-299","fleet-0"]' "300 hosts are 300 senders, the latest first"

# ---- the stores ----

becomes '[true,true,true,true]' "the queue" \
        status '' '[.queue.batches > 300, .queue.bytes > 0, .queue.limit_bytes > .queue.bytes, .queue.disk_bytes > 0]'
stop_server
start_server --flush-interval 3600 --read-only
tables='["samples",true,true,true],["stacks",true,true,true],["locations",true,true,true]'
becomes "[true,0,[$tables,[\"function_history\",false,false,false]],true]" \
        "a read-only service tells of its storage" \
        status '' '[.read_only, .ingest.batches, ([.storage.tables[] | [.table, .rows > 0, .files > 0, .bytes > 0]]),
                .storage.oldest_unix_s > 0]'
is "$(status /service '[.read_only, .disk]')" '[true,null]' "  a read-only service watches no disk"
stop_server

# ---- the whole service, and a token that may not see it ----

printf 'all-token read,ingest\nteam-token read,ingest tenant=team\n' >"$tmp/tokens"
echo team >"$tmp/tenants"
start_server --flush-interval 3600 --token-file "$tmp/tokens" --tenants "$tmp/tenants" --retain tag=ci,age=7d
as() { as_token=$1; shift; curl -sS -H "Authorization: Bearer $as_token" "$url/api/v1/status$1" | jq -c "$2"; }
is "$(as all-token '' '[.tenant, .may_see_service, (.conditions | length)]')" '["anonymous",true,1]' \
        "a token without a tenant may see the whole service"
is "$(as team-token '' '[.tenant, .may_see_service, .conditions]')" '["team",false,[]]' \
        "a bound one may not, and sees no conditions of other tenants"
is "$(as all-token /service '[.conditions[] | [.name, .tenant]]')" '[["quarantine","anonymous"]]' \
        "conditions of the whole service have the tenant"
becomes '[true,true,[{"tag":"ci","age_s":604800,"unused_s":0,"size_bytes":0}]]' "disk, and retention of debuginfo" \
        as all-token /service '[.disk.free_bytes > 0, .disk.size_bytes >= .disk.free_bytes, .debuginfo_rules]'
filled='["table=\"samples\"",true],["table=\"stacks\"",true],["table=\"locations\"",true]'
becomes "[$filled,[\"table=\\\"function_history\\\"\",false]]" "and all metrics" \
        as all-token /service '[.metrics[] | select(.name == "cairn_table_rows") | [.labels, .value > 0]]'
answers 403 tenant "which a bound token may not see" -H 'Authorization: Bearer team-token' "$url/api/v1/status/service"
answers 401 token "and nobody sees without one" "$url/api/v1/status"
done_testing
