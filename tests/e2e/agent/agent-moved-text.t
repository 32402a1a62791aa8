#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program that moves its code to other memory at the same addresses, as for huge pages: its frames are those of its
# file, with callers.
. tests/e2e/lib.sh
agent=$CAIRN_BUILD/cairn-agent
for tool in cc python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
"$agent" --doctor --sampler bpf >"$tmp/doctor" ||
        skip_all "the agent cannot profile here: $(grep '^error' "$tmp/doctor" | head -1 | tr -s ' ')"

cat >"$tmp/move.c" <<'EOC'
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define PAGE 4096ul
volatile unsigned long sink;
__attribute__((noinline, noclone, aligned(4096), section(".text.moved"))) void hot_moved(void)
{
        for (int i = 0; i < 1000000; i++) sink++;
}
__attribute__((noinline, noclone, section(".text.moved"))) void calls_hot(void) { hot_moved(); sink++; }
/* Copies the page of hot_moved to anonymous memory or a memfd, and maps the copy over the original. */
static void move_page(int to_memfd)
{
        void *from = (void *)((uintptr_t)hot_moved & ~(PAGE - 1)), *copy;
        int fd = to_memfd ? memfd_create("text", 0) : -1;

        if (to_memfd && ftruncate(fd, PAGE)) _exit(1);
        copy = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, to_memfd ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
        if (copy == MAP_FAILED) _exit(1);
        memcpy(copy, from, PAGE);
        if (mprotect(copy, PAGE, PROT_READ | PROT_EXEC)) _exit(1);
        if (mremap(copy, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, from) != from) _exit(1);
}
int main(int argc, char **argv)
{
        move_page(argc > 1 && strcmp(argv[1], "memfd") == 0);
        alarm(120);
        puts("moved");
        fflush(stdout);
        for (;;) calls_hot();
}
EOC
cc -O1 -g -fomit-frame-pointer -Wl,--build-id -no-pie -o "$tmp/fixed" "$tmp/move.c"
cc -O1 -g -fomit-frame-pointer -Wl,--build-id -pie -fPIE -o "$tmp/pie" "$tmp/move.c"

# share SERVICE: per cent of its time in hot_moved with its callers
share() {
        "$cairn" flame --format folded --server "$url" "{service.name=\"$1\"}" |
                awk '{ all += $NF } /main;calls_hot;hot_moved [0-9]+$/ { known += $NF }
                        END { print int(100 * known / all) }'
}
start_server
for program in fixed pie; do
        "$CAIRN_BUILD/cairn-upload" --server "$url" "$tmp/$program" >"$tmp/put" 2>&1 || bail_out "$(cat "$tmp/put")"
        for memory in anonymous memfd; do
                "$tmp/$program" $memory >"$tmp/log" & pid=$!
                background_pids="${background_pids:-} $pid"
                wait_for "the move" grep -q moved "$tmp/log"
                "$agent" --sampler bpf --frequency 99 --duration 2 --pid $pid --service-name "$program-$memory" \
                        --no-upload --server "$url" 2>"$tmp/agent.log" || fail "the agent" "$(cat "$tmp/agent.log")"
                kill $pid
        done
done
stop_server # which writes all samples
start_server
for service in fixed-anonymous fixed-memfd pie-anonymous pie-memfd; do
        known=$(share $service)
        ok "$service: the moved function has its name and callers ($known%)" test "$known" -ge 90
done
done_testing
