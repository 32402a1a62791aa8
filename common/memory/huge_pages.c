/* SPDX-License-Identifier: Apache-2.0 */
#include "common/memory/huge_pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

void advise_huge_pages(void *array, size_t bytes)
{
        uintptr_t start = ((uintptr_t)array + HUGE_PAGE_BYTES - 1) & ~(uintptr_t)(HUGE_PAGE_BYTES - 1);
        uintptr_t end = ((uintptr_t)array + bytes) & ~(uintptr_t)(HUGE_PAGE_BYTES - 1);

        if (start < end)
                madvise((void *)start, end - start, MADV_HUGEPAGE);
}

void *calloc_huge(size_t count, size_t size)
{
        void *array = calloc(count, size);

        if (array)
                advise_huge_pages(array, count * size);
        return array;
}
