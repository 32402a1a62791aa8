/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/line.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"
#include "common/limits.h"

/* ---- header ---- */

static enum status add_line_file(struct dwarf_lines *l, const char *name, uint64_t directory, const char *text)
{
        if (l->file_count >= LIMIT_DWARF_LINE_FILES)
                return ST_TOO_BIG;
        if (!array_reserve(&l->files, &l->file_capacity, l->file_count))
                return ST_NO_MEMORY;
        l->files[l->file_count++] = (struct dwarf_line_file){ name, directory, text };
        return ST_OK;
}

static enum status add_line_directory(struct dwarf_lines *l, const char *name)
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
        return c->failed ? ST_BAD_DATA : add_line_file(l, name, directory, NULL);
}

/* Directory 0 is the unit's, which relative ones are prefixed with anyway; files begin with 1. */
static enum status read_old_tables(struct dwarf_lines *l, struct dwarf_cursor *c)
{
        enum status st = add_line_directory(l, NULL);
        bool is_end = false;

        while (!st) {
                const char *name = dwarf_cstr(c);

                if (!name[0])
                        break;
                st = add_line_directory(l, name);
        }
        if (!st)
                st = add_line_file(l, NULL, 0, NULL);
        while (!st && !is_end)
                st = dwarf_line_add_file(l, c, &is_end);
        return st;
}

/* ---- version 5 ---- */

struct content {
        uint64_t type;
        uint16_t form;
};

static enum status read_entry_formats(struct dwarf_cursor *c, struct content *formats, unsigned *count_ret)
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

static enum status read_entry_table(struct dwarf_lines *l, struct dwarf_cursor *c, const struct dwarf_line_header *h,
                                    const struct dwarf_context *x, bool is_files)
{
        struct content formats[LIMIT_DWARF_LINE_FORMATS];
        unsigned format_count;
        enum status st = read_entry_formats(c, formats, &format_count);
        uint64_t count = st ? 0 : dwarf_uleb(c);

        for (uint64_t i = 0; !st && i < count; i++) {
                const char *name = NULL, *text = NULL;
                uint64_t directory = 0;

                for (unsigned f = 0; f < format_count; f++) {
                        struct dwarf_value v;

                        dwarf_value_read(c, &h->format, formats[f].form, 0, &v);
                        if (formats[f].type == DW_LNCT_path)
                                name = dwarf_context_string(x, &v);
                        else if (formats[f].type == DW_LNCT_LLVM_source)
                                text = dwarf_context_string(x, &v);
                        else if (formats[f].type == DW_LNCT_directory_index && !dwarf_value_uint(&v, &directory))
                                directory = UINT64_MAX;
                }
                if (c->failed)
                        st = ST_BAD_DATA;
                else
                        st = is_files ? add_line_file(l, name, directory, text && *text ? text : NULL)
                                      : add_line_directory(l, name);
        }
        return st ? st : c->failed ? ST_BAD_DATA : ST_OK;
}

/* ---- all versions ---- */

static bool read_machine_parameters(struct dwarf_line_header *h, struct dwarf_cursor *c)
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
        l->is_relative = x->object->has_relative_paths;
        h->format.version = (uint8_t)version;
        h->format.address_size = x->unit->format.address_size;
        if (version >= 5) {
                h->format.address_size = dwarf_u8(&c);
                dwarf_u8(&c); /* segment selector size: not supported by any producer */
        }
        length = dwarf_uint(&c, h->format.offset_size);
        if (c.failed || length > dwarf_left(&c))
                return ST_BAD_DATA;
        h->program = c;
        h->program.pos += length;
        c.end = h->program.pos;
        if (!read_machine_parameters(h, &c))
                return ST_BAD_DATA;
        if (version < 5)
                return read_old_tables(l, &c);
        st = read_entry_table(l, &c, h, x, false);
        return st ? st : read_entry_table(l, &c, h, x, true);
}

/* ---- paths ---- */

static void append_directory(struct buf *to, const char *name)
{
        size_t n = name ? strlen(name) : 0;

        if (!n)
                return;
        buf_append(to, name, n);
        if (name[n - 1] != '/')
                buf_append_u8(to, '/');
}

