#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cairn doctor: each check finds its problem, suggests a remedy, and finishes in time if a disk or a server hangs.
. tests/e2e/lib.sh
for tool in gcc as ld curl jq openssl python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

# doctor [OPTION]...: sets $code, and the findings in $tmp/found.
doctor() {
        "$cairn" doctor --json "$@" >"$tmp/found" 2>"$tmp/doctor.err"
        code=$?
        ! grep -Eq 'Sanitizer|runtime error:' "$tmp/doctor.err" || fail "no sanitizer report" "$(cat "$tmp/doctor.err")"
}
# finding NAME: "STATE: FOUND; FIX", a line for each finding of that name.
finding() { jq -r --arg name "$1" '.checks[] | select(.name == $name) | "\(.state): \(.found); \(.fix)"' "$tmp/found"; }
# finds NAME PATTERN TEST
finds() { like "$(finding "$1")" "$2" "$3"; }

# ---- a healthy service ----

make_certificate() {
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost \
                -keyout "$tmp/$1.key" -out "$tmp/$1.csr" 2>/dev/null
        openssl x509 -req -in "$tmp/$1.csr" -signkey "$tmp/$1.key" -days "$2" -out "$tmp/$1.pem" 2>/dev/null
        chmod 0600 "$tmp/$1.key"
}
start_server
doctor --data "$data" --server "$url" data service
finds 'disk space' '^(ok|warning): [0-9]+ of [0-9]+ MiB are free in ' "disk space is looked at"
finds 'sync latency' '^(ok|warning): fdatasync\(\) takes [0-9]+\.[0-9]{3} ms, the slowest of 16 ' "syncs are timed"
is "$(find "$data" -name '.tmp-doctor*')" '' "  the doctor leaves no file in the directory"
finds 'map of index' '^ok: 0 of [0-9]+ MiB were used at most \(0 percent\); null' \
        "the map of the index is measured, beside the service"
finds 'map of debuginfo/meta' '^ok: 0 of ' "  and that of debuginfo"
finds reachable "^ok: $url answers within [0-9]+ ms; null" "the service is reached"
finds readiness '^ok: ready' "  and is ready"
finds access '^ok: ' "  and answers"
finds debuginfo '^ok: no object in samples of the last hour lacks debuginfo' "  and no debuginfo is missing"
is "$(jq -r '[.checks[] | .area] | unique | join(" ")' "$tmp/found")" 'data service' "only the named areas are checked"
is "$(jq '[.checks[] | select(.state == "error")] | length' "$tmp/found")" 0 \
        "  a sound directory and service have no errors"
is "$code" "$(jq 'if .warning > 0 then 1 else 0 end' "$tmp/found")" "the exit status says whether there are warnings"
out=$("$cairn" doctor --server "$url" service)
is $? 0 "0: nothing to fix"
like "$out" '^ok +service: readiness +ready$' "text has a line for each finding"
like "$out" '^0 errors, 0 warnings, 4 fine, 0 not checked$' "  the text ends with the number of findings"

# ---- usage ----

"$cairn" doctor nonsense 2>"$tmp/err"
is $? 64 "an unknown area is a usage error"
like "$(cat "$tmp/err")" "'nonsense' is not one of configuration, " "  that names those there are"
"$cairn" doctor --timeout 0 2>"$tmp/err"
is $? 64 "a timeout of zero is a usage error"

# ---- configuration, secrets, certificates ----

printf 'serve:\n  max-aeg: 30d\n' >"$tmp/wrong.yaml"
doctor --config "$tmp/wrong.yaml" configuration
is "$code" 2 "2: an invalid configuration is an error"
finds serve "^error: .*wrong.yaml:2: 'serve' has no option 'max-aeg'.*; correct it" \
        "  that names the line, and how to go on"
finds agent '^(ok|skipped): ' "  while the agent's section is valid"
doctor --config "$tmp/wrong.yaml" --data "$data" --server "$url" certificates data service
is "$code" 2 "  an invalid section is an error when other areas are named"
finds serve "^error: .*wrong.yaml:2: 'serve' has no option 'max-aeg'.*; correct it" "    which says so too"
is "$(jq -r '[.checks[] | select(.area == "configuration")] | length' "$tmp/found")" 1 \
        "    the invalid section is found once"

