/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "symbolizer/dwarf_spans.h"

#define AHEAD 8 /* texts whose slots are being fetched */

void dwarf_merge_deinit(struct dwarf_merge *m)
{
        free(m->functions);
        free(m->files);
        *m = (struct dwarf_merge){ 0 };
}

static bool reserve(uint32_t **numbers, size_t *capacity, size_t count)
{
        uint32_t *grown;

        if (count <= *capacity)
                return true;
        grown = reallocarray(*numbers, count, sizeof *grown);
        if (!grown)
                return false;
        *numbers = grown;
        *capacity = count;
        return true;
}

/* The string offsets of texts. */
static void add_texts(const struct dwarf_chains *c, const struct dwarf_text_list *l, struct symbol_table_builder *b,
                      uint32_t *ret)
{
        for (size_t i = 0; i < l->count; i++) {
                const struct dwarf_text *t = &l->items[i];

                if (i + AHEAD < l->count)
                        symbol_table_builder_prefetch_text(b, l->items[i + AHEAD].hash);
                ret[i] = symbol_table_builder_text(b, dwarf_text_of(c, t), t->size, t->hash);
        }
}

static void add_functions(const struct dwarf_chains *c, struct symbol_table_builder *b, uint32_t *ret)
{
        add_texts(c, &c->functions, b, ret);
        for (size_t i = 0; i < c->functions.count; i++) {
                bool is_linkage_name = c->functions.items[i].is_linkage_name;

                ret[i] = symbol_table_builder_function_of(b, is_linkage_name ? ret[i] : 0, is_linkage_name ? 0 : ret[i]);
        }
}

static void translate(struct dwarf_chains *c, const struct dwarf_merge *m)
{
        for (size_t i = 0; i < c->frame_count; i++) {
                struct symbol_table_frame *f = &c->frames[i];

                f->function = f->function == UINT32_MAX ? SYMBOL_NO_FUNCTION : m->functions[f->function];
                f->file = f->file == UINT32_MAX ? 0 : m->files[f->file];
        }
}

static bool is_same(const struct dwarf_chains *c, uint32_t x, uint32_t y)
{
        const struct symbol_chain *a = &c->items[x], *b = &c->items[y];

        return a->frame_count == b->frame_count && memcmp(c->frames + a->first_frame, c->frames + b->first_frame,
                                                          a->frame_count * sizeof *c->frames) == 0;
}

/* Two names or files of a unit may have one text: then two chains are the same, and ranges that meet are one. */
static void add_ranges(const struct dwarf_part *p, uint32_t first_chain, struct symbol_table_builder *b)
{
        uint32_t last = UINT32_MAX;

        for (size_t i = 0; i < p->range_count; i++) {
                const struct symbol_range *r = &p->ranges[i];

                if (i == 0 || p->ranges[i - 1].end != r->start || !is_same(&p->chains, last, r->chain))
                        last = r->chain;
                symbol_table_builder_range(b, r->start, r->end, first_chain + last);
        }
}

void dwarf_part_merge(struct dwarf_part *p, struct dwarf_merge *m, struct symbol_table_builder *b)
{
        struct dwarf_chains *c = &p->chains;
        uint32_t first_chain;

        if (!reserve(&m->functions, &m->function_capacity, c->functions.count) ||
            !reserve(&m->files, &m->file_capacity, c->files.count)) {
                b->failed = ST_NO_MEMORY;
                return;
        }
        add_functions(c, b, m->functions);
        add_texts(c, &c->files, b, m->files);
        if (b->failed)
                return;
        translate(c, m);
        first_chain = symbol_table_builder_add_chains(b, c->items, c->count, c->frames, c->frame_count);
        add_ranges(p, first_chain, b);
}
