/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/objects/code_names.h"

#include <assert.h>
#include <string.h>

#include "common/limits.h"
#include "common/memory/array.h"
#include "common/search.h"

#define SWEEP_NAMES_MIN KiB(64)

void code_names_init(struct code_names *c, struct code_budget *budget)
{
        *c = (struct code_names){ .budget = budget };
        buf_init(&c->names, LIMIT_AGENT_JIT_PROCESS_BYTES);
}

void code_names_deinit(struct code_names *c)
{
        if (c->budget)
                c->budget->used -= c->charged;
        free(c->ranges);
        free(c->pending);
        buf_deinit(&c->names);
        *c = (struct code_names){ 0 };
}

/* Replace a charge of `before` bytes by `after` bytes. Merging may exceed the limit, at most twofold, by splitting
   ranges. */
static void adjust_charge(struct code_names *c, size_t before, size_t after)
{
        assert(c->charged + after >= before && (!c->budget || c->budget->used + after >= before));
        c->charged += after - before;
        if (c->budget)
                c->budget->used += after - before;
}

enum status code_names_charge(struct code_names *c, size_t bytes, struct error *err)
{
        if (c->charged + bytes > LIMIT_AGENT_JIT_PROCESS_BYTES ||
            (c->budget && c->budget->used + bytes > c->budget->max))
                return error_set(err, ST_TOO_BIG, "names of generated code exceed their memory limit");
        adjust_charge(c, 0, bytes);
        return ST_OK;
}

enum status code_names_add_text(struct code_names *c, const char *name, size_t n, uint32_t *ret, struct error *err)
{
        enum status st = code_names_charge(c, n + 1, err);
        uint32_t offset = (uint32_t)c->names.size;

        if (st)
                return st;
        buf_append(&c->names, name, n);
        if (buf_append_u8(&c->names, 0)) {
                adjust_charge(c, n + 1, 0);
                return buf_status(&c->names, err, "names of generated code");
        }
        *ret = offset;
        return ST_OK;
}

/* ---- merging pending ranges: a sweep over their starts and ends ---- */

static int compare_range_starts(const void *a, const void *b)
{
        const struct named_range *const *x = a, *const *y = b;

        if ((*x)->start != (*y)->start)
                return (*x)->start < (*y)->start ? -1 : 1;
        return *x < *y ? -1 : *x > *y;
}

/* Max-heap of open ranges by array position: the range added last is on top. */
struct heap {
        const struct named_range **items;
        size_t count;
};

static void push_open_range(struct heap *h, const struct named_range *s)
{
        size_t i = h->count++;

        for (; i > 0 && h->items[(i - 1) / 2] < s; i = (i - 1) / 2)
                h->items[i] = h->items[(i - 1) / 2];
        h->items[i] = s;
}

static void pop_open_range(struct heap *h)
{
        const struct named_range *last = h->items[--h->count];
        size_t i = 0;

        for (;;) {
                size_t child = 2 * i + 1;

                if (child >= h->count)
                        break;
                if (child + 1 < h->count && h->items[child + 1] > h->items[child])
                        child++;
                if (h->items[child] <= last)
                        break;
                h->items[i] = h->items[child];
                i = child;
        }
        if (h->count)
                h->items[i] = last;
}

static void append_merged_range(struct code_names *c, uint64_t start, uint64_t end, const struct named_range *s)
{
        struct named_range *last = c->range_count ? &c->ranges[c->range_count - 1] : NULL;

        if (start == end || s->name == CODE_NAME_NONE)
                return;
        if (last && last->end == start && last->name == s->name && last->tag == s->tag)
                last->end = end;
        else
                c->ranges[c->range_count++] = (struct named_range){ start, end, s->name, s->tag };
}

static void sweep_ranges(struct code_names *c, const struct named_range **order, size_t count, struct heap *heap)
{
        size_t next = 0;
        uint64_t at = 0;

        c->range_count = 0;
        while (next < count || heap->count) {
                if (!heap->count)
                        at = order[next]->start;
                while (next < count && order[next]->start <= at)
                        push_open_range(heap, order[next++]);
                while (heap->count && heap->items[0]->end <= at)
                        pop_open_range(heap);
                if (heap->count) {
                        uint64_t until = heap->items[0]->end;

                        if (next < count && order[next]->start < until)
                                until = order[next]->start;
                        append_merged_range(c, at, until, heap->items[0]);
                        at = until;
                }
        }
}

