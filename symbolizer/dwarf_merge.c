/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/limits.h"
#include "symbolizer/demangle.h"
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

const char *dwarf_plain_name(const struct dwarf_name *n, struct buf *text)
{
        _cleanup_buf_ struct buf scratch = { 0 };
        const char *full;

        if (!n->plain || !n->around)
                return n->plain ? n->plain : "";
        buf_init(&scratch, LIMIT_DEMANGLED_BYTES + 1);
        buf_init(text, LIMIT_DEMANGLED_BYTES + LIMIT_NAME_BYTES);
        buf_printf(text, "%s::%s", symbol_demangle(n->around, &scratch), n->plain);
        full = buf_cstr(text);
        return full ? full : n->plain;
}

static uint32_t function_of(const struct dwarf_part *p, struct dwarf_merge *m, struct symbol_table_builder *b,
                            uint32_t name)
{
        const struct dwarf_name *n = &p->code.names[name];
        _cleanup_buf_ struct buf text = { 0 };

        if (m->functions[name] != NOT_ASKED)
                return m->functions[name];
        if (n->linkage)
                m->functions[name] = symbol_table_builder_function(b, n->linkage, "");
        else if (n->plain && n->plain[0])
                m->functions[name] = symbol_table_builder_function(b, "", dwarf_plain_name(n, &text));
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

static size_t frames_of(const struct dwarf_part *p, struct dwarf_merge *m, struct symbol_table_builder *b,
                        const struct dwarf_span *s, struct symbol_table_frame *frames)
{
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
        return count;
}

/* Chains are looked up some at a time: each is a wait for memory otherwise. */
#define TOGETHER 16

static void merge_some(const struct dwarf_part *p, struct dwarf_merge *m, struct symbol_table_builder *b,
                       const struct dwarf_span *spans, size_t count)
{
        struct symbol_table_frame frames[TOGETHER * (LIMIT_INLINE_DEPTH + 1)];
        size_t counts[TOGETHER], used = 0;
        uint64_t hashes[TOGETHER];

        for (size_t i = 0; i < count; i++) {
                counts[i] = frames_of(p, m, b, &spans[i], frames + used);
                hashes[i] = symbol_table_builder_chain_hash(b, frames + used, counts[i]);
                used += counts[i];
        }
        used = 0;
        for (size_t i = 0; i < count; i++) {
                symbol_table_builder_range(b, spans[i].start, spans[i].end,
                                           symbol_table_builder_chain_hashed(b, frames + used, counts[i], hashes[i]));
                used += counts[i];
        }
}

void dwarf_part_merge(const struct dwarf_part *p, struct dwarf_merge *m, struct symbol_table_builder *b)
{
        if (!blank(&m->functions, &m->function_capacity, p->code.name_count) ||
            !blank(&m->files, &m->file_capacity, p->code.lines.file_count)) {
                b->failed = ST_NO_MEMORY;
                return;
        }
        for (size_t i = 0; i < p->span_count && !b->failed; i += TOGETHER)
                merge_some(p, m, b, p->spans + i, p->span_count - i < TOGETHER ? p->span_count - i : TOGETHER);
}
