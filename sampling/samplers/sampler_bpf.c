/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's half is bpf/sample.bpf.c; this file loads it, attaches it to a clock event of each CPU, and to the
 * tracepoints of switches if waits are sampled (bpf/off_cpu.h) or latency is measured (bpf/latency.h), and reads its
 * three ring buffers. They are consumed in the order in which they were added: notices of processes, copies of stacks
 * to be unwound in user space, samples. Samples are counted in sample_counts; records are checked for size before use.
 *
 * A drain consumes the buffers, waits for a grace period by replacing the entry of the map `fence`, and takes the
 * counts; it also attaches the program to CPUs that came online. Counters of the kernel are per CPU, and are added to
 * those counted here when they are read.
 *
 * Order: clock events, records, sizes and loading, start and stop, draining. No locks: one thread.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/sample.skel.h"
#include "common/error.h"
#include "common/limits.h"
#include "sampling/samplers/cpu_interrupt.h"
#include "sampling/samplers/cpu_list.h"
#include "sampling/samplers/sample_counts.h"
#include "sampling/samplers/sampler_internal.h"
#include "sampling/samplers/tracepoint_check.h"
#include "sampling/unwinding/unwind_maps.h"

/* ---- one clock event with the BPF program per online CPU ---- */

struct cpu_clock {
        struct bpf_link *link; /* NULL: not running */
        int event;             /* of the link; borrowed */
        uint64_t count_ns;     /* the event's count when it was last read */
        struct cpu_interrupt interrupt;
};

/* A clock event ends when its CPU goes offline, and does not resume when the CPU comes back. */
struct cpu_clocks {
        struct bpf_program *program; /* borrowed */
        int interrupts_fd;           /* map of an event of each CPU that interrupts it; -1: not needed */
        uint64_t period_ns;
        struct cpu_clock *items; /* one for each possible CPU; owned */
        bool *online;            /* one for each possible CPU; owned; scratch */
        int count;
        unsigned running;
};

static enum status start_cpu_clock(struct cpu_clocks *c, int cpu, struct error *err)
{
        struct perf_event_attr attr = {
                .type = PERF_TYPE_SOFTWARE,
                .size = sizeof attr,
                .config = PERF_COUNT_SW_CPU_CLOCK,
                .sample_period = c->period_ns,
        };
        int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
        struct bpf_link *link;
        enum status st = ST_OK;

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
        c->items[cpu] = (struct cpu_clock){ .link = link, .event = fd, .interrupt.event = -1 };
        c->running++;
        if (c->interrupts_fd >= 0)
                st = cpu_interrupt_open(cpu, c->interrupts_fd, &c->items[cpu].interrupt, err);
        return st == ST_NOT_FOUND ? ST_OK : st;
}

static void stop_cpu_clock(struct cpu_clocks *c, int cpu)
{
        if (!c->items[cpu].link)
                return;
        bpf_link__destroy(c->items[cpu].link);
        cpu_interrupt_close(&c->items[cpu].interrupt);
        c->items[cpu] = (struct cpu_clock){ 0 };
        c->running--;
}

/* c: deinit_cpu_clocks() also on failure. */
static enum status start_cpu_clocks(struct cpu_clocks *c, struct bpf_program *program, int interrupts_fd,
                                    int possible_cpus, uint64_t period_ns, struct error *err)
{
        enum status st = ST_OK;

        *c = (struct cpu_clocks){
                .program = program, .interrupts_fd = interrupts_fd, .period_ns = period_ns, .count = possible_cpus
        };
        c->items = calloc((size_t)c->count, sizeof *c->items);
        c->online = calloc((size_t)c->count, sizeof *c->online);
        if (!c->items || !c->online)
                return error_no_memory(err);
        for (int cpu = 0; cpu < c->count && !st; cpu++)
                st = start_cpu_clock(c, cpu, err);
        return st || c->running ? st : error_set(err, ST_OS, "no CPU has a clock event");
}

