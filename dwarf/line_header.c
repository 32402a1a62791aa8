/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/array.h"
#include "common/limits.h"
#include "dwarf/line_internal.h"

static enum status add_file(struct dwarf_lines *l, const char *name, uint64_t directory)
{
        if (l->file_count >= LIMIT_DWARF_LINE_FILES)
                return ST_TOO_BIG;
        if (!array_reserve(&l->files, &l->file_capacity, l->file_count))
                return ST_NO_MEMORY;
        l->files[l->file_count++] = (struct dwarf_line_file){ name, directory };
        return ST_OK;
}

static enum status add_directory(struct dwarf_lines *l, const char *name)
{
        if (l->directory_count >= LIMIT_DWARF_LINE_FILES)
                return ST_TOO_BIG;
        if (!array_reserve(&l->directories, &l->directory_capacity, l->directory_count))
                return ST_NO_MEMORY;
        l->directories[l->directory_count++] = name;
        return ST_OK;
}

/* ---- before version 5 ---- */

enum status dwarf_line_add_file(struct dwarf_lines *l, struct dwarf_cursor *c, bool *is_end)
{
        const char *name = dwarf_cstr(c);
        uint64_t directory;

        *is_end = !name[0];
        if (*is_end)
                return c->failed ? ST_BAD_DATA : ST_OK;
        directory = dwarf_uleb(c);
        dwarf_skip_leb(c); /* time */
        dwarf_skip_leb(c); /* size */
        return c->failed ? ST_BAD_DATA : add_file(l, name, directory);
}

/* Directory 0 is the unit's, which goes in front of relative ones anyway; files begin with 1. */
static enum status read_old_tables(struct dwarf_lines *l, struct dwarf_cursor *c)
{
        enum status st = add_directory(l, NULL);
        bool is_end = false;

        while (!st) {
                const char *name = dwarf_cstr(c);

                if (!name[0])
                        break;
                st = add_directory(l, name);
        }
        if (!st)
                st = add_file(l, NULL, 0);
        while (!st && !is_end)
                st = dwarf_line_add_file(l, c, &is_end);
        return st;
}

/* ---- version 5 ---- */

struct content {
        uint64_t type;
        uint16_t form;
};

static enum status read_formats(struct dwarf_cursor *c, struct content *formats, unsigned *count_ret)
{
        unsigned count = dwarf_u8(c);

        if (count > LIMIT_DWARF_LINE_FORMATS)
                return ST_TOO_BIG;
        for (unsigned i = 0; i < count; i++) {
                uint64_t type = dwarf_uleb(c), form = dwarf_uleb(c);

                if (form > UINT16_MAX || form == DW_FORM_implicit_const)
                        dwarf_fail(c);
                formats[i] = (struct content){ type, (uint16_t)form };
        }
        *count_ret = count;
        return c->failed ? ST_BAD_DATA : ST_OK;
}

static enum status read_table(struct dwarf_lines *l, struct dwarf_cursor *c, const struct dwarf_line_header *h,
                              const struct dwarf_context *x, bool is_files)
{
        struct content formats[LIMIT_DWARF_LINE_FORMATS];
        unsigned format_count;
        enum status st = read_formats(c, formats, &format_count);
        uint64_t count = st ? 0 : dwarf_uleb(c);

        for (uint64_t i = 0; !st && i < count; i++) {
                const char *name = NULL;
                uint64_t directory = 0;

                for (unsigned f = 0; f < format_count; f++) {
                        struct dwarf_value v;

                        dwarf_value_read(c, &h->format, formats[f].form, 0, &v);
                        if (formats[f].type == DW_LNCT_path)
                                name = dwarf_context_string(x, &v);
                        else if (formats[f].type == DW_LNCT_directory_index && !dwarf_value_uint(&v, &directory))
                                directory = UINT64_MAX;
                }
                if (c->failed)
                        st = ST_BAD_DATA;
                else
                        st = is_files ? add_file(l, name, directory) : add_directory(l, name);
        }
        return st ? st : c->failed ? ST_BAD_DATA : ST_OK;
}

/* ---- both ---- */

static bool read_machine(struct dwarf_line_header *h, struct dwarf_cursor *c)
{
        h->min_instruction_length = dwarf_u8(c);
        h->max_operations = h->format.version >= 4 ? dwarf_u8(c) : 1;
        h->is_statement = dwarf_u8(c);
        h->line_base = (int8_t)dwarf_u8(c);
        h->line_range = dwarf_u8(c);
        h->opcode_base = dwarf_u8(c);
        if (c->failed || h->max_operations == 0 || h->line_range == 0 || h->opcode_base == 0)
                return false;
        h->opcode_lengths = dwarf_bytes(c, h->opcode_base - 1u);
        return !c->failed;
}

enum status dwarf_line_header_read(struct dwarf_line_header *h, struct dwarf_lines *l, const struct dwarf_context *x,
                                   uint64_t offset)
{
        struct dwarf_cursor c = dwarf_section_at(&x->file->sections, DWARF_LINE, offset);
        uint64_t length = dwarf_initial_length(&c, &h->format.offset_size);
        uint16_t version;
        enum status st;

        if (c.failed || length > dwarf_left(&c))
                return ST_BAD_DATA;
        c.end = c.pos + length;
        version = dwarf_u16(&c);
        if (!c.failed && (version < 2 || version > 5))
                return ST_UNSUPPORTED;
        l->version = version;
        l->unit_directory = x->directory;
        h->format.version = (uint8_t)version;
        h->format.address_size = x->unit->format.address_size;
        if (version >= 5) {
                h->format.address_size = dwarf_u8(&c);
                dwarf_u8(&c); /* segment selectors, which nobody has */
        }
        length = dwarf_uint(&c, h->format.offset_size);
        if (c.failed || length > dwarf_left(&c))
                return ST_BAD_DATA;
        h->program = c;
        h->program.pos += length;
        c.end = h->program.pos;
        if (!read_machine(h, &c))
                return ST_BAD_DATA;
        if (version < 5)
                return read_old_tables(l, &c);
        st = read_table(l, &c, h, x, false);
        return st ? st : read_table(l, &c, h, x, true);
}

/* ---- paths ---- */

static void append_directory(struct buf *to, const char *name)
{
        if (name && name[0]) {
                buf_append_str(to, name);
                buf_append_u8(to, '/');
        }
}

/*
 * In version 5 directory 0 is the unit's own, said once more. Where it is
 * relative ("./csu") everybody puts the unit's in front of it nevertheless; a
 * path of ours that differs from everybody's would find no source.
 */
void dwarf_lines_path(const struct dwarf_lines *l, uint64_t file, struct buf *to)
{
        const struct dwarf_line_file *f = file < l->file_count ? &l->files[file] : NULL;
        const char *directory;

        if (!f || !f->name || !f->name[0])
                return;
        if (f->name[0] != '/') {
                directory = f->directory < l->directory_count ? l->directories[f->directory] : NULL;
                if (!directory || directory[0] != '/')
                        append_directory(to, l->unit_directory);
                append_directory(to, directory);
        }
        buf_append_str(to, f->name);
}
