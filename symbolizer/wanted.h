/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_WANTED_H
#define CAIRN_SYMBOLIZER_WANTED_H

/**
 * @file
 * The few addresses that somebody asks for, when a whole file would take too
 * long. Whoever fills a table with an eye on them leaves out what cannot cover
 * them; what the table says of them is then the same as if nothing had been
 * left out, and what it says of other addresses means nothing.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wanted {
        const uint64_t *addresses; /* borrowed; ascending, distinct */
        size_t count;
        unsigned max_percent; /* of .debug_info: when the units to be read are more than that, everything is read */
};

/** The number of the first address at or above this one; count when there is none. */
static inline size_t wanted_from(const struct wanted *w, uint64_t address)
{
        size_t low = 0, high = w->count;

        while (low < high) {
                size_t mid = low + (high - low) / 2;

                if (w->addresses[mid] < address)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low;
}

static inline bool wanted_in(const struct wanted *w, uint64_t start, uint64_t end)
{
        size_t i = wanted_from(w, start);

        return i < w->count && w->addresses[i] < end;
}

#endif
