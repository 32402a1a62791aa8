/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/libdw_unit.h"

#include <dwarf.h>
#include <stdlib.h>

#include "common/memory/array.h"
#include "common/limits.h"

void libdw_unit_init(struct libdw_unit *u, const struct libdw_file *file, struct symbol_table_builder *builder,
                     const struct code_map *code)
{
        *u = (struct libdw_unit){ .builder = builder,
                                  .code = code,
                                  .line_section = file->line_section,
                                  .line_section_size = file->line_section_size,
                                  .big_endian = file->big_endian };
        libdw_names_init(&u->names, builder);
}

void libdw_unit_deinit(struct libdw_unit *u)
{
        libdw_names_deinit(&u->names);
        libdw_rows_deinit(&u->rows);
        interval_list_deinit(&u->intervals);
        free(u->scopes);
        free(u->files);
        free(u->tables);
        *u = (struct libdw_unit){ 0 };
}

/* Context that a DIE passes to its children. */
struct context {
        uint32_t scope;
        uint32_t qualifier; /* string offset of "ns::Class", 0 at the top level */
        uint32_t depth;     /* depth of inlined calls */
        bool in_function;   /* directly in this scope, not in a nested one */
        Dwarf_Die function;
};

struct level {
        Dwarf_Die die;
        struct context context;
};

static uint32_t get_uint_attr(Dwarf_Die *die, unsigned name)
{
        Dwarf_Attribute attr;
        Dwarf_Word value;

        if (!dwarf_attr(die, name, &attr) || dwarf_formudata(&attr, &value) || value > UINT32_MAX)
                return 0;
        return (uint32_t)value;
}

uint32_t libdw_unit_file(struct libdw_unit *u, uint64_t number)
{
        if (number >= u->file_count)
                return 0;
        if (u->files[number] == UINT32_MAX)
                u->files[number] =
                        libdw_path_add(u->builder, u->directory, dwarf_filesrc(u->file_table, number, NULL, NULL));
        return u->files[number];
}

static uint32_t add_scope(struct libdw_unit *u, Dwarf_Die *die, uint32_t parent)
{
        struct libdw_scope s = { .parent = parent, .function = libdw_names_function(&u->names, die) };

        if (parent != NO_SCOPE) {
                s.call_file = libdw_unit_file(u, get_uint_attr(die, DW_AT_call_file));
                s.call_line = get_uint_attr(die, DW_AT_call_line);
        }
        if (u->scope_count >= NO_SCOPE || !array_reserve(&u->scopes, &u->scope_capacity, u->scope_count)) {
                u->builder->failed = ST_NO_MEMORY;
                return NO_SCOPE;
        }
        u->scopes[u->scope_count] = s;
        return (uint32_t)u->scope_count++;
}

/* Does the DIE describe live code? If a linker drops a function, its DIE keeps addresses that contain no code. */
static bool is_live_code(const struct libdw_unit *u, Dwarf_Die *die)
{
        Dwarf_Addr base, start, end;
        ptrdiff_t at = 0;

        while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0)
                if (start < end && code_map_find(u->code, start))
                        return true;
        return false;
}

static void add_intervals(struct libdw_unit *u, Dwarf_Die *die, uint32_t scope, uint32_t level)
{
        Dwarf_Addr base, start, end;
        ptrdiff_t at = 0;

        while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
                const struct code_region *region = start < end ? code_map_find(u->code, start) : NULL;

                if (!region)
                        continue;
                if (end > region->end)
                        end = region->end;
                if (u->intervals.count >= LIMIT_RANGES_PER_OBJECT) {
                        u->builder->failed = ST_TOO_BIG;
                        return;
                }
                if (!interval_list_add(&u->intervals, (struct interval){ start, end, scope, level }))
                        u->builder->failed = ST_NO_MEMORY;
        }
}

static bool visit_function(struct libdw_unit *u, Dwarf_Die *die, uint32_t level, struct context *c)
{
        if (c->qualifier && !dwarf_hasattr(die, DW_AT_linkage_name) && dwarf_hasattr(die, DW_AT_name))
                libdw_names_note_qualifier(&u->names, die, c->qualifier);
        c->in_function = true;
        c->function = *die;
        if (!is_live_code(u, die)) {
                c->scope = NO_SCOPE; /* nested functions may have code */
                return true;
        }
        if (u->only_notes) {
                c->scope = 0;
                return true;
        }
        c->scope = add_scope(u, die, NO_SCOPE);
        c->depth = 0;
        u->function_total++;
        add_intervals(u, die, c->scope, level);
        return true;
}

static bool visit_inlined(struct libdw_unit *u, Dwarf_Die *die, uint32_t level, struct context *c)
{
        if (c->scope == NO_SCOPE || c->depth >= LIMIT_INLINE_DEPTH - 1)
                return false;
        if (u->only_notes) {
                c->depth++;
                return true;
        }
        c->scope = add_scope(u, die, c->scope);
        c->depth++;
        add_intervals(u, die, c->scope, level);
        return true;
}

static void qualify_scope(struct libdw_unit *u, Dwarf_Die *die, struct context *c)
{
        const char *name = dwarf_diename(die);
        _cleanup_buf_ struct buf full = { 0 };

        if (!name)
                name = dwarf_tag(die) == DW_TAG_namespace    ? "(anonymous namespace)"
                       : dwarf_tag(die) == DW_TAG_class_type ? "(anonymous class)"
                       : dwarf_tag(die) == DW_TAG_union_type ? "(anonymous union)"
                                                             : "(anonymous struct)";
        buf_init(&full, LIMIT_NAME_BYTES);
        if (c->in_function && !u->builder->failed) {
                if (libdw_names_around(&u->names, &c->function, c->qualifier, &full))
                        buf_append_str(&full, "::");
        } else if (c->qualifier && !u->builder->failed) {
                buf_printf(&full, "%s::", (const char *)u->builder->strings.data + c->qualifier);
        }
        c->in_function = false;
        buf_append_str(&full, name);
        if (buf_cstr(&full))
                c->qualifier = symbol_table_builder_add_string(u->builder, buf_cstr(&full));
}