static void deinit_cpu_clocks(struct cpu_clocks *c)
{
        for (int cpu = 0; c->items && cpu < c->count; cpu++)
                stop_cpu_clock(c, cpu);
        free(c->items);
        free(c->online);
        *c = (struct cpu_clocks){ 0 };
}

static bool is_clock_counting(struct cpu_clock *clock)
{
        uint64_t count_ns, before = clock->count_ns;

        if (read(clock->event, &count_ns, sizeof count_ns) != sizeof count_ns)
                return false;
        clock->count_ns = count_ns;
        return count_ns != before;
}

/* Start clocks on CPUs that came online, drop those of CPUs that went offline. */
static void update_cpu_clocks(struct cpu_clocks *c)
{
        if (!c->items || cpu_list_online(c->online, (size_t)c->count, NULL))
                return;
        for (int cpu = 0; cpu < c->count; cpu++) {
                /* The CPU may have gone offline and online between two updates. */
                if (!c->online[cpu] || (c->items[cpu].link && !is_clock_counting(&c->items[cpu])))
                        stop_cpu_clock(c, cpu);
                if (c->online[cpu] && !c->items[cpu].link && start_cpu_clock(c, cpu, NULL))
                        continue; /* retried next time */
        }
}

#define OFF_CPU_PROGRAMS 2

struct bpf_sampler {
        struct sampler base;
        struct sample_bpf *bpf;
        struct cpu_clocks clocks;
        struct bpf_link *forks;                   /* tracepoint of forks; NULL unless children are sampled */
        struct bpf_link *waits[OFF_CPU_PROGRAMS]; /* NULL unless waits are sampled */
        struct bpf_link *switches;                /* tracepoint; NULL unless latency is measured */
        int cpu_count;                            /* possible CPUs */
        int fence_fd;                             /* inner map for the fence */
        struct ring_buffer *rings;
        struct unwind_map_fds unwind;
        struct sample_counts counts;
        struct sample_frames kernel_stack, user_stack, context; /* scratch */
        uint64_t stats[STAT_COUNT];                             /* counted in user space */
};

static int discard_libbpf_message(enum libbpf_print_level level, const char *fmt, va_list args)
{
        (void)level;
        (void)fmt;
        (void)args;
        return 0;
}

static int handle_notice_record(void *ctx, void *data, size_t size)
{
        struct bpf_sampler *s = ctx;

        if (size >= sizeof(struct sample_notice) && s->base.on_process)
                s->base.on_process(s->base.ctx, data);
        return 0;
}

static void copy_frames(struct sample_frames *walk, const __u64 *frames, uint32_t count, uint32_t end)
{
        walk->frame_count = count;
        walk->end = end;
        memcpy(walk->frames, frames, count * sizeof *frames);
}

static int handle_sample_record(void *ctx, void *data, size_t size)
{
        struct bpf_sampler *s = ctx;
        const struct sample_record *r = data;
        struct sample_count counts[SAMPLE_COUNTS_MAX];
        enum sample_stat result = STAT_SAMPLES;
        struct sample_key key;

        if (size < offsetof(struct sample_record, frames) || r->kernel_count > SAMPLE_KERNEL_STACK_MAX ||
            r->user_count > SAMPLE_STACK_MAX || r->context_count > CONTEXT_WORDS_MAX ||
            size - offsetof(struct sample_record, frames) <
                    (r->kernel_count + r->user_count + r->context_count) * sizeof *r->frames)
                return 0;
        copy_frames(&s->kernel_stack, r->frames, r->kernel_count, SAMPLE_END_UNKNOWN);
        copy_frames(&s->user_stack, r->frames + r->kernel_count, r->user_count, r->user_end);
        copy_frames(&s->context, r->frames + r->kernel_count + r->user_count, r->context_count, SAMPLE_END_UNKNOWN);
        key = r->key;
        if (!sample_counts_add_stack(&s->counts, &s->context, &key.context)) {
                s->stats[STAT_LOST_STACKS_FULL]++;
                return 0;
        }
        for (unsigned i = 0, n = sample_split(&key, &r->weight, counts); i < n; i++) {
                result = sample_counts_add(&s->counts, &counts[i], &s->kernel_stack, &s->user_stack);
                if (result != STAT_SAMPLES)
                        break;
        }
        s->stats[result]++;
        if (result != STAT_SAMPLES)
                return 0;
        s->stats[STAT_TRUNCATED] += r->kernel_count == SAMPLE_KERNEL_STACK_MAX || r->user_end == SAMPLE_END_TOO_DEEP;
        if (r->user_count && r->user_end < SAMPLE_END_COUNT)
                s->stats[STAT_ENDS + r->user_end]++;
        return 0;
}

