/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/dwarf_select.h"

#include <stdlib.h>

#include "common/cleanup.h"
#include "dwarf/ranges.h"

void dwarf_selection_deinit(struct dwarf_selection *s)
{
        free(s->units);
        free(s->tables);
        *s = (struct dwarf_selection){ 0 };
}

static bool tells_addresses(const struct dwarf_die *d)
{
        return d->values[DWARF_ROLE_RANGES].form ||
               (d->values[DWARF_ROLE_LOW_PC].form && d->values[DWARF_ROLE_HIGH_PC].form);
}

static bool covers(const struct dwarf_context *x, const struct dwarf_die *d, const struct wanted *w)
{
        struct dwarf_ranges ranges;
        uint64_t start, end;

        dwarf_ranges_begin(&ranges, x, d);
        while (dwarf_ranges_next(&ranges, &start, &end))
                if (start < end && wanted_in(w, start, end))
                        return true;
        return false;
}

/* @return whether the unit is to be read. */
static bool look_at(struct dwarf_context *x, struct dwarf_object *o, const struct dwarf_unit *unit, const struct wanted *w,
                    uint64_t *table_ret)
{
        struct dwarf_die die;

        *table_ret = UINT64_MAX;
        if (!dwarf_unit_has_code(unit))
                return false;
        if (dwarf_context_peek(x, o, &o->main, unit, &die))
                return true;
        if (x->tag == DW_TAG_partial_unit || x->tag == DW_TAG_type_unit)
                return false;
        if (x->has_lines)
                *table_ret = x->line_offset;
        return !tells_addresses(&die) || covers(x, &die, w);
}

enum status dwarf_select(struct dwarf_object *o, const struct wanted *w, struct dwarf_selection *ret)
{
        const struct dwarf_units *units = &o->main.units;
        struct dwarf_context *x = calloc(1, sizeof *x);

        *ret = (struct dwarf_selection){ .units = calloc(units->count + 1, sizeof *ret->units),
                                         .tables = calloc(units->count + 1, sizeof *ret->tables) };
        if (!x || !ret->units || !ret->tables) {
                free(x);
                return ST_NO_MEMORY;
        }
        for (size_t i = 0; i < units->count; i++) {
                if (!look_at(x, o, &units->items[i], w, &ret->tables[i]))
                        continue;
                ret->units[ret->count++] = i;
                ret->bytes += units->items[i].end - units->items[i].offset;
        }
        dwarf_context_deinit(x);
        free(x);
        return ST_OK;
}

/* What is said of one address so far. */
struct said {
        uint32_t chain;
        uint8_t rank; /* 1 lines only, 2 with a function */
        bool differs;
};

static void note(struct said *s, uint32_t chain, uint8_t rank)
{
        if (rank > s->rank)
                *s = (struct said){ .chain = chain, .rank = rank };
        else if (rank == s->rank && chain != s->chain)
                s->differs = true;
}

bool dwarf_wanted_is_torn(const struct wanted *w, const struct symbol_table_builder *b)
{
        _cleanup_free_ struct said *said = calloc(w->count + 1, sizeof *said);

        if (!said)
                return true;
        for (size_t i = 0; i < b->range_count; i++) {
                const struct symbol_range *r = &b->ranges[i];

                for (size_t n = wanted_from(w, r->start); n < w->count && w->addresses[n] < r->end; n++)
                        note(&said[n], r->chain, symbol_table_builder_is_nameless(b, r->chain) ? 1 : 2);
        }
        for (size_t n = 0; n < w->count; n++)
                if (said[n].differs)
                        return true;
        return false;
}
