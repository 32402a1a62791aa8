/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/libdw_lines.h"

#include <dwarf.h>
#include <stdlib.h>

#include "common/memory/array.h"
#include "common/reader.h"

struct header {
        uint16_t version;
        uint8_t min_instruction_length, max_operations;
        int8_t line_base;
        uint8_t line_range, opcode_base;
        const uint8_t *opcode_lengths; /* operand counts of opcodes 1 to opcode_base - 1 */
};

/* The registers of the line number machine. */
struct machine {
        uint64_t address, op_index;
        uint64_t file, line;
        bool started;     /* the sequence has a row */
        bool is_live;     /* the sequence starts in code */
        size_t first_row; /* index of the first row of the sequence */
};

void libdw_rows_deinit(struct libdw_rows *r)
{
        free(r->rows);
        *r = (struct libdw_rows){ 0 };
}

/* Extract the program from the section and read the required parts of its header. */
static bool read_header(struct reader *r, struct header *h, struct reader *program)
{
        struct reader unit;
        uint32_t length32, header_length32;
        uint64_t length, header_length;
        uint8_t skipped, line_base;
        bool is_64;

        if (!reader_u32(r, &length32))
                return false;
        length = length32;
        is_64 = length32 == 0xffffffff;
        if (is_64 && !reader_u64(r, &length))
                return false;
        if (!reader_sub(r, length, &unit) || !reader_u16(&unit, &h->version))
                return false;
        if (h->version < 2 || h->version > 5)
                return true; /* reported by the caller */
        if (h->version >= 5 && (!reader_u8(&unit, &skipped) || !reader_u8(&unit, &skipped)))
                return false;
        if (is_64 ? !reader_u64(&unit, &header_length) : !reader_u32(&unit, &header_length32))
                return false;
        if (!is_64)
                header_length = header_length32;
        *program = unit;
        if (!reader_skip(program, header_length))
                return false;
        h->max_operations = 1;
        if (!reader_u8(&unit, &h->min_instruction_length) ||
            (h->version >= 4 && !reader_u8(&unit, &h->max_operations)) || !reader_u8(&unit, &skipped) ||
            !reader_u8(&unit, &line_base) || !reader_u8(&unit, &h->line_range) || !reader_u8(&unit, &h->opcode_base))
                return false;
        h->line_base = (int8_t)line_base;
        if (h->max_operations == 0 || h->line_range == 0 || h->opcode_base == 0)
                return false;
        return reader_bytes(&unit, h->opcode_base - 1u, &h->opcode_lengths);
}

static void advance_address(const struct header *h, struct machine *m, uint64_t operations)
{
        /* Unsigned arithmetic may wrap; a row that goes backwards is then dropped. */
        m->op_index += operations;
        m->address += h->min_instruction_length * (m->op_index / h->max_operations);
        m->op_index %= h->max_operations;
}

/* The end of a row is set by the next row. */
static bool add_row(struct libdw_rows *r, struct machine *m, const struct code_map *code)
{
        struct libdw_row row = { .start = m->address, .end = m->address };
        struct libdw_row *last;

        row.file = m->file < UINT32_MAX ? (uint32_t)m->file : UINT32_MAX;
        row.line = m->line <= INT32_MAX ? (uint32_t)m->line : 0;
        if (!m->started) {
                m->started = true;
                m->first_row = r->count;
                m->is_live = code_map_find(code, m->address) != NULL;
        }
        if (!m->is_live)
                return true;
        last = r->count > m->first_row ? &r->rows[r->count - 1] : NULL;
        if (last && row.start < last->start)
                return true;
        if (last && row.start == last->start) {
                *last = row;
                return true;
        }
        if (last)
                last->end = row.start;
        if (last && last->file == row.file && last->line == row.line)
                return true; /* same location: extends the last row */
        if (!array_reserve(&r->rows, &r->capacity, r->count))
                return false;
        r->rows[r->count++] = row;
        return true;
}

static void end_sequence(struct libdw_rows *r, struct machine *m)
{
        struct libdw_row *last = r->count > m->first_row && m->started ? &r->rows[r->count - 1] : NULL;

        if (last && m->address > last->start)
                last->end = m->address;
        else if (last)
                r->count--; /* a row at the end of the sequence covers nothing */
        *m = (struct machine){ .file = 1, .line = 1, .first_row = r->count };
}

static bool run_extended(struct reader *p, struct libdw_rows *r, struct machine *m)
{
        struct reader inner;
        uint64_t length;
        uint8_t opcode;
        uint32_t address32;

        if (!reader_uleb128(p, &length) || !reader_sub(p, length, &inner))
                return false;
        if (!reader_u8(&inner, &opcode))
                return true; /* empty: nothing to do */
        switch (opcode) {
        case DW_LNE_end_sequence:
                end_sequence(r, m);
                return true;
        case DW_LNE_set_address:
                m->op_index = 0;
                if (reader_left(&inner) == 8)
                        return reader_u64(&inner, &m->address);
                if (!reader_u32(&inner, &address32))
                        return false;
                m->address = address32;
                return true;
        default: /* discriminators, DW_LNE_define_file, vendor extensions */
                return true;
        }
}

