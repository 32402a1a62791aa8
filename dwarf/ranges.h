/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_RANGES_H
#define CAIRN_DWARF_RANGES_H

/**
 * @file
 * The addresses of a DIE: low and high pc, or a list of ranges.
 * Source: DWARF 5, 2.17; .debug_ranges DWARF 4, 2.17.3; .debug_rnglists DWARF 5, 2.17.3 and 7.25.
 */
#include "dwarf/context.h"

/** Iterator over the ranges of one DIE. */
struct dwarf_ranges {
        const struct dwarf_context *context;
        struct dwarf_cursor list;
        uint64_t base, start, end;
        bool is_list, is_single;
        bool is_base_dead; /* the base is a tombstone: its section was discarded */
        bool is_cut;       /* the budget was exhausted */
        uint8_t paid;      /* entries that the budget was charged for, still to be read */
};

/** Start with the values of a DIE; one without addresses has no ranges. */
void dwarf_ranges_begin(struct dwarf_ranges *r, const struct dwarf_context *x, const struct dwarf_die *d);

/**
 * The next range, which may be empty or decreasing. Ranges at tombstones, which linkers write for discarded sections
 * (the two greatest addresses and offsets from them), are skipped.
 * @return false at the end, at broken data, and when the budget of the object is exhausted.
 */
bool dwarf_ranges_next(struct dwarf_ranges *r, uint64_t *start_ret, uint64_t *end_ret);

#endif