/* SCHEME://, of sources that a build tool names by their address. */
static bool is_source_url(const char *path)
{
        size_t n = strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");

        return n > 1 && strncmp(path + n, "://", 3) == 0;
}

/* Of POSIX, or of Windows: C:/ or C:\, \\SERVER; or a URL. */
static bool is_absolute_path(const char *path)
{
        bool has_drive = (path[0] >= 'A' && path[0] <= 'Z') || (path[0] >= 'a' && path[0] <= 'z');

        return path[0] == '/' || (path[0] == '\\' && path[1] == '\\') ||
               (has_drive && path[1] == ':' && (path[2] == '/' || path[2] == '\\')) || is_source_url(path);
}

static const char *get_directory(const struct dwarf_lines *l, uint64_t number)
{
        const char *name = number < l->directory_count ? l->directories[number] : NULL;

        return name && name[0] ? name : NULL;
}

/* In version 5, directory 0 is the compilation directory: it is not relative to itself. */
void dwarf_lines_path(const struct dwarf_lines *l, uint64_t file, struct buf *to)
{
        const struct dwarf_line_file *f = file < l->file_count ? &l->files[file] : NULL;
        const char *directory, *base;

        if (!f || !f->name || !f->name[0])
                return;
        if (l->is_relative) {
                if (!is_absolute_path(f->name) && !(l->version >= 5 && f->directory == 0))
                        append_directory(to, get_directory(l, f->directory));
        } else if (!is_absolute_path(f->name)) {
                directory = get_directory(l, f->directory);
                base = l->unit_directory && l->unit_directory[0] ? l->unit_directory : get_directory(l, 0);
                if (!directory || (!is_absolute_path(directory) && !(l->version >= 5 && f->directory == 0)))
                        append_directory(to, base);
                append_directory(to, directory);
        }
        buf_append_str(to, f->name);
}

/* The registers of the line number machine. */
struct machine {
        uint64_t address, op_index;
        uint64_t file, line, column, discriminator;
        bool started;     /* the sequence has a row */
        bool is_live;     /* it began in code */
        size_t first_row; /* of the sequence */
        uint32_t first_file, first_line;
        enum status failed;
};

void dwarf_lines_clear(struct dwarf_lines *l)
{
        l->row_count = l->sequence_count = l->file_count = l->directory_count = l->position_count = 0;
        l->is_folded = false;
}

void dwarf_lines_deinit(struct dwarf_lines *l)
{
        free(l->rows);
        free(l->spare);
        free(l->sequences);
        free(l->files);
        free(l->directories);
        free(l->positions);
        *l = (struct dwarf_lines){ 0 };
}

/* Unsigned arithmetic may wrap; a row that goes backwards is then dropped. */
static inline void advance_address(const struct dwarf_line_header *h, struct machine *m, uint64_t operations)
{
        if (h->max_operations == 1) {
                m->address += h->min_instruction_length * operations;
                return;
        }
        m->op_index += operations;
        m->address += h->min_instruction_length * (m->op_index / h->max_operations);
        m->op_index %= h->max_operations;
}

/* @return whether the sequence is in code, by its first row */
static bool begin_line_sequence(struct dwarf_lines *l, struct machine *m, const struct dwarf_row *row,
                                const struct dwarf_regions *code)
{
        m->started = true;
        m->first_row = l->row_count;
        m->first_file = row->file;
        m->first_line = row->line;
        m->is_live = dwarf_regions_find(code, m->address) != NULL;
        return m->is_live;
}

static uint32_t cut_to_uint32(uint64_t n)
{
        return n <= INT32_MAX ? (uint32_t)n : 0;
}

/* The number of the position of a row. Equal positions that follow each other have the same number. */
static uint32_t add_row_position(struct dwarf_lines *l, struct machine *m, uint32_t line)
{
        const struct source_position p = { line, cut_to_uint32(m->column), cut_to_uint32(m->discriminator) };
        static const struct source_position unknown;

        if (l->position_count && memcmp(&l->positions[l->position_count - 1], &p, sizeof p) == 0)
                return (uint32_t)l->position_count - 1;
        if (l->position_count >= LIMIT_DWARF_LINE_ROWS)
                m->failed = ST_TOO_BIG;
        else if (!array_reserve_many(&l->positions, &l->position_capacity, l->position_count, 2))
                m->failed = ST_NO_MEMORY;
        if (m->failed)
                return 0;
        if (!l->position_count)
                l->positions[l->position_count++] = unknown;
        l->positions[l->position_count] = p;
        return (uint32_t)l->position_count++;
}

