/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_ARRAY_H
#define CAIRN_DWARF_ARRAY_H

/* Growing arrays of this library. */
#include <stdbool.h>
#include <stddef.h>

bool dwarf_array_grow(void *array_pointer, size_t *capacity, size_t element_size);

/** Make room for one more element behind the first `count`; false without memory. */
static inline bool dwarf_array_reserve(void *array_pointer, size_t *capacity, size_t count, size_t element_size)
{
        return count < *capacity || dwarf_array_grow(array_pointer, capacity, element_size);
}

#endif
