/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_TABLE_ADDRESS_FILTER_H
#define CAIRN_SYMBOLIZER_TABLE_ADDRESS_FILTER_H

/**
 * @file
 * The few addresses to extract symbols for, when extracting a whole file takes
 * too long. A table that was filled with a filter leaves out everything that
 * cannot cover these addresses: its answers for them equal those of the complete
 * table, its answers for other addresses are undefined.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/search.h"

struct address_filter {
        const uint64_t *addresses; /* borrowed; ascending, distinct */
        size_t count;
        unsigned max_percent; /* of .debug_info: above it, all units are read */
};

/** Index of the first address at or above this one; count when there is none. */
static inline size_t address_filter_lower_bound(const struct address_filter *w, uint64_t address)
{
        size_t found = find_lower_bound(i, 0, w->count, w->addresses[i] < address);

        return found;
}

static inline bool address_filter_overlaps(const struct address_filter *w, uint64_t start, uint64_t end)
{
        size_t i = address_filter_lower_bound(w, start);

        return i < w->count && w->addresses[i] < end;
}

#endif