static int handle_deferred_record(void *ctx, void *data, size_t size)
{
        struct bpf_sampler *s = ctx;
        const struct deferred_sample_record *r = data;
        struct sample_key key;

        if (size < offsetof(struct deferred_sample_record, copy.stack) || r->kernel_count > SAMPLE_KERNEL_STACK_MAX ||
            r->context_count > CONTEXT_WORDS_MAX ||
            r->copy.stack_bytes > size - offsetof(struct deferred_sample_record, copy.stack) || !s->base.on_deferred)
                return 0;
        key = r->key;
        copy_frames(&s->kernel_stack, r->kernel, r->kernel_count, SAMPLE_END_UNKNOWN);
        copy_frames(&s->context, r->context, r->context_count, SAMPLE_END_UNKNOWN);
        if (!sample_counts_add_stack(&s->counts, &s->kernel_stack, &key.kernel_stack) ||
            !sample_counts_add_stack(&s->counts, &s->context, &key.context)) {
                s->stats[STAT_LOST_STACKS_FULL]++;
                return 0;
        }
        s->stats[STAT_TRUNCATED] += r->kernel_count == SAMPLE_KERNEL_STACK_MAX;
        s->stats[STAT_DEFERRED]++;
        s->stats[STAT_SAMPLES]++;
        s->base.on_deferred(s->base.ctx, &key, &r->weight, &r->copy);
        return 0;
}

#define SAMPLE_BYTES 512 /* typical size of a sample */
#define SAMPLES_BYTES_MIN (512 * 1024)

#define OFF_CPU_RATE_MIN 50

/* Samples of waits per second and CPU, from which on each stands for a longer time. */
static uint32_t get_off_cpu_rate(const struct sampler_options *o)
{
        return o->frequency_hz > OFF_CPU_RATE_MIN ? (uint32_t)o->frequency_hz : OFF_CPU_RATE_MIN;
}

/* Room for the samples of an interval, so that the agent wakes up once per interval. */
static uint32_t get_ring_bytes(const struct sampler_options *o, int cpus)
{
        uint64_t rate = o->frequency_hz + (o->off_cpu_ns ? get_off_cpu_rate(o) : 0);
        uint64_t wanted = (rate + 1) * (o->interval_s + 1) * (uint64_t)cpus * SAMPLE_BYTES, bytes = SAMPLES_BYTES_MIN;

        while (bytes < wanted && bytes < LIMIT_AGENT_SAMPLES_BYTES)
                bytes *= 2;
        return (uint32_t)bytes;
}

/* Exited processes are not removed from the map, so with children it is an LRU map. */
static enum status size_pid_map(struct bpf_sampler *s, const struct sampler_options *o, struct error *err)
{
        bool children = o->tgid_count && o->children;
        struct bpf_map *tgids = s->bpf->maps.sampled_tgids;
        int e = bpf_program__set_autoload(s->bpf->progs.follow_fork, children);

        if (!e && children)
                e = bpf_map__set_type(tgids, BPF_MAP_TYPE_LRU_HASH);
        if (!e && o->tgid_count)
                e = bpf_map__set_max_entries(tgids, children ? LIMIT_AGENT_SAMPLED_PROCESSES : (uint32_t)o->tgid_count);
        return e < 0 ? error_os(err, -e, "cannot size the map of process ids") : ST_OK;
}

