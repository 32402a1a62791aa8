/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_DEBOUNCE_H
#define CAIRN_PIPELINE_DEBOUNCE_H

/**
 * @file
 * Debounce of build-ids: an id is due when no event occurred for DEBOUNCE_QUIET_NS, or DEBOUNCE_MAX_NS after the first
 * event.
 *
 * Threads: the owner's lock. Times are monotonic.
 */
#include "common/build_id.h"
#include "common/error.h"

#define DEBOUNCE_QUIET_NS 5000000000ll
#define DEBOUNCE_MAX_NS 60000000000ll

struct debounce_item {
        struct build_id id;
        int64_t first_ns, last_ns;
};

struct debounce {
        struct debounce_item *items;
        size_t count, capacity;
};

void debounce_deinit(struct debounce *d);
/** An event occurred. */
enum status debounce_add(struct debounce *d, const struct build_id *id, int64_t now_ns) MUST_CHECK;
void debounce_remove(struct debounce *d, const struct build_id *id);
bool debounce_contains(const struct debounce *d, const struct build_id *id);
/** Due time of the first id; 0 when the set is empty. */
int64_t debounce_next_due_ns(const struct debounce *d);
/** Remove an id that is due; false when there is none. */
bool debounce_take_due(struct debounce *d, int64_t now_ns, struct build_id *ret);

#endif
