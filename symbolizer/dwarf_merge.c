/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/limits.h"
#include "symbolizer/dwarf_spans.h"

#define NOT_ASKED (UINT32_MAX - 1)

void dwarf_merge_deinit(struct dwarf_merge *m)
{
        free(m->functions);
        free(m->files);
        *m = (struct dwarf_merge){ 0 };
}

static bool blank(uint32_t **numbers, size_t *capacity, size_t count)
{
        if (count > *capacity) {
                uint32_t *grown = reallocarray(*numbers, count, sizeof *grown);

                if (!grown)
                        return false;
                *numbers = grown;
                *capacity = count;
        }
        for (size_t i = 0; i < count; i++)
                (*numbers)[i] = NOT_ASKED;
        return true;
}

static uint32_t function_of(const struct dwarf_part *p, struct dwarf_merge *m, struct symbol_table_builder *b,
                            uint32_t name)
{
        const struct dwarf_name *n = &p->code.names[name];

        if (m->functions[name] != NOT_ASKED)
                return m->functions[name];
        if (n->linkage)
                m->functions[name] = symbol_table_builder_function(b, n->linkage, "");
        else if (n->plain && n->plain[0])
                m->functions[name] = symbol_table_builder_function(b, "", n->plain);
        else
                m->functions[name] = SYMBOL_NO_FUNCTION;
        return m->functions[name];
}

static uint32_t file_of(const struct dwarf_part *p, struct dwarf_merge *m, struct symbol_table_builder *b, uint32_t file)
{
        _cleanup_buf_ struct buf path = { 0 };
        const char *text;

        if (file >= p->code.lines.file_count)
                return 0;
        if (m->files[file] != NOT_ASKED)
                return m->files[file];
        buf_init(&path, 4 * LIMIT_NAME_BYTES);
        dwarf_lines_path(&p->code.lines, file, &path);
        text = buf_cstr(&path);
        m->files[file] = symbol_table_builder_string(b, text ? text : "");
        return m->files[file];
}

static uint32_t chain_of(const struct dwarf_part *p, struct dwarf_merge *m, struct symbol_table_builder *b,
                         const struct dwarf_span *s)
{
        struct symbol_table_frame frames[LIMIT_INLINE_DEPTH + 1];
        uint32_t file = file_of(p, m, b, s->file), line = s->line, scope = s->scope;
        size_t count = 0;

        if (scope == DWARF_NO_SCOPE)
                frames[count++] = (struct symbol_table_frame){ SYMBOL_NO_FUNCTION, file, line };
        while (scope != DWARF_NO_SCOPE) {
                const struct dwarf_scope *around = &p->code.scopes[scope];

                frames[count++] = (struct symbol_table_frame){ function_of(p, m, b, around->name), file, line };
                file = file_of(p, m, b, around->call_file);
                line = around->call_line;
                scope = around->parent;
        }
        return symbol_table_builder_chain(b, frames, count);
}

void dwarf_part_merge(const struct dwarf_part *p, struct dwarf_merge *m, struct symbol_table_builder *b)
{
        if (!blank(&m->functions, &m->function_capacity, p->code.name_count) ||
            !blank(&m->files, &m->file_capacity, p->code.lines.file_count)) {
                b->failed = ST_NO_MEMORY;
                return;
        }
        for (size_t i = 0; i < p->span_count && !b->failed; i++)
                symbol_table_builder_range(b, p->spans[i].start, p->spans[i].end, chain_of(p, m, b, &p->spans[i]));
}