make_certificate good 300
make_certificate soon 5
make_certificate over -1
make_certificate other 300
printf 'a-secret-token read\n' >"$tmp/tokens"
chmod 0600 "$tmp/tokens"
# configure CERT KEY: writes $tmp/cairn.yaml.
configure() {
        cat >"$tmp/cairn.yaml" <<CONFIG
serve:
  data: $data
  listen: 127.0.0.1:$port
  token-file: $tmp/tokens
  tls-cert: $tmp/$1.pem
  tls-key: $tmp/$2.key
CONFIG
}
configure good good
doctor --config "$tmp/cairn.yaml" configuration certificates data
finds certificate "^ok: '.*good.pem' is valid until .* UTC, (299|300) days more; null" "a certificate is valid for long"
finds 'token file' "^ok: '.*tokens' is valid" "  as is a token file"
finds 'map of index' '^ok: ' "the data directory is that of the configuration"
chmod 0644 "$tmp/tokens"
doctor --config "$tmp/cairn.yaml" configuration
is "$code" 1 "1: a token file that all may read is a warning"
finds 'token file' '^warning: .* has the mode 0644: others than the service may read it; chmod 0640' "  with its mode"
chmod 0600 "$tmp/tokens"
printf 'short read\n' >"$tmp/tokens"
doctor --config "$tmp/cairn.yaml" configuration
is "$code" 2 "a malformed token file is an error"
finds 'token file' "^error: .*tokens' line 1: .*; correct that line" "  that names the line"
configure soon soon
doctor --config "$tmp/cairn.yaml" certificates
is "$code" 1 "a certificate that expires soon is a warning"
finds certificate '^warning: .* UTC, [45] days more; renew it' "  with the days that are left"
configure over over
doctor --config "$tmp/cairn.yaml" certificates
is "$code" 2 "an expired one is an error"
finds certificate "^error: '.*over.pem' expired at .* days? ago: clients reject it; renew it" "  that says so"
configure good other
doctor --config "$tmp/cairn.yaml" certificates
finds certificate '^error: .*; give --tls-cert and --tls-key a matching pair' "so is a key of another certificate"
configure good good
printf '  upstream-ca: %s\n' "$tmp/absent.pem" >>"$tmp/cairn.yaml"
doctor --config "$tmp/cairn.yaml" certificates
is "$code" 2 "a missing CA file for upstreams is an error"
finds 'upstream CA' "^error: '.*absent.pem': No such file or directory; name a PEM file" "  that says what to name"

# ---- readiness, an unreachable service ----

aside=$data/profiles/queue/quarantine/00000000000000000099-00112233445566778899aabbccddeeff.batch
mkdir -p "${aside%/*}"
printf 'no batch' >"$aside"
stop_server
start_server
doctor --server "$url" service
is "$code" 1 "a warning of the service is also a warning of doctor"
finds quarantine "^warning: 1 batch of 8 bytes is set aside; see 'cairn store quarantine list'" \
        "  with its next step"
stop_server
doctor --server "$url" service
is "$code" 2 "an unreachable service is an error"
finds reachable '^error: .*; start it ' "  that says what to do"

# ---- databases ----

python3 - >"$tmp/many.s" <<'PYTHON'
import random
random.seed(1)
for n in range(20000):
    name = "f%d_%x" % (n, random.getrandbits(512))
    print(f".globl {name}\n.type {name}, @function\n{name}: nop\nret\n.size {name}, 2")
PYTHON
as -o "$tmp/many.o" "$tmp/many.s" &&
        ld -shared --build-id=0x00000000000000000000000000000000000000a1 -o "$tmp/large.so" "$tmp/many.o"
