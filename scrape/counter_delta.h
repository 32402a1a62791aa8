/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCRAPE_COUNTER_DELTA_H
#define CAIRN_SCRAPE_COUNTER_DELTA_H

/**
 * @file
 * Convert cumulative counters (totals since the start of a process: Go's allocation, block and mutex profiles) to
 * deltas since the last scrape.
 *
 * Each (type, stack, labels) has one total. A total that is less than the last one, or missing, means a counter reset:
 * the process restarted, and its totals are the deltas. A restart is not detected if every total has already exceeded
 * its former value.
 *
 * Gauges (profile_type_is_gauge()) are not changed.
 *
 * Threads: one at a time.
 */
#include "common/hash.h"
#include "common/memory/memory_budget.h"
#include "profile-formats/profile.h"

struct counter_total {
        struct hash128 key; /* hash of type, stack and labels by content */
        int64_t value;
};

struct counter_totals {
        struct counter_total *items; /* owned, sorted by key */
        size_t count;
        struct memory_reservation memory;
        bool is_known; /* false before the first profile */
};

void counter_totals_deinit(struct counter_totals *t);

enum counter_change {
        COUNTER_FIRST, /* no previous totals: samples of counters are removed */
        COUNTER_ADDED,
        COUNTER_RESET, /* the process restarted */
};

/** Whether samples of this type are totals. */
bool counter_type_is_total(const struct profile *p, uint32_t type);

/**
 * Replace totals in p by their deltas to `last`, and remove samples whose delta is 0.
 * @param now_ret  the totals of p, the next call's `last`; zeroed before, untouched on failure.
 * @return ST_OK; ST_BAD_DATA: a negative total, or totals that overflow; ST_BUSY, ST_TOO_BIG: the memory budget;
 *         ST_NO_MEMORY. p may be changed in any case.
 */
enum status counter_totals_subtract(const struct counter_totals *last, struct profile *p,
                                    struct counter_totals *now_ret, enum counter_change *change_ret,
                                    struct error *err) MUST_CHECK;

#endif
