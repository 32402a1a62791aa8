#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The contexts that OpenTelemetry SDKs publish for processes and threads, of programs that follow the specifications and
# in which each thread has a known trace: for each way to link a thread-local variable, with glibc and musl.
. tests/e2e/lib.sh
. tests/e2e/agent/profile-program.sh

agent=${CAIRN_BUILD:-$PWD/build}/cairn-agent
[ "$(uname -m)" = x86_64 ] || skip_all "contexts of threads are read on x86-64"
for tool in cc python3 mkfifo jq; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
"$agent" --sampler bpf --doctor >"$tmp/doctor" 2>&1 ||
        skip_all "the agent cannot profile here: $(grep '^fail' "$tmp/doctor" | head -1 | tr -s ' ')"

source=tests/e2e/agent/agent-context.c library=tests/e2e/agent/context-library.c
mkfifo "$tmp/input"
exec 7<>"$tmp/input"

start_program() {
        : >"$tmp/started"
        "$@" <"$tmp/input" >"$tmp/started" 2>"$tmp/program.log" &
        program=$!
        background_pids=$program
        wait_for "the program" test -s "$tmp/started"
}

# of THREAD: CPU time in ms of its samples with the right context, with none, and with another one.
of() {
        python3 - "$tmp/named.dump" "$1" <<'PYTHON'
import sys
path, thread = sys.argv[1:]
times = {"right": 0, "none": 0, "wrong": 0}
number = int(thread.split("-")[1]) if thread.startswith("work-") else None
want = number is not None and {"trace_id": f"{number + 1:02x}" * 16, "span_id": f"{number + 1:02x}" * 8,
                               "http.route": f"/{number}"}
for line in open(path):
    value, labels, _ = line.split("\t")
    labels = dict(label.split("=", 1) for label in labels.split(";") if "=" in label)
    if labels.get("thread.name") != thread:
        continue
    got = {key: labels[key] for key in ("trace_id", "span_id", "http.route") if key in labels}
    times["none" if not got else "right" if got == want else "wrong"] += int(value) // 1000000
print(*times.values())
PYTHON
}

# check_context WHAT PROGRAM ARGUMENT...
check_context() {
        what=$1
        shift
        start_program "$@"
        work_s=12 # of six threads: many times what passes before the agent knows the process
        profile named
        work_s=3
        for thread in work-0 work-1 work-2 work-3; do
                # shellcheck disable=SC2046
                set -- $(of $thread)
                is "$3" 0 "$what: no sample of $thread has the context of another thread"
                ok "  and all have one, those before the process was known aside" \
                        test $(($1 + $2)) -gt 0 -a "$1" -ge $((4 * $2))
        done
        for thread in no-context invalid; do
                # shellcheck disable=SC2046
                set -- $(of $thread)
                is "$1 $3" "0 0" "  samples of thread $thread have none"
        done
        like "$(cat "$tmp/named.dump")" 'service.name=checkout' "  the resource of the process is in the labels"
        unlike "$(cat "$tmp/named.dump")" 'not-this-host' "  it does not replace what the agent knows"
        is "$(count 'cairn_agent_context_processes_total{of="threads"}')" 1 "  the process is counted"
        kill "$program"
}

cc -O1 -rdynamic -o "$tmp/program" $source $library -lpthread || bail_out "cannot build"
check_context "variable of the program" "$tmp/program" memfd
for dialect in gnu gnu2; do
        cc -O1 -fPIC -shared -mtls-dialect=$dialect -o "$tmp/lib$dialect.so" $library || bail_out "cannot build"
        cc -O1 -o "$tmp/linked" $source "$tmp/lib$dialect.so" -lpthread || bail_out "cannot build"
        check_context "variable of a library, dialect $dialect" "$tmp/linked" memfd
        cc -O1 -DOPENS_LIBRARY -o "$tmp/opens" $source -ldl -lpthread || bail_out "cannot build"
        check_context "variable of a library that is opened, dialect $dialect" "$tmp/opens" memfd "$tmp/lib$dialect.so"
done
cc -O1 -fPIC -shared -ftls-model=initial-exec -o "$tmp/libinitial.so" $library || bail_out "cannot build"
check_context "variable of a library, initial-exec" "$tmp/opens" memfd "$tmp/libinitial.so"
if command -v musl-gcc >/dev/null; then
        musl-gcc -O1 -static -o "$tmp/fixed" $source $library || bail_out "cannot build"
        check_context "musl, linked statically" "$tmp/fixed" memfd
        musl-gcc -O1 -DOPENS_LIBRARY -o "$tmp/opens" $source || bail_out "cannot build"
        for dialect in gnu gnu2; do
                musl-gcc -O1 -fPIC -shared -mtls-dialect=$dialect -o "$tmp/lib$dialect.so" $library ||
                        bail_out "cannot build"
                check_context "musl, library that is opened, dialect $dialect" "$tmp/opens" memfd \
                        "$tmp/lib$dialect.so"
        done
