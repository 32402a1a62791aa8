/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/explain_line.h"

#include "dwarf/line_internal.h"

/* A row of the program, and where it came from. */
struct row {
        uint64_t address, file, line, column, discriminator, opcode;
        bool is_statement;
};

struct program {
        const struct dwarf_line_header *h;
        struct dwarf_lines *files;
        const struct dwarf_regions *code;
        uint64_t wanted;
        const uint8_t *section;
        struct dwarf_cursor p;
        uint64_t op_index, opcode;
        struct row now;
        /* the sequence so far */
        struct row last;          /* the row that further ones are compared with */
        struct row covering;      /* the last one at or before the wanted address */
        uint64_t start, covering_count, after; /* after: the first row behind the wanted address */
        bool started, is_live, has_covering, has_after;
        enum status failed;
        struct dwarf_row_found *ret;
        uint64_t found_count;
};

static void reset(struct program *m)
{
        m->now = (struct row){ .file = 1, .line = 1, .is_statement = m->h->is_statement };
        m->op_index = 0;
        m->started = m->has_covering = m->has_after = false;
        m->covering_count = 0;
}

static void advance(struct program *m, uint64_t operations)
{
        const struct dwarf_line_header *h = m->h;

        m->op_index += operations;
        m->now.address += h->min_instruction_length * (m->op_index / h->max_operations);
        m->op_index %= h->max_operations;
}

static void add_row(struct program *m)
{
        m->now.opcode = m->opcode;
        if (!m->started) {
                m->started = true;
                m->start = m->now.address;
                m->is_live = dwarf_regions_find(m->code, m->start) != NULL;
        } else if (m->now.address < m->last.address) {
                return; /* backwards: dwarf_lines_read() drops it too */
        }
        m->last = m->now;
        if (m->now.address <= m->wanted) {
                bool same = m->has_covering && m->covering.address == m->now.address;

                m->covering_count = same ? m->covering_count + 1 : 1;
                m->covering = m->now;
                m->has_covering = true;
        } else if (!m->has_after) {
                m->after = m->now.address;
                m->has_after = true;
        }
        m->now.discriminator = 0;
}

/* Of sequences that overlap the one that begins first wins, else the first of the program. */
static void take(struct program *m, uint64_t end)
{
        m->found_count++;
        if (m->found_count > 1 && m->start >= m->ret->sequence_start)
                return;
        m->ret->opcode = m->covering.opcode;
        m->ret->sequence_start = m->start;
        m->ret->sequence_end = end;
        m->ret->address = m->covering.address;
        m->ret->end = m->has_after ? m->after : end;
        m->ret->file = m->covering.file;
        m->ret->line = m->covering.line;
        m->ret->column = m->covering.column;
        m->ret->discriminator = m->covering.discriminator;
        m->ret->is_statement = m->covering.is_statement;
        m->ret->rows_at_address = m->covering_count;
}

static void end_sequence(struct program *m)
{
        if (m->is_live && m->has_covering && m->wanted < m->now.address && m->now.address > m->last.address)
                take(m, m->now.address);
        else if (m->is_live && m->has_covering && m->has_after)
                take(m, m->last.address);
        reset(m);
}

static void run_extended(struct program *m)
{
        struct dwarf_cursor inner = m->p;
        uint64_t length = dwarf_uleb(&m->p);
        bool is_end;

        inner.pos = m->p.pos;
        dwarf_skip(&m->p, length);
        inner.end = m->p.pos;
        if (m->p.failed || length == 0)
                return;
        switch (dwarf_u8(&inner)) {
        case DW_LNE_end_sequence:
                end_sequence(m);
                return;
        case DW_LNE_set_address:
                m->op_index = 0;
                m->now.address = dwarf_uint(&inner, (unsigned)(length - 1 > 8 ? 0 : length - 1));
                if (inner.failed)
                        dwarf_fail(&m->p);
                return;
        case DW_LNE_define_file:
                if (m->files->version < 5)
                        m->failed = dwarf_line_add_file(m->files, &inner, &is_end);
                return;
        case DW_LNE_set_discriminator:
                m->now.discriminator = dwarf_uleb(&inner);
                return;
        default: /* vendors' own */
                return;
        }
}

static void skip_operands(struct program *m, uint8_t opcode)
{
        for (uint8_t i = 0; i < m->h->opcode_lengths[opcode - 1]; i++)
                dwarf_skip_leb(&m->p);
}

/* 0 for a number of more than 64 bits, which dwarf_lines_read() steps over. */
static uint64_t lenient_uleb(struct dwarf_cursor *p)
{
        struct dwarf_cursor number = *p;

        dwarf_skip_leb(p);
        return dwarf_uleb(&number);
}

static void run_standard(struct program *m, uint8_t opcode)
{
        switch (opcode) {
        case DW_LNS_copy:
                add_row(m);
                return;
        case DW_LNS_advance_pc:
                advance(m, dwarf_uleb(&m->p));
                return;
        case DW_LNS_advance_line:
                m->now.line += (uint64_t)dwarf_sleb(&m->p);
                return;
        case DW_LNS_set_file:
                m->now.file = dwarf_uleb(&m->p);
                return;
        case DW_LNS_set_column:
                m->now.column = lenient_uleb(&m->p);
                return;
        case DW_LNS_negate_stmt:
                m->now.is_statement = !m->now.is_statement;
                skip_operands(m, opcode); /* none, but whoever says otherwise means it */
                return;
        case DW_LNS_const_add_pc:
                advance(m, (255u - m->h->opcode_base) / m->h->line_range);
                return;
        case DW_LNS_fixed_advance_pc:
                m->now.address += dwarf_u16(&m->p);
                m->op_index = 0;
                return;
        default:
                skip_operands(m, opcode);
        }
}

static void run(struct program *m)
{
        reset(m);
        while (m->p.pos != m->p.end && !m->failed) {
                uint8_t opcode;

                m->opcode = (uint64_t)(m->p.pos - m->section);
                opcode = dwarf_u8(&m->p);
                if (opcode >= m->h->opcode_base) {
                        unsigned adjusted = opcode - m->h->opcode_base;

                        advance(m, adjusted / m->h->line_range);
                        m->now.line += (uint64_t)(int64_t)(m->h->line_base + (int)(adjusted % m->h->line_range));
                        add_row(m);
                } else if (opcode == 0) {
                        run_extended(m);
                } else {
                        run_standard(m, opcode);
                }
        }
}

enum status dwarf_row_find(const struct dwarf_context *x, uint64_t table, uint64_t address,
                           const struct dwarf_regions *code, struct dwarf_lines *files, struct dwarf_row_found *ret)
{
        struct dwarf_line_header h = { 0 };
        struct dwarf_row_found found = { .table = table };
        struct program m = { .h = &h, .files = files, .code = code, .wanted = address, .ret = &found,
                             .section = x->file->sections.data[DWARF_LINE].bytes };
        enum status st;

        dwarf_lines_clear(files);
        st = dwarf_line_header_read(&h, files, x, table);
        if (st)
                return st;
        m.p = h.program;
        run(&m);
        if (m.failed == ST_NO_MEMORY)
                return ST_NO_MEMORY;
        if (!m.found_count)
                return m.p.failed ? ST_BAD_DATA : m.failed ? m.failed : ST_NOT_FOUND;
        found.other_sequences = m.found_count - 1;
        *ret = found;
        return ST_OK;
}