/* Compact the names when unreferenced ones are the larger part. */
static void compact_names(struct code_names *c)
{
        struct buf kept = { 0 };
        size_t live = 0;

        for (size_t i = 0; i < c->range_count; i++)
                live += strlen(code_names_get_text(c, &c->ranges[i])) + 1;
        if (c->keeps_names || c->names.size < SWEEP_NAMES_MIN || live > c->names.size / 2)
                return;
        buf_init(&kept, c->names.max);
        if (!buf_reserve(&kept, live ? live : 1)) {
                buf_deinit(&kept);
                return;
        }
        for (size_t i = 0; i < c->range_count; i++) {
                const char *name = code_names_get_text(c, &c->ranges[i]);

                c->ranges[i].name = (uint32_t)kept.size;
                buf_append(&kept, name, strlen(name) + 1); /* reserved above */
        }
        adjust_charge(c, c->names.size, kept.size);
        buf_deinit(&c->names);
        c->names = kept;
}

/* Ranges in effect are ascending, disjoint and not empty, and have a name. */
static void code_names_check(const struct code_names *c)
{
        for (size_t i = 0; i < c->range_count; i++) {
                const struct named_range *r = &c->ranges[i];

                assert(r->start < r->end && (!i || c->ranges[i - 1].end <= r->start));
                assert(r->name != CODE_NAME_NONE);
                (void)r;
        }
}

/* Pending ranges override those in effect, which are older. */
static bool merge_pending_ranges(struct code_names *c)
{
        size_t count = c->range_count + c->pending_count;
        struct named_range *all = reallocarray(NULL, count, sizeof *all);
        const struct named_range **order = reallocarray(NULL, count, sizeof *order);
        struct heap heap = { .items = reallocarray(NULL, count, sizeof *heap.items) };
        /* Each start and each end begins at most one merged range. */
        struct named_range *ranges = reallocarray(NULL, 2 * count, sizeof *ranges);
        struct named_range *shrunk;
        bool done = all && order && heap.items && ranges;

        if (done) {
                if (c->range_count)
                        memcpy(all, c->ranges, c->range_count * sizeof *all);
                memcpy(all + c->range_count, c->pending, c->pending_count * sizeof *all);
                for (size_t i = 0; i < count; i++)
                        order[i] = &all[i];
                qsort(order, count, sizeof *order, compare_range_starts);
                free(c->ranges);
                c->ranges = ranges;
                ranges = NULL;
                sweep_ranges(c, order, count, &heap);
                adjust_charge(c, count * sizeof *all, c->range_count * sizeof *all);
                shrunk = reallocarray(c->ranges, c->range_count ? c->range_count : 1, sizeof *shrunk);
                c->ranges = shrunk ? shrunk : c->ranges;
                c->pending_count = 0;
                compact_names(c);
                code_names_check(c);
        }
        free(all);
        free(order);
        free(heap.items);
        free(ranges);
        return done;
}

/* ---- API ---- */

enum status code_names_add(struct code_names *c, uint64_t start, uint64_t end, uint32_t name, uint32_t tag,
                           struct error *err)
{
        enum status st;

        if (c->pending_count >= LIMIT_AGENT_JIT_SYMBOLS / 4 && !merge_pending_ranges(c))
                return error_no_memory(err);
        if (c->range_count + c->pending_count >= LIMIT_AGENT_JIT_SYMBOLS)
                return error_set(err, ST_TOO_BIG, "more than %d ranges of generated code", LIMIT_AGENT_JIT_SYMBOLS);
        st = code_names_charge(c, sizeof *c->pending, err);
        if (st)
                return st;
        if (!array_reserve(&c->pending, &c->pending_capacity, c->pending_count)) {
                adjust_charge(c, sizeof *c->pending, 0);
                return error_no_memory(err);
        }
        c->pending[c->pending_count++] = (struct named_range){ start, end, name, tag };
        return ST_OK;
}

const struct named_range *code_names_find(struct code_names *c, uint64_t addr)
{
        size_t at;

        if (c->pending_count && !merge_pending_ranges(c))
                return NULL;
        at = find_lower_bound(i, 0, c->range_count, c->ranges[i].end <= addr);
        return at == c->range_count || c->ranges[at].start > addr ? NULL : &c->ranges[at];
}
