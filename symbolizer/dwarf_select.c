/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/dwarf_select.h"

#include <stdlib.h>

#include "common/cleanup.h"
#include "dwarf/ranges.h"
#include "symbolizer/huge_array.h"

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

struct claim {
        uint64_t start, end;
        size_t unit;
};

struct claims {
        struct claim *items; /* owned */
        size_t count, capacity;
        bool *must_read;     /* owned; by unit */
};

static bool add_claims(struct claims *c, size_t unit, const struct dwarf_context *x, const struct dwarf_die *d)
{
        struct dwarf_ranges ranges;
        uint64_t start, end;

        dwarf_ranges_begin(&ranges, x, d);
        while (dwarf_ranges_next(&ranges, &start, &end)) {
                if (start >= end)
                        continue;
                if (!huge_array_reserve(&c->items, &c->capacity, c->count))
                        return false;
                c->items[c->count++] = (struct claim){ start, end, unit };
        }
        return true;
}

/* @return false without memory. */
static bool look_at(struct claims *c, size_t i, struct dwarf_context *x, struct dwarf_object *o, uint64_t *table_ret)
{
        const struct dwarf_unit *unit = &o->main.units.items[i];
        struct dwarf_die die;

        *table_ret = UINT64_MAX;
        if (!dwarf_unit_has_code(unit))
                return true;
        if (dwarf_context_peek(x, o, &o->main, unit, &die)) {
                c->must_read[i] = true;
                return true;
        }
        if (x->tag == DW_TAG_partial_unit || x->tag == DW_TAG_type_unit)
                return true;
        if (x->has_lines)
                *table_ret = x->line_offset;
        c->must_read[i] = !tells_addresses(&die);
        return c->must_read[i] || add_claims(c, i, x, &die);
}

/*
 * Line rows reach over the end of what the unit claims, into the padding before
 * the next function: whose claim ends last before an address may say something
 * about it too.
 */
static bool decide(struct claims *c, const struct wanted *w)
{
        _cleanup_free_ uint64_t *last_end = calloc(w->count + 1, sizeof *last_end);

        if (!last_end)
                return false;
        for (size_t i = 0; i < c->count; i++) {
                size_t n = wanted_from(w, c->items[i].end);

                if (n < w->count && c->items[i].end > last_end[n])
                        last_end[n] = c->items[i].end;
        }
        for (size_t n = 1; n < w->count; n++)
                if (last_end[n] < last_end[n - 1])
                        last_end[n] = last_end[n - 1];
        for (size_t i = 0; i < c->count; i++) {
                const struct claim *claim = &c->items[i];
                size_t n = wanted_from(w, claim->end);

                if (wanted_in(w, claim->start, claim->end) || (n < w->count && last_end[n] == claim->end))
                        c->must_read[claim->unit] = true;
        }
        return true;
}

static bool select_units(struct dwarf_object *o, const struct wanted *w, struct dwarf_context *x, struct claims *c,
                         struct dwarf_selection *ret)
{
        const struct dwarf_units *units = &o->main.units;

        for (size_t i = 0; i < units->count; i++)
                if (!look_at(c, i, x, o, &ret->tables[i]))
                        return false;
        if (!decide(c, w))
                return false;
        for (size_t i = 0; i < units->count; i++) {
                if (!c->must_read[i])
                        continue;
                ret->units[ret->count++] = i;
                ret->bytes += units->items[i].end - units->items[i].offset;
        }
        return true;
}

enum status dwarf_select(struct dwarf_object *o, const struct wanted *w, struct dwarf_selection *ret)
{
        size_t count = o->main.units.count;
        struct claims claims = { .must_read = calloc(count + 1, sizeof *claims.must_read) };
        struct dwarf_context *x = calloc(1, sizeof *x);
        bool ok;

        *ret = (struct dwarf_selection){ .units = calloc(count + 1, sizeof *ret->units),
                                         .tables = calloc(count + 1, sizeof *ret->tables) };
        ok = x && claims.must_read && ret->units && ret->tables && select_units(o, w, x, &claims, ret);
        if (x)
                dwarf_context_deinit(x);
        free(x);
        free(claims.must_read);
        free(claims.items);
        return ok ? ST_OK : ST_NO_MEMORY;
}
