/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_TABLE_INTERVAL_OVERLAY_H
#define CAIRN_SYMBOLIZER_TABLE_INTERVAL_OVERLAY_H

/**
 * @file
 * Overlay of intervals that may overlap: for each address, the item of the
 * topmost interval that covers it. Inlined calls nest, and symbols may.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Addresses of an item. Topmost is the greatest level, then the greatest item. */
struct interval {
        uint64_t start, end;
        uint32_t item;
        uint32_t level;
};
struct interval_list {
        struct interval *items; /* owned */
        size_t count, capacity;
};
void interval_list_deinit(struct interval_list *l);
bool interval_list_add(struct interval_list *l, struct interval i);

/**
 * Call `seen` for each maximal range with one topmost item, in ascending order
 * and without overlap. Sorts the list.
 * @return false without memory.
 */
bool interval_list_overlay(struct interval_list *l,
                           void (*seen)(void *context, uint64_t start, uint64_t end, uint32_t item), void *context);

#endif
