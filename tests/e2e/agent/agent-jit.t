# SPDX-License-Identifier: Apache-2.0
# Code without a file: its names reach the service from a perf map, also of a process in other pid and mount namespaces,
# and from a jitdump, with lines; also of a real runtime.
. tests/e2e/lib.sh
agent=$CAIRN_BUILD/cairn-agent
for tool in python3 cc jq; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
[ "$(uname -m)" = x86_64 ] || skip_all "the machine code is of x86-64"
"$agent" --doctor --sampler bpf >"$tmp/doctor" ||
        skip_all "the agent cannot profile here: $(grep '^error' "$tmp/doctor" | head -1 | tr -s ' ')"

# Two functions generated at run time, each in a page of its own; the second calls the first. Their names are written to
# a perf map or a jitdump, and then a file NAME.ready is created.
cat >"$tmp/jit.c" <<'EOC'
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
/* push %rbp; mov %rsp,%rbp; mov $0x100000,%ecx; 1: dec %ecx; jnz 1b; pop %rbp; ret */
static const unsigned char inner[] = { 0x55, 0x48, 0x89, 0xe5, 0xb9, 0, 0, 0x10, 0, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3 };
/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
static const unsigned char outer[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
static unsigned char *code;

static void put(FILE *f, const void *p, size_t n) { fwrite(p, 1, n, f); }
static void u32(FILE *f, uint32_t v) { put(f, &v, sizeof v); }
static void u64(FILE *f, uint64_t v) { put(f, &v, sizeof v); }
static void load(FILE *f, const unsigned char *at, size_t n, uint64_t index, const char *name)
{
        u32(f, 0); u32(f, (uint32_t)(56 + strlen(name) + 1 + n)); u64(f, 0);
        u32(f, (uint32_t)getpid()); u32(f, (uint32_t)getpid());
        u64(f, (uintptr_t)at); u64(f, (uintptr_t)at); u64(f, n); u64(f, index);
        put(f, name, strlen(name) + 1); put(f, at, n);
}
static FILE *jitdump(void)
{
        char name[64];
        FILE *f;
        snprintf(name, sizeof name, "jit-%d.dump", getpid());
        f = fopen(name, "w+");
        u32(f, 0x4a695444); u32(f, 1); u32(f, 40); u32(f, 62); u32(f, 0);
        u32(f, (uint32_t)getpid()); u64(f, 0); u64(f, 0);
        fflush(f);
        mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(f), 0);
        return f;
}
int main(int argc, char **argv)
{
        char name[64];
        int dump = argc > 1 && strcmp(argv[1], "dump") == 0;
        FILE *f;
        code = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memcpy(code, inner, sizeof inner);
        memcpy(code + 4096, outer, sizeof outer);
        snprintf(name, sizeof name, "/tmp/perf-%d.map", getpid());
        f = dump ? jitdump() : fopen(name, "w");
        if (dump) {
                u32(f, 2); u32(f, 16 + 16 + 16 + 9); u64(f, 0);
                u64(f, (uintptr_t)code); u64(f, 1); u64(f, (uintptr_t)code); u32(f, 42); u32(f, 0); put(f, "made.jit", 9);
                load(f, code, sizeof inner, 1, "jit_inner");
                load(f, code + 4096, sizeof outer, 2, "jit_outer");
        } else {
                fprintf(f, "%lx 1000 jit_inner\n%lx 1000 jit_outer\n", (long)code, (long)code + 4096);
        }
        fflush(f);
        snprintf(name, sizeof name, "%s.ready", argv[0]);
        fclose(fopen(name, "w"));
        alarm(60);
        for (;;) ((void (*)(void *))(code + 4096))(code);
}
EOC
cc -O1 -g -fno-omit-frame-pointer -o "$tmp/jit" "$tmp/jit.c" 2>"$tmp/cc.log" || skip_all "the program does not compile"
cairn=$CAIRN_BUILD/cairn
start_server

