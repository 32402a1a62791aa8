/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler_internal.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/cpu_clocks.h"
#include "agent/sample_counts.h"
#include "agent/unwind_maps.h"
#include "bpf/sample.skel.h"
#include "common/limits.h"

struct bpf_sampler {
        struct sampler base;
        struct sample_bpf *bpf;
        struct cpu_clocks clocks;
        struct bpf_link *forks;  /* NULL unless children are followed */
        int cpu_count;           /* possible ones */
        int fence_fd;            /* what is put into the fence */
        struct ring_buffer *rings;
        struct unwind_map_fds unwind;
        struct sample_counts counts;
        struct sample_walk kernel_stack, user_stack; /* scratch */
        uint64_t stats[STAT_COUNT]; /* those that are counted here */
        void (*on_process)(void *ctx, const struct sample_notice *notice);
        void (*on_late)(void *ctx, const struct sample_key *key, const struct sample_late *late);
        void *ctx;
};

static int quiet(enum libbpf_print_level level, const char *fmt, va_list args)
{
        (void)level;
        (void)fmt;
        (void)args;
        return 0;
}

static int on_notice(void *ctx, void *data, size_t size)
{
        struct bpf_sampler *s = ctx;

        if (size >= sizeof(struct sample_notice) && s->on_process)
                s->on_process(s->ctx, data);
        return 0;
}

static void copy_stack(struct sample_walk *walk, const __u64 *frames, uint32_t count, uint32_t end)
{
        walk->frame_count = count;
        walk->end = end;
        memcpy(walk->frames, frames, count * sizeof *frames);
}

static int on_sample(void *ctx, void *data, size_t size)
{
        struct bpf_sampler *s = ctx;
        const struct sample_record *r = data;
        struct sample_key key;
        enum sample_stat result;

        if (size < offsetof(struct sample_record, frames) || r->kernel_count > SAMPLE_KERNEL_STACK_MAX ||
            r->user_count > SAMPLE_STACK_MAX ||
            size - offsetof(struct sample_record, frames) < (r->kernel_count + r->user_count) * sizeof *r->frames)
                return 0;
        key = r->key;
        copy_stack(&s->kernel_stack, r->frames, r->kernel_count, SAMPLE_END_UNKNOWN);
        copy_stack(&s->user_stack, r->frames + r->kernel_count, r->user_count, r->user_end);
        result = sample_counts_add(&s->counts, &key, &s->kernel_stack, &s->user_stack);
        s->stats[result]++;
        if (result != STAT_SAMPLES)
                return 0;
        s->stats[STAT_TRUNCATED] += r->kernel_count == SAMPLE_KERNEL_STACK_MAX || r->user_count == SAMPLE_STACK_MAX;
        if (r->user_count && r->user_end < SAMPLE_END_COUNT)
                s->stats[STAT_ENDS + r->user_end]++;
        return 0;
}

static int on_late(void *ctx, void *data, size_t size)
{
        struct bpf_sampler *s = ctx;
        const struct sample_late_record *r = data;
        struct sample_key key;

        if (size < offsetof(struct sample_late_record, late.stack) || r->kernel_count > SAMPLE_KERNEL_STACK_MAX ||
            r->late.stack_bytes > size - offsetof(struct sample_late_record, late.stack) || !s->on_late)
                return 0;
        key = r->key;
        copy_stack(&s->kernel_stack, r->kernel, r->kernel_count, SAMPLE_END_UNKNOWN);
        if (!sample_counts_stack(&s->counts, &s->kernel_stack, &key.kernel_stack)) {
                s->stats[STAT_LOST_STACKS_FULL]++;
                return 0;
        }
        s->stats[STAT_TRUNCATED] += r->kernel_count == SAMPLE_KERNEL_STACK_MAX;
        s->stats[STAT_LATE]++;
        s->stats[STAT_SAMPLES]++;
        s->on_late(s->ctx, &key, &r->late);
        return 0;
}

#define SAMPLE_BYTES 512 /* of most */
#define SAMPLES_BYTES_MIN (512 * 1024)

