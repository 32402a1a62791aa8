/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_LATER_H
#define CAIRN_SERVER_LATER_H

/**
 * @file
 * Build-ids for which something comes in many parts: each is due when no part
 * came for LATER_QUIET_NS, or LATER_MOST_NS after the first one.
 *
 * Threads: the owner's lock. Times are monotonic.
 */
#include "common/build_id.h"
#include "common/error.h"

#define LATER_QUIET_NS 5000000000ll
#define LATER_MOST_NS 60000000000ll

struct later_item {
        struct build_id id;
        int64_t first_ns, last_ns;
};

struct later {
        struct later_item *items;
        size_t count, capacity;
};

void later_deinit(struct later *l);
/** A part came. */
enum status later_add(struct later *l, const struct build_id *id, int64_t now_ns) MUST_CHECK;
void later_remove(struct later *l, const struct build_id *id);
bool later_has(const struct later *l, const struct build_id *id);
/** When the first one is due; 0: there is none. */
int64_t later_due_ns(const struct later *l);
/** One that is due, taken out; false when none is. */
bool later_take(struct later *l, int64_t now_ns, struct build_id *ret);

#endif
