/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/dwarf_explain.h"

#include <assert.h>

#include "common/search.h"
#include "dwarf/context.h"
#include "dwarf/dwarf_reader_internal.h"
#include "dwarf/line.h"
#include "dwarf/ranges.h"

/* ---- line rows ---- */

/* A row of the line program, with the offset of the opcode that emitted it. */
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
        struct row last;                       /* the row that further ones are compared with */
        struct row covering;                   /* the last one at or before the address */
        uint64_t start, covering_count, after; /* after: the first row past the address */
        bool started, is_live, has_covering, has_after;
        enum status failed;
        struct dwarf_row_found *ret;
        uint64_t found_count;
};

static void reset_sequence(struct program *m)
{
        m->now = (struct row){ .file = 1, .line = 1, .is_statement = m->h->is_statement };
        m->op_index = 0;
        m->started = m->has_covering = m->has_after = false;
        m->covering_count = 0;
}

static void trace_advance(struct program *m, uint64_t operations)
{
        const struct dwarf_line_header *h = m->h;

        m->op_index += operations;
        m->now.address += h->min_instruction_length * (m->op_index / h->max_operations);
        m->op_index %= h->max_operations;
}

static void trace_row(struct program *m)
{
        m->now.opcode = m->opcode;
        if (!m->started) {
                m->started = true;
                m->start = m->now.address;
                m->is_live = dwarf_regions_find(m->code, m->start) != NULL;
        } else if (m->now.address < m->last.address) {
                return; /* a decreasing address: dwarf_lines_read() drops it too */
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

/* Of overlapping sequences the one with the lowest start wins, else the first in the program. */
static void record_covering_row(struct program *m, uint64_t end)
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

static void trace_sequence_end(struct program *m)
{
        if (m->is_live && m->has_covering && m->wanted < m->now.address && m->now.address > m->last.address)
                record_covering_row(m, m->now.address);
        else if (m->is_live && m->has_covering && m->has_after)
                record_covering_row(m, m->last.address);
        reset_sequence(m);
}

static void trace_extended_opcode(struct program *m)
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
                trace_sequence_end(m);
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
        default: /* vendor extensions */
                return;
        }
}

static void skip_operands(struct program *m, uint8_t opcode)
{
        for (uint8_t i = 0; i < m->h->opcode_lengths[opcode - 1]; i++)
                dwarf_skip_leb(&m->p);
}

/* 0 for a number of more than 64 bits, which dwarf_lines_read() skips as well. */
static uint64_t read_lenient_uleb(struct dwarf_cursor *p)
{
        struct dwarf_cursor number = *p;

        dwarf_skip_leb(p);
        return dwarf_uleb(&number);
}

static void trace_standard_opcode(struct program *m, uint8_t opcode)
{
        switch (opcode) {
        case DW_LNS_copy:
                trace_row(m);
                return;
        case DW_LNS_advance_pc:
                trace_advance(m, dwarf_uleb(&m->p));
                return;
        case DW_LNS_advance_line:
                m->now.line += (uint64_t)dwarf_sleb(&m->p);
                return;
        case DW_LNS_set_file:
                m->now.file = dwarf_uleb(&m->p);
                return;
        case DW_LNS_set_column:
                m->now.column = read_lenient_uleb(&m->p);
                return;
        case DW_LNS_negate_stmt:
                m->now.is_statement = !m->now.is_statement;
                skip_operands(m, opcode); /* defined without operands, but the header may declare some */
                return;
        case DW_LNS_const_add_pc:
                trace_advance(m, (255u - m->h->opcode_base) / m->h->line_range);
                return;
        case DW_LNS_fixed_advance_pc:
                m->now.address += dwarf_u16(&m->p);
                m->op_index = 0;
                return;
        default:
                skip_operands(m, opcode);
        }
}

static void trace_line_program(struct program *m)
{
        reset_sequence(m);
        while (m->p.pos != m->p.end && !m->failed) {
                uint8_t opcode;

                m->opcode = (uint64_t)(m->p.pos - m->section);
                opcode = dwarf_u8(&m->p);
                if (opcode >= m->h->opcode_base) {
                        unsigned adjusted = opcode - m->h->opcode_base;

                        trace_advance(m, adjusted / m->h->line_range);
                        m->now.line += (uint64_t)(int64_t)(m->h->line_base + (int)(adjusted % m->h->line_range));
                        trace_row(m);
                } else if (opcode == 0) {
                        trace_extended_opcode(m);
                } else {
                        trace_standard_opcode(m, opcode);
                }
        }
}

enum status dwarf_row_find(const struct dwarf_context *x, uint64_t table, uint64_t address,
                           const struct dwarf_regions *code, struct dwarf_lines *files, struct dwarf_row_found *ret)
{
        struct dwarf_line_header h = { 0 };
        struct dwarf_row_found found = { .table = table };
        struct program m = { .h = &h,
                             .files = files,
                             .code = code,
                             .wanted = address,
                             .ret = &found,
                             .section = x->file->sections.data[DWARF_LINE].bytes };
        enum status st;

        dwarf_lines_clear(files);
        st = dwarf_line_header_read(&h, files, x, table);
        if (st)
                return st;
        m.p = h.program;
        trace_line_program(&m);
        if (m.failed == ST_NO_MEMORY)
                return ST_NO_MEMORY;
        if (!m.found_count)
                return m.p.failed ? ST_BAD_DATA : m.failed ? m.failed : ST_NOT_FOUND;
        found.other_sequences = m.found_count - 1;
        *ret = found;
        return ST_OK;
}