static void get_off_cpu_programs(const struct bpf_sampler *s, struct bpf_program *ret[static OFF_CPU_PROGRAMS])
{
        ret[0] = s->bpf->progs.sample_wait;
        ret[1] = s->bpf->progs.measure_wait; /* attached last: what it relies on exists */
}

static enum status select_off_cpu(struct bpf_sampler *s, const struct sampler_options *o, struct error *err)
{
        struct bpf_program *programs[OFF_CPU_PROGRAMS];
        int e = 0;

        get_off_cpu_programs(s, programs);
        for (size_t i = 0; i < OFF_CPU_PROGRAMS && !e; i++)
                e = bpf_program__set_autoload(programs[i], o->off_cpu_ns > 0);
        if (!e && !o->off_cpu_ns)
                e = bpf_map__set_max_entries(s->bpf->maps.waiting, 1);
        if (!e)
                e = bpf_map__set_max_entries(s->bpf->maps.off_cpu_interrupts, (uint32_t)s->cpu_count);
        s->bpf->rodata->off_cpu_stretch_ns = o->off_cpu_ns;
        s->bpf->rodata->off_cpu_samples_max = get_off_cpu_rate(o);
        return e ? error_os(err, -e, "cannot size the maps of off-CPU samples") : ST_OK;
}

static enum status attach_off_cpu(struct bpf_sampler *s, struct error *err)
{
        struct bpf_program *programs[OFF_CPU_PROGRAMS];

        get_off_cpu_programs(s, programs);
        for (size_t i = 0; i < OFF_CPU_PROGRAMS; i++) {
                s->waits[i] = bpf_program__attach(programs[i]);
                if (!s->waits[i])
                        return error_os(err, errno, "cannot attach to the tracepoint %s",
                                        bpf_program__section_name(programs[i]));
        }
        bpf_link__destroy(s->switches); /* the program on waits notes switches, too */
        s->switches = NULL;
        return ST_OK;
}

static enum status select_latency(struct bpf_sampler *s, const struct sampler_options *o, struct error *err)
{
        int e = bpf_program__set_autoload(s->bpf->progs.note_switch, o->latency);

        if (!e && o->latency)
                e = bpf_map__set_max_entries(s->bpf->maps.running_processes, (uint32_t)s->cpu_count);
        s->bpf->rodata->latency_cpus = o->latency ? (uint32_t)s->cpu_count : 0;
        return e ? error_os(err, -e, "cannot size the map of running processes") : ST_OK;
}

static enum status attach_latency(struct bpf_sampler *s, struct error *err)
{
        s->switches = bpf_program__attach(s->bpf->progs.note_switch);
        return s->switches ? ST_OK : error_os(err, errno, "cannot attach to the tracepoint sched_switch");
}

static enum status load_bpf_program(struct bpf_sampler *s, const struct sampler_options *o, struct error *err)
{
        uint32_t bytes = get_ring_bytes(o, s->cpu_count);
        enum status st = o->off_cpu_ns ? off_cpu_check_kernel(err) : ST_OK;
        int e;

