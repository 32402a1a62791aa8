/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selection of the units that may cover the addresses of a filter.
 *
 * A unit's DIE gives its addresses, as low and high pc or as ranges; for most
 * units nothing else is decoded. A unit without them has only data if it has no
 * line rows and no abbreviation of functions with addresses; other such units,
 * and those with an unreadable DIE, are read in full. So is one whose addresses
 * are incomplete: GCC gives only the main section with -gdwarf-2 -gstrict-dwarf,
 * and in DWARF 4 a dropped function of size 0 ends a list of ranges if the linker
 * (gold) writes 0 for its address. Such a unit has a sequence of line rows that
 * starts elsewhere in code.
 * Line rows extend past the unit's addresses, into the padding before the next
 * function: of the unit whose addresses end last before an address, the line
 * table is read, and the DIEs only if a row covers the address.
 *
 * .debug_aranges saves looking at each unit, where it can be trusted. Compilers
 * fill it from the same data as the DIEs, but clang leaves it out, and nothing
 * guarantees that it is right. So it is only asked first: what the units that it
 * lists for an address say is the answer if they have both a function and a line
 * row there. Line tables of other units and lone ones have no function, so they
 * could not change it. Units that it does not list are selected by their DIEs.
 * What remains is a file whose section lists a unit, but omits those of its
 * addresses that it shares with another listed unit; linkers that fold functions
 * relocate DIEs and .debug_aranges alike. Line rows of a unit at addresses that
 * another unit claims do not count (dwarf_strays.h), so no unit is read for them.
 */
#include "symbolizer/sources/dwarf_selection.h"

#include <stdlib.h>

#include "common/cleanup.h"
#include "common/search.h"
#include "common/sort.h"
#include "dwarf/aranges.h"
#include "dwarf/line.h"
#include "dwarf/ranges.h"
#include "symbolizer/table/huge_array.h"

void dwarf_selection_deinit(struct dwarf_selection *s)
{
        free(s->units);
        free(s->tables);
        *s = (struct dwarf_selection){ 0 };
}

static bool has_address_ranges(const struct dwarf_die *d)
{
        return d->values[DWARF_ROLE_RANGES].form ||
               (d->values[DWARF_ROLE_LOW_PC].form && d->values[DWARF_ROLE_HIGH_PC].form);
}

enum unit_need { NEEDS_NOTHING, NEEDS_LINES, NEEDS_ALL };

struct claims {
        const struct dwarf_regions *code;
        struct dwarf_claim *items; /* owned */
        size_t count, capacity;
        enum unit_need *needs; /* owned; by unit */
};

static bool add_claims(struct claims *c, size_t unit, const struct dwarf_context *x, const struct dwarf_die *d)
{
        struct dwarf_ranges ranges;
        uint64_t start, end;

        dwarf_ranges_begin(&ranges, x, d);
        while (dwarf_ranges_next(&ranges, &start, &end)) {
                const struct dwarf_region *region = dwarf_regions_fit(c->code, start, end);

                if (start >= end || !region)
                        continue;
                if (!huge_array_reserve(&c->items, &c->capacity, c->count))
                        return false;
                c->items[c->count++] = (struct dwarf_claim){ start, end < region->end ? end : region->end, unit };
        }
        return true;
}

/*
 * Lists of version 5 have an end that a linker cannot write by accident: they are checked only if an address is in the
 * claims of no unit.
 */
static bool may_be_incomplete(const struct dwarf_context *x, const struct dwarf_die *d)
{
        return x->unit->format.version < 5 || !d->values[DWARF_ROLE_RANGES].form;
}

/* Whether all line rows of a unit are in its claims. */
static bool cover_line_rows(const struct claims *c, struct dwarf_claim *items, size_t count,
                            const struct dwarf_context *x)
{
        struct dwarf_line_starts starts;
        uint64_t start;

        if (!x->has_lines || !dwarf_line_starts_begin(&starts, x, x->line_offset))
                return false;
        if (count > 1)
                sort_by_start(items, count, sizeof *items);
        while (dwarf_line_starts_next(&starts, &start)) {
                size_t behind = find_lower_bound(i, 0, count, items[i].start <= start);

                if ((!behind || start >= items[behind - 1].end) && dwarf_regions_find(c->code, start))
                        return false;
        }
        return true;
}

