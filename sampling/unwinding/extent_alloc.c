/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/unwinding/extent_alloc.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"

bool extent_alloc_init(struct extent_alloc *r, uint32_t count, uint32_t boundary)
{
        uint32_t step = boundary ? boundary : count;
        size_t pieces = (count + (size_t)step - 1) / step;

        *r = (struct extent_alloc){ .boundary = boundary, .free_capacity = pieces };
        r->free = calloc(pieces, sizeof *r->free);
        for (uint32_t first = 0; r->free && r->free_count < pieces; first += step)
                r->free[r->free_count++] = (struct extent){ first, count - first < step ? count - first : step };
        return r->free != NULL;
}

void extent_alloc_deinit(struct extent_alloc *r)
{
        free(r->free);
        free(r->released);
        *r = (struct extent_alloc){ 0 };
}

bool extent_alloc_reserve(struct extent_alloc *r, uint32_t count, struct extent *ret)
{
        for (size_t i = 0; i < r->free_count; i++) {
                struct extent *f = &r->free[i];

                if (f->count < count)
                        continue;
                *ret = (struct extent){ f->first, count };
                f->first += count;
                f->count -= count;
                if (!f->count)
                        memmove(f, f + 1, (--r->free_count - i) * sizeof *f);
                r->in_use += count;
                return true;
        }
        return false;
}

void extent_alloc_release(struct extent_alloc *r, struct extent run)
{
        if (run.count && array_reserve(&r->released, &r->released_capacity, r->released_count))
                r->released[r->released_count++] = run;
}

static bool can_merge_extents(const struct extent_alloc *r, const struct extent *a, const struct extent *b)
{
        return a->first + a->count == b->first && (!r->boundary || b->first % r->boundary);
}

/* Free extents are ascending, disjoint, not empty, and do not cross the boundary. */
static void extent_alloc_check(const struct extent_alloc *r)
{
        for (size_t i = 0; i < r->free_count; i++) {
                const struct extent *e = &r->free[i];

                assert(e->count && (!i || r->free[i - 1].first + r->free[i - 1].count <= e->first));
                assert(!r->boundary || e->first / r->boundary == (e->first + e->count - 1) / r->boundary);
                (void)e;
        }
}

static void insert_free_extent(struct extent_alloc *r, struct extent run)
{
        size_t at = 0;

        while (at < r->free_count && r->free[at].first < run.first)
                at++;
        assert(r->in_use >= run.count);
        r->in_use -= run.count;
        if (at && can_merge_extents(r, &r->free[at - 1], &run)) {
                r->free[--at].count += run.count;
        } else {
                if (!array_reserve(&r->free, &r->free_capacity, r->free_count))
                        return;
                memmove(&r->free[at + 1], &r->free[at], (r->free_count++ - at) * sizeof *r->free);
                r->free[at] = run;
        }
        if (at + 1 < r->free_count && can_merge_extents(r, &r->free[at], &r->free[at + 1])) {
                r->free[at].count += r->free[at + 1].count;
                memmove(&r->free[at + 1], &r->free[at + 2], (--r->free_count - at - 1) * sizeof *r->free);
        }
}

void extent_alloc_reclaim(struct extent_alloc *r)
{
        for (size_t i = 0; i < r->released_count; i++)
                insert_free_extent(r, r->released[i]);
        r->released_count = 0;
        extent_alloc_check(r);
}
