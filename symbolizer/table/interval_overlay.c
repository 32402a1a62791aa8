/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweep over the sorted interval starts with a heap of the open intervals,
 * topmost first; ended intervals are removed when they reach the top of the
 * heap. In valid input intervals nest, but this is not required. O(n log n) for
 * any input.
 */
#include <assert.h>
#include <stdlib.h>

#include "common/debug_check.h"
#include "common/sort.h"
#include "symbolizer/table/interval_overlay.h"
#include "symbolizer/table/huge_array.h"

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

static bool is_above(const struct interval *a, const struct interval *b)
{
        return a->level != b->level ? a->level > b->level : a->item > b->item;
}

struct interval_heap {
        const struct interval **items;
        size_t count;
};

static void push_interval(struct interval_heap *h, const struct interval *i)
{
        size_t at = h->count++;

        while (at > 0 && is_above(i, h->items[(at - 1) / 2])) {
                h->items[at] = h->items[(at - 1) / 2];
                at = (at - 1) / 2;
        }
        h->items[at] = i;
}

static void pop_interval(struct interval_heap *h)
{
        const struct interval *last = h->items[--h->count];
        size_t at = 0;

        for (;;) {
                size_t child = 2 * at + 1;

                if (child >= h->count)
                        break;
                if (child + 1 < h->count && is_above(h->items[child + 1], h->items[child]))
                        child++;
                if (!is_above(h->items[child], last))
                        break;
                h->items[at] = h->items[child];
                at = child;
        }
        h->items[at] = last;
}

/* Debug builds: the sweep relies on sorted starts. Empty and inverted intervals are allowed, they are skipped. */
static void interval_list_check(const struct interval_list *l)
{
        assert(l->count <= l->capacity);
#if DEBUG_CHECKS
        for (size_t i = 1; i < l->count; i++)
                assert(l->items[i - 1].start <= l->items[i].start);
#endif
}

bool interval_list_overlay(struct interval_list *l,
                           void (*seen)(void *context, uint64_t start, uint64_t end, uint32_t item), void *context)
{
        struct interval_heap interval_heap = { .items = calloc(l->count + 1, sizeof *interval_heap.items) };
        size_t next = 0;
        uint64_t pos = 0;

        if (!interval_heap.items)
                return false;
        if (l->count)
                sort_by_start(l->items, l->count, sizeof *l->items);
        interval_list_check(l);
        for (;;) {
                uint64_t until;

                while (interval_heap.count && interval_heap.items[0]->end <= pos)
                        pop_interval(&interval_heap);
                if (!interval_heap.count) {
                        if (next == l->count)
                                break;
                        pos = l->items[next].start;
                }
                for (; next < l->count && l->items[next].start <= pos; next++)
                        if (l->items[next].end > pos)
                                push_interval(&interval_heap, &l->items[next]);
                if (!interval_heap.count)
                        continue;
                until = interval_heap.items[0]->end;
                if (next < l->count && l->items[next].start < until)
                        until = l->items[next].start;
                assert(pos < until);
                seen(context, pos, until, interval_heap.items[0]->item);
                pos = until;
        }
        free(interval_heap.items);
        return true;
}