/* Such a unit describes data only: it has neither line rows nor functions, also none in a split unit. */
static bool has_only_data(struct dwarf_context *x)
{
        return !x->dwo_name && (!x->has_lines || dwarf_line_program_is_empty(x, x->line_offset)) &&
               !dwarf_context_may_have_functions(x);
}

/* @return false without memory. */
static bool inspect_unit(struct claims *c, size_t i, struct dwarf_context *x, struct dwarf_object *o,
                         uint64_t *table_ret)
{
        const struct dwarf_unit *unit = &o->main.units.items[i];
        size_t first = c->count;
        struct dwarf_die die;

        *table_ret = UINT64_MAX;
        if (!dwarf_unit_has_code(unit))
                return true;
        if (dwarf_context_peek(x, o, &o->main, unit, &die)) {
                c->needs[i] = NEEDS_ALL;
                return true;
        }
        if (!dwarf_context_may_have_code(x))
                return true;
        if (x->has_lines)
                *table_ret = x->line_offset;
        if (!has_address_ranges(&die)) {
                c->needs[i] = has_only_data(x) ? NEEDS_NOTHING : NEEDS_ALL;
                return true;
        }
        if (!add_claims(c, i, x, &die))
                return false;
        if (may_be_incomplete(x, &die) && !cover_line_rows(c, c->items + first, c->count - first, x))
                c->needs[i] = NEEDS_ALL;
        return true;
}

static bool select_claims(struct claims *c, const struct address_filter *w)
{
        _cleanup_free_ uint64_t *last_end = calloc(w->count + 1, sizeof *last_end);

        if (!last_end)
                return false;
        for (size_t i = 0; i < c->count; i++) {
                size_t n = address_filter_lower_bound(w, c->items[i].end);

                if (n < w->count && c->items[i].end > last_end[n])
                        last_end[n] = c->items[i].end;
        }
        for (size_t n = 1; n < w->count; n++)
                if (last_end[n] < last_end[n - 1])
                        last_end[n] = last_end[n - 1];
        for (size_t i = 0; i < c->count; i++) {
                const struct dwarf_claim *claim = &c->items[i];
                size_t n = address_filter_lower_bound(w, claim->end);

                if (address_filter_overlaps(w, claim->start, claim->end))
                        c->needs[claim->unit] = NEEDS_ALL;
                else if (n < w->count && last_end[n] == claim->end && !c->needs[claim->unit])
                        c->needs[claim->unit] = NEEDS_LINES;
        }
        return true;
}

/* Whether an address of the filter is in code, but in no claim. False without memory. */
static bool find_unclaimed_address(const struct claims *c, const struct address_filter *w, bool *ret)
{
        /* By address: claims that begin there, less those that end. Many claims may have all addresses. */
        _cleanup_free_ int64_t *changes = calloc(w->count + 1, sizeof *changes);
        int64_t open = 0;

        if (!changes)
                return false;
        for (size_t i = 0; i < c->count; i++) {
                changes[address_filter_lower_bound(w, c->items[i].start)]++;
                changes[address_filter_lower_bound(w, c->items[i].end)]--;
        }
        for (size_t n = 0; !*ret && n < w->count; n++) {
                open += changes[n];
                *ret = !open && dwarf_regions_find(c->code, w->addresses[n]);
        }
        return true;
}

