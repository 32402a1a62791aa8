# SPDX-License-Identifier: Apache-2.0
# The capabilities of each of the agent's threads while it runs, and of the processes that it starts.
. tests/e2e/lib.sh
agent=$CAIRN_BUILD/cairn-agent
for tool in cc jq; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
"$agent" --doctor --sampler bpf >"$tmp/doctor" ||
        skip_all "the agent cannot profile here: $(grep '^error' "$tmp/doctor" | head -1 | tr -s ' ')"
[ "$(id -u)" -eq 0 ] || skip_all "not root"

cat >"$tmp/burn.c" <<'EOC'
#include <unistd.h>
volatile unsigned long sink;
int main(void) { alarm(60); for (;;) sink++; }
EOC
cc -O1 -o "$tmp/burn" "$tmp/burn.c"
"$tmp/burn" & background_pids=$!
# mask BIT...: as in /proc/PID/status
mask() { m=0; for bit in "$@"; do m=$((m | 1 << bit)); done; printf '%016x\n' $m; }
statuses() { cat "/proc/$pid"/task/*/status; }
has_thread() { grep -qs "^unwind-tables" "/proc/$pid"/task/*/comm; }
all_are() { statuses | awk -v key="$1:" '$1 == key { print $2 }' | sort -u; }

"$agent" --sampler bpf --duration 60 --output "$tmp/otlp" 2>"$tmp/log" & pid=$!
background_pids="$background_pids $pid"
wait_for "the agent" grep -q sampling "$tmp/log"
wait_for "the thread that makes unwind tables" has_thread
# CAP_DAC_READ_SEARCH, CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SYS_PTRACE, CAP_SYSLOG, CAP_PERFMON, CAP_BPF,
# CAP_CHECKPOINT_RESTORE
kept=$(mask 2 5 6 7 19 34 38 39 40)
is "$(all_are CapEff)" "$kept" "every thread has exactly the kept capabilities"
is "$(all_are CapPrm)" "$kept" "no other capabilities are permitted"
is "$(all_are CapInh)" "$(mask)" "no capabilities are inheritable"
is "$(all_are CapAmb)" "$(mask)" "no capabilities are ambient"
is "$(all_are NoNewPrivs)" 1 "no thread can gain privileges"
like "$(cat "$tmp/log")" \
        'keeps cap_bpf cap_perfmon cap_sys_ptrace cap_checkpoint_restore cap_dac_read_search cap_syslog cap_setuid cap_setgid cap_kill' \
        "the log says what is kept"

# The process that forks workers has dropped all of them, and runs as another user.
fork_server=$(for child in $(cat "/proc/$pid"/task/*/children); do grep -l '^Name:.cairn-forkserv' \
        "/proc/$child/status"; done)
is "$(awk '$1 == "Uid:" || $1 == "Gid:" { print $1, $2, $3, $4, $5 }' "$fork_server")" \
        "$(printf 'Uid: 61111 61111 61111 61111\nGid: 61111 61111 61111 61111')" "workers run as a user of their own"
is "$(awk '$1 == "Groups:" { print NF }' "$fork_server")" 1 "in no group"
is "$(awk '$1 == "CapPrm:" { print $2 }' "$fork_server")" "$(mask)" "workers run without capabilities"

# ---- the doctor's findings on capabilities and the spool ----
doctor() { "$@" "$agent" --doctor --json $spool >"$tmp/doctor.json"; }
state() { jq -r --arg name "$1" '.items[] | select(.name == $name).state' "$tmp/doctor.json"; }
spool=
doctor env
for item in "BPF program" "unwind tables" "mapped files" "rights to sample"; do
        is "$(state "$item")" ok "doctor, with all rights: $item"
done
is "$(state spool)" "" "no finding about a spool that is not configured"
spool="--spool $tmp/spool"
doctor env
is "$(state spool)" ok "a spool that can be made"
spool="--spool /proc/no/such"
if doctor env; then fail "a spool that cannot be made fails"; else pass "a spool that cannot be made fails"; fi
is "$(state spool)" error "the spool that cannot be made is named"
spool=
if command -v setpriv >/dev/null; then
        # The capabilities granted by the unit are sufficient.
        granted=$(sed -n 's/^CapabilityBoundingSet=//p' deploy/systemd/cairn-agent.service | tr 'A-Z ' 'a-z,' |
                sed 's/cap_/+/g')
        doctor setpriv --no-new-privs "--bounding-set=-all,$granted" "--inh-caps=-all,$granted"
        is "$(jq -r '.sampler' "$tmp/doctor.json")" bpf "BPF samples with the rights of the systemd unit"
        for item in "rights to sample" "rights to read processes" "BPF program" "unwind tables" "mapped files" \
                "kernel symbols"; do
                is "$(state "$item")" ok "the doctor finds $item sufficient with the rights of the systemd unit"
        done
        doctor setpriv --bounding-set=-checkpoint_restore,-sys_admin --inh-caps=-checkpoint_restore,-sys_admin
        is "$(state "mapped files")" warning "without CAP_CHECKPOINT_RESTORE mapped files are not opened"
        like "$(jq -r '.items[] | select(.state != "ok").fix' "$tmp/doctor.json")" 'CAP_CHECKPOINT_RESTORE' \
                "the fix names the missing capability"
fi
done_testing
