/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_HUGE_ARRAY_H
#define CAIRN_SYMBOLIZER_HUGE_ARRAY_H

/*
 * Arrays as in common/array.h for what becomes large: written once, from start
 * to end, so that in small pages a tenth of all time goes into their first
 * touch. From a megabyte on they grow by whole huge pages, in smaller steps.
 * What has huge pages is copied when it grows: where the peak of memory counts
 * more than time, take common/array.h.
 */
#include <stdbool.h>
#include <stddef.h>

/** Room for one more element behind the first `count`, or for `more` of them; false without memory. */
#define huge_array_reserve(array, capacity, count) \
        ((count) < *(capacity) || huge_array_grow((array), (capacity), (size_t)(count) + 1, sizeof **(array)))
#define huge_array_reserve_more(array, capacity, count, more) \
        ((size_t)(count) + (more) <= *(capacity) || \
         huge_array_grow((array), (capacity), (size_t)(count) + (more), sizeof **(array)))

/** Room for `wanted` elements at least. @param array_pointer the address of the pointer to the first element. */
bool huge_array_grow(void *array_pointer, size_t *capacity, size_t wanted, size_t element_size);

#endif
