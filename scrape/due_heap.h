/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCRAPE_DUE_HEAP_H
#define CAIRN_SCRAPE_DUE_HEAP_H

/**
 * @file
 * A binary min-heap of items by the time when they are due. The caller reserves room for all items, so that pushing one
 * cannot fail.
 *
 * Threads: the caller's lock.
 */
#include <stddef.h>
#include <stdint.h>

struct due_item {
        int64_t due_ns; /* monotonic; may be changed by whoever then calls due_heap_order() */
};

struct due_heap {
        struct due_item **items; /* owned; the items are borrowed */
        size_t count, capacity;
};

/** There must be room. */
void due_heap_push(struct due_heap *h, struct due_item *item);

/** Remove the item that is due first, which must exist. */
struct due_item *due_heap_pop(struct due_heap *h);

/** Order the items again, after the caller removed some of them or changed their times. */
void due_heap_order(struct due_heap *h);

#endif
