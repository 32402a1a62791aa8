/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind-tables/cfi_program.h"

#include <dwarf.h>
#include <elf.h>

#include "unwind-tables/cfi_pointer.h"

#define CFA_MIPS_ADVANCE_LOC8 0x1d
#define CFA_AARCH64_NEGATE_RA_STATE_WITH_PC 0x2c
#define CFA_WINDOW_SAVE_OR_NEGATE_RA_STATE 0x2d
#define CFA_ARGS_SIZE 0x2e
#define CFA_NEGATIVE_OFFSET_EXTENDED 0x2f

static struct cfi_column *get_column(const struct cfi_program *p, struct cfi_row *row, uint64_t reg)
{
        if (reg == p->cie->ra)
                return &row->ra;
        if (reg == p->arch->fp)
                return &row->fp;
        if (reg == p->arch->sp)
                return &row->sp;
        return NULL;
}

static bool set_cfi_column(struct cfi_program *p, uint64_t reg, struct cfi_column value)
{
        struct cfi_column *c = get_column(p, &p->row, reg);

        if (c)
                *c = value;
        return true;
}

static bool set_column_kind(struct cfi_program *p, uint64_t reg, enum cfi_kind kind)
{
        return set_cfi_column(p, reg, (struct cfi_column){ .kind = kind });
}

static bool restore_column(struct cfi_program *p, uint64_t reg)
{
        struct cfi_row *initial = (struct cfi_row *)&p->cie->initial;
        const struct cfi_column *from = get_column(p, initial, reg);

        return !from || set_cfi_column(p, reg, *from);
}

/* Multiply a factored offset by data_align. */
static bool multiply_data_align(const struct cfi_program *p, int64_t n, int64_t *ret)
{
        return !__builtin_mul_overflow(n, p->cie->data_align, ret);
}

static bool set_offset_column(struct cfi_program *p, uint64_t reg, uint64_t n, enum cfi_kind kind)
{
        struct cfi_column c = { .kind = kind };

        return n <= INT64_MAX && multiply_data_align(p, (int64_t)n, &c.offset) && set_cfi_column(p, reg, c);
}

static bool set_signed_offset_column(struct cfi_program *p, uint64_t reg, int64_t n, enum cfi_kind kind)
{
        struct cfi_column c = { .kind = kind };

        return multiply_data_align(p, n, &c.offset) && set_cfi_column(p, reg, c);
}

static bool set_cfa_register(struct cfi_program *p, uint64_t reg, int64_t offset)
{
        p->row.cfa = (struct cfi_column){ .kind = CFI_REGISTER, .reg = reg, .offset = offset };
        return true;
}

static bool read_dwarf_expression(struct cfi_program *p, enum cfi_kind kind, struct cfi_column *ret)
{
        uint64_t size;
        struct cfi_column c = { .kind = kind };

        if (!reader_uleb128(&p->r, &size) || !reader_bytes(&p->r, size, &c.expression))
                return false;
        c.expression_size = size;
        *ret = c;
        return true;
}

static bool set_expression_column(struct cfi_program *p, uint64_t reg, enum cfi_kind kind)
{
        struct cfi_column c;

        return read_dwarf_expression(p, kind, &c) && set_cfi_column(p, reg, c);
}

static bool run_cfa_instruction(struct cfi_program *p, uint8_t op)
{
        struct reader *r = &p->r;
        bool by_register = p->row.cfa.kind == CFI_REGISTER;
        uint64_t reg, n;
        int64_t s;

        switch (op) {
        case DW_CFA_def_cfa:
                return reader_uleb128(r, &reg) && reader_uleb128(r, &n) && n <= INT64_MAX &&
                       set_cfa_register(p, reg, (int64_t)n);
        case DW_CFA_def_cfa_sf:
                return reader_uleb128(r, &reg) && reader_sleb128(r, &s) && multiply_data_align(p, s, &s) &&
                       set_cfa_register(p, reg, s);
        case DW_CFA_def_cfa_register:
                return by_register && reader_uleb128(r, &reg) && set_cfa_register(p, reg, p->row.cfa.offset);
        case DW_CFA_def_cfa_offset:
                return by_register && reader_uleb128(r, &n) && n <= INT64_MAX &&
                       set_cfa_register(p, p->row.cfa.reg, (int64_t)n);
        case DW_CFA_def_cfa_offset_sf:
                return by_register && reader_sleb128(r, &s) && multiply_data_align(p, s, &s) &&
                       set_cfa_register(p, p->row.cfa.reg, s);
        default:
                return read_dwarf_expression(p, CFI_VAL_EXPRESSION, &p->row.cfa);
        }
}

