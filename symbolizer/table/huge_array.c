/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/table/huge_array.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/huge_pages.h"

#define FIRST_COUNT 64
#define BIG_BYTES MiB(1)

bool huge_array_grow(void *array_pointer, size_t *capacity, size_t wanted, size_t element_size)
{
        size_t bytes = *capacity * element_size, usual = *capacity < FIRST_COUNT ? FIRST_COUNT : *capacity * 2;
        void *array, *grown;

        assert(wanted > *capacity && element_size > 0);
        if (bytes >= BIG_BYTES)
                usual = *capacity + (bytes / 4 > 2 * HUGE_PAGE_BYTES ? bytes / 4 : 2 * HUGE_PAGE_BYTES) / element_size;
        if (wanted < usual)
                wanted = usual;
        memcpy(&array, array_pointer, sizeof array); /* a pointer to any type */
        grown = reallocarray(array, wanted, element_size);
        if (!grown)
                return false;
        advise_huge_pages(grown, wanted * element_size);
        memcpy(array_pointer, &grown, sizeof grown);
        *capacity = wanted;
        return true;
}
