/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identical functions of one unit that the linker made one (--icf).
 *
 * Linkers that leave the DWARF alone leave a DIE and a sequence of line rows for
 * each of them, all at the same addresses, and compilers write the two in
 * orders of their own. The rows are those of the first sequence; the name has
 * to be of the same function. Its sequence begins at the line where it begins,
 * and so it is the one that is declared last before this line.
 */
#include <stdlib.h>

#include "dwarf/attributes.h"
#include "dwarf/reader.h"

struct place {
        uint64_t file, line; /* 0 unknown */
};

struct candidate {
        uint64_t start, end;
        uint32_t scope;
        bool is_lost;
};

/* ---- where a function is declared ---- */

/* Take what the DIE has. @return the one that has the rest, DWARF_NO_REF none */
static dwarf_ref look_at(struct dwarf_reader *r, uint64_t die, struct place *place)
{
        struct dwarf_attributes a;
        struct dwarf_value v;
        dwarf_ref next = DWARF_NO_REF;
        uint16_t attribute;

        if (!dwarf_object_spend(r->object, DWARF_BUDGET_ABBREV, r->main.abbrevs.bytes) ||
            !dwarf_attributes_begin(&a, &r->main, die))
                return DWARF_NO_REF;
        while (dwarf_attributes_next(&a, &attribute, &v)) {
                if (attribute == DW_AT_decl_file && !place->file)
                        (void)dwarf_value_uint(&v, &place->file);
                else if (attribute == DW_AT_decl_line && !place->line)
                        (void)dwarf_value_uint(&v, &place->line);
                else if (attribute == DW_AT_abstract_origin || attribute == DW_AT_specification)
                        next = dwarf_context_reference(&r->main, &v);
        }
        return place->line && place->file ? DWARF_NO_REF : next;
}

static struct place place_of(struct dwarf_reader *r, uint64_t die)
{
        struct place place = { 0 };
        dwarf_ref next = die;

        for (int hops = 0; hops < LIMIT_DWARF_ORIGINS && next != DWARF_NO_REF; hops++)
                next = look_at(r, next, &place);
        return place;
}

/* ---- who wins ---- */

/* The sequence whose rows are kept at an address: of several the first. */
static const struct dwarf_sequence *sequence_at(const struct dwarf_lines *l, uint64_t start)
{
        size_t low = 0, high = l->sequence_count;

        while (low < high) {
                size_t mid = low + (high - low) / 2;

                if (l->sequences[mid].start < start)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low < l->sequence_count && l->sequences[low].start == start ? &l->sequences[low] : NULL;
}

/* Files of a companion are numbered by a table of its own. */
static void choose(struct dwarf_reader *r, const struct dwarf_code *code, struct candidate *group, size_t count)
{
        const struct dwarf_sequence *s = sequence_at(&code->lines, group->start);
        const struct candidate *best = NULL;
        uint64_t best_line = 0;

        for (size_t i = 0; s && i < count; i++) {
                struct place at = place_of(r, code->scopes[group[i].scope].die);

                if (at.line > s->line || at.line <= best_line || (!code->companion && at.file && at.file != s->file))
                        continue;
                best = &group[i];
                best_line = at.line;
        }
        for (size_t i = 0; best && i < count; i++)
                group[i].is_lost = &group[i] != best;
}

/* ---- all of a unit ---- */

static int by_addresses(const void *x, const void *y)
{
        const struct candidate *a = x, *b = y;

        if (a->start != b->start)
                return a->start < b->start ? -1 : 1;
        if (a->end != b->end)
                return a->end < b->end ? -1 : 1;
        return a->scope < b->scope ? -1 : a->scope > b->scope;
}

static int by_scope(const void *x, const void *y)
{
        const struct candidate *a = x, *b = y;

        if (a->scope != b->scope)
                return a->scope < b->scope ? -1 : 1;
        return a->start < b->start ? -1 : a->start > b->start;
}

/* @param lost by scope */
static bool is_lost(const struct dwarf_code *code, const struct candidate *lost, size_t count, const struct dwarf_interval *v)
{
        uint32_t function = v->scope;
        size_t low = 0, high = count;

        while (code->scopes[function].parent != DWARF_NO_SCOPE)
                function = code->scopes[function].parent;
        while (low < high) { /* the last that begins before v, or with it */
                size_t mid = low + (high - low) / 2;

                if (by_scope(&lost[mid], &(struct candidate){ .start = v->start, .scope = function }) <= 0)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low > 0 && lost[low - 1].scope == function && v->end <= lost[low - 1].end;
}

static size_t list_functions(const struct dwarf_code *code, struct candidate *all)
{
        size_t count = 0;

        for (size_t i = 0; i < code->interval_count; i++) {
                const struct dwarf_interval *v = &code->intervals[i];

                if (code->scopes[v->scope].parent == DWARF_NO_SCOPE)
                        all[count++] = (struct candidate){ v->start, v->end, v->scope, false };
        }
        return count;
}

enum status dwarf_folded_choose(struct dwarf_reader *r, struct dwarf_code *code)
{
        struct candidate *all = calloc(code->interval_count + 1, sizeof *all);
        size_t count, lost = 0, kept = 0, behind;

        if (!all)
                return ST_NO_MEMORY;
        count = list_functions(code, all);
        qsort(all, count, sizeof *all, by_addresses);
        for (size_t i = 0; i < count; i = behind) {
                for (behind = i + 1; behind < count && all[behind].start == all[i].start && all[behind].end == all[i].end;)
                        behind++;
                if (behind - i > 1)
                        choose(r, code, &all[i], behind - i);
        }
        for (size_t i = 0; i < count; i++)
                if (all[i].is_lost)
                        all[lost++] = all[i];
        qsort(all, lost, sizeof *all, by_scope);
        for (size_t i = 0; lost && i < code->interval_count; i++)
                if (!is_lost(code, all, lost, &code->intervals[i]))
                        code->intervals[kept++] = code->intervals[i];
        if (lost)
                code->interval_count = kept;
        free(all);
        return ST_OK;
}
