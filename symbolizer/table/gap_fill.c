/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/table/gap_fill.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "symbolizer/table/huge_array.h"

#define NO_CHAIN UINT32_MAX

void source_ranges_deinit(struct source_ranges *s)
{
        free(s->items);
        *s = (struct source_ranges){ 0 };
}

bool source_ranges_add(struct source_ranges *s, uint64_t start, uint64_t end, uint32_t chain)
{
        struct symbol_range *last = s->count ? &s->items[s->count - 1] : NULL;

        if (start >= end || (last && start < last->end))
                return true;
        if (last && last->end == start && last->chain == chain) {
                last->end = end;
                return true;
        }
        if (!huge_array_reserve(&s->items, &s->capacity, s->count))
                return false;
        s->items[s->count++] = (struct symbol_range){ start, end, chain };
        return true;
}

static const struct symbol_table_frame *get_chain_outermost(const struct symbol_table_builder *b, uint32_t chain)
{
        const struct symbol_chain *c = &b->chains[chain];

        return &b->frames[c->first_frame + c->frame_count - 1];
}

/* The chain of a table range merged with a source range that covers it. */
static uint32_t join_chains(struct symbol_table_builder *b, uint32_t chain, uint32_t from_source)
{
        struct symbol_table_frame frames[LIMIT_INLINE_DEPTH + 1];
        const struct symbol_chain *c;
        size_t count;

        if (chain == NO_CHAIN || get_chain_outermost(b, from_source)->file)
                return from_source;
        c = &b->chains[chain];
        count = c->frame_count;
        assert(count > 0 && count <= LIMIT_INLINE_DEPTH + 1);
        memcpy(frames, b->frames + c->first_frame, count * sizeof *frames);
        frames[count - 1].function = get_chain_outermost(b, from_source)->function;
        return symbol_table_builder_add_chain(b, frames, count);
}

struct filling {
        struct symbol_table_builder *b;
        struct symbol_table_rewrite *rewrite;
        const struct source_ranges *source;
        size_t at; /* first source range not yet passed */
        bool used;
};

/* Add [start, end), which has `chain` in the table or NO_CHAIN, split at the source ranges. */
static void fill_span(struct filling *f, uint64_t start, uint64_t end, uint32_t chain)
{
        const struct source_ranges *s = f->source;

        while (start < end && !f->b->failed) {
                const struct symbol_range *r;
                uint64_t until = end;

                while (f->at < s->count && s->items[f->at].end <= start)
                        f->at++;
                r = f->at < s->count ? &s->items[f->at] : NULL;
                if (r && r->start <= start) {
                        if (r->end < until)
                                until = r->end;
                        symbol_table_rewrite_add(f->rewrite, start, until, join_chains(f->b, chain, r->chain));
                        f->used = true;
                } else {
                        if (r && r->start < until)
                                until = r->start;
                        if (chain != NO_CHAIN)
                                symbol_table_rewrite_add(f->rewrite, start, until, chain);
                }
                start = until;
        }
}

bool fill_table_gaps(struct symbol_table_builder *b, const struct source_ranges *s)
{
        struct symbol_table_rewrite rewrite = { .b = b };
        struct filling f = { .b = b, .rewrite = &rewrite, .source = s };
        struct symbol_range old;
        uint64_t pos = 0;

        symbol_table_builder_settle(b);
        if (b->failed || s->count == 0)
                return false;
        while (symbol_table_rewrite_next(&rewrite, &old)) {
                fill_span(&f, pos, old.start, NO_CHAIN);
                if (symbol_table_builder_is_nameless(b, old.chain))
                        fill_span(&f, old.start, old.end, old.chain);
                else
                        symbol_table_rewrite_add(&rewrite, old.start, old.end, old.chain);
                pos = old.end;
        }
        fill_span(&f, pos, UINT64_MAX, NO_CHAIN);
        symbol_table_rewrite_end(&rewrite);
        return f.used;
}
