/* SPDX-License-Identifier: Apache-2.0 */
#include "common/array.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_COUNT 64

bool array_grow(void *array_pointer, size_t *capacity, size_t element_size)
{
        size_t wanted = *capacity < FIRST_COUNT ? FIRST_COUNT : *capacity + *capacity / 2; /* half of one would be nothing */
        void *array, *grown;

        memcpy(&array, array_pointer, sizeof array); /* whatever it points to */
        grown = reallocarray(array, wanted, element_size);
        if (!grown)
                return false;
        memcpy(array_pointer, &grown, sizeof grown);
        *capacity = wanted;
        return true;
}
