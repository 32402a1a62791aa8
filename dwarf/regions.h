/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_REGIONS_H
#define CAIRN_DWARF_REGIONS_H

/**
 * @file
 * Address ranges of the executable sections. Linkers discard functions but keep their DWARF, whose addresses then are
 * outside of code.
 */
#include <stddef.h>
#include <stdint.h>

#include "common/search.h"

struct dwarf_region {
        uint64_t start, end;
};

/** Sorted, disjoint. */
struct dwarf_regions {
        const struct dwarf_region *items; /* borrowed */
        size_t count;
};

/** The region that holds an address, or NULL. */
static inline const struct dwarf_region *dwarf_regions_find(const struct dwarf_regions *r, uint64_t address)
{
        size_t at = find_lower_bound(i, 0, r->count, r->items[i].end <= address);

        return at < r->count && r->items[at].start <= address ? &r->items[at] : NULL;
}

/**
 * The region that contains [start, end) or at least its start, or NULL. Linkers set the addresses of discarded
 * functions to 0 or 1. If there is code at 0 as well, a range that does not fit into its region belongs to a discarded
 * function.
 */
static inline const struct dwarf_region *dwarf_regions_fit(const struct dwarf_regions *r, uint64_t start, uint64_t end)
{
        const struct dwarf_region *region = start < end ? dwarf_regions_find(r, start) : NULL;

        return region && start <= 1 && end > region->end ? NULL : region;
}

#endif
