/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/array.h"

#include <stdlib.h>

bool dwarf_array_grow(void *array_pointer, size_t *capacity, size_t element_size)
{
        void **array = array_pointer;
        size_t wanted = *capacity ? *capacity + *capacity / 2 : 64;
        void *grown = reallocarray(*array, wanted, element_size);

        if (!grown)
                return false;
        *array = grown;
        *capacity = wanted;
        return true;
}