/* @return whether the children may describe code; c becomes their context. */
static bool visit_die(struct libdw_unit *u, Dwarf_Die *die, uint32_t level, bool qualifies, struct context *c)
{
        switch (dwarf_tag(die)) {
        case DW_TAG_subprogram:
                return visit_function(u, die, level, c);
        case DW_TAG_inlined_subroutine:
                return visit_inlined(u, die, level, c);
        case DW_TAG_namespace:
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
        case DW_TAG_union_type:
        case DW_TAG_interface_type:
                if (!dwarf_haschildren(die))
                        return false;
                if (qualifies)
                        qualify_scope(u, die, c);
                return true;
        case DW_TAG_module:
        case DW_TAG_lexical_block:
        case DW_TAG_try_block:
        case DW_TAG_catch_block:
        case DW_TAG_with_stmt:
                return true;
        default:
                return false;
        }
}

static bool is_cplusplus(Dwarf_Die *unit_die)
{
        switch (dwarf_srclang(unit_die)) {
        case DW_LANG_C_plus_plus:
        case DW_LANG_C_plus_plus_03:
        case DW_LANG_C_plus_plus_11:
        case DW_LANG_C_plus_plus_14:
                return true;
        default:
                return false;
        }
}

/* Depth first without recursion. DIE offsets only increase, so a malicious sibling reference cannot form a cycle. */
static void walk_dies(struct libdw_unit *u, Dwarf_Die *unit_die)
{
        struct level stack[LIMIT_DIE_DEPTH];
        bool qualifies = is_cplusplus(unit_die);
        uint32_t top = 0;

        if (dwarf_child(unit_die, &stack[0].die) != 0)
                return;
        stack[0].context = (struct context){ .scope = NO_SCOPE };
        while (!u->builder->failed) {
                struct context inner = stack[top].context;
                Dwarf_Die next;

                if (visit_die(u, &stack[top].die, top, qualifies, &inner) && top + 1 < LIMIT_DIE_DEPTH &&
                    dwarf_child(&stack[top].die, &next) == 0) {
                        stack[++top] = (struct level){ next, inner };
                        continue;
                }
                while (dwarf_siblingof(&stack[top].die, &next) != 0 || next.addr <= stack[top].die.addr)
                        if (top-- == 0)
                                return;
                stack[top].die = next;
        }
}

static void load_files(struct libdw_unit *u, Dwarf_Files *table, size_t count)
{
        u->file_table = table;
        u->file_count = 0;
        if (count > u->file_capacity) {
                uint32_t *files = reallocarray(u->files, count, sizeof *files);

                if (!files) {
                        u->builder->failed = ST_NO_MEMORY;
                        return;
                }
                u->files = files;
                u->file_capacity = count;
        }
        u->file_count = count;
        for (size_t i = 0; i < count; i++)
                u->files[i] = UINT32_MAX;
}

/* A unit with a malformed line table keeps its functions, and the rows before the error. */
static void read_rows(struct libdw_unit *u, uint64_t offset)
{
        if (libdw_rows_read(&u->rows, u->line_section, u->line_section_size, offset, u->big_endian, u->code, NULL) ==
            ST_NO_MEMORY)
                u->builder->failed = ST_NO_MEMORY;
}

static int compare_offsets(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

static void record_table(struct libdw_unit *u, uint64_t offset)
{
        if (!array_reserve(&u->tables, &u->table_capacity, u->table_count))
                u->builder->failed = ST_NO_MEMORY;
        else
                u->tables[u->table_count++] = offset;
}

static bool is_recorded(struct libdw_unit *u, uint64_t offset)
{
        if (!u->table_count)
                return false;
        if (!u->tables_sorted)
                qsort(u->tables, u->table_count, sizeof *u->tables, compare_offsets);
        u->tables_sorted = true;
        return bsearch(&offset, u->tables, u->table_count, sizeof *u->tables, compare_offsets) != NULL;
}

void libdw_unit_extract(struct libdw_unit *u, Dwarf_Die *unit_die)
{
        Dwarf_Files *files = NULL;
        size_t file_count = 0;
        Dwarf_Attribute attr;
        Dwarf_Word offset;

        u->scope_count = u->intervals.count = u->rows.count = 0;
        if (dwarf_getsrcfiles(unit_die, &files, &file_count))
                file_count = 0;
        load_files(u, files, file_count);
        u->directory = dwarf_attr(unit_die, DW_AT_comp_dir, &attr) ? dwarf_formstring(&attr) : NULL;
        if (dwarf_attr(unit_die, DW_AT_stmt_list, &attr) && dwarf_formudata(&attr, &offset) == 0) {
                record_table(u, offset);
                read_rows(u, offset);
        }
        walk_dies(u, unit_die);
        libdw_unit_flatten(u);
}

void libdw_unit_note(struct libdw_unit *u, Dwarf_Die *unit_die)
{
        u->only_notes = true;
        walk_dies(u, unit_die);
        u->only_notes = false;
}

void libdw_unit_extract_lines(struct libdw_unit *u, uint64_t offset, Dwarf_Files *files, size_t file_count)
{
        if (is_recorded(u, offset))
                return;
        u->scope_count = u->intervals.count = u->rows.count = 0;
        load_files(u, files, file_count);
        u->directory = NULL;
        read_rows(u, offset);
        libdw_unit_flatten(u);
}
