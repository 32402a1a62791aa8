/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_HUGE_PAGES_H
#define CAIRN_COMMON_HUGE_PAGES_H

/**
 * @file
 * Transparent huge pages for large arrays. Those that are read in random order miss the TLB at nearly every access with
 * small pages; those that are filled from start to end save most page faults.
 */
#include <stddef.h>

#include "common/limits.h"

#define HUGE_PAGE_BYTES MiB(2)

/** Advise the kernel to back the whole huge pages within an allocation; right after it was made. Advice only. */
void advise_huge_pages(void *array, size_t bytes);

/** As calloc(), with that advice. */
void *calloc_huge(size_t count, size_t size);

#endif
