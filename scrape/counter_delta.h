/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCRAPE_COUNTER_DELTA_H
#define CAIRN_SCRAPE_COUNTER_DELTA_H

/**
 * @file
 * From totals since the start of a process (Go's allocations, blocking and mutex profiles) to what was added since the
 * last scrape.
 *
 * Each (type, stack, labels) has one total. A total that is less than the last one, or missing, shows that the process
 * began anew since; all that it has counted is then new. A process that began anew and has passed each of its former
 * totals since cannot be told from one that went on.
 *
 * Gauges, the types that begin with "inuse_", stay as they are.
 *
 * Threads: one at a time.
 */
#include "common/hash.h"
#include "common/memory_budget.h"
#include "profile-formats/profile.h"

struct counter_total {
        struct hash128 key; /* of type, stack and labels, by content */
        int64_t value;
};

struct counter_totals {
        struct counter_total *items; /* owned, sorted by key */
        size_t count;
        struct memory_reservation memory;
        bool is_known; /* there was a profile */
};

void counter_totals_deinit(struct counter_totals *t);

enum counter_change {
        COUNTER_FIRST, /* no totals before: counters have no samples left */
        COUNTER_ADDED,
        COUNTER_RESET, /* the process began anew */
};

/** Whether samples of this type are totals. */
bool counter_type_is_total(const struct profile *p, uint32_t type);

/**
 * Replace totals in p by the differences to `last`, and remove samples without one.
 * @param now_ret  the totals of p, to give as `last` next time; zeroed before, and untouched on failure.
 * @return ST_OK; ST_BAD_DATA: a negative total, or totals that overflow; ST_BUSY, ST_TOO_BIG: the memory budget;
 *         ST_NO_MEMORY. p may be changed in any case.
 */
enum status counter_totals_subtract(const struct counter_totals *last, struct profile *p,
                                    struct counter_totals *now_ret, enum counter_change *change_ret,
                                    struct error *err) MUST_CHECK;

#endif
