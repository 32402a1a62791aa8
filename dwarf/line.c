/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/line.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/limits.h"
#include "dwarf/line_internal.h"

/* The registers of the line number machine. */
struct machine {
        uint64_t address, op_index;
        uint64_t file, line;
        bool started;     /* the sequence has a row */
        bool is_live;     /* it began in code */
        size_t first_row; /* of the sequence */
        uint32_t first_file, first_line;
        enum status failed;
};

void dwarf_lines_clear(struct dwarf_lines *l)
{
        l->row_count = l->sequence_count = l->file_count = l->directory_count = 0;
        l->is_folded = false;
}

void dwarf_lines_deinit(struct dwarf_lines *l)
{
        free(l->rows);
        free(l->spare);
        free(l->sequences);
        free(l->files);
        free(l->directories);
        *l = (struct dwarf_lines){ 0 };
}

/* Unsigned arithmetic may wrap; a row that goes backwards is then dropped. */
static inline void advance(const struct dwarf_line_header *h, struct machine *m, uint64_t operations)
{
        if (h->max_operations == 1) {
                m->address += h->min_instruction_length * operations;
                return;
        }
        m->op_index += operations;
        m->address += h->min_instruction_length * (m->op_index / h->max_operations);
        m->op_index %= h->max_operations;
}

/* The first row says whether the sequence is in code. @return whether it is */
static bool begin_sequence(struct dwarf_lines *l, struct machine *m, const struct dwarf_row *row,
                           const struct dwarf_regions *code)
{
        m->started = true;
        m->first_row = l->row_count;
        m->first_file = row->file;
        m->first_line = row->line;
        m->is_live = dwarf_regions_find(code, m->address) != NULL;
        return m->is_live;
}

/* A row's end is set when the next one comes. */
static inline void add_row(struct dwarf_lines *l, struct machine *m, const struct dwarf_regions *code)
{
        struct dwarf_row row = { .start = m->address, .end = m->address };

        if (m->started && !m->is_live)
                return;
        row.file = m->file < UINT32_MAX ? (uint32_t)m->file : UINT32_MAX;
        row.line = m->line <= INT32_MAX ? (uint32_t)m->line : 0;
        if (!m->started && !begin_sequence(l, m, &row, code))
                return;
        if (l->row_count > m->first_row) {
                struct dwarf_row *last = &l->rows[l->row_count - 1];

                if (row.start < last->end) /* where the newest row is, also when it went into the last one */
                        return;
                if (row.start == last->start) {
                        *last = row;
                        return;
                }
                last->end = row.start;
                if (last->file == row.file && last->line == row.line)
                        return; /* the same again: the last one goes on */
        }
        if (l->row_count >= LIMIT_DWARF_LINE_ROWS)
                m->failed = ST_TOO_BIG;
        else if (!array_reserve(&l->rows, &l->row_capacity, l->row_count))
                m->failed = ST_NO_MEMORY;
        else
                l->rows[l->row_count++] = row;
}

static void end_sequence(struct dwarf_lines *l, struct machine *m, const struct dwarf_regions *code)
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
                                l->rows[m->first_row].start, m->first_row, l->row_count - m->first_row, m->first_file,
                                m->first_line };
        }
        *m = (struct machine){ .file = 1, .line = 1, .first_row = l->row_count, .failed = failed };
}

static void run_extended(struct dwarf_cursor *p, struct dwarf_lines *l, struct machine *m,
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
                end_sequence(l, m, code);
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
        default: /* discriminators, vendors' own */
                return;
        }
}

static void run_standard(uint8_t opcode, const struct dwarf_line_header *h, struct dwarf_cursor *p,
                         struct dwarf_lines *l, struct machine *m, const struct dwarf_regions *code)
{
        switch (opcode) {
        case DW_LNS_copy:
                add_row(l, m, code);
                return;
        case DW_LNS_advance_pc:
                advance(h, m, dwarf_uleb(p));
                return;
        case DW_LNS_advance_line:
                m->line += (uint64_t)dwarf_sleb(p);
                return;
        case DW_LNS_set_file:
                m->file = dwarf_uleb(p);
                return;
        case DW_LNS_set_column:
                dwarf_skip_leb(p);
                return;
        case DW_LNS_const_add_pc:
                advance(h, m, (255u - h->opcode_base) / h->line_range);
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

/* The two parts of each special opcode; saves a division for each row. */
struct special {
        uint8_t operations;
        int16_t lines;
};

static enum status run(const struct dwarf_line_header *h, struct dwarf_lines *l, const struct dwarf_regions *code)
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
                        advance(h, &m, special[opcode].operations);
                        m.line += (uint64_t)(int64_t)special[opcode].lines;
                        add_row(l, &m, code);
                } else if (opcode == 0) {
                        run_extended(&p, l, &m, code);
                } else {
                        run_standard(opcode, h, &p, l, &m, code);
                }
        }
        if (m.started)
                l->row_count = m.first_row; /* a sequence without its end covers nothing */
        return m.failed ? m.failed : p.failed ? ST_BAD_DATA : ST_OK;
}

static int by_start(const void *a, const void *b)
{
        const struct dwarf_sequence *x = a, *y = b;

        if (x->start != y->start)
                return x->start < y->start ? -1 : 1;
        return x->first < y->first ? -1 : x->first > y->first;
}

static uint64_t end_of(const struct dwarf_lines *l, const struct dwarf_sequence *s)
{
        return l->rows[s->first + s->count - 1].end;
}

static bool is_sorted(const struct dwarf_lines *l)
{
        for (size_t i = 1; i < l->sequence_count; i++)
                if (l->sequences[i].start < end_of(l, &l->sequences[i - 1]))
                        return false;
        return true;
}

/* Sequences come in any order. */
static enum status sort(struct dwarf_lines *l)
{
        struct dwarf_row *rows = l->rows;
        size_t kept = 0, capacity = l->row_capacity;
        uint64_t end = 0;

        if (is_sorted(l))
                return ST_OK;
        qsort(l->sequences, l->sequence_count, sizeof *l->sequences, by_start);
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
        st = run(&h, l, code);
        if (sort(l))
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
        return dwarf_object_spend(x->object, DWARF_BUDGET_LINE, 4 * (l->file_count + l->directory_count)) ? st : ST_TOO_BIG;
}

uint64_t dwarf_lines_next(const struct dwarf_sections *s, uint64_t offset)
{
        struct dwarf_cursor c = dwarf_section_at(s, DWARF_LINE, offset);
        const uint8_t *section = s->data[DWARF_LINE].bytes;
        uint8_t offset_size;

        dwarf_skip(&c, dwarf_initial_length(&c, &offset_size));
        return c.failed || !dwarf_left(&c) ? UINT64_MAX : (uint64_t)(c.pos - section);
}