/* Read the units of version 5 that have line rows outside of their claims. Claims are in the order of the units. */
static void distrust_claims(struct claims *c, struct dwarf_context *x, struct dwarf_object *o)
{
        size_t first = 0, behind = 0;

        for (size_t i = 0; i < o->main.units.count; i++, first = behind) {
                const struct dwarf_unit *unit = &o->main.units.items[i];
                struct dwarf_die die;

                while (behind < c->count && c->items[behind].unit == i)
                        behind++;
                if (c->needs[i] != NEEDS_ALL && unit->format.version >= 5 && dwarf_unit_has_code(unit) &&
                    !dwarf_context_peek(x, o, &o->main, unit, &die) && dwarf_context_may_have_code(x) &&
                    !cover_line_rows(c, c->items + first, behind - first, x))
                        c->needs[i] = NEEDS_ALL;
        }
}

static void collect_units(const struct claims *c, const struct dwarf_units *units, struct dwarf_selection *ret)
{
        for (size_t i = 0; i < units->count; i++) {
                if (!c->needs[i])
                        continue;
                ret->units[ret->count++] = (struct selected_unit){ i, c->needs[i] == NEEDS_LINES };
                if (c->needs[i] == NEEDS_ALL)
                        ret->bytes += units->items[i].end - units->items[i].offset;
        }
}

static bool select_units(struct dwarf_object *o, const struct address_filter *w, struct dwarf_context *x,
                         struct claims *c, struct dwarf_selection *ret)
{
        bool is_unclaimed = false;

        for (size_t i = 0; i < o->main.units.count; i++)
                if (!inspect_unit(c, i, x, o, &ret->tables[i]))
                        return false;
        if (!select_claims(c, w) || !find_unclaimed_address(c, w, &is_unclaimed))
                return false;
        if (is_unclaimed)
                distrust_claims(c, x, o);
        collect_units(c, &o->main.units, ret);
        return true;
}

/* ---- .debug_aranges ---- */

/* Claims of the current set that have an address. @return ST_NOT_FOUND after the last range. */
static enum status add_listed_claims(struct claims *c, size_t unit, const struct address_filter *w,
                                     struct dwarf_aranges *a)
{
        uint64_t start, size, end;
        enum status st;

        while ((st = dwarf_aranges_next(a, &start, &size)) == ST_OK) {
                const struct dwarf_region *region;

                if (__builtin_add_overflow(start, size, &end) || !address_filter_overlaps(w, start, end))
                        continue;
                region = dwarf_regions_fit(c->code, start, end);
                if (!region)
                        continue;
                if (!huge_array_reserve(&c->items, &c->capacity, c->count))
                        return ST_NO_MEMORY;
                c->items[c->count++] = (struct dwarf_claim){ start, end < region->end ? end : region->end, unit };
                c->needs[unit] = NEEDS_ALL;
        }
        return st;
}

/* @param is_listed by unit.  @return ST_BAD_DATA: the section is of no use. */
static enum status read_listed_units(struct claims *c, const struct dwarf_object *o, const struct address_filter *w,
                                     bool *is_listed)
{
        const struct dwarf_units *units = &o->main.units;
        struct dwarf_aranges a;
        size_t unit = 0;
        enum status st;

        dwarf_aranges_begin(&a, &o->main.sections);
        while ((st = dwarf_aranges_next_set(&a)) == ST_OK) {
                if (unit == units->count || units->items[unit].offset != a.unit) /* they are usually in order */
                        unit = find_lower_bound(i, 0, units->count, units->items[i].offset < a.unit);
                if (unit == units->count || units->items[unit].offset != a.unit || is_listed[unit] ||
                    units->items[unit].format.address_size != a.address_size)
                        return ST_BAD_DATA;
                is_listed[unit] = true;
                st = add_listed_claims(c, unit++, w, &a);
                if (st != ST_NOT_FOUND)
                        return st;
        }
        return st == ST_NOT_FOUND ? ST_OK : st;
}

static bool select_listed_units(struct dwarf_object *o, const struct address_filter *w, struct dwarf_context *x,
                                struct claims *c, struct dwarf_selection *ret, bool *is_found_ret)
{
        const struct dwarf_units *units = &o->main.units;
        _cleanup_free_ bool *is_listed = calloc(units->count + 1, sizeof *is_listed);
        enum status st = is_listed ? read_listed_units(c, o, w, is_listed) : ST_NO_MEMORY;
        bool is_unclaimed = false;