/* Room for the samples of an interval: then nobody is woken but once for each. */
static uint32_t ring_bytes(const struct sampler_options *o, int cpus)
{
        uint64_t wanted = (o->frequency_hz + 1) * (o->interval_s + 1) * (uint64_t)cpus * SAMPLE_BYTES,
                 bytes = SAMPLES_BYTES_MIN;

        while (bytes < wanted && bytes < LIMIT_AGENT_SAMPLES_BYTES)
                bytes *= 2;
        return (uint32_t)bytes;
}

/* Nothing takes ended processes out, so those that were not met for the longest time make room. */
static enum status size_wanted(struct bpf_sampler *s, const struct sampler_options *o, struct error *err)
{
        bool children = o->tgid_count && o->children;
        struct bpf_map *wanted = s->bpf->maps.wanted;
        int e = bpf_program__set_autoload(s->bpf->progs.follow_fork, children);

        if (!e && children)
                e = bpf_map__set_type(wanted, BPF_MAP_TYPE_LRU_HASH);
        if (!e && o->tgid_count)
                e = bpf_map__set_max_entries(wanted, children ? LIMIT_AGENT_WANTED : (uint32_t)o->tgid_count);
        return e < 0 ? error_os(err, -e, "cannot size the map of process ids") : ST_OK;
}

static enum status load(struct bpf_sampler *s, const struct sampler_options *o, struct error *err)
{
        uint32_t bytes = ring_bytes(o, s->cpu_count);
        enum status st;
        int e;

        s->bpf = sample_bpf__open();
        if (!s->bpf)
                return error_os(err, errno, "cannot open the BPF program");
        s->bpf->rodata->wake_bytes = bytes / 2;
        s->bpf->rodata->filter_tgids = o->tgid_count > 0;
        s->bpf->rodata->filter_excluded = o->excludes;
        st = size_wanted(s, o, err);
        if (st)
                return st;
        e = bpf_map__set_max_entries(s->bpf->maps.recent, (uint32_t)s->cpu_count * UNWIND_RECENT_MAX);
        if (!e)
                e = bpf_map__set_max_entries(s->bpf->maps.samples, bytes);
        if (e)
                return error_os(err, -e, "cannot size the maps of the BPF program");
        e = sample_bpf__load(s->bpf);
        if (e)
                return error_os(err, -e, "the kernel refuses the BPF program (cairn-agent --doctor says what is missing)");
        s->fence_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "fence", sizeof(uint32_t), sizeof(uint32_t), 1, NULL);
        if (s->fence_fd < 0)
                st = error_os(err, -s->fence_fd, "cannot create a BPF map");
        for (size_t i = 0; i < o->tgid_count && !st; i++) {
                uint32_t one = 1;

                if (bpf_map_update_elem(bpf_map__fd(s->bpf->maps.wanted), &o->tgids[i], &one, BPF_ANY) < 0)
                        st = error_os(err, errno, "cannot select process %u", o->tgids[i]);
        }
        return st;
}

static enum status attach_forks(struct bpf_sampler *s, struct error *err)
{
        s->forks = bpf_program__attach(s->bpf->progs.follow_fork);
        return s->forks ? ST_OK : error_os(err, errno, "cannot follow the start of processes");
}

static enum status start(struct bpf_sampler *s, const struct sampler_options *o, struct error *err)
{
        enum status st;

        s->cpu_count = libbpf_num_possible_cpus();
        if (s->cpu_count <= 0)
                return error_os(err, -s->cpu_count, "cannot count the CPUs");
        st = load(s, o, err);
        if (st)
                return st;
        s->rings = ring_buffer__new(bpf_map__fd(s->bpf->maps.notices), on_notice, s, NULL);
        if (!s->rings || ring_buffer__add(s->rings, bpf_map__fd(s->bpf->maps.lates), on_late, s) < 0 ||
            ring_buffer__add(s->rings, bpf_map__fd(s->bpf->maps.samples), on_sample, s) < 0)
                return error_os(err, errno, "cannot open the BPF ring buffers");
        if (o->tgid_count && o->children)
                st = attach_forks(s, err);
        if (!st)
                st = cpu_clocks_start(&s->clocks, s->bpf->progs.sample_cpu, s->cpu_count, 1000000000 / o->frequency_hz, err);
        s->base.cpu_count = s->clocks.running;
        return st;
}

