/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/samplers/sampler.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampling/samplers/sampler_internal.h"

static enum status create_sampler(const struct sampler_ops *ops, const struct sampler_options *o, struct sampler **ret,
                                  struct error *err)
{
        struct sampler *s = calloc(1, ops->size);
        enum status st;

        if (!s)
                return error_no_memory(err);
        s->ops = ops;
        s->on_process = o->on_process;
        s->on_deferred = o->on_deferred;
        s->ctx = o->ctx;
        st = ops->start(s, o, err);
        if (st) {
                ops->destroy(s);
                return st;
        }
        *ret = s;
        return ST_OK;
}

enum status sampler_create(const struct sampler_options *o, struct sampler **ret, struct error *err)
{
        struct error bpf_error = { 0 };
        enum status st;

        assert(o->frequency_hz && o->interval_s);
        if (o->kind == SAMPLER_BPF || (o->kind == SAMPLER_AUTO && (o->off_cpu_ns || o->latency)))
                return create_sampler(&bpf_sampler_ops, o, ret, err);
        if (o->kind == SAMPLER_SIGNAL)
                return create_sampler(&signal_sampler_ops, o, ret, err);
        if (o->kind == SAMPLER_AUTO && !create_sampler(&bpf_sampler_ops, o, ret, &bpf_error))
                return ST_OK;
        st = create_sampler(&perf_sampler_ops, o, ret, err);
        if (!st)
                snprintf((*ret)->fallback_reason, sizeof(*ret)->fallback_reason, "%s", bpf_error.text);
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

enum sampler_kind sampler_get_kind(const struct sampler *s)
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

const char *sampler_fallback_reason(const struct sampler *s)
{
        return s->fallback_reason;
}

const char *sampler_coverage_gaps(const struct sampler *s)
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

const struct sample_batch *sampler_peek(const struct sampler *s)
{
        return s->ops->peek ? s->ops->peek(s) : NULL;
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

enum status sampler_get_stats(struct sampler *s, uint64_t ret[static SAMPLER_STAT_COUNT], struct error *err)
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

/* Rounded; never 0 unless it was not counted. */
static uint64_t get_latency_share(uint64_t running)
{
        if (!running)
                return 0;
        return running < SAMPLE_LATENCY_WHOLE ? (SAMPLE_LATENCY_WHOLE + running / 2) / running : 1;
}

unsigned sample_split(const struct sample_key *key, const struct sample_weight *weight,
                      struct sample_count ret[static SAMPLE_COUNTS_MAX])
{
        unsigned n = 0;

        if (!(key->flags & SAMPLE_OFF_CPU)) {
                ret[n++] = (struct sample_count){ *key, 1, get_latency_share(weight->running) };
                return n;
        }
        if (weight->blocked_ns)
                ret[n++] = (struct sample_count){ *key, weight->blocked_ns, 0 };
        if (weight->queued_ns) {
                ret[n] = (struct sample_count){ *key, weight->queued_ns, 0 };
                ret[n].key.wait_reason = WAIT_RUN_QUEUE;
                ret[n++].key.futex = 0;
        }
        return n;
}

/* ---- batches ------------------------------------------------------------- */

static int compare_stack_numbers(const void *a, const void *b)
{
        uint64_t x = ((const struct sample_stack *)a)->number, y = ((const struct sample_stack *)b)->number;

        return x < y ? -1 : x > y;
}

void sample_batch_sort(struct sample_batch *b)
{
        if (b->stack_count)
                qsort(b->stacks, b->stack_count, sizeof *b->stacks, compare_stack_numbers);
}

void sample_batch_deinit(struct sample_batch *b)
{
        free(b->counts);
        free(b->stacks);
        free(b->frames);
        *b = (struct sample_batch){ 0 };
}

const struct sample_stack *sample_batch_find_stack(const struct sample_batch *b, uint64_t number)
{
        struct sample_stack wanted = { .number = number };

        if (!number || !b->stack_count)
                return NULL;
        return bsearch(&wanted, b->stacks, b->stack_count, sizeof wanted, compare_stack_numbers);
}
