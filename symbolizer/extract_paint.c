/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Painting intervals over each other.
 *
 * Inlined calls nest, and symbols may: at each address the innermost one is
 * wanted. In sound input an interval lies inside the one it is painted over;
 * here nothing is assumed. A sweep goes up the addresses with a heap of the
 * intervals that have begun; the top of the heap is what is seen. Ended ones
 * leave when they come to the top. O(n log n) whatever the input.
 */
#include <stdlib.h>

#include "common/sort.h"
#include "symbolizer/extract_internal.h"
#include "symbolizer/huge_array.h"
#include "symbolizer/symbol_table_builder.h"

void interval_list_deinit(struct interval_list *l)
{
        free(l->items);
        *l = (struct interval_list){ 0 };
}

bool interval_list_add(struct interval_list *l, struct interval i)
{
        if (!huge_array_reserve(&l->items, &l->capacity, l->count))
                return false;
        l->items[l->count++] = i;
        return true;
}

static bool above(const struct interval *a, const struct interval *b)
{
        return a->level != b->level ? a->level > b->level : a->item > b->item;
}

struct heap {
        const struct interval **items;
        size_t count;
};

static void heap_push(struct heap *h, const struct interval *i)
{
        size_t at = h->count++;

        while (at > 0 && above(i, h->items[(at - 1) / 2])) {
                h->items[at] = h->items[(at - 1) / 2];
                at = (at - 1) / 2;
        }
        h->items[at] = i;
}

static void heap_pop(struct heap *h)
{
        const struct interval *last = h->items[--h->count];
        size_t at = 0;

        for (;;) {
                size_t child = 2 * at + 1;

                if (child >= h->count)
                        break;
                if (child + 1 < h->count && above(h->items[child + 1], h->items[child]))
                        child++;
                if (!above(h->items[child], last))
                        break;
                h->items[at] = h->items[child];
                at = child;
        }
        h->items[at] = last;
}

bool interval_list_paint(struct interval_list *l, void (*seen)(void *context, uint64_t start, uint64_t end, uint32_t item),
                         void *context)
{
        struct heap heap = { .items = calloc(l->count + 1, sizeof *heap.items) };
        size_t next = 0;
        uint64_t pos = 0;

        if (!heap.items)
                return false;
        if (l->count)
                sort_by_start(l->items, l->count, sizeof *l->items);
        for (;;) {
                uint64_t until;

                while (heap.count && heap.items[0]->end <= pos)
                        heap_pop(&heap);
                if (!heap.count) {
                        if (next == l->count)
                                break;
                        pos = l->items[next].start;
                }
                for (; next < l->count && l->items[next].start <= pos; next++)
                        if (l->items[next].end > pos)
                                heap_push(&heap, &l->items[next]);
                if (!heap.count)
                        continue;
                until = heap.items[0]->end;
                if (next < l->count && l->items[next].start < until)
                        until = l->items[next].start;
                seen(context, pos, until, heap.items[0]->item);
                pos = until;
        }
        free(heap.items);
        return true;
}