static bool run_standard(uint8_t opcode, const struct header *h, struct reader *p, struct libdw_rows *r,
                         struct machine *m, const struct code_map *code, bool *memory)
{
        uint64_t operand;
        int64_t delta;
        uint16_t fixed;

        switch (opcode) {
        case DW_LNS_copy:
                *memory = add_row(r, m, code);
                return *memory;
        case DW_LNS_advance_pc:
                if (!reader_uleb128(p, &operand))
                        return false;
                advance_address(h, m, operand);
                return true;
        case DW_LNS_advance_line:
                if (!reader_sleb128(p, &delta))
                        return false;
                m->line += (uint64_t)delta;
                return true;
        case DW_LNS_set_file:
                return reader_uleb128(p, &m->file);
        case DW_LNS_const_add_pc:
                advance_address(h, m, (255u - h->opcode_base) / h->line_range);
                return true;
        case DW_LNS_fixed_advance_pc:
                if (!reader_u16(p, &fixed))
                        return false;
                m->address += fixed;
                m->op_index = 0;
                return true;
        default:
                for (uint8_t i = 0; i < h->opcode_lengths[opcode - 1]; i++)
                        if (!reader_uleb128(p, &operand))
                                return false;
                return true;
        }
}

static bool run_program(const struct header *h, struct reader *p, struct libdw_rows *r, const struct code_map *code,
                        bool *memory)
{
        struct machine m = { .file = 1, .line = 1 };

        while (reader_left(p)) {
                uint8_t opcode;
                bool ok;

                if (!reader_u8(p, &opcode))
                        return false;
                if (opcode >= h->opcode_base) {
                        unsigned adjusted = (unsigned)opcode - h->opcode_base;

                        advance_address(h, &m, adjusted / h->line_range);
                        m.line += (uint64_t)(h->line_base + (int)(adjusted % h->line_range));
                        *memory = ok = add_row(r, &m, code);
                } else if (opcode == 0) {
                        ok = run_extended(p, r, &m);
                } else {
                        ok = run_standard(opcode, h, p, r, &m, code, memory);
                }
                if (!ok) {
                        r->count = m.started ? m.first_row : r->count;
                        return false;
                }
        }
        r->count = m.started ? m.first_row : r->count; /* rows of a sequence without DW_LNE_end_sequence are dropped */
        return true;
}

static int compare_row_starts(const void *a, const void *b)
{
        const struct libdw_row *x = a, *y = b;

        return x->start < y->start ? -1 : x->start > y->start;
}

/* Sequences come in any order; those of valid programs do not overlap. */
static void sort_rows(struct libdw_rows *r)
{
        size_t kept = 0;
        uint64_t end = 0;
        bool sorted = true;

        for (size_t i = 1; sorted && i < r->count; i++)
                sorted = r->rows[i - 1].start <= r->rows[i].start;
        if (!sorted)
                qsort(r->rows, r->count, sizeof *r->rows, compare_row_starts);
        for (size_t i = 0; i < r->count; i++) {
                struct libdw_row row = r->rows[i];

                if (row.start < end)
                        row.start = end;
                if (row.start >= row.end)
                        continue;
                end = row.end;
                r->rows[kept++] = row;
        }
        r->count = kept;
}

enum status libdw_rows_read(struct libdw_rows *r, const uint8_t *section, size_t section_size, uint64_t offset,
                            bool big_endian, const struct code_map *code, struct error *err)
{
        struct reader reader, program = { 0 };
        struct header h = { 0 };
        bool memory = true, ok;

        r->count = 0;
        reader_init(&reader, section, section_size);
        reader.big_endian = big_endian;
        if (!reader_seek(&reader, offset) || !read_header(&reader, &h, &program))
                return error_at(err, ST_BAD_DATA, offset, "the header of a line table is cut off or malformed");
        if (h.version < 2 || h.version > 5)
                return error_at(err, ST_UNSUPPORTED, offset, "line table of version %u", h.version);
        ok = run_program(&h, &program, r, code, &memory);
        sort_rows(r);
        if (!memory)
                return error_no_memory(err);
        return ok ? ST_OK : reader_error(&program, err, "a line table");
}

size_t libdw_rows_next(const struct libdw_rows *r, uint64_t address, size_t hint)
{
        size_t i = hint;

        if (i > 0 && (i >= r->count || r->rows[i - 1].end > address))
                i = 0;
        while (i < r->count && r->rows[i].end <= address)
                i++;
        return i;
}