/* Run an instruction that sets a column and starts with its number. */
static bool run_column_instruction(struct cfi_program *p, uint8_t op)
{
        struct reader *r = &p->r;
        uint64_t reg, n;
        int64_t s;

        if (!reader_uleb128(r, &reg))
                return false;
        switch (op) {
        case DW_CFA_undefined:
                return set_column_kind(p, reg, CFI_UNDEFINED);
        case DW_CFA_same_value:
                return set_column_kind(p, reg, CFI_SAME);
        case DW_CFA_restore_extended:
                return restore_column(p, reg);
        case DW_CFA_offset_extended:
                return reader_uleb128(r, &n) && set_offset_column(p, reg, n, CFI_OFFSET);
        case DW_CFA_offset_extended_sf:
                return reader_sleb128(r, &s) && set_signed_offset_column(p, reg, s, CFI_OFFSET);
        case DW_CFA_val_offset:
                return reader_uleb128(r, &n) && set_offset_column(p, reg, n, CFI_VAL_OFFSET);
        case DW_CFA_val_offset_sf:
                return reader_sleb128(r, &s) && set_signed_offset_column(p, reg, s, CFI_VAL_OFFSET);
        case CFA_NEGATIVE_OFFSET_EXTENDED:
                return reader_uleb128(r, &n) && n <= INT64_MAX &&
                       set_signed_offset_column(p, reg, -(int64_t)n, CFI_OFFSET);
        case DW_CFA_register:
                return reader_uleb128(r, &n) &&
                       set_cfi_column(p, reg, (struct cfi_column){ .kind = CFI_REGISTER, .reg = n });
        case DW_CFA_expression:
                return set_expression_column(p, reg, CFI_EXPRESSION);
        default:
                return set_expression_column(p, reg, CFI_VAL_EXPRESSION);
        }
}

/* Read an advance, in bytes; negative ones wrap and are rejected as too large. */
static bool read_advance(struct cfi_program *p, uint8_t op, uint64_t *ret)
{
        uint64_t n;
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;

        switch (op) {
        case DW_CFA_advance_loc1:
                if (!reader_u8(&p->r, &u8))
                        return false;
                n = u8;
                break;
        case DW_CFA_advance_loc2:
                if (!reader_u16(&p->r, &u16))
                        return false;
                n = u16;
                break;
        case DW_CFA_advance_loc4:
                if (!reader_u32(&p->r, &u32))
                        return false;
                n = u32;
                break;
        case CFA_MIPS_ADVANCE_LOC8:
                if (!reader_u64(&p->r, &n))
                        return false;
                break;
        case DW_CFA_set_loc:
                if (!cfi_pointer_read(&p->r, p->cie->pointer_encoding, p->address, 0, &n) || n < p->loc)
                        return false;
                *ret = n - p->loc;
                return true;
        default: /* DW_CFA_advance_loc */
                n = op & 0x3f;
        }
        return !__builtin_mul_overflow(n, p->cie->code_align, ret);
}

static bool is_advance_instruction(uint8_t op)
{
        return (op & 0xc0) == DW_CFA_advance_loc || op == DW_CFA_set_loc || op == DW_CFA_advance_loc1 ||
               op == DW_CFA_advance_loc2 || op == DW_CFA_advance_loc4 || op == CFA_MIPS_ADVANCE_LOC8;
}

/* Run one instruction other than an advance. */
static enum status run_cfi_instruction(struct cfi_program *p, uint8_t op)
{
        uint64_t n;
        bool ok;