ok "symbols are indexed" "$cairn" index --no-debuginfod --data "$data" "$tmp/large.so"
doctor --data "$data" data
used=$(finding 'map of index' | sed -n 's/^ok: \([0-9]*\) of .*/\1/p')
ok "their bytes are counted" test "${used:-0}" -ge 1
CAIRN_INDEX_MAP_MIB=1
export CAIRN_INDEX_MAP_MIB
doctor --data "$data" data
finds 'map of index' '^error: .*; set CAIRN_INDEX_MAP_MIB to more than 1 ' "a map with little room left is found"
unset CAIRN_INDEX_MAP_MIB

# ---- faulty disks and servers ----

gcc -shared -fPIC -D_GNU_SOURCE -I. -o "$tmp/fault_fs.so" tests/faults/fault_fs.c tests/faults/fault_calls.c ||
        bail_out "the preload library does not build"
cat >"$tmp/slow.c" <<'CODE'
#include <poll.h>
#include <stdlib.h>
int fdatasync(int fd) { (void)fd; return poll(0, 0, atoi(getenv("SYNC_MS"))) < 0; }
CODE
gcc -shared -fPIC -o "$tmp/slow.so" "$tmp/slow.c" || bail_out "the slow library does not build"
cairn=$CAIRN_BUILD/cairn # a sanitizer's runtime would have to be preloaded first
# with_fault NAME [OPTION]...: runs doctor on a disk with this fault.
with_fault() {
        : >"$tmp/fault"
        fault_name=$1; shift
        env FAULT_FS_DIR="$data" "FAULT_FS_$fault_name=$tmp/fault" LD_PRELOAD="$tmp/fault_fs.so" "$cairn" doctor \
                --json "$@" \
                >"$tmp/found"
        code=$?
}

export LD_PRELOAD="$tmp/slow.so" SYNC_MS=60
doctor --data "$data" data
finds 'sync latency' '^warning: fdatasync\(\) takes ([6-9][0-9]|[0-9]{3,})\..*; each batch waits for a sync' \
        "slow syncs are a warning"
SYNC_MS=60000
doctor --timeout 5 --data "$data" data # other checks do not need the raised limit even on a busy machine
is "$code" 2 "a sync that hangs is an error"
finds 'sync latency' '^error: no result within 5 s; the disk hangs' "  and is not waited for"
finds 'map of index' '^(ok|warning|error): [0-9]' "  nor are the other checks kept from their work"
unset LD_PRELOAD SYNC_MS
cat >"$tmp/forbid.c" <<'CODE'
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int access(const char *path, int mode)
{
        if (strcmp(path, getenv("FORBIDDEN")) != 0)
                return faccessat(AT_FDCWD, path, mode, 0);
        errno = EACCES;
        return -1;
}
CODE
gcc -shared -fPIC -o "$tmp/forbid.so" "$tmp/forbid.c" || bail_out "the library that forbids does not build"
configure good good
printf '  upstream-ca: %s\n' "$tmp/ca.pem" >>"$tmp/cairn.yaml"
FORBIDDEN=$tmp/ca.pem LD_PRELOAD=$tmp/forbid.so "$cairn" doctor --json --config "$tmp/cairn.yaml" certificates \
        >"$tmp/found"
is $? 0 "an authority for upstreams that only the service may read is no error"
finds 'upstream CA' "^skipped: '.*ca.pem' is not readable as this user: run this as root; null" \
        "  and is said not to be checked"
with_fault FULL --data "$data" data
finds 'disk space' '^error: 0 of .*; make room' "a full disk is an error"
with_fault BAD_SYNC --data "$data" data
finds 'sync latency' "^error: '.*': cannot sync: Input/output error; check the disk" \
        "a disk that does not sync is an error"
with_fault HANG --timeout 1 --data "$data" data
finds 'disk space' '^error: no result within 1 s; the disk hangs' "a disk that hangs is given up in time"
doctor --data "$tmp/absent" data
finds 'disk space' "^error: '.*absent': No such file or directory; name the service's data directory" \
        "a directory that is not there is an error"

