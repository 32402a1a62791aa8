/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_ARRAY_H
#define CAIRN_COMMON_ARRAY_H

/**
 * @file
 * Arrays that grow by one element at a time: an allocated pointer, how many
 * elements it has room for, and how many are in use.
 *
 *     if (!array_reserve(&l->items, &l->capacity, l->count))
 *             return error_no_memory(err);
 *     l->items[l->count++] = item;
 *
 * How many elements there may be is for the caller to bound.
 */
#include <stdbool.h>
#include <stddef.h>

/** Room for one more element behind the first `count`; false without memory, the array is then as it was. */
#define array_reserve(array, capacity, count) \
        ((count) < *(capacity) || array_grow((array), (capacity), sizeof **(array)))

/** Half as much room again. @param array_pointer the address of the pointer to the first element. */
bool array_grow(void *array_pointer, size_t *capacity, size_t element_size);

#endif
