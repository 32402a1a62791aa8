/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler_internal.h"

enum status sampler_create(const struct sampler_options *o, struct sampler **ret, struct error *err)
{
        struct error bpf_error = { 0 };
        enum status st;

        if (o->kind == SAMPLER_BPF)
                return sampler_create_bpf(o, ret, err);
        if (o->kind == SAMPLER_AUTO && !sampler_create_bpf(o, ret, &bpf_error))
                return ST_OK;
        st = sampler_create_perf(o, ret, err);
        if (!st)
                snprintf((*ret)->why, sizeof (*ret)->why, "%s", bpf_error.text);
        return st;
}

void sampler_destroy(struct sampler *s)
{
        if (s)
                s->ops->destroy(s);
}

const char *sampler_name(const struct sampler *s)
{
        return s->ops->name;
}

enum sampler_kind sampler_kind(const struct sampler *s)
{
        return s->ops->kind;
}

enum status sampler_kind_parse(const char *name, enum sampler_kind *ret)
{
        static const char *const names[] = { [SAMPLER_AUTO] = "auto", [SAMPLER_BPF] = "bpf", [SAMPLER_PERF] = "perf" };

        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
                if (strcmp(name, names[i]) == 0) {
                        *ret = (enum sampler_kind)i;
                        return ST_OK;
                }
        }
        return ST_NOT_FOUND;
}

const char *sampler_why(const struct sampler *s)
{
        return s->why;
}

const char *sampler_gaps(const struct sampler *s)
{
        return s->gaps;
}

bool sampler_has_kernel(const struct sampler *s)
{
        return s->has_kernel;
}

int sampler_fd(const struct sampler *s)
{
        return s->ops->fd(s);
}

void sampler_poll(struct sampler *s)
{
        s->ops->poll(s);
}

void sampler_exclude(struct sampler *s, const struct sample_process *id)
{
        if (s->ops->exclude)
                s->ops->exclude(s, id);
}

void sampler_stop(struct sampler *s)
{
        s->ops->stop(s);
}

enum status sampler_drain(struct sampler *s, struct sample_batch *ret, struct error *err)
{
        return s->ops->drain(s, ret, err);
}

enum status sampler_stats(struct sampler *s, uint64_t ret[static SAMPLER_STAT_COUNT], struct error *err)
{
        return s->ops->stats(s, ret, err);
}

const struct unwind_map_fds *sampler_unwind_maps(const struct sampler *s)
{
        return s->unwind;
}

bool sampler_copies_stacks(const struct sampler *s)
{
        return s->copies_stacks;
}

unsigned sampler_cpu_count(const struct sampler *s)
{
        return s->cpu_count;
}

/* ---- batches ------------------------------------------------------------- */

static int compare_stacks(const void *a, const void *b)
{
        uint64_t x = ((const struct sample_stack *)a)->hash, y = ((const struct sample_stack *)b)->hash;

        return x < y ? -1 : x > y;
}

void sample_batch_sort(struct sample_batch *b)
{
        if (b->stack_count)
                qsort(b->stacks, b->stack_count, sizeof *b->stacks, compare_stacks);
}

void sample_batch_deinit(struct sample_batch *b)
{
        free(b->counts);
        free(b->stacks);
        free(b->frames);
        *b = (struct sample_batch){ 0 };
}

const struct sample_stack *sample_batch_stack(const struct sample_batch *b, uint64_t hash)
{
        struct sample_stack wanted = { .hash = hash };

        if (!hash || !b->stack_count)
                return NULL;
        return bsearch(&wanted, b->stacks, b->stack_count, sizeof wanted, compare_stacks);
}
