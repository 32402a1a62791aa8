/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cpu_clocks.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/cpu_list.h"

static enum status start_cpu(struct cpu_clocks *c, int cpu, struct error *err)
{
        struct perf_event_attr attr = {
                .type = PERF_TYPE_SOFTWARE,
                .size = sizeof attr,
                .config = PERF_COUNT_SW_CPU_CLOCK,
                .sample_period = c->period_ns,
        };
        int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
        struct bpf_link *link;

        if (fd < 0 && (errno == ENODEV || errno == ENXIO))
                return ST_OK; /* offline */
        if (fd < 0)
                return error_os(err, errno, "cannot open the clock event of CPU %d", cpu);
        link = bpf_program__attach_perf_event(c->program, fd);
        if (!link) {
                int e = errno;

                close(fd);
                return error_os(err, e, "cannot attach the BPF program to CPU %d", cpu);
        }
        c->items[cpu] = (struct cpu_clock){ .link = link, .event = fd };
        c->running++;
        return ST_OK;
}

static void stop_cpu(struct cpu_clocks *c, int cpu)
{
        if (!c->items[cpu].link)
                return;
        bpf_link__destroy(c->items[cpu].link);
        c->items[cpu] = (struct cpu_clock){ 0 };
        c->running--;
}

enum status cpu_clocks_start(struct cpu_clocks *c, struct bpf_program *program, int possible_cpus, uint64_t period_ns,
                             struct error *err)
{
        enum status st = ST_OK;

        *c = (struct cpu_clocks){ .program = program, .period_ns = period_ns, .count = possible_cpus };
        c->items = calloc((size_t)c->count, sizeof *c->items);
        c->online = calloc((size_t)c->count, sizeof *c->online);
        if (!c->items || !c->online)
                return error_no_memory(err);
        for (int cpu = 0; cpu < c->count && !st; cpu++)
                st = start_cpu(c, cpu, err);
        return st || c->running ? st : error_set(err, ST_OS, "no CPU has a clock event");
}

void cpu_clocks_deinit(struct cpu_clocks *c)
{
        for (int cpu = 0; c->items && cpu < c->count; cpu++)
                stop_cpu(c, cpu);
        free(c->items);
        free(c->online);
        *c = (struct cpu_clocks){ 0 };
}

static bool is_counting(struct cpu_clock *clock)
{
        uint64_t count_ns, before = clock->count_ns;

        if (read(clock->event, &count_ns, sizeof count_ns) != sizeof count_ns)
                return false;
        clock->count_ns = count_ns;
        return count_ns != before;
}

void cpu_clocks_follow(struct cpu_clocks *c)
{
        if (!c->items || cpu_list_online(c->online, (size_t)c->count, NULL))
                return;
        for (int cpu = 0; cpu < c->count; cpu++) {
                /* It may have gone and come back meanwhile. */
                if (!c->online[cpu] || (c->items[cpu].link && !is_counting(&c->items[cpu])))
                        stop_cpu(c, cpu);
                if (c->online[cpu] && !c->items[cpu].link && start_cpu(c, cpu, NULL))
                        continue; /* tried again the next time */
        }
}