/* A row's end is set when the next one comes. */
static inline void emit_line_row(struct dwarf_lines *l, struct machine *m, const struct dwarf_regions *code)
{
        struct dwarf_row row = { .start = m->address, .end = m->address };

        if (m->started && !m->is_live)
                return;
        row.file = m->file < UINT32_MAX ? (uint32_t)m->file : UINT32_MAX;
        row.line = cut_to_uint32(m->line);
        if (!m->started && !begin_line_sequence(l, m, &row, code))
                return;
        if (l->wants_positions)
                row.line = add_row_position(l, m, row.line);
        if (l->row_count > m->first_row) {
                struct dwarf_row *last = &l->rows[l->row_count - 1];

                if (row.start < last->end) /* the start of the newest row, even of one merged into the last */
                        return;
                if (row.start == last->start) {
                        *last = row;
                        return;
                }
                last->end = row.start;
                if (last->file == row.file && last->line == row.line)
                        return; /* repeats the last row, which continues */
        }
        if (l->row_count >= LIMIT_DWARF_LINE_ROWS)
                m->failed = ST_TOO_BIG;
        else if (!array_reserve(&l->rows, &l->row_capacity, l->row_count))
                m->failed = ST_NO_MEMORY;
        else
                l->rows[l->row_count++] = row;
}

static void finish_line_sequence(struct dwarf_lines *l, struct machine *m, const struct dwarf_regions *code)
{
        struct dwarf_row *last = l->row_count > m->first_row && m->started ? &l->rows[l->row_count - 1] : NULL;
        enum status failed = m->failed;

        if (last && m->address > last->start)
                last->end = m->address;
        else if (last)
                l->row_count--; /* a row at the very end covers nothing */
        if (m->started && l->row_count > m->first_row &&
            !dwarf_regions_fit(code, l->rows[m->first_row].start, l->rows[l->row_count - 1].end))
                l->row_count = m->first_row;
        if (m->started && l->row_count > m->first_row) {
                if (!array_reserve(&l->sequences, &l->sequence_capacity, l->sequence_count))
                        failed = ST_NO_MEMORY;
                else
                        l->sequences[l->sequence_count++] = (struct dwarf_sequence){
                                .start = l->rows[m->first_row].start,
                                .end = l->rows[l->row_count - 1].end,
                                .first = m->first_row,
                                .count = l->row_count - m->first_row,
                                .file = m->first_file,
                                .line = m->first_line,
                        };
        }
        *m = (struct machine){ .file = 1, .line = 1, .first_row = l->row_count, .failed = failed };
}

static void run_extended_opcode(struct dwarf_cursor *p, struct dwarf_lines *l, struct machine *m,
                                const struct dwarf_regions *code)
{
        struct dwarf_cursor inner = *p;
        uint64_t length = dwarf_uleb(p);
        bool is_end;

        inner.pos = p->pos;
        dwarf_skip(p, length);
        inner.end = p->pos;
        if (p->failed || length == 0)
                return;
        switch (dwarf_u8(&inner)) {
        case DW_LNE_end_sequence:
                finish_line_sequence(l, m, code);
                return;
        case DW_LNE_set_address:
                m->op_index = 0;
                m->address = dwarf_uint(&inner, (unsigned)(length - 1 > 8 ? 0 : length - 1));
                if (inner.failed)
                        dwarf_fail(p);
                return;
        case DW_LNE_define_file:
                if (l->version < 5)
                        m->failed = dwarf_line_add_file(l, &inner, &is_end);
                return;
        case DW_LNE_set_discriminator:
                m->discriminator = dwarf_uleb(&inner);
                return;
        default: /* vendors' own */
                return;
        }
}

