#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The agent can reload the certificates of --ca after it dropped privileges, also from a file that only root, or only
# its initial capabilities, can read.
. tests/e2e/lib.sh
agent=$CAIRN_BUILD/cairn-agent
for tool in cc openssl setpriv; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
[ "$(id -u)" -eq 0 ] || skip_all "not root"
"$agent" --doctor >"$tmp/doctor" ||
        skip_all "the agent cannot profile here: $(grep '^error' "$tmp/doctor" | head -1 | tr -s ' ')"

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=ours \
        -keyout "$tmp/ours.key" \
        -out "$tmp/ours.pem" 2>/dev/null
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=server -keyout "$tmp/key.pem" \
        -out "$tmp/csr" 2>/dev/null
echo subjectAltName=IP:127.0.0.1 >"$tmp/ext"
openssl x509 -req -in "$tmp/csr" -CA "$tmp/ours.pem" -CAkey "$tmp/ours.key" -CAcreateserial -days 2 \
        -extfile "$tmp/ext" \
        -out "$tmp/cert.pem" 2>/dev/null
printf 'int main(void) { for (volatile int i = 0;; i++); }\n' >"$tmp/burn.c"
cc -o "$tmp/burn" "$tmp/burn.c" || bail_out "cannot build"
start_server --tls-cert "$tmp/cert.pem" --tls-key "$tmp/key.pem"
url=https://127.0.0.1:$port
"$tmp/burn" & burn_pid=$!
background_pids=$burn_pid

# sends NAME COMMAND...: an agent run by COMMAND must deliver at least one batch, of at least two attempts.
sends() {
        sends_name=$1; shift
        "$@" "$agent" --server "$url" --ca "$tmp/ca.pem" --no-upload --duration 3 --interval 1 --pid $burn_pid \
                --metrics-file "$tmp/out/metrics" 2>"$tmp/log"
        like "$(cat "$tmp/log")" 'batches: [1-9][0-9]* sent, 0 dropped' "$sends_name"
}
mkdir -m 777 "$tmp/out"
chmod 711 "$tmp"
(umask 077 && cat "$tmp/ours.pem" >"$tmp/ca.pem")
sends "a file that only root may read"
chown nobody "$tmp/ca.pem"
sends "a file that only another user may read"
sends "the same without BPF" env -- setpriv --bounding-set=-bpf,-sys_admin --inh-caps=-all
chown root "$tmp/ca.pem"
sends "a file of root's, to a user with the right to read all files" setpriv --reuid nobody --clear-groups \
        --inh-caps=-all,+bpf,+perfmon,+sys_ptrace,+dac_read_search,+checkpoint_restore,+syslog \
        --ambient-caps=-all,+bpf,+perfmon,+sys_ptrace,+dac_read_search,+checkpoint_restore,+syslog
setpriv --reuid nobody --clear-groups "$agent" --server "$url" --ca "$tmp/ca.pem" --no-upload --duration 2 \
        --interval 1 >"$tmp/log" 2>&1
like "$? $(cat "$tmp/log")" "^1 .*cannot read the certificates in '$tmp/ca.pem'" \
        "the file that an agent without the capability cannot read is named"
kill $burn_pid
done_testing