static void stop(struct sampler *base)
{
        struct bpf_sampler *s = (struct bpf_sampler *)base;

        cpu_clocks_deinit(&s->clocks);
        bpf_link__destroy(s->forks);
        s->forks = NULL;
}

static void destroy(struct sampler *base)
{
        struct bpf_sampler *s = (struct bpf_sampler *)base;

        stop(base);
        ring_buffer__free(s->rings);
        sample_counts_deinit(&s->counts);
        if (s->fence_fd >= 0)
                close(s->fence_fd);
        sample_bpf__destroy(s->bpf);
        free(s);
}

static int readable_fd(const struct sampler *base)
{
        return ring_buffer__epoll_fd(((const struct bpf_sampler *)base)->rings);
}

static void consume(struct sampler *base)
{
        ring_buffer__consume(((struct bpf_sampler *)base)->rings);
}

/* Without room the process goes on being sampled, and is left out when the profile is built. */
static void exclude(struct sampler *base, const struct sample_process *id)
{
        struct bpf_sampler *s = (struct bpf_sampler *)base;

        (void)bpf_map_update_elem(bpf_map__fd(s->bpf->maps.excluded), &id->tgid, id, BPF_ANY);
}

/* ---- draining ------------------------------------------------------------ */

static enum status drain(struct sampler *base, struct sample_batch *ret, struct error *err)
{
        struct bpf_sampler *s = (struct bpf_sampler *)base;
        uint32_t zero = 0;

        /* Notices make the unwinder give back what programs may be reading. */
        ring_buffer__consume(s->rings);
        /* Returns after every program that runs now: what was given back may be used again. */
        if (bpf_map_update_elem(bpf_map__fd(s->bpf->maps.fence), &zero, &s->fence_fd, BPF_ANY) < 0)
                return error_os(err, errno, "cannot wait for the BPF programs that run");
        sample_counts_take(&s->counts, ret);
        cpu_clocks_follow(&s->clocks);
        if (s->clocks.items)
                s->base.cpu_count = s->clocks.running;
        return ST_OK;
}

static enum status stats(struct sampler *base, uint64_t ret[static SAMPLER_STAT_COUNT], struct error *err)
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

static const struct sampler_ops OPS = {
        .name = "bpf",
        .kind = SAMPLER_BPF,
        .destroy = destroy,
        .fd = readable_fd,
        .poll = consume,
        .exclude = exclude,
        .stop = stop,
        .drain = drain,
        .stats = stats,
};

enum status sampler_create_bpf(const struct sampler_options *o, struct sampler **ret, struct error *err)
{
        struct bpf_sampler *s = calloc(1, sizeof *s);
        enum status st;

        if (!s)
                return error_no_memory(err);
        s->base = (struct sampler){ .ops = &OPS, .has_kernel = true };
        s->fence_fd = -1;
        s->on_process = o->on_process;
        s->on_late = o->on_late;
        s->ctx = o->ctx;
        libbpf_set_print(quiet);
        st = start(s, o, err);
        if (st) {
                destroy(&s->base);
                return st;
        }
        s->unwind = (struct unwind_map_fds){
                .row_segments = bpf_map__fd(s->bpf->maps.row_segments),
                .pages = bpf_map__fd(s->bpf->maps.pages),
                .rules = bpf_map__fd(s->bpf->maps.rules),
                .mappings = bpf_map__fd(s->bpf->maps.mappings),
                .process_runs = bpf_map__fd(s->bpf->maps.process_runs),
                .known = bpf_map__fd(s->bpf->maps.known),
        };
        s->base.unwind = &s->unwind;
        *ret = &s->base;
        return ST_OK;
}
