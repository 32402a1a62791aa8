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

#include "common/buf.h"

enum doctor_state {
        DOCTOR_OK,
        DOCTOR_LESS, /* works, but something will be missing from profiles */
        DOCTOR_FAIL, /* no profile without this */
};

struct doctor_item {
        const char *name;
        enum doctor_state state;
        char found[240];
        const char *mend; /* "" when OK */
};

#define DOCTOR_ITEMS_MAX 16

struct doctor {
        struct doctor_item items[DOCTOR_ITEMS_MAX];
        size_t count;
};

/** Look at everything; loads and attaches the BPF program for a moment. */
void doctor_examine(struct doctor *d);

/** Whether the agent can profile here. */
bool doctor_can_profile(const struct doctor *d);

/** As lines for people, or as one JSON object {"can_profile":..., "items":[{name,state,found,mend}]}. */
void doctor_write(const struct doctor *d, bool json, struct buf *out);

#endif
