/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the ranges of a builder in order and takes overlaps out, and lets others change them in place. */
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/sort.h"
#include "symbolizer/extract_internal.h"
#include "symbolizer/huge_array.h"
#include "symbolizer/symbol_table_builder.h"

static void failed(struct symbol_table_builder *b, enum status st)
{
        if (!b->failed)
                b->failed = st;
}

/*
 * Ranges are most of what a big object takes, so that changing them works in
 * place. Where more come than were taken, those still to do are moved up, by an
 * eighth of them, so that it happens seldom.
 */
static void make_gap(struct symbol_table_rewrite *w)
{
        struct symbol_table_builder *b = w->b;
        size_t left = b->range_count - w->read, gap = left / 8 + 64, capacity = b->range_count + gap;
        struct symbol_range *grown;

        if (capacity > LIMIT_RANGES_PER_OBJECT) {
                failed(b, ST_TOO_BIG);
                return;
        }
        if (capacity > b->range_capacity) {
                grown = reallocarray(b->ranges, capacity, sizeof *grown);
                if (!grown) {
                        failed(b, ST_NO_MEMORY);
                        return;
                }
                b->ranges = grown;
                b->range_capacity = capacity;
        }
        memmove(b->ranges + w->read + gap, b->ranges + w->read, left * sizeof *b->ranges);
        w->read += gap;
        b->range_count += gap;
}

bool symbol_table_rewrite_next(struct symbol_table_rewrite *w, struct symbol_range *ret)
{
        if (w->b->failed || w->read == w->b->range_count)
                return false;
        *ret = w->b->ranges[w->read++];
        return true;
}

void symbol_table_rewrite_add(struct symbol_table_rewrite *w, uint64_t start, uint64_t end, uint32_t chain)
{
        struct symbol_range *last = w->write ? &w->b->ranges[w->write - 1] : NULL;

        if (w->b->failed || start >= end)
                return;
        if (last && last->end == start && last->chain == chain) {
                last->end = end;
                return;
        }
        if (w->write == w->read)
                make_gap(w);
        if (!w->b->failed)
                w->b->ranges[w->write++] = (struct symbol_range){ start, end, chain };
}

void symbol_table_rewrite_end(struct symbol_table_rewrite *w)
{
        w->b->range_count = w->write;
}

static bool is_settled(const struct symbol_table_builder *b)
{
        for (size_t i = 1; i < b->range_count; i++)
                if (b->ranges[i].start < b->ranges[i - 1].end)
                        return false;
        return true;
}

/* Painting has the greater item on top, and the first chain is wanted there. */
static uint32_t reversed(uint32_t chain)
{
        return UINT32_MAX - chain;
}

static void settled(void *context, uint64_t start, uint64_t end, uint32_t item)
{
        symbol_table_rewrite_add(context, start, end, reversed(item));
}

/* The ranges from s->read on that overlap one another. @return how many, at least 1 */
static size_t count_overlapping(const struct symbol_table_rewrite *s)
{
        const struct symbol_range *r = s->b->ranges + s->read;
        size_t n = s->b->range_count - s->read, i = 1;
        uint64_t end = r[0].end;

        for (; i < n && r[i].start < end; i++)
                if (r[i].end > end)
                        end = r[i].end;
        return i;
}

static void settle_overlapping(struct symbol_table_rewrite *s, size_t count, struct interval_list *list)
{
        struct symbol_table_builder *b = s->b;
        bool ok = true;

        list->count = 0;
        for (size_t i = 0; ok && i < count; i++) {
                const struct symbol_range *r = &b->ranges[s->read + i];

                ok = interval_list_add(list, (struct interval){ r->start, r->end, reversed(r->chain),
                                                                !symbol_table_builder_is_nameless(b, r->chain) });
        }
        s->read += count;
        if (!ok || !interval_list_paint(list, settled, s))
                failed(b, ST_NO_MEMORY);
}

/* ---- sorting ---- */

#define APART 64      /* bytes between two ranges that end a run */
#define FEW_IN_A_RUN 4

/* Neighbours that stay neighbours; what sort_by_start() takes. */
struct run {
        uint64_t start;
        uint64_t first, count;
};

static size_t count_runs(const struct symbol_range *r, size_t count, struct run *runs)
{
        size_t n = 0;

        for (size_t i = 0; i < count; i++) {
                if (i == 0 || r[i].start < r[i - 1].end || r[i].start - r[i - 1].end > APART) {
                        if (runs)
                                runs[n] = (struct run){ r[i].start, i, 0 };
                        n++;
                }
                if (runs)
                        runs[n - 1].count++;
        }
        return n;
}

/*
 * Units come one after the other, and each has its functions in a few places:
 * the places are sorted, and their ranges move together. Where places mesh
 * there is still something to sort afterwards. Without memory nothing is done.
 */
static void sort_runs(struct symbol_table_builder *b)
{
        size_t count = count_runs(b->ranges, b->range_count, NULL), done = 0;
        _cleanup_free_ struct run *runs = NULL;
        struct symbol_range *sorted = NULL;
        size_t capacity = 0;

        if (count > b->range_count / FEW_IN_A_RUN)
                return;
        runs = calloc(count, sizeof *runs);
        if (!runs || !huge_array_reserve_more(&sorted, &capacity, 0, b->range_count))
                return;
        count_runs(b->ranges, b->range_count, runs);
        sort_by_start(runs, count, sizeof *runs);
        for (size_t i = 0; i < count; i++) {
                memcpy(sorted + done, b->ranges + runs[i].first, runs[i].count * sizeof *sorted);
                done += runs[i].count;
        }
        free(b->ranges);
        b->ranges = sorted;
        b->range_capacity = capacity;
}

void symbol_table_builder_settle(struct symbol_table_builder *b)
{
        struct symbol_table_rewrite s = { .b = b };
        struct interval_list list = { 0 };

        if (b->failed || is_settled(b))
                return;
        sort_runs(b);
        sort_by_start(b->ranges, b->range_count, sizeof *b->ranges);
        while (s.read < b->range_count && !b->failed) {
                size_t count = count_overlapping(&s);

                if (count == 1) {
                        struct symbol_range r;

                        if (symbol_table_rewrite_next(&s, &r))
                                symbol_table_rewrite_add(&s, r.start, r.end, r.chain);
                } else {
                        settle_overlapping(&s, count, &list);
                }
        }
        symbol_table_rewrite_end(&s);
        interval_list_deinit(&list);
}
