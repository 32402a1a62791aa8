/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identical code folding: several functions of one unit at one address (ld --icf).
 *
 * Linkers do not rewrite DWARF, so each folded function keeps its DIE and its sequence of line rows, all at the same
 * addresses, and compilers emit DIEs and sequences in different orders. The rows kept are those of the first sequence;
 * the name must belong to the same function. A sequence starts at the line of its function, so the right function is
 * the one declared last before that line.
 */
#include <stdlib.h>

#include "common/search.h"
#include "dwarf/context.h"
#include "dwarf/dwarf_reader_internal.h"

struct place {
        uint64_t file, line; /* 0 unknown */
};

struct candidate {
        uint64_t start, end;
        uint32_t scope;
        bool is_lost;
};

/* ---- where a function is declared ---- */

/* Read the declaration attributes of a DIE. @return the DIE to continue with, DWARF_NO_REF if none */
static dwarf_ref read_declaration(struct dwarf_reader *r, uint64_t die, struct place *place)
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

static struct place find_declaration(struct dwarf_reader *r, uint64_t die)
{
        struct place place = { 0 };
        dwarf_ref next = die;

        for (int hops = 0; hops < LIMIT_DWARF_ORIGINS && next != DWARF_NO_REF; hops++)
                next = read_declaration(r, next, &place);
        return place;
}

/* choice of the function */

/* The sequence whose rows are kept at an address: the first of several. */
static const struct dwarf_sequence *find_sequence_at(const struct dwarf_lines *l, uint64_t start)
{
        size_t at = find_lower_bound(i, 0, l->sequence_count, l->sequences[i].start < start);

        return at < l->sequence_count && l->sequences[at].start == start ? &l->sequences[at] : NULL;
}

/* A companion numbers its files by a table that is not read, so its files are not compared. */
static void choose_folded_function(struct dwarf_reader *r, const struct dwarf_code *code, struct candidate *group,
                                   size_t count)
{
        const struct dwarf_sequence *s = find_sequence_at(&code->lines, group->start);
        const struct candidate *best = NULL;
        uint64_t best_line = 0;

        for (size_t i = 0; s && i < count; i++) {
                struct place at = find_declaration(r, code->scopes[group[i].scope].die);

                if (at.line > s->line || at.line <= best_line || (!code->companion && at.file && at.file != s->file))
                        continue;
                best = &group[i];
                best_line = at.line;
        }
        for (size_t i = 0; best && i < count; i++)
                group[i].is_lost = &group[i] != best;
}

/* the whole unit */

static int compare_candidate_addresses(const void *x, const void *y)
{
        const struct candidate *a = x, *b = y;

        if (a->start != b->start)
                return a->start < b->start ? -1 : 1;
        if (a->end != b->end)
                return a->end < b->end ? -1 : 1;
        return a->scope < b->scope ? -1 : a->scope > b->scope;
}

static int compare_candidate_scopes(const void *x, const void *y)
{
        const struct candidate *a = x, *b = y;

        if (a->scope != b->scope)
                return a->scope < b->scope ? -1 : 1;
        return a->start < b->start ? -1 : a->start > b->start;
}

/* @param lost by scope */
static bool is_interval_lost(const struct dwarf_code *code, const struct candidate *lost, size_t count,
                             const struct dwarf_interval *v)
{
        uint32_t function = v->scope;
        size_t at;

        while (code->scopes[function].parent != DWARF_NO_SCOPE)
                function = code->scopes[function].parent;
        at = find_lower_bound(
                i, 0, count,
                compare_candidate_scopes(&lost[i], &(struct candidate){ .start = v->start, .scope = function }) <= 0);
        return at > 0 && lost[at - 1].scope == function && v->end <= lost[at - 1].end;
}

static size_t list_fold_candidates(const struct dwarf_code *code, struct candidate *all)
{
        size_t count = 0;

        for (size_t i = 0; i < code->interval_count; i++) {
                const struct dwarf_interval *v = &code->intervals[i];

                if (code->scopes[v->scope].parent == DWARF_NO_SCOPE)
                        all[count++] = (struct candidate){ v->start, v->end, v->scope, false };
        }
        return count;
}

enum status dwarf_resolve_folded_functions(struct dwarf_reader *r, struct dwarf_code *code)
{
        struct candidate *all = calloc(code->interval_count + 1, sizeof *all);
        size_t count, lost = 0, kept = 0, behind;

        if (!all)
                return ST_NO_MEMORY;
        count = list_fold_candidates(code, all);
        qsort(all, count, sizeof *all, compare_candidate_addresses);
        for (size_t i = 0; i < count; i = behind) {
                for (behind = i + 1;
                     behind < count && all[behind].start == all[i].start && all[behind].end == all[i].end;)
                        behind++;
                if (behind - i > 1)
                        choose_folded_function(r, code, &all[i], behind - i);
        }
        for (size_t i = 0; i < count; i++)
                if (all[i].is_lost)
                        all[lost++] = all[i];
        qsort(all, lost, sizeof *all, compare_candidate_scopes);
        for (size_t i = 0; lost && i < code->interval_count; i++)
                if (!is_interval_lost(code, all, lost, &code->intervals[i]))
                        code->intervals[kept++] = code->intervals[i];
        if (lost)
                code->interval_count = kept;
        free(all);
        return ST_OK;
}
