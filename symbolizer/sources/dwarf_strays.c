/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/sources/dwarf_strays.h"

#include <stdlib.h>

#include "common/memory/array.h"
#include "common/search.h"
#include "symbolizer/sources/dwarf_selection.h"

void dwarf_stray_list_deinit(struct dwarf_stray_list *l)
{
        free(l->items);
        *l = (struct dwarf_stray_list){ 0 };
}

bool dwarf_stray_list_add(struct dwarf_stray_list *l, const struct dwarf_code *code,
                          const struct symbol_table_builder *b, size_t first)
{
        for (size_t i = 0; i < code->stray_count; i++) {
                if (!array_reserve(&l->items, &l->capacity, l->count))
                        return false;
                l->items[l->count++] = (struct dwarf_stray_range){ code->strays[i], first, b->range_count };
        }
        return true;
}

/* The part of a range behind the cut is added as a new one: ranges are not sorted yet. */
static void cut_range(struct symbol_table_builder *b, size_t at, uint64_t start, uint64_t end)
{
        const struct symbol_range r = b->ranges[at];

        if (r.start < start) {
                b->ranges[at].end = start;
                symbol_table_builder_add_range(b, end, r.end, r.chain);
        } else if (r.end > end) {
                b->ranges[at].start = end;
        } else {
                b->ranges[at].end = r.start;
        }
}

/* The ranges of a unit are sorted, and stay so if it is cut from its end to its start. */
static void cut_unit_ranges(const struct dwarf_stray_range *s, uint64_t start, uint64_t end,
                            struct symbol_table_builder *b)
{
        size_t at;

        if (start < s->stray.start)
                start = s->stray.start;
        if (end > s->stray.end)
                end = s->stray.end;
        at = find_lower_bound(i, s->first, s->behind, b->ranges[i].end <= start);
        for (; at < s->behind && b->ranges[at].start < end; at++)
                cut_range(b, at, start, end);
}

static void cut_stray(const struct dwarf_stray_range *s, const struct dwarf_claim *claims, size_t count,
                      struct symbol_table_builder *b)
{
        size_t behind = find_lower_bound(i, 0, count, claims[i].start < s->stray.end), first;

        if (s->stray.after == UINT64_MAX) {
                for (size_t i = behind; i > 0 && claims[i - 1].end > s->stray.start; i--)
                        cut_unit_ranges(s, claims[i - 1].start, claims[i - 1].end, b);
                return;
        }
        first = find_lower_bound(i, 0, behind, claims[i].end <= s->stray.after);
        if (first < behind)
                cut_unit_ranges(s, claims[first].start, UINT64_MAX, b);
}

static void drop_empty_ranges(struct symbol_table_builder *b)
{
        size_t kept = 0;

        for (size_t i = 0; i < b->range_count; i++)
                if (b->ranges[i].start < b->ranges[i].end)
                        b->ranges[kept++] = b->ranges[i];
        b->range_count = kept;
}

void dwarf_stray_list_cut(const struct dwarf_stray_list *l, struct dwarf_object *o, const struct dwarf_regions *code,
                          struct symbol_table_builder *b)
{
        struct dwarf_claim *claims;
        size_t count;

        if (b->failed || !l->count)
                return;
        if (dwarf_collect_claims(o, code, &claims, &count)) {
                b->failed = ST_NO_MEMORY;
                return;
        }
        for (size_t i = l->count; i > 0; i--)
                cut_stray(&l->items[i - 1], claims, count, b);
        drop_empty_ranges(b);
        free(claims);
}
