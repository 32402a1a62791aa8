/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/limits.h"
#include "tests/support/libdw_unit.h"

/*
 * Two functions with the same name and file are one, also when a declaration has no file or is in a unit that lacks the
 * directories of that file.
 */
static uint32_t add_function_in_file(struct libdw_unit *u, uint32_t function, uint32_t file)
{
        const char *strings = (const char *)u->builder->strings.data, *declared, *used = strings + file;
        struct symbol_function f;
        size_t n, m = strlen(used);

        if (function == SYMBOL_NO_FUNCTION || u->builder->failed)
                return function;
        f = u->builder->functions[function];
        declared = strings + f.file;
        if (f.file == file || !f.start_line || (f.file && strncmp(declared, "./", 2) != 0))
                return function;
        n = f.file ? strlen(++declared) : 0; /* including the slash */
        if (n > m || strcmp(used + m - n, declared) != 0)
                return function;
        f.file = file;
        return symbol_table_builder_intern_function(u->builder, &f);
}

static uint32_t add_chain(struct libdw_unit *u, uint32_t scope, uint32_t file, uint32_t line)
{
        struct symbol_table_frame frames[LIMIT_INLINE_DEPTH + 1];
        size_t count = 0;

        if (u->last_chain != UINT32_MAX && scope == u->last_scope && file == u->last_file && line == u->last_line)
                return u->last_chain;
        u->last_scope = scope;
        u->last_file = file;
        u->last_line = line;
        if (scope == NO_SCOPE)
                frames[count++] = (struct symbol_table_frame){ SYMBOL_NO_FUNCTION, file, line };
        while (scope != NO_SCOPE) {
                const struct libdw_scope *s = &u->scopes[scope];

                frames[count++] = (struct symbol_table_frame){ add_function_in_file(u, s->function, file), file, line };
                file = s->call_file;
                line = s->call_line;
                scope = s->parent;
        }
        /* Reset in each unit, so that the later of two wins. */
        u->last_chain = symbol_table_builder_add_chains(u->builder, &(struct symbol_chain){ 0, (uint32_t)count }, 1,
                                                        frames, count);
        return u->last_chain;
}

/* [start, end) is entirely inside one scope or outside of all; line rows split it. */
static void flatten_span(struct libdw_unit *u, uint64_t start, uint64_t end, uint32_t scope)
{
        const struct libdw_rows *r = &u->rows;

        u->row_hint = libdw_rows_next(r, start, u->row_hint);
        for (size_t i = u->row_hint; start < end; u->row_hint = i) {
                const struct libdw_row *row = i < r->count && r->rows[i].start < end ? &r->rows[i] : NULL;
                uint64_t until = row ? row->start : end;

                if (start < until) { /* no line row covers this address */
                        if (scope != NO_SCOPE)
                                symbol_table_builder_add_range(u->builder, start, until, add_chain(u, scope, 0, 0));
                        start = until;
                        continue;
                }
                until = row->end < end ? row->end : end;
                symbol_table_builder_add_range(u->builder, start, until,
                                               add_chain(u, scope, libdw_unit_file(u, row->file), row->line));
                start = until;
                i += row->end <= end;
        }
}

/* Line rows outside of all functions, such as hand-written assembly without DIEs. */
static void flatten_gap(struct libdw_unit *u, uint64_t start, uint64_t end)
{
        const struct libdw_rows *r = &u->rows;

        if (r->count == 0)
                return;
        if (start < r->rows[0].start)
                start = r->rows[0].start;
        if (end > r->rows[r->count - 1].end)
                end = r->rows[r->count - 1].end;
        if (start < end)
                flatten_span(u, start, end, NO_SCOPE);
}

static void flatten_interval(void *context, uint64_t start, uint64_t end, uint32_t scope)
{
        struct libdw_unit *u = context;

        flatten_gap(u, u->flat_until, start);
        flatten_span(u, start, end, scope);
        u->flat_until = end;
}

void libdw_unit_flatten(struct libdw_unit *u)
{
        u->flat_until = 0;
        u->row_hint = 0;
        u->last_chain = UINT32_MAX;
        if (!interval_list_overlay(&u->intervals, flatten_interval, u))
                u->builder->failed = ST_NO_MEMORY;
        flatten_gap(u, u->flat_until, UINT64_MAX);
}
