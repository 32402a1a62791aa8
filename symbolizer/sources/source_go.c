/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/sources/source_go.h"

#include "common/limits.h"
#include "symbolizer/sources/go_tables.h"

struct go_lines { /* of one function */
        struct go_steps files, lines, calls;
};

struct go_source {
        const struct go_pclntab *table;
        struct symbol_table_builder *b;
        struct source_ranges ranges;
        struct go_lines of;
        uint64_t steps_left; /* remaining frame budget */
        uint64_t broken;     /* functions */
};

/*
 * File and line of a frame: looked up by pc in the tables of the outermost function. The table does not have the file
 * of the declaration; that of the code is the same except with //line directives.
 */
static struct symbol_table_frame make_go_frame(struct go_source *s, const struct go_function *f, uint64_t pc,
                                               const char *name, uint32_t start_line)
{
        struct symbol_function function = { .name = symbol_table_builder_add_string(s->b, name) };
        const char *path = go_get_file_path(s->table, f, go_steps_at(&s->of.files, pc));
        uint32_t file = symbol_table_builder_add_string(s->b, path);
        int32_t line = go_steps_at(&s->of.lines, pc);

        if (file && start_line) {
                function.file = file;
                function.start_line = start_line;
        }
        return (struct symbol_table_frame){
                .function = symbol_table_builder_intern_function(s->b, &function),
                .file = file,
                .line = symbol_table_builder_number_line(s->b, line > 0 && file ? (uint32_t)line : 0),
        };
}

static uint32_t make_go_chain(struct go_source *s, const struct go_function *f, uint64_t pc)
{
        struct symbol_table_frame frames[LIMIT_INLINE_DEPTH + 1];
        struct go_inlined_call call;
        size_t count = 0;
        int32_t index;

        /* The pc of the call is in the same tables, as code of the function that it was inlined into. */
        while (count < LIMIT_INLINE_DEPTH && (index = go_steps_at(&s->of.calls, pc)) >= 0 &&
               go_read_inlined_call(s->table, f, (uint32_t)index, &call)) {
                frames[count++] = make_go_frame(s, f, pc, call.name, call.start_line);
                pc = f->entry + call.parent_pc;
        }
        frames[count++] = make_go_frame(s, f, pc, f->name, f->start_line);
        s->steps_left -= count < s->steps_left ? count : s->steps_left;
        return symbol_table_builder_add_chain(s->b, frames, count);
}

static uint64_t find_step_end(const struct go_steps *steps, size_t *at, uint64_t pc, uint64_t until)
{
        while (*at < steps->count && steps->items[*at].end <= pc)
                ++*at;
        return *at < steps->count && steps->items[*at].end < until ? steps->items[*at].end : until;
}

static bool read_function_steps(struct go_source *s, const struct go_function *f)
{
        s->of.calls.count = 0;
        return go_steps_read(s->table, f, f->file_table, &s->of.files) &&
               go_steps_read(s->table, f, f->line_table, &s->of.lines) &&
               (!f->tree || go_steps_read(s->table, f, f->inline_table, &s->of.calls));
}

/* Padding after a function has no line and is left out. */
static bool add_go_function(struct go_source *s, const struct go_function *f)
{
        const struct go_steps *lines = &s->of.lines;
        size_t file_at = 0, line_at = 0, call_at = 0;
        uint64_t end, pc = f->entry;

        if (!read_function_steps(s, f))
                return false;
        end = lines->count ? lines->items[lines->count - 1].end : f->end;
        while (pc < end && s->steps_left && !s->b->failed) {
                uint64_t until = find_step_end(&s->of.files, &file_at, pc, end);

                until = find_step_end(lines, &line_at, pc, until);
                until = find_step_end(&s->of.calls, &call_at, pc, until);
                if (!source_ranges_add(&s->ranges, pc, until, make_go_chain(s, f, pc)))
                        return false;
                pc = until;
        }
        return true;
}

static bool add_go_functions(struct go_source *s, const struct code_map *code)
{
        for (uint64_t i = 0; i < s->table->function_count && s->steps_left && !s->b->failed; i++) {
                const struct code_region *region;
                struct go_function f;

                if (!go_pclntab_get_function(s->table, i, &f) || !f.name[0]) {
                        s->broken++;
                        continue;
                }
                region = code_map_find(code, f.entry);
                if (!region)
                        continue;
                if (f.end > region->end)
                        f.end = region->end;
                if (!add_go_function(s, &f))
                        return false;
        }
        return true;
}

enum status fill_from_go_table(const struct elf_image *img, const struct code_map *code, struct symbol_table_builder *b,
                               struct go_summary *ret, struct error *err)
{
        struct go_source s = { .b = b, .steps_left = LIMIT_GO_FRAMES };
        struct go_summary summary = { 0 };
        struct go_tables tables;
        enum status st = go_tables_find(img, &tables, err);

        if (st)
                return st;
        s.table = &tables.pclntab;
        if (add_go_functions(&s, code)) {
                summary.function_count = tables.pclntab.function_count;
                summary.broken = s.broken;
                summary.used = fill_table_gaps(b, &s.ranges);
                *ret = summary;
        } else {
                st = error_no_memory(err);
        }
        go_steps_deinit(&s.of.files);
        go_steps_deinit(&s.of.lines);
        go_steps_deinit(&s.of.calls);
        source_ranges_deinit(&s.ranges);
        go_tables_deinit(&tables);
        return st;
}