# functions NAME: the functions of program NAME that the agent has sent to the service.
functions() { "$cairn" top --server "$url" --json "{process.executable.name=\"$1\"}" | jq -r '.[].function' | sort -u; }
# run NAME COMMAND...: runs the program under that name until the service has samples of it.
run() {
        name=$1; shift
        cp "$tmp/jit" "$tmp/$name"
        (cd "$tmp" && exec "$@") &
        pid=$!
        background_pids="${background_pids:-} $pid"
        wait_for "$name" test -e "$tmp/$name.ready"
        "$agent" --sampler bpf --server "$url" --frequency 499 --duration 2 --interval 1 --only-process "$name" \
                --log-level error ||
                fail "$name: the agent ends well"
        kill -9 $pid
        wait $pid 2>/dev/null
        rm -f "/tmp/perf-$pid.map"
}

run jit-map ./jit-map map
like "$(functions jit-map)" '^jit_inner$' "a perf map names the leaf"
like "$(functions jit-map)" '^jit_outer$' "a perf map names the caller"

run jit-dump ./jit-dump dump
like "$(functions jit-dump)" '^jit_inner$' "a jitdump names the leaf"
like "$(functions jit-dump)" '^jit_outer$' "a jitdump names the caller"
like "$("$cairn" top --server "$url" --json '{process.executable.name="jit-dump"}' |
        jq -r '.[] | select(.function == "jit_inner").file')" \
        'made\.jit' "a jitdump has the file of the leaf's lines"

if unshare --pid --fork --kill-child --mount true 2>/dev/null; then
        mkdir "$tmp/private"
        # shellcheck disable=SC2016
        run jit-inside unshare --pid --fork --kill-child --mount sh \
                -c 'mount --bind private /tmp && exec ./jit-inside map'
        like "$(functions jit-inside)" '^jit_inner$' "the perf map of a process in namespaces of its own is found"
        is "$(ls "$tmp/private")" "perf-1.map" "by its pid in the namespace, in its own /tmp"
else
        pass "namespaces # SKIP not allowed here"
fi

# ---- code of the kernel in a process ----
cat >"$tmp/clock.c" <<'EOC'
#include <time.h>
#include <unistd.h>
int main(void) { struct timespec t; alarm(60); for (;;) clock_gettime(CLOCK_MONOTONIC, &t); }
EOC
cc -O1 -o "$tmp/clock" "$tmp/clock.c"
"$tmp/clock" & pid=$!
background_pids="$background_pids $pid"
"$agent" --sampler bpf --server "$url" --frequency 499 --duration 2 --interval 1 --pid $pid --log-level error
kill -9 $pid
clock_in_vdso=$(functions clock)
case $clock_in_vdso in
*__vdso_clock_gettime* | *__kernel_clock_gettime*) pass "functions of the vDSO have their names" ;;
*) case $(cat /sys/devices/system/clocksource/clocksource0/current_clocksource) in
        tsc | kvm-clock | arch_sys_counter) fail "functions of the vDSO have their names" "$clock_in_vdso" ;;
        *) pass "vDSO # SKIP this clock needs a system call" ;;
        esac ;;
esac

if command -v node >/dev/null; then
        cat >"$tmp/hot.js" <<'EOC'
function innermostLoop(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i) * (i % 7); return s; }
let x = 0;
const end = Date.now() + 60000;
while (Date.now() < end) x += innermostLoop(20000);
EOC
        (cd "$tmp" && exec node --perf-basic-prof hot.js) & node=$!
        background_pids="${background_pids:-} $node"
        wait_for "node's perf map" grep -qs 'hot\.js' "/tmp/perf-$node.map"
        "$agent" --sampler bpf --server "$url" --frequency 499 --duration 2 --interval 1 --pid $node --log-level error
        kill -9 $node
        rm -f "/tmp/perf-$node.map"
        like "$(functions node)" 'hot\.js:' "node --perf-basic-prof: a hot function has its name"
else
        pass "node # SKIP node is not installed"
fi
done_testing
