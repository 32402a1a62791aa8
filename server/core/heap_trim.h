/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_HEAP_TRIM_H
#define CAIRN_SERVER_CORE_HEAP_TRIM_H

/**
 * @file
 * Returns freed memory to the kernel. The allocator keeps blocks that were freed between others in use, in an arena for
 * each of several threads; after a burst these are hundreds of MiB that the memory budget no longer counts and that a
 * cgroup's limit does. So the resident memory is compared with the budget from time to time.
 *
 * Threads: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_trim {
        int64_t next_ns;    /* when to compare again */
        size_t other_bytes; /* resident after the last trim, and not in the budget: code's data, caches of libraries */
};

/** Whether a trim is worth its time. @param resident, held  bytes of anonymous memory, and bytes held in the budget */
bool heap_trim_is_due(const struct heap_trim *t, size_t resident, size_t held);

/** Compare, at most every LIMIT_HEAP_TRIM_INTERVAL_S, and trim if it is due. */
void heap_trim_check(struct heap_trim *t);

#endif
