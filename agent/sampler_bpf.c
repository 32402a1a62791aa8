/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler_internal.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "agent/bpf_drain.h"
#include "agent/cpu_clocks.h"
#include "agent/unwind_maps.h"
#include "bpf/sample.skel.h"
#include "common/limits.h"

struct bpf_sampler {
        struct sampler base;
        struct sample_bpf *bpf;
        struct cpu_clocks clocks;
        struct bpf_link *forks;  /* NULL unless children are followed */
        int cpu_count;           /* possible ones */
        int counts_fd[2], chunks_fd[2];
        struct ring_buffer *notices;
        struct unwind_map_fds unwind;
        void (*on_process)(void *ctx, const struct sample_notice *notice);
        void (*on_late)(void *ctx, const struct sample_late *late);
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

static int on_late(void *ctx, void *data, size_t size)
{
        struct bpf_sampler *s = ctx;
        const struct sample_late *late = data;

        if (size >= offsetof(struct sample_late, stack) && late->stack_bytes <= size - offsetof(struct sample_late, stack) &&
            s->on_late)
                s->on_late(s->ctx, late);
        return 0;
}

#define CHUNKS_PER_SAMPLE 4 /* of two stacks; most are shared by many samples */

/* Every sample needs at most one key and few chunks, so these maps are full only past the limits. */
static uint32_t entries_for(const struct sampler_options *o, int cpus, uint64_t each, uint64_t limit)
{
        uint64_t n = (o->frequency_hz + 1) * (o->interval_s + 1) * (uint64_t)cpus * each;

        return (uint32_t)(n < 1024 ? 1024 : n > limit ? limit : n);
}

static enum status make_half(struct bpf_sampler *s, uint32_t half, uint32_t keys, uint32_t chunks, struct error *err)
{
        int fd;

        fd = bpf_map_create(BPF_MAP_TYPE_HASH, "counts", sizeof(struct sample_key), sizeof(uint64_t), keys, NULL);
        if (fd < 0)
                return error_os(err, -fd, "cannot create the BPF map of %u keys", keys);
        s->counts_fd[half] = fd;
        fd = bpf_map_create(BPF_MAP_TYPE_HASH, "chunks", sizeof(uint64_t), sizeof(struct sample_chunk), chunks, NULL);
        if (fd < 0)
                return error_os(err, -fd, "cannot create the BPF map of %u chunks", chunks);
        s->chunks_fd[half] = fd;
        if (bpf_map_update_elem(bpf_map__fd(s->bpf->maps.counts), &half, &s->counts_fd[half], BPF_ANY) < 0 ||
            bpf_map_update_elem(bpf_map__fd(s->bpf->maps.chunks), &half, &s->chunks_fd[half], BPF_ANY) < 0)
                return error_os(err, errno, "cannot put half %u into the BPF double buffer", half);
        return ST_OK;
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
        uint32_t keys = entries_for(o, s->cpu_count, 1, LIMIT_AGENT_KEYS);
        uint32_t chunks = entries_for(o, s->cpu_count, CHUNKS_PER_SAMPLE, LIMIT_AGENT_CHUNKS);
        uint64_t seed = 1;
        enum status st;
        int e;

        s->bpf = sample_bpf__open();
        if (!s->bpf)
                return error_os(err, errno, "cannot open the BPF program");
        if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
                return error_os(err, errno, "cannot get random bytes");
        s->bpf->rodata->hash_seed = seed;
        s->bpf->rodata->filter_tgids = o->tgid_count > 0;
        s->bpf->rodata->filter_excluded = o->excludes;
        st = size_wanted(s, o, err);
        if (st)
                return st;
        e = bpf_map__set_max_entries(s->bpf->maps.recent, (uint32_t)s->cpu_count * UNWIND_RECENT_MAX);
        if (e)
                return error_os(err, -e, "cannot size the map of recent frames");
        e = sample_bpf__load(s->bpf);
        if (e)
                return error_os(err, -e, "the kernel refuses the BPF program (cairn-agent --doctor says what is missing)");
        for (uint32_t half = 0; half < 2 && !st; half++)
                st = make_half(s, half, keys, chunks, err);
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
        s->notices = ring_buffer__new(bpf_map__fd(s->bpf->maps.notices), on_notice, s, NULL);
        if (!s->notices)
                return error_os(err, errno, "cannot open the BPF ring buffer");
        if (ring_buffer__add(s->notices, bpf_map__fd(s->bpf->maps.lates), on_late, s) < 0)
                return error_os(err, errno, "cannot open the BPF ring buffer of late samples");
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
        ring_buffer__free(s->notices);
        for (int i = 0; i < 2; i++) {
                if (s->counts_fd[i] >= 0)
                        close(s->counts_fd[i]);
                if (s->chunks_fd[i] >= 0)
                        close(s->chunks_fd[i]);
        }
        sample_bpf__destroy(s->bpf);
        free(s);
}

static int readable_fd(const struct sampler *base)
{
        return ring_buffer__epoll_fd(((const struct bpf_sampler *)base)->notices);
}

static void consume(struct sampler *base)
{
        ring_buffer__consume(((struct bpf_sampler *)base)->notices);
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
        _cleanup_sample_batch_ struct sample_batch b = { 0 };
        uint32_t full = s->bpf->bss->active & 1;
        enum status st;

        __atomic_store_n(&s->bpf->bss->active, full ^ 1, __ATOMIC_SEQ_CST);
        /* Returns after every program that may still use the full half. */
        if (bpf_map_update_elem(bpf_map__fd(s->bpf->maps.counts), &full, &s->counts_fd[full], BPF_ANY) < 0)
                return error_os(err, errno, "cannot turn the BPF double buffer over");
        st = bpf_drain_counts(s->counts_fd[full], &b, err);
        if (!st)
                st = bpf_drain_chunks(s->chunks_fd[full], &b, err);
        if (st)
                return st;
        ring_buffer__consume(s->notices); /* late samples of this half */
        cpu_clocks_follow(&s->clocks);
        if (s->clocks.items)
                s->base.cpu_count = s->clocks.running;
        b.half = full;
        *ret = b;
        b = (struct sample_batch){ 0 };
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
        for (int i = 0; i < 2; i++)
                s->counts_fd[i] = s->chunks_fd[i] = -1;
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
                .processes = bpf_map__fd(s->bpf->maps.processes),
                .known = bpf_map__fd(s->bpf->maps.known),
        };
        s->base.unwind = &s->unwind;
        *ret = &s->base;
        return ST_OK;
}
