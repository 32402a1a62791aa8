# SPDX-License-Identifier: Apache-2.0
# A file, and then a file system, that hangs: the agent continues sampling, and exits when requested.
. tests/e2e/lib.sh
agent=$CAIRN_BUILD/cairn-agent
for tool in cc python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
"$agent" --doctor --sampler bpf >"$tmp/doctor" || skip_all "the agent cannot profile here: $(grep '^fail' "$tmp/doctor" | head -1 | tr -s ' ')"
[ "$(id -u)" -eq 0 ] || skip_all "not root"
[ -w /dev/fuse ] || skip_all "no /dev/fuse"

cat >"$tmp/burn.c" <<'EOC'
#include <sys/mman.h>
#include <unistd.h>
volatile unsigned long sink;
int main(void) { mlockall(MCL_CURRENT); alarm(120); write(1, "burning\n", 8); for (;;) sink++; }
EOC
cc -O1 -o "$tmp/burn" "$tmp/burn.c"
mkdir "$tmp/mnt"
# mount_files: starts the server of the file system at $tmp/mnt.
mount_files() {
        rm -f "$tmp/fuse.log" # of the server before
        python3 tests/e2e/hung-fuse.py "$tmp/burn" "$tmp/mnt" >"$tmp/fuse.log" 2>&1 & server=$!
        background_pids="${background_pids:-} $server"
        wait_for "the mount" grep -qs . "$tmp/fuse.log"
        grep -q mounted "$tmp/fuse.log" || skip_all "$(head -1 "$tmp/fuse.log")"
}
release() { kill -KILL $server 2>/dev/null; umount -l "$tmp/mnt" 2>/dev/null; }
# burn NAME: starts the program; sets $burning.
burn() {
        rm -f "$tmp/burn.log"
        "$tmp/mnt/$1" >"$tmp/burn.log" & burning=$!
        background_pids="$background_pids $burning"
        wait_for "$1 to run" grep -qs burning "$tmp/burn.log"
}
start_agent() {
        rm -f "$tmp/metrics"
        "$agent" --sampler bpf --interval 1 --server http://127.0.0.1:9 --no-upload --metrics-file "$tmp/metrics" 2>"$tmp/log" & pid=$!
        background_pids="$background_pids $pid"
}
value() { sed -n "s/^$1 //p" "$tmp/metrics" 2>/dev/null; }
above() { [ "$(value "$1")" -gt "$2" ] 2>/dev/null; }
opened() { grep -c "opened $1" "$tmp/fuse.log"; }
opened_more() { [ "$(opened "$1")" -gt "$2" ]; }

# ---- one file of a mount ----

mount_files
trap 'release; cleanup' EXIT
burn other
kill -STOP $burning
other=$burning
burn program
kill -USR2 $server
wait_for "the server to stop answering for a file" grep -q "other hung" "$tmp/fuse.log"
execs=$(opened program) # opens caused by one start
start_agent
wait_for "the agent to read a file that answers" opened_more program $((execs + 1))
kill -CONT "$other"
wait_for "the other one to be given up" above cairn_agent_mount_timeouts_total 0
pass "a file that does not answer is given up"
kill -KILL "$other"
before=$(opened program)
burn program
wait_for "the agent to access another file of the mount" opened_more program $((before + execs))
pass "other files of its mount are still accessed"
is "$(value cairn_agent_mount_timeouts_total)" 1 "the agent waited for it once"
kill -KILL $pid
wait $pid 2>/dev/null
release

# ---- a whole mount ----

mount_files
burn program
kill -USR1 $server
wait_for "the server to stop answering" grep -q "^hung" "$tmp/fuse.log"
start_agent
wait_for "the mount to be given up" above cairn_agent_mount_timeouts_total 0
pass "a mount that does not answer is given up"
wait_for "files on it to be skipped" above cairn_agent_mount_files_skipped_total 0
pass "files on it are skipped"
before=$(value cairn_agent_samples_total)
wait_for "more samples" above cairn_agent_samples_total "$before"
pass "sampling goes on"
is "$(value cairn_agent_mount_probes_stuck)" 1 "one hanging process remains"
kill -TERM $pid
# A process with a thread that cannot exit stays a zombie that cannot be reaped.
ends() { ! [ -e /proc/$pid/status ] || { grep -q "^State:.*Z" /proc/$pid/status && grep -q "^Threads:.*1$" /proc/$pid/status; }; }
wait_for "the agent to end" ends
wait $pid 2>/dev/null
pass "the agent ends while the mount does not answer"
release
done_testing