else
        ok "musl-gcc is not installed" true # SKIP
fi

# ---- a name that is published later, switches ----

start_program "$tmp/program" memfd
profile before
unlike "$(cat "$tmp/before.dump")" 'tenant.name' "an attribute whose name is not published is left out"
printf n >&7
profile after
like "$(cat "$tmp/after.dump")" 'tenant.name=shop' "its name is read when it is published"
profile none --no-request-context
unlike "$(cat "$tmp/none.dump")" 'trace_id|service.name=checkout' "--no-request-context leaves both contexts out"
profile dropped --drop-label 'service.*' --label tenant=mine
unlike "$(cat "$tmp/dropped.dump")" 'service.instance.id' "--drop-label holds for labels of contexts"
"$agent" --doctor >"$tmp/doctor"
like "$(cat "$tmp/doctor")" \
        '[1-9][0-9]* process(es)? publish(es)? an OpenTelemetry context, [1-9][0-9]* contexts? of (a thread|threads)' \
        "--doctor counts both"
kill "$program"

start_program "$tmp/program" none
profile named
unlike "$(cat "$tmp/named.dump")" 'trace_id' "contexts of threads are not read without that of the process"
kill "$program"

# ---- hostile processes ----

cat >"$tmp/hostile.c" <<'C'
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct header {
        char signature[8];
        uint32_t version, size;
        volatile uint64_t published_ns;
        uint64_t payload;
};
__thread void *otel_thread_ctx_v1;

int main(int argc, char **argv)
{
        int fd = memfd_create("OTEL_CTX", 0);
        struct header *h;

        if (argc < 2 || fd < 0 || ftruncate(fd, 4096))
                return 1;
        h = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        memcpy(h->signature, "OTEL_CTX", 8);
        h->version = argv[1][0] == 'v' ? 7 : 2;
        h->size = argv[1][0] == 's' ? UINT32_MAX : 100;
        h->payload = argv[1][0] == 'p' ? UINT64_MAX - 50 : (uintptr_t)h;
        h->published_ns = 1;
        otel_thread_ctx_v1 = (void *)(argv[1][0] == 'p' ? UINTPTR_MAX - 7 : (uintptr_t)&fd);
        puts("started");
        fflush(stdout);
        for (;;)
                if (argv[1][0] == 'c')
                        h->published_ns++;
}
C
cc -O1 -rdynamic -o "$tmp/hostile" "$tmp/hostile.c" || bail_out "cannot build"
for kind in version size pointer changing; do
        start_program "$tmp/hostile" $kind
        profile hostile
        like "$(cat "$tmp/hostile.dump")" 'service.name=hostile' "a process with a bad context ($kind) is sampled"
        unlike "$(cat "$tmp/hostile.dump")" 'trace_id' "  without a trace"
        case $kind in version) reason=version ;; *) reason=memory ;; esac
        [ $kind = changing ] || is "$(count "cairn_agent_contexts_refused_total{reason=\"$reason\"}")" 1 \
                "  it is counted with the reason"
        kill "$program"
done

# ---- through the service ----

start_server
start_program "$tmp/program" memfd
"$agent" --sampler bpf --frequency 199 --interval 1 --pid "$program" --no-upload --server "$url" 2>"$tmp/agent.log" &
agent_pid=$!
background_pids="$program $agent_pid"
trace=02020202020202020202020202020202
found() { "$cairn" query --server "$url" --values thread.name "{trace_id=\"$trace\"}" 2>/dev/null | grep -q .; }
wait_for "samples of the trace" found
names=$("$cairn" query --server "$url" --values thread.name "{trace_id=\"$trace\"}" | awk '{ print $1 }')
is "$(echo "$names" | grep -v '^value' | sort -u | paste -sd,)" \
        work-1 "a selector finds the samples of a trace, and no others"
is "$("$cairn" query --server "$url" --spans --json "{trace_id=\"$trace\"}" | jq -r '.rows[0].labels.span_id')" \
        0202020202020202 "the list of spans has its span"
routes=$("$cairn" query --server "$url" --values http.route "{service.name=\"checkout\", trace_id=\"$trace\"}")
is "$(echo "$routes" | awk '{ print $1 }' | grep '^/')" \
        /1 "its attributes are labels"
kill -TERM "$agent_pid"
wait "$agent_pid"
kill "$program"
stop_server
done_testing