static bool find_range(const struct dwarf_context *x, const struct dwarf_die *d, uint64_t address)
{
        struct dwarf_ranges ranges;
        uint64_t start, end;

        dwarf_ranges_begin(&ranges, x, d);
        while (dwarf_ranges_next(&ranges, &start, &end))
                if (start <= address && address < end)
                        return true;
        return false;
}

bool dwarf_unit_claims(struct dwarf_reader *r, size_t i, uint64_t address)
{
        const struct dwarf_unit *unit = &r->object->main.units.items[i];
        struct dwarf_context *x = &r->main;
        const struct dwarf_abbrev *a;
        struct dwarf_cursor c;
        struct dwarf_die d;

        if (!dwarf_unit_has_code(unit) ||
            (x->unit != unit && dwarf_context_enter(x, r->object, &r->object->main, unit)))
                return false;
        c = dwarf_context_cursor(x, unit->first_die);
        a = dwarf_abbrevs_find(&x->abbrevs, dwarf_uleb(&c));
        if (!a)
                return false;
        dwarf_context_read_die(x, &c, a, &d);
        return !c.failed && find_range(x, &d, address);
}

enum status dwarf_explain_enter(struct dwarf_reader *r, size_t i, const struct dwarf_code *code, bool half)
{
        enum status st = dwarf_context_enter(&r->main, r->object, &r->object->main, &r->object->main.units.items[i]);

        return st || !half || !code->companion ? st : dwarf_reader_return_to_companion(r, code);
}

void dwarf_explain_leave(struct dwarf_reader *r)
{
        dwarf_reader_forget_companions(r);
}

void dwarf_unit_explain(struct dwarf_reader *r, struct dwarf_unit_found *ret)
{
        const struct dwarf_context *x = &r->main;
        struct dwarf_unit_found found = { .unit = x->unit,
                                          .tag = x->tag,
                                          .directory = x->directory,
                                          .line_table = x->has_lines ? x->line_offset : UINT64_MAX };
        struct dwarf_attributes a;
        struct dwarf_value v;
        uint16_t attribute;

        assert(x->unit);
        found.is_split = x->file != &r->object->main;
        for (bool more = dwarf_attributes_begin(&a, x, x->unit->first_die);
             more && dwarf_attributes_next(&a, &attribute, &v);) {
                switch (attribute) {
                case DW_AT_name:
                        found.name = dwarf_context_string(x, &v);
                        break;
                case DW_AT_producer:
                        found.producer = dwarf_context_string(x, &v);
                        break;
                case DW_AT_dwo_name:
                case DW_AT_GNU_dwo_name:
                        found.dwo_name = dwarf_context_string(x, &v);
                        break;
                case DW_AT_GNU_dwo_id:
                        found.has_dwo_id = dwarf_value_uint(&v, &found.dwo_id);
                        break;
                default:
                        break;
                }
        }
        *ret = found;
}

uint32_t dwarf_scope_at(const struct dwarf_code *code, uint64_t address)
{
        const struct dwarf_interval *inside = NULL;

        for (size_t i = 0; i < code->interval_count; i++) {
                const struct dwarf_interval *v = &code->intervals[i];

                if (v->start <= address && address < v->end &&
                    (!inside || v->level > inside->level || (v->level == inside->level && v->scope >= inside->scope)))
                        inside = v;
        }
        return inside ? inside->scope : DWARF_NO_SCOPE;
}

bool dwarf_code_covers(const struct dwarf_code *code, uint64_t address)
{
        const struct dwarf_lines *l = &code->lines;
        size_t at = find_lower_bound(i, 0, l->row_count, l->rows[i].end <= address);

        return (at < l->row_count && l->rows[at].start <= address) || dwarf_scope_at(code, address) != DWARF_NO_SCOPE;
}

/* The values of a DIE, and the unit that holds it; false when it cannot be read. */
static bool read_die(struct dwarf_reader *r, dwarf_ref ref, struct dwarf_context **x_ret, struct dwarf_die *ret)
{
        struct dwarf_context *x = dwarf_reader_context(r, ref);
        const struct dwarf_abbrev *a;
        struct dwarf_cursor c;

        if (!x)
                return false;
        c = dwarf_context_cursor(x, ref & ~DWARF_REF_ALT);
        a = dwarf_abbrevs_find(&x->abbrevs, dwarf_uleb(&c));
        if (!a || c.failed)
                return false;
        dwarf_context_read_die(x, &c, a, ret);
        *x_ret = x;
        return !c.failed;
}

static void find_interval(struct dwarf_reader *r, const struct dwarf_die *d, uint64_t address,
                          struct dwarf_scope_found *s)
{
        const struct dwarf_context *x = &r->main;
        struct dwarf_ranges ranges;