        if (!st && o->latency)
                st = latency_check_kernel(err);
        if (st)
                return st;
        s->bpf = sample_bpf__open();
        if (!s->bpf)
                return error_os(err, errno, "cannot open the BPF program");
        s->bpf->rodata->wake_bytes = bytes / 2;
        s->bpf->rodata->filter_tgids = o->tgid_count > 0;
        s->bpf->rodata->filter_excluded = o->excludes;
        st = size_pid_map(s, o, err);
        if (!st)
                st = select_off_cpu(s, o, err);
        if (!st)
                st = select_latency(s, o, err);
        if (st)
                return st;
        e = bpf_map__set_max_entries(s->bpf->maps.recent, (uint32_t)s->cpu_count * UNWIND_RECENT_MAX);
        if (!e)
                e = bpf_map__set_max_entries(s->bpf->maps.samples, bytes);
        if (e)
                return error_os(err, -e, "cannot size the maps of the BPF program");
        e = sample_bpf__load(s->bpf);
        if (e)
                return error_os(err, -e,
                                "the kernel refuses the BPF program (cairn-agent --doctor shows what is missing)");
        s->fence_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "fence", sizeof(uint32_t), sizeof(uint32_t), 1, NULL);
        if (s->fence_fd < 0)
                st = error_os(err, -s->fence_fd, "cannot create a BPF map");
        for (size_t i = 0; i < o->tgid_count && !st; i++) {
                uint32_t one = 1;

                if (bpf_map_update_elem(bpf_map__fd(s->bpf->maps.sampled_tgids), &o->tgids[i], &one, BPF_ANY) < 0)
                        st = error_os(err, errno, "cannot select process %u", o->tgids[i]);
        }
        return st;
}

static enum status attach_fork_program(struct bpf_sampler *s, struct error *err)
{
        s->forks = bpf_program__attach(s->bpf->progs.follow_fork);
        return s->forks ? ST_OK : error_os(err, errno, "cannot follow the start of processes");
}

static enum status start_bpf_sampler(struct sampler *base, const struct sampler_options *o, struct error *err)
{
        struct bpf_sampler *s = (struct bpf_sampler *)base;
        enum status st;

        base->has_kernel = true;
        s->fence_fd = -1;
        libbpf_set_print(discard_libbpf_message);
        s->cpu_count = libbpf_num_possible_cpus();
        if (s->cpu_count <= 0)
                return error_os(err, -s->cpu_count, "cannot count the CPUs");
        st = load_bpf_program(s, o, err);
        if (st)
                return st;
        s->rings = ring_buffer__new(bpf_map__fd(s->bpf->maps.notices), handle_notice_record, s, NULL);
        if (!s->rings ||
            ring_buffer__add(s->rings, bpf_map__fd(s->bpf->maps.deferred), handle_deferred_record, s) < 0 ||
            ring_buffer__add(s->rings, bpf_map__fd(s->bpf->maps.samples), handle_sample_record, s) < 0)
                return error_os(err, errno, "cannot open the BPF ring buffers");
        if (o->latency)
                st = attach_latency(s, err);
        if (!st && o->tgid_count && o->children)
                st = attach_fork_program(s, err);
        if (!st)
                st = start_cpu_clocks(&s->clocks, s->bpf->progs.sample_cpu,
                                      o->off_cpu_ns ? bpf_map__fd(s->bpf->maps.off_cpu_interrupts) : -1, s->cpu_count,
                                      1000000000 / o->frequency_hz, err);
        if (!st && o->off_cpu_ns)
                st = attach_off_cpu(s, err);
        base->cpu_count = s->clocks.running;
        s->unwind = (struct unwind_map_fds){
                .row_segments = bpf_map__fd(s->bpf->maps.row_segments),
                .pages = bpf_map__fd(s->bpf->maps.pages),
                .rules = bpf_map__fd(s->bpf->maps.rules),
                .mappings = bpf_map__fd(s->bpf->maps.mappings),
                .process_runs = bpf_map__fd(s->bpf->maps.process_runs),
                .known = bpf_map__fd(s->bpf->maps.known),
                .python_processes = bpf_map__fd(s->bpf->maps.python_processes),
                .v8_layouts = bpf_map__fd(s->bpf->maps.v8_layouts),
                .hotspot_processes = bpf_map__fd(s->bpf->maps.hotspot_processes),
                .context_processes = bpf_map__fd(s->bpf->maps.context_processes),
        };
        base->unwind = &s->unwind;
        return st;
}

