# SPDX-License-Identifier: Apache-2.0
# A file, and then a file system, that hangs: the agent continues sampling, and exits when requested.
. tests/e2e/lib.sh
agent=$CAIRN_BUILD/cairn-agent
for tool in cc python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
"$agent" --doctor --sampler bpf >"$tmp/doctor" ||
        skip_all "the agent cannot profile here: $(grep '^error' "$tmp/doctor" | head -1 | tr -s ' ')"
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
# mount_files [PROGRAM [DEBUG-FILE]]: starts the server of the file system at $tmp/mnt.
mount_files() {
        rm -f "$tmp/fuse.log" # of the server before
        python3 tests/e2e/agent/hung-fuse.py "$tmp/${1:-burn}" "$tmp/mnt" ${2:+"$tmp/$2"} >"$tmp/fuse.log" \
                2>&1 & server=$!
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
# start_agent [OPTION...]
start_agent() {
        rm -f "$tmp/metrics"
        [ $# -gt 0 ] || set -- --server http://127.0.0.1:9 --no-upload
        "$agent" --sampler bpf --interval 1 --metrics-file "$tmp/metrics" "$@" 2>"$tmp/log" & pid=$!
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
ends() { ! [ -e /proc/$pid/status ] || { grep -q "^State:.*Z" /proc/$pid/status &&
        grep -q "^Threads:.*1$" /proc/$pid/status; }; }
wait_for "the agent to end" ends
wait $pid 2>/dev/null
pass "the agent ends while the mount does not answer"
release

# ---- debug files of uploads ----

# stripped NAME: a program whose DWARF is in program.debug, found by its name beside it
stripped() {
        sed "s/sink/sink_of_$1/" "$tmp/burn.c" >"$tmp/$1.c"
        cc -O1 -g -Wl,--build-id -o "$tmp/$1" "$tmp/$1.c"
        mkdir -p "$tmp/debug-of-$1"
        objcopy --only-keep-debug "$tmp/$1" "$tmp/debug-of-$1/program.debug"
        objcopy --strip-all --add-gnu-debuglink="$tmp/debug-of-$1/program.debug" "$tmp/$1"
}
uploaded() { curl -sS -f -o "$tmp/fetched" "$url/buildid/$1/debuginfo"; }
start_server
stripped remote
mount_files remote debug-of-remote/program.debug
burn program
start_agent --server "$url"
wait_for "the upload from the mount" uploaded "$(build_id_of "$tmp/remote")"
like "$(readelf -SW "$tmp/fetched")" '\.debug_info' "a debug file on a mount with a server is uploaded"
kill -TERM $pid
wait $pid
release

stripped silent
cc -O1 -g -Wl,--build-id -o "$tmp/local" -x c - <<'EOC'
#include <unistd.h>
volatile unsigned long sink;
int main(void) { alarm(120); for (;;) sink++; }
EOC
mount_files silent debug-of-silent/program.debug
burn program
kill -HUP $server
wait_for "lookups to be left unanswered" grep -q "lookups hung" "$tmp/fuse.log"
start_agent --server "$url"
wait_for "the lookup of the debug file" grep -q "waits for the debug file" "$tmp/fuse.log"
"$tmp/local" & background_pids="$background_pids $!"
wait_for "another upload" uploaded "$(build_id_of "$tmp/local")"
pass "a debug file whose mount does not answer stops no other upload"
like "$(cat "$tmp/log")" "'.*/mnt/program.debug' does not respond, so it is not searched for symbols" \
        "the debug file that does not respond is logged"
ok "its program is not settled" sh -c "! curl -sS -f '$url/buildid/$(build_id_of "$tmp/silent")/debuginfo'"
kill -TERM $pid
wait $pid
is $? 0 "the agent ends meanwhile, at once"
release

# ---- the state of a container engine ----

# A monitor whose root directory is $tmp/engine, and a container with a program in a cgroup of its own.
id=3f1c2e8a9b7d6054c3f1e2d8a9b7c60543f1c2e8a9b7d6054c3f1e2d8a9b7c60
for cgroups in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do
        [ -w "$cgroups/cgroup.procs" ] && mkdir "$cgroups/docker-$id.scope" 2>/dev/null && break
        cgroups=
done
[ -n "$cgroups" ] || { pass "cgroups # SKIP none can be made here"; done_testing; }
cc -O1 -o "$tmp/monitor" -x c - <<'EOC'
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
volatile unsigned long sink;
int main(int argc, char **argv)
{
        char pid[16];
        int fd = open(argv[2], O_WRONLY);

        (void)argc;
        alarm(120);
        if (fd < 0 || chroot(argv[1]) < 0)
                return 1;
        if (fork())
                for (;;)
                        pause();
        alarm(120);
        if (write(fd, pid, (size_t)sprintf(pid, "%d", getpid())) < 0)
                return 1;
        write(1, "burning\n", 8);
        for (;;)
                sink++;
}
EOC
# start_container: sets $monitor.
start_container() {
        rm -f "$tmp/burn.log"
        "$tmp/monitor" "$tmp/engine" "$cgroups/docker-$id.scope/cgroup.procs" >"$tmp/burn.log" & monitor=$!
        background_pids="$background_pids $monitor"
        wait_for "the container" grep -qs burning "$tmp/burn.log"
}
end_container() {
        xargs -r kill -KILL <"$cgroups/docker-$id.scope/cgroup.procs"
        kill -KILL "$monitor"
        wait "$monitor" 2>/dev/null
}
leave() {
        end_container
        umount -l "$tmp/engine/etc/docker" 2>/dev/null
        release
        rmdir "$cgroups/docker-$id.scope"
}
mkdir -p "$tmp/engine/etc/docker" "$tmp/engine/var/lib/docker/containers/$id"
printf '%s\n' '{"Config":{"Image":"stones:1"},"Name":"/inner"}' \
        >"$tmp/engine/var/lib/docker/containers/$id/config.v2.json"
trap 'leave; cleanup' EXIT
start_container
"$agent" --sampler bpf --duration 1 --frequency 100 --output "$tmp/inner.otlp" 2>"$tmp/log"
like "$(python3 tests/support/otlp_dump.py "$tmp/inner.otlp")" 'container.name=inner' \
        "the name of a container comes from the root directory of its monitor"
end_container
mount_files
mount --bind "$tmp/mnt" "$tmp/engine/etc/docker"
kill -USR1 $server
wait_for "the engine's files to stop answering" grep -q "^hung" "$tmp/fuse.log"
start_agent
wait_for "a sample" above cairn_agent_samples_total 0
start_container
wait_for "the engine's file to be given up" above cairn_agent_mount_timeouts_total 0
before=$(value cairn_agent_samples_total)
wait_for "more samples of the host" above cairn_agent_samples_total "$before"
pass "sampling goes on while the files of a container engine do not answer"
kill -KILL $pid
wait $pid 2>/dev/null
done_testing