        if (st)
                return st != ST_NO_MEMORY;
        for (size_t i = 0; i < units->count; i++)
                if (!is_listed[i] && !inspect_unit(c, i, x, o, &ret->tables[i]))
                        return false;
        for (size_t i = 0; i < c->count; i++)
                if (address_filter_overlaps(w, c->items[i].start, c->items[i].end))
                        c->needs[c->items[i].unit] = NEEDS_ALL;
        if (!find_unclaimed_address(c, w, &is_unclaimed))
                return false;
        collect_units(c, units, ret);
        *is_found_ret = !is_unclaimed;
        return true;
}

/* ---- the claims of all units ---- */

static void join_claims(struct claims *c)
{
        size_t kept = 0;

        if (c->count > 1)
                sort_by_start(c->items, c->count, sizeof *c->items);
        for (size_t i = 0; i < c->count; i++) {
                struct dwarf_claim *last = kept ? &c->items[kept - 1] : NULL;

                if (!last || last->end < c->items[i].start)
                        c->items[kept++] = c->items[i];
                else if (last->end < c->items[i].end)
                        last->end = c->items[i].end;
        }
        c->count = kept;
}

enum status dwarf_collect_claims(struct dwarf_object *o, const struct dwarf_regions *code, struct dwarf_claim **ret,
                                 size_t *count_ret)
{
        struct claims claims = { .code = code };
        struct dwarf_context *x = calloc(1, sizeof *x);
        bool ok = x;

        for (size_t i = 0; ok && i < o->main.units.count; i++) {
                const struct dwarf_unit *unit = &o->main.units.items[i];
                struct dwarf_die die;

                if (dwarf_unit_has_code(unit) && !dwarf_context_peek(x, o, &o->main, unit, &die) &&
                    dwarf_context_may_have_code(x) && has_address_ranges(&die))
                        ok = add_claims(&claims, i, x, &die);
        }
        if (x)
                dwarf_context_deinit(x);
        free(x);
        if (!ok) {
                free(claims.items);
                return ST_NO_MEMORY;
        }
        join_claims(&claims);
        *ret = claims.items;
        *count_ret = claims.count;
        return ST_OK;
}

/* ---- both selections ---- */

static enum status select_with(struct dwarf_object *o, const struct dwarf_regions *code, const struct address_filter *w,
                               struct dwarf_selection *ret, bool *is_found_ret)
{
        size_t count = o->main.units.count;
        struct claims claims = { .code = code, .needs = calloc(count + 1, sizeof *claims.needs) };
        struct dwarf_context *x = calloc(1, sizeof *x);
        bool ok;

        *ret = (struct dwarf_selection){ .units = calloc(count + 1, sizeof *ret->units),
                                         .tables = calloc(count + 1, sizeof *ret->tables) };
        ok = x && claims.needs && ret->units && ret->tables;
        if (ok)
                ok = is_found_ret ? select_listed_units(o, w, x, &claims, ret, is_found_ret)
                                  : select_units(o, w, x, &claims, ret);
        if (x)
                dwarf_context_deinit(x);
        free(x);
        free(claims.needs);
        free(claims.items);
        return ok ? ST_OK : ST_NO_MEMORY;
}

enum status dwarf_select(struct dwarf_object *o, const struct dwarf_regions *code, const struct address_filter *w,
                         struct dwarf_selection *ret)
{
        return select_with(o, code, w, ret, NULL);
}

enum status dwarf_select_by_aranges(struct dwarf_object *o, const struct dwarf_regions *code,
                                    const struct address_filter *w, struct dwarf_selection *ret, bool *is_found_ret)
{
        *is_found_ret = false;
        if (o->main.sections.data[DWARF_ARANGES].size)
                return select_with(o, code, w, ret, is_found_ret);
        *ret = (struct dwarf_selection){ 0 };
        return ST_OK;
}
