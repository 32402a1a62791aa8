/* SPDX-License-Identifier: Apache-2.0 */
#include "scrape/due_heap.h"

#include <assert.h>

static void sift_up(struct due_item **heap, size_t i)
{
        struct due_item *item = heap[i];

        for (size_t parent; i && heap[parent = (i - 1) / 2]->due_ns > item->due_ns; i = parent)
                heap[i] = heap[parent];
        heap[i] = item;
}

static void sift_down(struct due_item **heap, size_t count, size_t i)
{
        struct due_item *item = heap[i];

        for (;;) {
                size_t child = 2 * i + 1;

                if (child + 1 < count && heap[child + 1]->due_ns < heap[child]->due_ns)
                        child++;
                if (child >= count || heap[child]->due_ns >= item->due_ns)
                        break;
                heap[i] = heap[child];
                i = child;
        }
        heap[i] = item;
}

void due_heap_push(struct due_heap *h, struct due_item *item)
{
        assert(h->count < h->capacity);
        h->items[h->count++] = item;
        sift_up(h->items, h->count - 1);
}

struct due_item *due_heap_pop(struct due_heap *h)
{
        struct due_item *first = h->items[0];

        h->items[0] = h->items[--h->count];
        if (h->count)
                sift_down(h->items, h->count, 0);
        return first;
}

void due_heap_order(struct due_heap *h)
{
        for (size_t i = h->count / 2; i-- > 0;)
                sift_down(h->items, h->count, i);
}