static void stop_bpf_sampler(struct sampler *base)
{
        struct bpf_sampler *s = (struct bpf_sampler *)base;

        for (size_t i = OFF_CPU_PROGRAMS; i > 0; i--) {
                bpf_link__destroy(s->waits[i - 1]);
                s->waits[i - 1] = NULL;
        }
        deinit_cpu_clocks(&s->clocks);
        bpf_link__destroy(s->forks);
        s->forks = NULL;
        bpf_link__destroy(s->switches);
        s->switches = NULL;
}

static void destroy_bpf_sampler(struct sampler *base)
{
        struct bpf_sampler *s = (struct bpf_sampler *)base;

        stop_bpf_sampler(base);
        ring_buffer__free(s->rings);
        sample_counts_deinit(&s->counts);
        if (s->fence_fd >= 0)
                close(s->fence_fd);
        sample_bpf__destroy(s->bpf);
        free(s);
}

static int get_bpf_sampler_fd(const struct sampler *base)
{
        return ring_buffer__epoll_fd(((const struct bpf_sampler *)base)->rings);
}

static void poll_bpf_sampler(struct sampler *base)
{
        ring_buffer__consume(((struct bpf_sampler *)base)->rings);
}

static const struct sample_batch *peek_bpf_counts(const struct sampler *base)
{
        return &((const struct bpf_sampler *)base)->counts.batch;
}

/* When the map is full the process is still sampled, and excluded when the profile is built. */
static void exclude_bpf_process(struct sampler *base, const struct sample_process *id)
{
        struct bpf_sampler *s = (struct bpf_sampler *)base;

        (void)bpf_map_update_elem(bpf_map__fd(s->bpf->maps.excluded), &id->tgid, id, BPF_ANY);
}

/* ---- draining ------------------------------------------------------------ */

static enum status drain_bpf_sampler(struct sampler *base, struct sample_batch *ret, struct error *err)
{
        struct bpf_sampler *s = (struct bpf_sampler *)base;
        uint32_t zero = 0;

        /* Handle notices first: they make the unwinder release extents that programs may be reading. */
        ring_buffer__consume(s->rings);
        /* Grace period: returns after all running programs have ended, so released extents may be reused. */
        if (bpf_map_update_elem(bpf_map__fd(s->bpf->maps.fence), &zero, &s->fence_fd, BPF_ANY) < 0)
                return error_os(err, errno, "cannot wait for running BPF programs");
        sample_counts_take(&s->counts, ret);
        update_cpu_clocks(&s->clocks);
        if (s->clocks.items)
                s->base.cpu_count = s->clocks.running;
        return ST_OK;
}

static enum status read_bpf_stats(struct sampler *base, uint64_t ret[static SAMPLER_STAT_COUNT], struct error *err)
{
        struct bpf_sampler *s = (struct bpf_sampler *)base;
        _cleanup_free_ uint64_t *each = calloc((size_t)s->cpu_count, sizeof *each);
        uint64_t sums[SAMPLER_STAT_COUNT] = { 0 };

        if (!each)
                return error_no_memory(err);
        for (uint32_t stat = 0; stat < STAT_COUNT; stat++) {
                if (bpf_map_lookup_elem(bpf_map__fd(s->bpf->maps.sample_stats), &stat, each) < 0)
                        return error_os(err, errno, "cannot read the BPF counters");
                sums[stat] = s->stats[stat];
                for (int cpu = 0; cpu < s->cpu_count; cpu++)
                        sums[stat] += each[cpu];
        }
        memcpy(ret, sums, sizeof sums);
        return ST_OK;
}

const struct sampler_ops bpf_sampler_ops = {
        .name = "bpf",
        .kind = SAMPLER_BPF,
        .size = sizeof(struct bpf_sampler),
        .start = start_bpf_sampler,
        .destroy = destroy_bpf_sampler,
        .fd = get_bpf_sampler_fd,
        .poll = poll_bpf_sampler,
        .peek = peek_bpf_counts,
        .exclude = exclude_bpf_process,
        .stop = stop_bpf_sampler,
        .drain = drain_bpf_sampler,
        .stats = read_bpf_stats,
};