        if ((op & 0xc0) == DW_CFA_offset) {
                ok = reader_uleb128(&p->r, &n) && set_offset_column(p, op & 0x3f, n, CFI_OFFSET);
        } else if ((op & 0xc0) == DW_CFA_restore) {
                ok = restore_column(p, op & 0x3f);
        } else {
                switch (op) {
                case DW_CFA_nop:
                        return ST_OK;
                case DW_CFA_remember_state:
                        if (p->depth == LIMIT_UNWIND_REMEMBERED)
                                return ST_TOO_BIG;
                        p->remembered[p->depth++] = p->row;
                        return ST_OK;
                case DW_CFA_restore_state:
                        if (p->depth == 0)
                                return ST_BAD_DATA;
                        p->row = p->remembered[--p->depth]; /* the CFA too: compilers rely on it */
                        return ST_OK;
                case CFA_ARGS_SIZE:
                        ok = reader_uleb128(&p->r, &n);
                        break;
                case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
                case CFA_WINDOW_SAVE_OR_NEGATE_RA_STATE: /* return addresses are masked anyway */
                        ok = p->arch->machine == EM_AARCH64;
                        break;
                case DW_CFA_def_cfa:
                case DW_CFA_def_cfa_sf:
                case DW_CFA_def_cfa_register:
                case DW_CFA_def_cfa_offset:
                case DW_CFA_def_cfa_offset_sf:
                case DW_CFA_def_cfa_expression:
                        ok = run_cfa_instruction(p, op);
                        break;
                case DW_CFA_undefined:
                case DW_CFA_same_value:
                case DW_CFA_restore_extended:
                case DW_CFA_offset_extended:
                case DW_CFA_offset_extended_sf:
                case DW_CFA_val_offset:
                case DW_CFA_val_offset_sf:
                case DW_CFA_register:
                case DW_CFA_expression:
                case DW_CFA_val_expression:
                case CFA_NEGATIVE_OFFSET_EXTENDED:
                        ok = run_column_instruction(p, op);
                        break;
                default:
                        return ST_BAD_DATA;
                }
        }
        return ok ? ST_OK : ST_BAD_DATA;
}

void cfi_program_init(struct cfi_program *p, const struct cfi_arch *arch, const struct cfi_fde *fde)
{
        reader_init(&p->r, fde->program, fde->program_size);
        p->arch = arch;
        p->cie = fde->cie;
        p->address = fde->program_address;
        p->loc = fde->start;
        p->end = fde->end;
        p->row = fde->cie->initial;
        p->depth = 0;
        p->done = false;
}

enum status cfi_program_next(struct cfi_program *p, uint64_t *start_ret)
{
        uint64_t start = p->loc, step;
        uint8_t op;

        if (p->done)
                return ST_NOT_FOUND;
        for (;;) {
                enum status st;

                if (reader_left(&p->r) == 0)
                        break;
                if (!reader_u8(&p->r, &op))
                        return ST_BAD_DATA;
                if (!is_advance_instruction(op)) {
                        st = run_cfi_instruction(p, op);
                        if (st)
                                return st;
                        continue;
                }
                if (!read_advance(p, op, &step))
                        return ST_BAD_DATA;
                if (step >= p->end - p->loc)
                        break; /* the rest is past the end of the FDE */
                if (step == 0)
                        continue;
                p->loc += step;
                *start_ret = start;
                return ST_OK;
        }
        p->done = true;
        p->loc = p->end;
        *start_ret = start;
        return ST_OK;
}

enum status cfi_program_run_initial(struct reader *r, const struct cfi_arch *arch, struct cfi_cie *cie)
{
        struct cfi_program p = { .r = *r, .arch = arch, .cie = cie };
        uint8_t op;

        while (reader_left(&p.r)) {
                enum status st;

                if (!reader_u8(&p.r, &op) || is_advance_instruction(op))
                        return ST_BAD_DATA;
                st = run_cfi_instruction(&p, op);
                if (st)
                        return st;
        }
        cie->initial = p.row;
        return ST_OK;
}
