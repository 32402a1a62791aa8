/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_MEMORY_HUGE_PAGES_H
#define CAIRN_COMMON_MEMORY_HUGE_PAGES_H

/**
 * @file
 * Transparent huge pages for large arrays. With small pages, random reads miss the TLB at nearly every access; with
 * huge pages, sequential filling avoids most page faults.
 */
#include <stddef.h>

#include "common/limits.h"

#define HUGE_PAGE_BYTES MiB(2)

/**
 * Advise the kernel to back the huge pages fully inside an allocation; call it right after allocating. Advisory only.
 */
void advise_huge_pages(void *array, size_t bytes);

/** Like calloc(), with that advice. */
void *calloc_huge(size_t count, size_t size);

#endif
