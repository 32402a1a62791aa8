/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/sources/dwarf_flatten.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"
#include "common/limits.h"
#include "common/search.h"
#include "symbolizer/table/huge_array.h"

/* ---- from scopes and rows to ranges ---- */

void dwarf_flat_unit_init(struct dwarf_flat_unit *u)
{
        *u = (struct dwarf_flat_unit){ 0 };
        dwarf_code_init(&u->code);
        dwarf_chains_init(&u->chains);
}

void dwarf_flat_unit_deinit(struct dwarf_flat_unit *u)
{
        dwarf_code_deinit(&u->code);
        dwarf_chains_deinit(&u->chains);
        free(u->ranges);
        u->ranges = NULL;
        u->range_count = u->range_capacity = 0;
        u->has_lineless = false;
}

struct flattening {
        struct dwarf_flat_unit *unit;
        uint64_t until; /* addresses below are done */
        size_t row;     /* the first row that ends after it */
        bool failed;
};

static void add_unit_range(struct flattening *f, uint64_t start, uint64_t end, struct dwarf_place place)
{
        struct dwarf_flat_unit *u = f->unit;
        struct symbol_range *last = u->range_count ? &u->ranges[u->range_count - 1] : NULL;
        uint32_t chain = dwarf_chains_intern(&u->chains, &u->code, place);

        assert(chain == UINT32_MAX || chain < u->chains.count);
        if (chain == UINT32_MAX)
                f->failed = true;
        else if (last && last->end == start && last->chain == chain)
                last->end = end;
        else if (!huge_array_reserve(&u->ranges, &u->range_capacity, u->range_count))
                f->failed = true;
        else
                u->ranges[u->range_count++] = (struct symbol_range){ start, end, chain };
}

/* Split [start, end), which is in one scope or none, at the line rows. */
static void flatten_span(struct flattening *f, uint64_t start, uint64_t end, uint32_t scope)
{
        const struct dwarf_lines *l = &f->unit->code.lines;

        while (f->row < l->row_count && l->rows[f->row].end <= start)
                f->row++;
        while (start < end) {
                const struct dwarf_row *row = f->row < l->row_count ? &l->rows[f->row] : NULL;
                uint64_t until = row && row->start < end ? row->start : end;

                if (start < until) { /* no row covers this */
                        if (scope != DWARF_NO_SCOPE) {
                                add_unit_range(f, start, until, (struct dwarf_place){ scope, DWARF_NO_FILE, 0 });
                                f->unit->has_lineless = true;
                        }
                        start = until;
                        continue;
                }
                until = row->end < end ? row->end : end;
                add_unit_range(f, start, until, (struct dwarf_place){ scope, row->file, row->line });
                start = until;
                f->row += row->end <= end;
        }
}

