/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_SAMPLER_INTERNAL_H
#define CAIRN_AGENT_SAMPLER_INTERNAL_H

/* What the two kinds of sampler share. Each has a struct sampler as its first member. */
#include "agent/sampler.h"

struct sampler_ops {
        const char *name;
        enum sampler_kind kind;
        void (*destroy)(struct sampler *s);
        int (*fd)(const struct sampler *s);
        void (*poll)(struct sampler *s);
        void (*exclude)(struct sampler *s, const struct sample_process *id); /* NULL: cannot */
        void (*stop)(struct sampler *s);
        enum status (*drain)(struct sampler *s, struct sample_batch *ret, struct error *err);
        enum status (*stats)(struct sampler *s, uint64_t ret[static SAMPLER_STAT_COUNT], struct error *err);
};

struct sampler {
        const struct sampler_ops *ops;
        const struct unwind_map_fds *unwind; /* NULL none */
        unsigned cpu_count;
        bool has_kernel, copies_stacks;
        char gaps[160];
        char why[240];
};

enum status sampler_create_bpf(const struct sampler_options *o, struct sampler **ret, struct error *err) MUST_CHECK;
enum status sampler_create_perf(const struct sampler_options *o, struct sampler **ret, struct error *err) MUST_CHECK;

#endif
