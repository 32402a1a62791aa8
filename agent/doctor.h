/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_DOCTOR_H
#define CAIRN_AGENT_DOCTOR_H

/**
 * @file
 * What this kernel and these rights allow, item by item, and what to do about
 * the rest. Each item is tried where that is possible, not guessed.
 */
#include <stdbool.h>
#include <stddef.h>

#include "agent/sampler.h"
#include "common/buf.h"

enum doctor_state {
        DOCTOR_OK,
        DOCTOR_LESS, /* works, but something will be missing from profiles */
        DOCTOR_FAIL, /* that sampler does not work without this */
};

struct doctor_item {
        const char *name;
        enum sampler_kind needed_by; /* SAMPLER_AUTO: by both */
        enum doctor_state state;
        char found[240];
        const char *mend; /* "" when OK */
};

#define DOCTOR_ITEMS_MAX 32

struct doctor {
        struct doctor_item items[DOCTOR_ITEMS_MAX];
        size_t count;
};

/**
 * Look at everything; both samplers and a worker run for a moment.
 * @param spool  where batches would wait; NULL: nowhere. @param spool_bytes how many of them.
 */
void doctor_examine(struct doctor *d, const char *spool, uint64_t spool_bytes);

/** Ask the service whether it would take symbols. @param ca_file, token NULL without. */
void doctor_service(struct doctor *d, const char *server, const char *ca_file, const char *token);

/** Whether the agent can profile here with that sampler; with SAMPLER_AUTO, with any. */
bool doctor_can_profile(const struct doctor *d, enum sampler_kind kind);

/**
 * As lines for people, or as one JSON object
 * {"can_profile":..., "sampler":"bpf"|"perf"|null, "items":[{name,state,sampler,found,mend}]}.
 * @param kind  what was asked for: decides can_profile and the sampler that would run.
 */
void doctor_write(const struct doctor *d, enum sampler_kind kind, bool json, struct buf *out);

#endif