        dwarf_ranges_begin(&ranges, x, d);
        s->is_list = ranges.is_list;
        if (s->is_list) {
                bool is_new = x->unit->format.version >= 5;

                const struct dwarf_file *file = is_new ? x->file : x->linked;

                s->list =
                        (uint64_t)(ranges.list.pos - file->sections.data[is_new ? DWARF_RNGLISTS : DWARF_RANGES].bytes);
        }
        while (dwarf_ranges_next(&ranges, &s->start, &s->end)) {
                s->has_interval = s->start <= address && address < s->end;
                if (s->has_interval)
                        return;
                s->entry++;
        }
}

/* The part of the scope's range that the reader left. */
static void find_used_part(const struct dwarf_code *code, uint32_t scope, uint64_t address, struct dwarf_scope_found *s)
{
        s->used_start = s->start;
        s->used_end = s->end;
        for (size_t i = 0; s->has_interval && i < code->interval_count; i++) {
                const struct dwarf_interval *v = &code->intervals[i];

                if (v->scope != scope || address < v->start || v->end <= address)
                        continue;
                s->used_start = v->start;
                s->used_end = v->end;
                return;
        }
}

static bool has_role_text(const struct dwarf_context *x, const struct dwarf_die *d, enum dwarf_role role)
{
        const char *text = dwarf_context_string(x, &d->values[role]);

        return text && text[0];
}

/*
 * The same order as in names.c: the first linkage name if one is used, else the first plain name. The name of an
 * inlined call itself does not count.
 */
static void follow_names(struct dwarf_reader *r, dwarf_ref ref, struct dwarf_scope_found *s)
{
        enum dwarf_hop_kind how = DWARF_HOP_SELF;
        size_t plain = SIZE_MAX;

        s->name_hop = SIZE_MAX;
        while (ref != DWARF_NO_REF && s->hop_count < DWARF_HOPS_MAX) {
                struct dwarf_hop *hop = &s->hops[s->hop_count];
                struct dwarf_context *x;
                struct dwarf_die d;
                bool counts;

                if (!read_die(r, ref, &x, &d))
                        break;
                *hop = (struct dwarf_hop){ .die = ref,
                                           .unit = x->unit->offset,
                                           .tag = d.abbrev->tag,
                                           .how = how,
                                           .has_linkage_name = has_role_text(x, &d, DWARF_ROLE_LINKAGE_NAME),
                                           .has_name = has_role_text(x, &d, DWARF_ROLE_NAME) };
                ref = dwarf_context_reference(x, &d.values[DWARF_ROLE_ORIGIN]);
                how = DWARF_HOP_ORIGIN;
                counts = s->hop_count > 0 || s->tag != DW_TAG_inlined_subroutine || ref == DWARF_NO_REF;
                if (ref == DWARF_NO_REF) {
                        ref = dwarf_context_reference(x, &d.values[DWARF_ROLE_SPECIFICATION]);
                        how = DWARF_HOP_SPECIFICATION;
                }
                if (counts && hop->has_name && plain == SIZE_MAX)
                        plain = s->hop_count;
                s->hop_count++;
                if (counts && hop->has_linkage_name && s->name.linkage) {
                        s->name_hop = s->hop_count - 1;
                        return;
                }
        }
        s->name_hop = plain == SIZE_MAX ? s->hop_count : plain;
}

static void find_column(struct dwarf_reader *r, uint64_t die, struct dwarf_scope_found *s)
{
        struct dwarf_attributes a;
        struct dwarf_value v;
        uint16_t attribute;

        for (bool more = dwarf_attributes_begin(&a, &r->main, die); more && dwarf_attributes_next(&a, &attribute, &v);)
                if (attribute == DW_AT_call_column && !dwarf_value_uint(&v, &s->call_column))
                        s->call_column = 0;
}

void dwarf_scope_explain(struct dwarf_reader *r, const struct dwarf_code *code, uint32_t scope, uint64_t address,
                         struct dwarf_scope_found *ret)
{
        const struct dwarf_scope *of = &code->scopes[scope];
        dwarf_ref ref = of->die | (r->main.file == &r->object->alt ? DWARF_REF_ALT : 0);
        struct dwarf_context *x;
        struct dwarf_die d;

        assert(scope < code->scope_count);
        *ret = (struct dwarf_scope_found){
                .die = of->die, .name = code->names[of->name], .call_file = of->call_file, .call_line = of->call_line
        };
        if (!read_die(r, ref, &x, &d))
                return;
        ret->tag = d.abbrev->tag;
        find_interval(r, &d, address, ret);
        find_used_part(code, scope, address, ret);
        find_column(r, of->die, ret);
        follow_names(r, ref, ret);
}

enum status dwarf_row_explain(struct dwarf_reader *r, const struct dwarf_code *code, uint64_t address,
                              struct dwarf_lines *files, struct dwarf_row_found *ret)
{
        if (code->line_offset == UINT64_MAX)
                return ST_NOT_FOUND;
        return dwarf_row_find(&r->main, code->line_offset, address, &r->regions, files, ret);
}