static void run_standard_opcode(uint8_t opcode, const struct dwarf_line_header *h, struct dwarf_cursor *p,
                                struct dwarf_lines *l, struct machine *m, const struct dwarf_regions *code)
{
        switch (opcode) {
        case DW_LNS_copy:
                emit_line_row(l, m, code);
                m->discriminator = 0;
                return;
        case DW_LNS_advance_pc:
                advance_address(h, m, dwarf_uleb(p));
                return;
        case DW_LNS_advance_line:
                m->line += (uint64_t)dwarf_sleb(p);
                return;
        case DW_LNS_set_file:
                m->file = dwarf_uleb(p);
                return;
        case DW_LNS_set_column:
                m->column = dwarf_uleb(p);
                return;
        case DW_LNS_const_add_pc:
                advance_address(h, m, (255u - h->opcode_base) / h->line_range);
                return;
        case DW_LNS_fixed_advance_pc:
                m->address += dwarf_u16(p);
                m->op_index = 0;
                return;
        default:
                for (uint8_t i = 0; i < h->opcode_lengths[opcode - 1]; i++)
                        dwarf_skip_leb(p);
        }
}

/* The two parts of each special opcode; saves a division per row. */
struct special {
        uint8_t operations;
        int16_t lines;
};

static enum status run_line_program(const struct dwarf_line_header *h, struct dwarf_lines *l,
                                    const struct dwarf_regions *code)
{
        struct dwarf_cursor p = h->program;
        struct machine m = { .file = 1, .line = 1 };
        struct special special[256];

        for (unsigned i = h->opcode_base; i < 256; i++)
                special[i] = (struct special){ (uint8_t)((i - h->opcode_base) / h->line_range),
                                               (int16_t)(h->line_base + (int)((i - h->opcode_base) % h->line_range)) };
        while (p.pos != p.end && !m.failed) {
                uint8_t opcode = *p.pos++;

                if (opcode >= h->opcode_base) {
                        advance_address(h, &m, special[opcode].operations);
                        m.line += (uint64_t)(int64_t)special[opcode].lines;
                        emit_line_row(l, &m, code);
                        m.discriminator = 0;
                } else if (opcode == 0) {
                        run_extended_opcode(&p, l, &m, code);
                } else {
                        run_standard_opcode(opcode, h, &p, l, &m, code);
                }
        }
        if (m.started)
                l->row_count = m.first_row; /* a sequence without its end covers nothing */
        return m.failed ? m.failed : p.failed ? ST_BAD_DATA : ST_OK;
}

static int compare_sequences(const void *a, const void *b)
{
        const struct dwarf_sequence *x = a, *y = b;

        if (x->start != y->start)
                return x->start < y->start ? -1 : 1;
        return x->first < y->first ? -1 : x->first > y->first;
}

static bool are_rows_sorted(const struct dwarf_lines *l)
{
        for (size_t i = 1; i < l->sequence_count; i++)
                if (l->sequences[i].start < l->sequences[i - 1].end)
                        return false;
        return true;
}

/* Sequences come in any order. */
static enum status sort_sequences(struct dwarf_lines *l)
{
        struct dwarf_row *rows = l->rows;
        size_t kept = 0, capacity = l->row_capacity;
        uint64_t end = 0;

        if (are_rows_sorted(l))
                return ST_OK;
        qsort(l->sequences, l->sequence_count, sizeof *l->sequences, compare_sequences);
        if (l->spare_capacity < l->row_count) {
                free(l->spare);
                l->spare_capacity = 0;
                l->spare = reallocarray(NULL, l->row_count, sizeof *l->spare);
                if (!l->spare)
                        return ST_NO_MEMORY;
                l->spare_capacity = l->row_count;
        }
        for (size_t i = 0; i < l->sequence_count; i++) {
                l->is_folded |= i > 0 && l->sequences[i].start == l->sequences[i - 1].start;
                for (size_t k = 0; k < l->sequences[i].count; k++) {
                        struct dwarf_row row = rows[l->sequences[i].first + k];

                        if (row.start < end)
                                row.start = end;
                        if (row.start >= row.end)
                                continue;
                        end = row.end;
                        l->spare[kept++] = row;
                }
        }
        l->rows = l->spare;
        l->row_capacity = l->spare_capacity;
        l->row_count = kept;
        l->spare = rows;
        l->spare_capacity = capacity;
        return ST_OK;
}