/* Line rows outside every function: hand-written assembly without DIEs. */
static void flatten_gap(struct flattening *f, uint64_t end)
{
        const struct dwarf_lines *l = &f->unit->code.lines;
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

static void flatten_interval(void *context, uint64_t start, uint64_t end, uint32_t scope)
{
        struct flattening *f = context;

        flatten_gap(f, start);
        flatten_span(f, start, end, scope);
        f->until = end;
}

static bool is_lineless(const struct dwarf_flat_unit *u, const struct symbol_range *r)
{
        return u->chains.frames[u->chains.items[r->chain].first_frame].file == UINT32_MAX;
}

/* Rows that cover no wanted address were dropped: without this, functions would seem to lack them. */
static void keep_wanted_ranges(struct dwarf_flat_unit *u)
{
        bool keeps_lineless = false;
        size_t kept = 0;

        for (size_t i = 0; i < u->range_count; i++) {
                const struct symbol_range *r = &u->ranges[i];

                if (!address_filter_overlaps(u->filter, r->start, r->end))
                        continue;
                keeps_lineless |= is_lineless(u, r);
                u->ranges[kept++] = *r;
        }
        u->range_count = kept;
        u->has_lineless &= keeps_lineless;
}

enum status dwarf_flat_unit_build(struct dwarf_flat_unit *u, struct interval_list *scratch)
{
        struct flattening f = { .unit = u };

        scratch->count = u->range_count = 0;
        u->has_lineless = false;
        if (!dwarf_chains_begin(&u->chains, &u->code))
                return ST_NO_MEMORY;
        for (size_t i = 0; i < u->code.interval_count; i++) {
                const struct dwarf_interval *v = &u->code.intervals[i];

                if (!interval_list_add(scratch, (struct interval){ v->start, v->end, v->scope, v->level }))
                        return ST_NO_MEMORY;
        }
        if (!interval_list_overlay(scratch, flatten_interval, &f))
                return ST_NO_MEMORY;
        flatten_gap(&f, UINT64_MAX);
        if (u->filter && !f.failed)
                keep_wanted_ranges(u);
        return f.failed ? ST_NO_MEMORY : ST_OK;
}

/* ---- into the table ---- */

#define AHEAD 8 /* texts whose slots are being fetched */

void dwarf_merge_deinit(struct dwarf_merge *m)
{
        free(m->functions);
        free(m->files);
        *m = (struct dwarf_merge){ 0 };
}

/* Replace the names of functions for which a symbol knows better. */
static enum status use_function_symbols(struct dwarf_flat_unit *u, struct function_symbols *symbols)
{
        struct dwarf_text_list *functions = &u->chains.functions;
        const struct dwarf_code *code = &u->code;
        uint32_t last = DWARF_NO_SCOPE;

        for (size_t i = 0; i < code->interval_count; i++) {
                const struct dwarf_interval *v = &code->intervals[i];
                const struct dwarf_scope *s = &code->scopes[v->scope];
                struct function_symbol_name name;
                struct dwarf_text *t;
                enum status st;

                if (s->parent != DWARF_NO_SCOPE || functions->numbers[s->name] >= functions->count)
                        continue;
                t = &functions->items[functions->numbers[s->name]];
                if (v->scope == last && t->is_linkage_name)
                        continue;
                last = v->scope;
                st = function_symbols_find_name(symbols, v, &code->names[s->name], &name);
                if (st)
                        return st;
                if (!name.text)
                        continue;
                t->borrowed = name.text;
                t->size = (uint32_t)(name.size < LIMIT_NAME_BYTES ? name.size : LIMIT_NAME_BYTES);
                t->hash = hash_symbol_text(t->borrowed, t->size);
                t->is_linkage_name = true;
        }
        return ST_OK;
}

/* Cut the ranges without a line row at the end of a function where the symbol of another function starts. */
static enum status cut_long_functions(struct dwarf_flat_unit *u, struct function_symbols *symbols)
{
        const struct dwarf_code *code = &u->code;

        for (size_t i = 0; u->has_lineless && i < code->interval_count; i++) {
                const struct dwarf_interval *v = &code->intervals[i];
                struct symbol_range *r;
                enum status st;
                uint64_t end;
                size_t at;

                if (code->scopes[v->scope].parent != DWARF_NO_SCOPE)
                        continue;
                at = find_lower_bound(k, 0, u->range_count, u->ranges[k].end < v->end);
                r = at < u->range_count ? &u->ranges[at] : NULL;
                if (!r || r->end != v->end || !is_lineless(u, r))
                        continue;
                st = function_symbols_find_end(symbols, v, &end);
                if (st)
                        return st;
                if (end < r->end)
                        r->end = end > r->start ? end : r->start;
        }
        return ST_OK;
}

/* The string offsets of texts. */
static void add_texts(const struct dwarf_chains *c, const struct dwarf_text_list *l, struct symbol_table_builder *b,
                      uint32_t *ret)
{
        for (size_t i = 0; i < l->count; i++) {
                const struct dwarf_text *t = &l->items[i];

                if (i + AHEAD < l->count)
                        symbol_table_builder_prefetch_text(b, l->items[i + AHEAD].hash);
                ret[i] = symbol_table_builder_add_text(b, dwarf_text_of(c, t), t->size, t->hash);
        }
}

/* Replace the string offsets in m->functions by functions. */
static void add_unit_functions(const struct dwarf_chains *c, const struct dwarf_merge *m,
                               struct symbol_table_builder *b)
{
        for (size_t i = 0; i < c->functions.count; i++) {
                const struct dwarf_text *t = &c->functions.items[i];
                struct symbol_function f = { 0 };

                *(t->is_linkage_name ? &f.linkage_name : &f.name) = m->functions[i];
                if (t->start_file != UINT32_MAX) {
                        f.file = m->files[t->start_file];
                        f.start_line = t->start_line;
                }
                m->functions[i] = symbol_table_builder_intern_function(b, &f);
        }
}

/* One for each frame: with a filter, few rows of the unit have one. */
static void translate_used_positions(struct dwarf_flat_unit *u, struct symbol_table_builder *b)
{
        for (size_t i = 0; i < u->chains.frame_count && !b->failed; i++) {
                struct symbol_table_frame *f = &u->chains.frames[i];
                uint32_t number = f->line ? symbol_table_builder_reserve_positions(b, 1) : 0;

                if (!number || b->failed)
                        continue;
                b->positions[number] = dwarf_chains_position(&u->chains, &u->code, f->line);
                f->line = number;
        }
}

/* The lines of frames become numbers of the builder's positions. */
static void translate_positions(struct dwarf_flat_unit *u, struct symbol_table_builder *b)
{
        size_t count;
        uint32_t first;

        if (u->filter) {
                translate_used_positions(u, b);
                return;
        }
        count = dwarf_chains_position_count(&u->chains, &u->code);
        first = symbol_table_builder_reserve_positions(b, count);
        if (b->failed)
                return;
        for (size_t i = 0; i < count; i++)
                b->positions[first + i] = dwarf_chains_position(&u->chains, &u->code, i);
        for (size_t i = 0; i < u->chains.frame_count; i++)
                if (u->chains.frames[i].line)
                        u->chains.frames[i].line += first;
}

static void translate_frames(struct dwarf_chains *c, const struct dwarf_merge *m)
{
        for (size_t i = 0; i < c->frame_count; i++) {
                struct symbol_table_frame *f = &c->frames[i];

                f->function = f->function == UINT32_MAX ? SYMBOL_NO_FUNCTION : m->functions[f->function];
                f->file = f->file == UINT32_MAX ? 0 : m->files[f->file];
        }
}

static bool is_same_chain(const struct dwarf_chains *c, uint32_t x, uint32_t y)
{
        const struct symbol_chain *a = &c->items[x], *b = &c->items[y];

        return a->frame_count == b->frame_count &&
               memcmp(c->frames + a->first_frame, c->frames + b->first_frame, a->frame_count * sizeof *c->frames) == 0;
}

/* Two names or files of a unit may be the same text: their chains are equal, and adjacent ranges are joined. */
static void add_ranges(const struct dwarf_flat_unit *u, uint32_t first_chain, struct symbol_table_builder *b)
{
        uint32_t last = UINT32_MAX;

        for (size_t i = 0; i < u->range_count; i++) {
                const struct symbol_range *r = &u->ranges[i];

                if (r->start == r->end)
                        continue;
                if (i == 0 || u->ranges[i - 1].end != r->start || !is_same_chain(&u->chains, last, r->chain))
                        last = r->chain;
                symbol_table_builder_add_range(b, r->start, r->end, first_chain + last);
        }
}

void dwarf_flat_unit_merge(struct dwarf_flat_unit *u, struct dwarf_merge *m, struct symbol_table_builder *b)
{
        struct dwarf_chains *c = &u->chains;
        uint32_t first_chain;

        if (use_function_symbols(u, m->symbols) || cut_long_functions(u, m->symbols) ||
            !array_reserve_many(&m->functions, &m->function_capacity, 0, c->functions.count) ||
            !array_reserve_many(&m->files, &m->file_capacity, 0, c->files.count)) {
                b->failed = ST_NO_MEMORY;
                return;
        }
        add_texts(c, &c->functions, b, m->functions);
        add_texts(c, &c->files, b, m->files);
        add_unit_functions(c, m, b);
        if (b->has_positions)
                translate_positions(u, b);
        if (b->failed)
                return;
        translate_frames(c, m);
        first_chain = symbol_table_builder_add_chains(b, c->items, c->count, c->frames, c->frame_count);
        add_ranges(u, first_chain, b);
}
