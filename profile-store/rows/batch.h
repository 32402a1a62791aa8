/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_ROWS_BATCH_H
#define CAIRN_PROFILE_STORE_ROWS_BATCH_H

/**
 * @file
 * A batch in the head: distinct locations, stacks and label sets with their
 * final ids, and times in the unit of the tables. Scans and the flush both read
 * this form, so a sample looks the same before and after its flush.
 *
 * Memory: one arena, under LIMIT_PROFILE_MEMORY_BYTES.
 * Threads: immutable after batch_create(); the reference count is atomic.
 */
#include <stdatomic.h>

#include "common/memory/arena.h"
#include "profile-store/rows/identity.h"

struct batch_location {
        uint64_t id;
        uint32_t sender; /* as in struct wanted_object */
        struct location_identity identity;
};

struct batch_stack {
        struct hash128 id;
        const uint64_t *location_ids; /* leaf first */
        uint32_t location_count;
};

struct batch_label {
        const char *name, *value; /* name in column spelling */
};

struct batch_label_set {
        const struct batch_label *labels; /* sorted by name, names unique */
        uint32_t count;
};

struct batch_type {
        const char *id, *unit;
        int64_t period;
};

struct batch_sample {
        int64_t time_us, duration_ns, value;
        uint32_t type, label_set, stack;
        bool has_trace, has_span;
        uint8_t trace_id[16], span_id[8];
};

struct batch {
        struct arena arena;
        atomic_uint references;
        uint64_t position; /* in the raw queue */
        struct hash128 batch_id;
        struct batch_location *locations;
        struct batch_stack *stacks;
        struct batch_label_set *label_sets;
        struct batch_type *types;
        struct batch_sample *samples;
        uint32_t location_count, stack_count, label_set_count, type_count, sample_count;
        int64_t oldest_us, newest_us; /* of samples; oldest > newest when there are none */
};

/** Reduce a profile; nothing is borrowed from it. ST_TOO_BIG past LIMIT_BATCH_DATES days or when the arena is full. */
enum status batch_create(const struct profile *p, struct batch **ret, struct error *err) MUST_CHECK;
/** The same, charged to another use than MEMORY_QUEUE. */
enum status batch_create_for(enum memory_use use, const struct profile *p, struct batch **ret,
                             struct error *err) MUST_CHECK;

/** Memory of a batch. */
uint64_t batch_get_bytes(const struct batch *b);

struct batch *batch_ref(struct batch *b);
void batch_unref(struct batch *b); /* NULL is allowed */

/** Assert the invariants: indexes within bounds, times within [oldest, newest], labels sorted and unique. */
void batch_check(const struct batch *b);

/** The value of a label in column spelling, or "". */
const char *batch_find_label(const struct batch_label_set *set, const char *name);

/** Day since 1970-01-01 of a time, which may be negative. */
int64_t day_of_us(int64_t time_us);

#endif
