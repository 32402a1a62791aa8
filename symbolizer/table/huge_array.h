/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_TABLE_HUGE_ARRAY_H
#define CAIRN_SYMBOLIZER_TABLE_HUGE_ARRAY_H

/**
 * @file
 * Growable arrays as common/memory/array.h, with transparent huge pages from a megabyte
 * on: for large arrays that are written once from start to end, first touches of
 * small pages cost a tenth of the time. Growth is by whole huge pages, in
 * smaller steps. Growing copies the array; where peak memory matters more than
 * time, use common/memory/array.h.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/memory/array.h"

/** Make room for one more element after the first `count`, or for `more` of them; false without memory. */
#define huge_array_reserve(array, capacity, count)                                                                     \
        ARRAY_WITH_ROOM((count) < *(capacity) ||                                                                       \
                                huge_array_grow((array), (capacity), (size_t)(count) + 1, sizeof **(array)),           \
                        array)
#define huge_array_reserve_more(array, capacity, count, more)                                                          \
        ARRAY_WITH_ROOM((size_t)(count) + (more) <= *(capacity) ||                                                     \
                                huge_array_grow((array), (capacity), (size_t)(count) + (more), sizeof **(array)),      \
                        array)

/** Reserve at least `wanted` elements. @param array_pointer the address of the pointer to the first element. */
bool huge_array_grow(void *array_pointer, size_t *capacity, size_t wanted, size_t element_size);

#endif
