/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_SAMPLERS_SAMPLER_INTERNAL_H
#define CAIRN_SAMPLING_SAMPLERS_SAMPLER_INTERNAL_H

/* Shared by the three sampler implementations, which have a struct sampler as first member. */
#include "sampling/samplers/sampler.h"

struct sampler_ops {
        const char *name;
        enum sampler_kind kind;
        size_t size; /* of the implementation's struct */
        /** The sampler is zeroed except for ops and callbacks; destroy() is called also on failure. */
        enum status (*start)(struct sampler *s, const struct sampler_options *o, struct error *err);
        void (*destroy)(struct sampler *s);
        int (*fd)(const struct sampler *s);
        void (*poll)(struct sampler *s);
        void (*exclude)(struct sampler *s, const struct sample_process *id); /* NULL: unsupported */
        void (*stop)(struct sampler *s);
        const struct sample_batch *(*peek)(const struct sampler *s); /* NULL: unsupported */
        enum status (*drain)(struct sampler *s, struct sample_batch *ret, struct error *err);
        enum status (*stats)(struct sampler *s, uint64_t ret[static SAMPLER_STAT_COUNT], struct error *err);
};

struct sampler {
        const struct sampler_ops *ops;
        void (*on_process)(void *ctx, const struct sample_notice *notice);
        void (*on_deferred)(void *ctx, const struct sample_key *key, const struct sample_weight *weight,
                            const struct stack_copy *copy);
        void *ctx;
        const struct unwind_map_fds *unwind; /* NULL: none */
        unsigned cpu_count;
        bool has_kernel, copies_stacks;
        char gaps[160];
        char fallback_reason[240];
};

extern const struct sampler_ops bpf_sampler_ops, perf_sampler_ops, signal_sampler_ops;

#endif
