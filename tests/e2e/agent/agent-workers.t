#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Workers of the agent that cannot be started are logged once, counted under their own reason, and found by --doctor.
. tests/e2e/lib.sh
agent=$CAIRN_BUILD/cairn-agent
for tool in cc jq unshare; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
[ "$(id -u)" -eq 0 ] || skip_all "not root"
"$agent" --doctor >"$tmp/doctor" || skip_all "the agent cannot profile here"

# $closed COMMAND...: runs it where only root may open /dev/null, a node of its own below a private mount.
closed=$tmp/closed
mknod -m 0600 "$tmp/null" c 1 3 2>/dev/null && : >"$tmp/null" 2>/dev/null || skip_all "device nodes cannot be made here"
cat >"$closed" <<'EOC'
#!/bin/sh
exec unshare -m sh -c 'mount --bind "${0%/*}/null" /dev/null && exec "$@"' "$0" "$@"
EOC
chmod +x "$closed"
"$closed" true || skip_all "mount namespaces are not allowed here"

cat >"$tmp/burn.c" <<'EOC'
#include <unistd.h>
volatile unsigned long sink;
int main(void) { alarm(300); for (;;) sink++; }
EOC
cc -O1 -g -Wl,--build-id -o "$tmp/burn" "$tmp/burn.c"
"$tmp/burn" & burn=$!
background_pids=$burn
metric_of() { awk -v name="cairn_agent_$1" '$1 == name { print $2 }' "$tmp/metrics"; }
settled() { [ "$(metric_of 'uploads_total{result="no_worker"}')" -ge 1 ]; }
item() {
        jq -r --arg name "$1" '.items[] | select(.name == $name) | .state + " " + .found + " " + .fix' \
                "$tmp/doctor.json"
}

# ---- the doctor ----

"$agent" --doctor --json >"$tmp/doctor.json"
for name in "unwind tables" "upload worker"; do
        like "$(item "$name")" '^ok a confined worker' "the doctor finds that workers are confined: $name"
done
"$closed" "$agent" --doctor --json >"$tmp/doctor.json"
for name in "unwind tables" "upload worker"; do
        like "$(item "$name")" \
                "^warning cannot start worker '.*': cannot open /dev/null as uid 61111: Permission denied" \
                "doctor where only root may open /dev/null: $name"
        like "$(item "$name")" 'let the user of the workers .* open /dev/null' "  the doctor has the fix: $name"
done
"$agent" --doctor --json --worker-user 61112 >"$tmp/doctor.json"
like "$(item "unwind tables")" '^ok' "doctor: as another user"
chmod 0660 "$tmp/null"
chown 0:61112 "$tmp/null"
"$closed" "$agent" --doctor --json --worker-user 61112 >"$tmp/doctor.json"
like "$(item "unwind tables")" '^ok' "  who may open it"
chown 0:0 "$tmp/null"

# ---- the agent ----

start_server
"$closed" "$agent" --server "$url" --interval 1 --pid $burn --metrics-file "$tmp/metrics" 2>"$tmp/log" & pid=$!
background_pids="$background_pids $pid"
wait_for "the workers of uploads to fail" settled
kill -TERM $pid
wait $pid
is $? 0 "the agent goes on"
like "$(metric_of samples_total)" '^[1-9]' "  the agent samples without workers"
is "$(metric_of 'unwind_tables_missing_total{reason="no_cfi"}')" 0 "files are not counted as without CFI"
like "$(metric_of 'unwind_tables_missing_total{reason="no_worker"}')" '^[1-9]' "  files are counted as without worker"
# Not "no_symbols", which counts the kernel where the host has no file of it, once it is asked for.
is "$(metric_of 'uploads_total{result="failed"}')" 0 "  for uploads, too"
is "$(grep -c "no unwind tables are built, .*: cannot start worker 'unwind': cannot open /dev/null" "$tmp/log")" 1 \
        "the reason is logged once"
is "$(grep -c "no symbols are uploaded: cannot start worker 'inspect': cannot open /dev/null" "$tmp/log")" 1 \
        "  for uploads, too"
done_testing