enum status dwarf_lines_read(struct dwarf_lines *l, const struct dwarf_context *x, uint64_t offset,
                             const struct dwarf_regions *code)
{
        struct dwarf_line_header h = { 0 };
        enum status st;

        dwarf_lines_clear(l);
        if (!dwarf_object_spend(x->object, DWARF_BUDGET_LINE, 1))
                return ST_TOO_BIG;
        st = dwarf_line_header_read(&h, l, x, offset);
        if (!dwarf_object_spend(x->object, DWARF_BUDGET_LINE,
                                dwarf_left(&h.program) + 4 * (l->file_count + l->directory_count)))
                return ST_TOO_BIG;
        if (st)
                return st;
        st = run_line_program(&h, l, code);
        if (sort_sequences(l))
                st = ST_NO_MEMORY;
        if (st == ST_NO_MEMORY)
                l->row_count = 0;
        return st;
}

enum status dwarf_lines_read_files(struct dwarf_lines *l, const struct dwarf_context *x, uint64_t offset)
{
        struct dwarf_line_header h = { 0 };
        enum status st;

        dwarf_lines_clear(l);
        if (!dwarf_object_spend(x->object, DWARF_BUDGET_LINE, 1))
                return ST_TOO_BIG;
        st = dwarf_line_header_read(&h, l, x, offset);
        return dwarf_object_spend(x->object, DWARF_BUDGET_LINE, 4 * (l->file_count + l->directory_count)) ? st
                                                                                                          : ST_TOO_BIG;
}

bool dwarf_line_program_is_empty(const struct dwarf_context *x, uint64_t offset)
{
        struct dwarf_cursor c = dwarf_section_at(&x->file->sections, DWARF_LINE, offset);
        uint8_t offset_size;
        uint64_t length = dwarf_initial_length(&c, &offset_size);
        uint16_t version;

        if (c.failed || length > dwarf_left(&c))
                return false;
        c.end = c.pos + length;
        version = dwarf_u16(&c);
        if (version < 2 || version > 5)
                return false;
        dwarf_skip(&c, version >= 5 ? 2 : 0); /* the sizes of addresses and of segment selectors */
        length = dwarf_uint(&c, offset_size);
        return !c.failed && length == dwarf_left(&c);
}

bool dwarf_line_starts_begin(struct dwarf_line_starts *s, const struct dwarf_context *x, uint64_t offset)
{
        uint8_t offset_size, address_size = x->unit->format.address_size;
        struct dwarf_cursor c = dwarf_section_at(&x->file->sections, DWARF_LINE, offset);
        uint64_t length = dwarf_initial_length(&c, &offset_size);

        if (c.failed || length > dwarf_left(&c) || !dwarf_object_spend(x->object, DWARF_BUDGET_LINE, length))
                return false;
        c.end = c.pos + length;
        *s = (struct dwarf_line_starts){ c, { 0, (uint8_t)(1 + address_size), DW_LNE_set_address }, address_size };
        return true;
}

bool dwarf_line_starts_next(struct dwarf_line_starts *s, uint64_t *ret)
{
        size_t rare = s->address_size == 8; /* the byte to search: 9 is rare in line programs, but 5 sets a column */

        while (dwarf_left(&s->left) >= sizeof s->opcode) {
                struct dwarf_cursor c = s->left;
                const uint8_t *found = memchr(c.pos + rare, s->opcode[rare], dwarf_left(&c) - rare);

                if (!found)
                        break;
                c.pos = found - rare;
                s->left.pos = c.pos + 1;
                if (dwarf_left(&c) < sizeof s->opcode || memcmp(c.pos, s->opcode, sizeof s->opcode) != 0)
                        continue;
                dwarf_skip(&c, sizeof s->opcode);
                *ret = dwarf_uint(&c, s->address_size);
                return !c.failed;
        }
        return false;
}

uint64_t dwarf_lines_next(const struct dwarf_sections *s, uint64_t offset)
{
        struct dwarf_cursor c = dwarf_section_at(s, DWARF_LINE, offset);
        const uint8_t *section = s->data[DWARF_LINE].bytes;
        uint8_t offset_size;

        dwarf_skip(&c, dwarf_initial_length(&c, &offset_size));
        return c.failed || !dwarf_left(&c) ? UINT64_MAX : (uint64_t)(c.pos - section);
}
