/* SPDX-License-Identifier: Apache-2.0 */
#include "common/memory/array.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 64

bool array_grow(void *array_pointer, size_t *capacity, size_t count, size_t n, size_t element_size)
{
        size_t needed, grown_capacity = *capacity + *capacity / 2;
        void *array, *grown;

        assert(count <= *capacity && element_size);
        if (__builtin_add_overflow(count, n, &needed))
                return false;
        if (grown_capacity < FIRST_CAPACITY)
                grown_capacity = FIRST_CAPACITY;
        if (grown_capacity < needed)
                grown_capacity = needed;
        if (grown_capacity > PTRDIFF_MAX / element_size)
                return false;
        memcpy(&array, array_pointer, sizeof array); /* the pointer may have any type */
        grown = realloc(array, grown_capacity * element_size);
        if (!grown)
                return false;
        memcpy(array_pointer, &grown, sizeof grown);
        *capacity = grown_capacity;
        return true;
}

enum status array_charge_growth(struct memory_reservation *memory, size_t capacity, size_t count, size_t element_bytes,
                                struct error *err)
{
        size_t bytes;

        if (count < capacity || capacity + capacity / 2 <= ARRAY_UNCHARGED)
                return ST_OK;
        if (__builtin_mul_overflow(capacity / 2, element_bytes, &bytes))
                return error_no_memory(err);
        return memory_reserve(memory, bytes, err);
}
