/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/dwarf_spans.h"

#include <stdlib.h>

#include "symbolizer/huge_array.h"

void dwarf_part_init(struct dwarf_part *p)
{
        *p = (struct dwarf_part){ 0 };
        dwarf_code_init(&p->code);
        dwarf_chains_init(&p->chains);
}

void dwarf_part_deinit(struct dwarf_part *p)
{
        dwarf_code_deinit(&p->code);
        dwarf_chains_deinit(&p->chains);
        free(p->ranges);
        p->ranges = NULL;
        p->range_count = p->range_capacity = 0;
}

struct flattening {
        struct dwarf_part *part;
        uint64_t until; /* everything before is done */
        size_t row;     /* the first that ends behind it */
        bool failed;
};

static void add(struct flattening *f, uint64_t start, uint64_t end, struct dwarf_place place)
{
        struct dwarf_part *p = f->part;
        struct symbol_range *last = p->range_count ? &p->ranges[p->range_count - 1] : NULL;
        uint32_t chain = dwarf_chains_number(&p->chains, &p->code, place);

        if (chain == UINT32_MAX)
                f->failed = true;
        else if (last && last->end == start && last->chain == chain)
                last->end = end;
        else if (!huge_array_reserve(&p->ranges, &p->range_capacity, p->range_count))
                f->failed = true;
        else
                p->ranges[p->range_count++] = (struct symbol_range){ start, end, chain };
}

/* [start, end) is all in one scope, or in none; the line rows cut it. */
static void flatten_span(struct flattening *f, uint64_t start, uint64_t end, uint32_t scope)
{
        const struct dwarf_lines *l = &f->part->code.lines;

        while (f->row < l->row_count && l->rows[f->row].end <= start)
                f->row++;
        while (start < end) {
                const struct dwarf_row *row = f->row < l->row_count ? &l->rows[f->row] : NULL;
                uint64_t until = row && row->start < end ? row->start : end;

                if (start < until) { /* no row says where this is */
                        if (scope != DWARF_NO_SCOPE)
                                add(f, start, until, (struct dwarf_place){ scope, DWARF_NO_FILE, 0 });
                        start = until;
                        continue;
                }
                until = row->end < end ? row->end : end;
                add(f, start, until, (struct dwarf_place){ scope, row->file, row->line });
                start = until;
                f->row += row->end <= end;
        }
}

/* Line rows outside every function: hand-written assembly without DIEs. */
static void flatten_gap(struct flattening *f, uint64_t end)
{
        const struct dwarf_lines *l = &f->part->code.lines;
        uint64_t start = f->until;

        if (l->row_count == 0)
                return;
        if (start < l->rows[0].start)
                start = l->rows[0].start;
        if (end > l->rows[l->row_count - 1].end)
                end = l->rows[l->row_count - 1].end;
        if (start < end)
                flatten_span(f, start, end, DWARF_NO_SCOPE);
}

static void seen(void *context, uint64_t start, uint64_t end, uint32_t scope)
{
        struct flattening *f = context;

        flatten_gap(f, start);
        flatten_span(f, start, end, scope);
        f->until = end;
}

enum status dwarf_part_flatten(struct dwarf_part *p, struct interval_list *scratch)
{
        struct flattening f = { .part = p };

        scratch->count = p->range_count = 0;
        if (!dwarf_chains_begin(&p->chains, &p->code))
                return ST_NO_MEMORY;
        for (size_t i = 0; i < p->code.interval_count; i++) {
                const struct dwarf_interval *v = &p->code.intervals[i];

                if (!interval_list_add(scratch, (struct interval){ v->start, v->end, v->scope, v->level }))
                        return ST_NO_MEMORY;
        }
        if (!interval_list_paint(scratch, seen, &f))
                return ST_NO_MEMORY;
        flatten_gap(&f, UINT64_MAX);
        return f.failed ? ST_NO_MEMORY : ST_OK;
}