mkdir -p "$tmp/up/files"
python3 tests/e2e/upstream.py "$tmp/up" &
background_pids=$!
wait_for "the upstream" test -s "$tmp/up/port"
up=http://127.0.0.1:$(cat "$tmp/up/port")
away=http://127.0.0.1:$(free_port)
printf 'serve:\n  upstream: [%s, %s]\n' "$up" "$away" >"$tmp/upstreams.yaml"
doctor --config "$tmp/upstreams.yaml" upstreams
is "$code" 1 "an unreachable upstream is a warning"
finds upstream "^ok: $up answers within " "  while one that does not know a build-id is fine"
finds upstream "^warning: $away: .*; fix the network" "  the finding says what to do about the network"
echo 'status 503' >"$tmp/up/mode"
doctor --config "$tmp/upstreams.yaml" upstreams
finds upstream "^warning: $up: not a debuginfod response; " "an upstream that fails is a warning"

# Servers that accept connections and never respond, too many to be checked one after another in time.
python3 - >"$tmp/silent" <<'PYTHON' &
import socket, sys, time
silent = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
print(*["http://127.0.0.1:%d" % s.getsockname()[1] for s in silent], flush=True)
time.sleep(600)
PYTHON
background_pids="$background_pids $!"
wait_for "the silent servers" test -s "$tmp/silent"
printf 'serve:\n  upstream: [%s, %s]\n' "$(sed 's/ /, /g' "$tmp/silent")" "$away" >"$tmp/upstreams.yaml"
doctor --timeout 1 --config "$tmp/upstreams.yaml" upstreams
is "$code" 1 "upstreams that do not answer are warnings"
for silent in $(cat "$tmp/silent") "$away"; do
        finds upstream "^warning: $silent: .*; fix the network" "  each of them, as they share the time"
done
is "$(jq '.checks | length' "$tmp/found")" 4 "    the checks of upstreams end in time"
like "$("$cairn" doctor --help)" 'service twice as long, the agent.s four times' "--help says how long checks may take"

# ---- an agent that also writes to stderr ----

mkdir "$tmp/bin"
cp "$CAIRN_SAN/cairn" "$tmp/bin/"
cat >"$tmp/bin/cairn-agent" <<'AGENT'
#!/bin/sh
echo 'a warning in between' >&2
echo '{"can_profile": true,'
echo 'another' >&2
echo '"sampler": "bpf", "items": [{"name": "btf", "state": "ok", "found": "it is there"}]}'
AGENT
chmod 0755 "$tmp/bin/cairn-agent"
cairn=$tmp/bin/cairn
doctor agent
finds profiling '^ok: the agent can profile here, by bpf' "what the agent says on stderr is no part of its answer"
finds btf '^ok: it is there' "  of which all is read"
printf '#!/bin/sh\necho "cairn-agent: it is broken" >&2\nexit 1\n' >"$tmp/bin/cairn-agent"
doctor agent
finds cairn-agent '^error: cairn-agent: it is broken' "and when it has no answer, that is what it says"

# ---- this machine ----

cairn=$CAIRN_SAN/cairn
doctor host
finds 'file descriptors' '^(ok|warning): the hard limit is [0-9]+' "descriptors are looked at"
finds clock '^(ok|warning|skipped): ' "  the clock"
finds Landlock '^(ok|warning): ' "  Landlock"
finds seccomp '^ok: ' "  seccomp"
finds 'user namespaces' '^(ok|warning): ' "  user namespaces"
finds 'confined worker' '^ok: a process can confine itself' "  and a process is confined"
python3 -c 'import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 1000))
os.execv(sys.argv[1], sys.argv[1:])' "$cairn" doctor --json host >"$tmp/found"
finds 'file descriptors' '^warning: the hard limit is 1000; .*; set LimitNOFILE=65536' \
        "too few descriptors are a warning"
doctor --timeout 20 agent
finds btf '^(ok|warning|error): /sys/kernel/btf/vmlinux: ' "the agent says what it finds"
finds 'perf events' 'kernel.perf_event_paranoid is ' "  of perf_event_paranoid too"
finds 'locked memory' '^(ok|warning|error): ' "  and of locked memory"
finds profiling '^(ok|warning|error): the agent can' "  and whether it can profile"
done_testing
