/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_SEARCH_H
#define CAIRN_COMMON_SEARCH_H

/* Binary search over anything with an index: arrays, columns, entries of a page. */
#include <stddef.h>

/**
 * The first index in [first, end) for which is_before is false; end when it is true for all of them.
 *
 * is_before is an expression of the variable `index`. It must be true for a prefix of the range and false for the rest;
 * it is evaluated about log2(end - first) times. The lower bound of a key:
 *
 *     size_t at = find_lower_bound(i, 0, count, items[i].key < key);
 *
 * The last item that starts at or before an address precedes the first that starts after it:
 *
 *     size_t behind = find_lower_bound(i, 0, count, items[i].start <= address);
 *
 *     return behind ? &items[behind - 1] : NULL;
 *
 * A macro, because calling a comparison function for each step would cost more than the search.
 */
#define find_lower_bound(index, first, end, is_before)                                                                 \
        ({                                                                                                             \
                size_t low_##index = (first), high_##index = (end);                                                    \
                                                                                                                       \
                while (low_##index < high_##index) {                                                                   \
                        size_t index = low_##index + (high_##index - low_##index) / 2;                                 \
                                                                                                                       \
                        if (is_before)                                                                                 \
                                low_##index = index + 1;                                                               \
                        else                                                                                           \
                                high_##index = index;                                                                  \
                }                                                                                                      \
                low_##index;                                                                                           \
        })

#endif
