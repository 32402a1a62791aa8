/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_MEMORY_ARRAY_H
#define CAIRN_COMMON_MEMORY_ARRAY_H

/**
 * @file
 * Growable arrays: an allocated pointer, its capacity in elements, and the number of elements in use.
 *
 *     if (!array_reserve(&l->items, &l->capacity, l->count))
 *             return error_no_memory(err);
 *     l->items[l->count++] = item;
 *
 * The caller bounds the number of elements (common/limits.h).
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "common/memory/memory_budget.h"

/* A non-full array is allocated; a static analyzer cannot conclude that from array_grow(). */
#ifdef __clang_analyzer__
#define ARRAY_WITH_ROOM(has_room, array) ((has_room) && *(array))
#else
#define ARRAY_WITH_ROOM(has_room, array) (has_room)
#endif

/** Make room for one more element after the first `count`. False when out of memory; the array is unchanged then. */
#define array_reserve(array, capacity, count)                                                                          \
        ARRAY_WITH_ROOM((count) < *(capacity) || array_grow((array), (capacity), (count), 1, sizeof **(array)), array)

/** Make room for n more elements after the first `count`. False as above, or if count + n overflows. */
#define array_reserve_many(array, capacity, count, n)                                                                  \
        ARRAY_WITH_ROOM((n) <= *(capacity) - (count) ||                                                                \
                                array_grow((array), (capacity), (count), (n), sizeof **(array)),                       \
                        array)

/**
 * Grow by half, or to count + n elements if that is more. Called through the macros above.
 * @param array_pointer  the address of the pointer to the first element; count <= *capacity
 */
bool array_grow(void *array_pointer, size_t *capacity, size_t count, size_t n, size_t element_size) MUST_CHECK;

#define ARRAY_UNCHARGED 1024 /* elements: a small array is not charged to the budget */

/**
 * Reserve from the budget what the next array_reserve() will allocate; call it before.
 * @param element_bytes  size of an element, plus that of parallel arrays growing with it.
 * @return as memory_reserve().
 */
enum status array_charge_growth(struct memory_reservation *memory, size_t capacity, size_t count, size_t element_bytes,
                                struct error *err) MUST_CHECK;

#endif
