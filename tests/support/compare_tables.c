/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/compare_tables.h"

#include <stdio.h>
#include <string.h>

static const char *get_frame_name(const struct symbol_table *t, uint32_t function)
{
        const struct symbol_function *f;

        if (function == SYMBOL_NO_FUNCTION)
                return "";
        f = &t->functions[function];
        return t->strings + (f->linkage_name ? f->linkage_name : f->name);
}

static bool have_same_frames(const struct symbol_table *a, const struct symbol_range *x, const struct symbol_table *b,
                             const struct symbol_range *y)
{
        const struct symbol_chain *c, *d;

        if (!x || !y)
                return x == y;
        c = &a->chains[x->chain];
        d = &b->chains[y->chain];
        if (c->frame_count != d->frame_count)
                return false;
        for (uint32_t i = 0; i < c->frame_count; i++) {
                const struct symbol_table_frame *f = &a->frames[c->first_frame + i],
                                                *g = &b->frames[d->first_frame + i];

                if (f->line != g->line || symbol_table_start_line(a, f) != symbol_table_start_line(b, g) ||
                    strcmp(get_frame_name(a, f->function), get_frame_name(b, g->function)) != 0 ||
                    strcmp(a->strings + f->file, b->strings + g->file) != 0)
                        return false;
        }
        return true;
}

void describe_range(const struct symbol_table *t, const struct symbol_range *r, char *text, size_t size)
{
        size_t used = 0;

        snprintf(text, size, "-");
        for (uint32_t i = 0; r && i < t->chains[r->chain].frame_count && used < size; i++) {
                const struct symbol_table_frame *f = &t->frames[t->chains[r->chain].first_frame + i];

                used += (size_t)snprintf(text + used, size - used, "%s%s+%u@%s:%u", i ? " < " : "",
                                         get_frame_name(t, f->function), symbol_table_start_line(t, f),
                                         t->strings + f->file, f->line);
        }
}

/* The frames at an address, searched from *i on; lowers *until to the address at which they change. */
static const struct symbol_range *find_frames_at(const struct symbol_table *t, uint64_t address, uint32_t *i,
                                                 uint64_t *until)
{
        while (*i < t->range_count && t->ranges[*i].end <= address)
                ++*i;
        if (*i == t->range_count)
                return NULL;
        if (t->ranges[*i].start > address) {
                if (t->ranges[*i].start < *until)
                        *until = t->ranges[*i].start;
                return NULL;
        }
        if (t->ranges[*i].end < *until)
                *until = t->ranges[*i].end;
        return &t->ranges[*i];
}

uint64_t compare_tables(const struct symbol_table *a, const struct symbol_table *b,
                        void (*differs)(void *context, const struct table_difference *d), void *context)
{
        uint64_t bytes = 0, at = 0;
        uint32_t i = 0, j = 0;

        while (at != UINT64_MAX) {
                uint64_t until = UINT64_MAX;
                const struct symbol_range *x = find_frames_at(a, at, &i, &until),
                                          *y = find_frames_at(b, at, &j, &until);

                if (!have_same_frames(a, x, b, y)) {
                        const struct table_difference d = { at, until, x, y };

                        bytes += until - at;
                        differs(context, &d);
                }
                at = until;
        }
        return bytes;
}
