/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arrays of a batch. Big ones are asked for in huge pages: answers are
 * written in no order, and with small pages most such writes look for their
 * page first.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/limits.h"
#include "symbolizer/lookup_internal.h"

#define HUGE_PAGE_BYTES MiB(2)

static void *grow_huge(void *old, size_t old_bytes, size_t bytes)
{
        size_t rounded = (bytes + HUGE_PAGE_BYTES - 1) & ~(HUGE_PAGE_BYTES - 1);
        void *bigger = rounded >= bytes ? aligned_alloc(HUGE_PAGE_BYTES, rounded) : NULL;

        if (!bigger)
                return NULL;
        /* Advice: without it the pages are small ones, and that is all. */
        madvise(bigger, rounded, MADV_HUGEPAGE);
        if (old)
                memcpy(bigger, old, old_bytes);
        free(old);
        return bigger;
}

bool lookup_grow(void **array, size_t *capacity, size_t count, size_t size)
{
        size_t wanted = *capacity ? *capacity : 64, bytes;
        void *bigger;

        if (count <= *capacity)
                return true;
        while (wanted < count)
                if (__builtin_mul_overflow(wanted, 2, &wanted))
                        return false;
        if (__builtin_mul_overflow(wanted, size, &bytes))
                return false;
        bigger = bytes < 2 * HUGE_PAGE_BYTES ? realloc(*array, bytes) : grow_huge(*array, *capacity * size, bytes);
        if (!bigger)
                return false;
        *array = bigger;
        *capacity = wanted;
        return true;
}
