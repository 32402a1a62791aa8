# SPDX-License-Identifier: Apache-2.0
# Process labels of samples, and processes that the agent excludes.
. tests/e2e/lib.sh
agent=$CAIRN_BUILD/cairn-agent
for tool in python3 cc readelf; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
"$agent" --doctor --sampler bpf >"$tmp/doctor" ||
        skip_all "the agent cannot profile here: $(grep '^error' "$tmp/doctor" | head -1 | tr -s ' ')"

cat >"$tmp/burn.c" <<'EOC'
#include <unistd.h>
volatile unsigned long sink;
int main(void) { alarm(120); for (;;) sink++; }
EOC
cc -O1 -Wl,--build-id -o "$tmp/wanted" "$tmp/burn.c"
cp "$tmp/wanted" "$tmp/unwanted"
wanted_id=$(readelf -n "$tmp/wanted" | sed -n 's/.*Build ID: //p')
start() { "$1" & pid=$!; background_pids="${background_pids:-} $pid"; }

# profile NAME SECONDS OPTION...: writes the samples to $tmp/NAME.dump, one per line, and the counters to
# $tmp/NAME.metrics.
profile() {
        name=$1 seconds=$2; shift 2
        "$agent" --sampler bpf --frequency 997 --duration "$seconds" --log-level error --output "$tmp/$name.otlp" \
                --metrics-file "$tmp/$name.metrics" "$@" || fail "$name: the agent ends well"
        python3 tests/support/otlp_dump.py "$tmp/$name.otlp" >"$tmp/$name.dump"
}
# label NAME PROGRAM KEY: the values of that label of the program's samples.
label() { grep "process.executable.path=$tmp/$2" "$tmp/$1.dump" | cut -f2 | tr ';' '\n' | sed -n "s/^$3=//p" |
        sort -u; }
counter() { awk -v m="$2" '$1 == m { print $2 }' "$tmp/$1.metrics"; }
programs() { cut -f2 "$tmp/$1.dump" | tr ';' '\n' | sed -n 's/^process.executable.name=//p' | sort -u; }

# ---- excluded processes ----
start "$tmp/wanted"; wanted=$pid
start "$tmp/unwanted"; unwanted=$pid
profile both 1
like "$(programs both)" '^unwanted$' "without patterns no process is excluded"
profile less 2 --exclude-process 'unwan*'
unlike "$(programs less)" '^unwanted$' "a process is left out by its name"
like "$(programs less)" '^wanted$' "another program is not left out"
is "$(counter less cairn_agent_processes_excluded_total)" 1 "it is counted"
excluded=$(counter less cairn_agent_samples_excluded_total)
ok "and so are its ticks ($excluded)" test "$excluded" -ge 10
profile only 1 --only-process wanted --only-process "nobody-$$"
is "$(programs only)" wanted "only the selected ones"

# ---- labels ----
is "$(label both wanted host.name)" "$(hostname)" "host.name is the name of the host"
is "$(label both wanted os.version)" "$(uname -r)" "os.version is the kernel's release"
is "$(label both wanted process.executable.name)" wanted "process.executable.name is the name of the program"
is "$(label both wanted process.pid)" "" "no pid by default"
profile pid 1 --pid "$wanted" --keep-label process.pid --keep-label 'process.executable.*' --label env=test
program="process.executable.build_id.gnu=$wanted_id;process.executable.name=wanted"
program="$program;process.executable.path=$tmp/wanted"
is "$(cut -f2 "$tmp/pid.dump" | sort -u)" \
        "env=test;$program;process.pid=$wanted" \
        "labels that were chosen"
is "$(cut -f2,3 "$tmp/pid.dump" | sort | uniq -d)" "" "samples with equal stacks and labels are merged"
kill "$wanted" "$unwanted"

# ---- a process in a container ----
pod=0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9
container=3f1c2e8a9b7d6054c3f1e2d8a9b7c60543f1c2e8a9b7d6054c3f1e2d8a9b7c60
slice=cairn$$-burstable-pod$(echo $pod | tr - _).slice
for root in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do
        [ -w "$root/cgroup.procs" ] && mkdir "$root/$slice" 2>/dev/null && break
        root=
done
if [ -n "$root" ] && mkdir "$root/$slice/cri-containerd-$container.scope" &&
        sh -c 'echo $$ >"$1/cgroup.procs" && exec sleep 0' sh "$root/$slice/cri-containerd-$container.scope" \
        2>/dev/null; then
        # shellcheck disable=SC2016
        sh -c 'echo $$ >"$1/cgroup.procs" && exec "$2"' sh "$root/$slice/cri-containerd-$container.scope" \
                "$tmp/wanted" &
        pid=$!
        background_pids="$background_pids $pid"
        wait_for "the program" grep -q wanted "/proc/$pid/comm"
        profile pod 1
        profile outside 1 --exclude-cgroup "cri-containerd-*"
        kill "$pid"
        wait "$pid" 2>/dev/null
        rmdir "$root/$slice/cri-containerd-$container.scope" "$root/$slice"
        is "$(label pod wanted container.id)" $container "container.id is the id in the name of the cgroup"
        is "$(label pod wanted k8s.pod.uid)" $pod "k8s.pod.uid is the uid in the name of the cgroup"
        unlike "$(programs outside)" '^wanted$' "a process is left out by its cgroup"
else
        [ -z "$root" ] || rmdir "$root/$slice/cri-containerd-$container.scope" "$root/$slice" 2>/dev/null
        pass "cgroups # SKIP none can be made here"
fi

"$agent" --keep-label pid --duration 1 --output "$tmp/x" 2>"$tmp/err"
is $? 64 "a pattern that matches no key is a usage error"
done_testing
