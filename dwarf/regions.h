/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_REGIONS_H
#define CAIRN_DWARF_REGIONS_H

/**
 * @file
 * Where the object has code. Linkers drop functions and leave their DWARF, with
 * addresses where no code is.
 */
#include <stddef.h>
#include <stdint.h>

struct dwarf_region {
        uint64_t start, end;
};

/** Sorted and apart. */
struct dwarf_regions {
        const struct dwarf_region *items; /* borrowed */
        size_t count;
};

/** The region that holds an address, or NULL. */
static inline const struct dwarf_region *dwarf_regions_find(const struct dwarf_regions *r, uint64_t address)
{
        size_t low = 0, high = r->count;

        while (low < high) {
                size_t mid = low + (high - low) / 2;

                if (r->items[mid].end <= address)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low < r->count && r->items[low].start <= address ? &r->items[low] : NULL;
}

/**
 * The region that holds [start, end) or its beginning, or NULL. Linkers leave
 * what they dropped at 0 or 1; where there is code too, what does not fit into
 * it is not that code.
 */
static inline const struct dwarf_region *dwarf_regions_fit(const struct dwarf_regions *r, uint64_t start, uint64_t end)
{
        const struct dwarf_region *region = start < end ? dwarf_regions_find(r, start) : NULL;

        return region && start <= 1 && end > region->end ? NULL : region;
}

#endif
