/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runs.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"

bool runs_init(struct runs *r, uint32_t count, uint32_t boundary)
{
        uint32_t step = boundary ? boundary : count;
        size_t pieces = (count + (size_t)step - 1) / step;

        *r = (struct runs){ .boundary = boundary, .free_capacity = pieces };
        r->free = calloc(pieces, sizeof *r->free);
        for (uint32_t first = 0; r->free && r->free_count < pieces; first += step)
                r->free[r->free_count++] = (struct run_of_numbers){ first, count - first < step ? count - first : step };
        return r->free != NULL;
}

void runs_deinit(struct runs *r)
{
        free(r->free);
        free(r->given_back);
        *r = (struct runs){ 0 };
}

bool runs_take(struct runs *r, uint32_t count, struct run_of_numbers *ret)
{
        for (size_t i = 0; i < r->free_count; i++) {
                struct run_of_numbers *f = &r->free[i];

                if (f->count < count)
                        continue;
                *ret = (struct run_of_numbers){ f->first, count };
                f->first += count;
                f->count -= count;
                if (!f->count)
                        memmove(f, f + 1, (--r->free_count - i) * sizeof *f);
                r->in_use += count;
                return true;
        }
        return false;
}

void runs_give_back(struct runs *r, struct run_of_numbers run)
{
        if (run.count && array_reserve(&r->given_back, &r->given_back_capacity, r->given_back_count))
                r->given_back[r->given_back_count++] = run;
}

static bool can_join(const struct runs *r, const struct run_of_numbers *a, const struct run_of_numbers *b)
{
        return a->first + a->count == b->first && (!r->boundary || b->first % r->boundary);
}

static void make_free(struct runs *r, struct run_of_numbers run)
{
        size_t at = 0;

        while (at < r->free_count && r->free[at].first < run.first)
                at++;
        r->in_use -= run.count;
        if (at && can_join(r, &r->free[at - 1], &run)) {
                r->free[--at].count += run.count;
        } else {
                if (!array_reserve(&r->free, &r->free_capacity, r->free_count))
                        return;
                memmove(&r->free[at + 1], &r->free[at], (r->free_count++ - at) * sizeof *r->free);
                r->free[at] = run;
        }
        if (at + 1 < r->free_count && can_join(r, &r->free[at], &r->free[at + 1])) {
                r->free[at].count += r->free[at + 1].count;
                memmove(&r->free[at + 1], &r->free[at + 2], (--r->free_count - at - 1) * sizeof *r->free);
        }
}

void runs_settle(struct runs *r)
{
        for (size_t i = 0; i < r->given_back_count; i++)
                make_free(r, r->given_back[i]);
        r->given_back_count = 0;
}
