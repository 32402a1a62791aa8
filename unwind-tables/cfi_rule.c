/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversion of CFI rows to rules. Supported expressions: register plus offset; the value stored there; that value
 * plus an offset (realigned stacks, signal frames); and that of lazy PLTs.
 */
#include "unwind-tables/cfi_rule.h"

#include <dwarf.h>
#include <string.h>

#include "common/reader.h"

struct form {
        uint64_t reg;
        int64_t offset, add;
        bool deref;
};

static bool read_base_register(struct reader *r, struct form *f)
{
        uint8_t op;

        if (!reader_u8(r, &op))
                return false;
        if (op == DW_OP_bregx)
                return reader_uleb128(r, &f->reg) && reader_sleb128(r, &f->offset);
        f->reg = (uint64_t)op - DW_OP_breg0;
        return op >= DW_OP_breg0 && op <= DW_OP_breg31 && reader_sleb128(r, &f->offset);
}

/* breg N, [plus_uconst N]..., [deref, [plus_uconst N]...] */
static bool parse_address_expression(const struct cfi_column *c, struct form *ret)
{
        struct form f = { 0 };
        struct reader r;
        uint8_t op;
        uint64_t n;

        reader_init(&r, c->expression, c->expression_size);
        if (!read_base_register(&r, &f))
                return false;
        while (reader_left(&r)) {
                int64_t *to = f.deref ? &f.add : &f.offset;

                if (!reader_u8(&r, &op))
                        return false;
                if (op == DW_OP_deref && !f.deref)
                        f.deref = true;
                else if (op != DW_OP_plus_uconst || !reader_uleb128(&r, &n) || n > INT64_MAX ||
                         __builtin_add_overflow(*to, (int64_t)n, to))
                        return false;
        }
        *ret = f;
        return true;
}

/* breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus: 8 more after the push in a 16-byte PLT entry. */
static bool parse_plt_expression(const struct cfi_column *c, struct unwind_rule *rule)
{
        const uint8_t *e = c->expression;

        if (c->expression_size != 11 || e[0] != DW_OP_breg7 || e[1] >= 0x40 || e[2] != DW_OP_breg16 || e[3] != 0 ||
            e[4] != DW_OP_lit15 || e[5] != DW_OP_and || e[6] < DW_OP_lit0 || e[6] > DW_OP_lit15 || e[7] != DW_OP_ge ||
            e[8] != DW_OP_lit3 || e[9] != DW_OP_shl || e[10] != DW_OP_plus)
                return false;
        rule->cfa = UNWIND_CFA_PLT;
        rule->base = UNWIND_BASE_SP;
        rule->cfa_offset = e[1];
        rule->cfa_add = e[6] - DW_OP_lit0;
        return true;
}

static bool fits_int32(int64_t v, int32_t *ret)
{
        *ret = (int32_t)v;
        return v == *ret;
}

static enum unwind_unknown_reason convert_cfa(const struct cfi_column *c, const struct cfi_arch *arch,
                                              struct unwind_rule *rule)
{
        struct form f = { .reg = c->reg, .offset = c->offset };

        if (c->kind == CFI_VAL_EXPRESSION) {
                if (arch->sp == 7 && parse_plt_expression(c, rule))
                        return UNWIND_REASON_NONE;
                if (!parse_address_expression(c, &f))
                        return UNWIND_REASON_CFA_EXPRESSION;
        } else if (c->kind != CFI_REGISTER) {
                return UNWIND_REASON_MALFORMED;
        }
        rule->cfa = f.deref ? UNWIND_CFA_DEREF : UNWIND_CFA_REGISTER;
        if (!cfi_arch_find_base(arch, f.reg, &rule->base))
                return UNWIND_REASON_CFA_REGISTER;
        return fits_int32(f.offset, &rule->cfa_offset) && fits_int32(f.add, &rule->cfa_add) ? UNWIND_REASON_NONE
                                                                                            : UNWIND_REASON_OFFSET;
}

/* reason: the result when a rule cannot express the column. */
static enum unwind_unknown_reason convert_register(const struct cfi_column *c, const struct cfi_arch *arch,
                                                   enum unwind_unknown_reason reason, uint8_t *where, int32_t *offset)
{
        struct form f;
        uint8_t base;

        *offset = 0;
        switch (c->kind) {
        case CFI_UNSPECIFIED:
        case CFI_SAME:
                *where = UNWIND_SAME;
                return UNWIND_REASON_NONE;
        case CFI_UNDEFINED:
                *where = UNWIND_UNDEFINED;
                return UNWIND_REASON_NONE;
        case CFI_OFFSET:
        case CFI_VAL_OFFSET:
                *where = c->kind == CFI_OFFSET ? UNWIND_AT_CFA : UNWIND_CFA_PLUS;
                return fits_int32(c->offset, offset) ? UNWIND_REASON_NONE : UNWIND_REASON_OFFSET;
        case CFI_REGISTER:
                if (!cfi_arch_find_base(arch, c->reg, &base))
                        return reason;
                *where = UNWIND_IN_REGISTER;
                *offset = base;
                return UNWIND_REASON_NONE;
        case CFI_EXPRESSION:
                if (!parse_address_expression(c, &f) || f.deref || (f.reg != arch->sp && f.reg != arch->fp))
                        return reason;
                *where = f.reg == arch->sp ? UNWIND_AT_SP : UNWIND_AT_FP;
                return fits_int32(f.offset, offset) ? UNWIND_REASON_NONE : UNWIND_REASON_OFFSET;
        default:
                return reason;
        }
}

/* Whether the CFI, in any form, defines the caller's sp as the CFA. */
static bool is_sp_equal_to_cfa(const struct cfi_column *sp, const struct cfi_arch *arch, const struct unwind_rule *rule)
{
        struct form f;
        uint8_t base;

        switch (sp->kind) {
        case CFI_UNSPECIFIED:
        case CFI_SAME:
                return true;
        case CFI_VAL_OFFSET:
                return sp->offset == 0;
        case CFI_EXPRESSION:
                return rule->cfa == UNWIND_CFA_DEREF && rule->cfa_add == 0 && parse_address_expression(sp, &f) &&
                       !f.deref && cfi_arch_find_base(arch, f.reg, &base) && base == rule->base &&
                       f.offset == rule->cfa_offset;
        default:
                return false;
        }
}

struct unwind_rule cfi_row_to_rule(const struct cfi_row *row, const struct cfi_arch *arch, uint64_t ra, bool is_signal)
{
        struct cfi_column ra_column = row->ra;
        struct unwind_rule rule = { 0 };
        enum unwind_unknown_reason reason;

        if (row->ra.kind == CFI_UNDEFINED || (row->ra.kind == CFI_UNSPECIFIED && !arch->ra_is_register))
                return (struct unwind_rule){ .cfa = UNWIND_CFA_STOP };
        if (is_signal && arch->signal_by_layout)
                return arch->signal;
        /* Assembly may use another register than that of the ABI for the return address, declared in its CIE. */
        if (ra != arch->ra && (ra_column.kind == CFI_UNSPECIFIED || ra_column.kind == CFI_SAME))
                ra_column = (struct cfi_column){ .kind = CFI_REGISTER, .reg = ra };
        rule.flags = is_signal ? UNWIND_FLAG_SIGNAL : 0;
        reason = convert_cfa(&row->cfa, arch, &rule);
        if (!reason)
                reason = convert_register(&ra_column, arch, UNWIND_REASON_RA, &rule.ra, &rule.ra_offset);
        if (!reason && rule.ra == UNWIND_SAME && !arch->ra_is_register)
                reason = UNWIND_REASON_RA;
        if (!reason)
                reason = convert_register(&row->fp, arch, UNWIND_REASON_FP, &rule.fp, &rule.fp_offset);
        if (!reason && !is_sp_equal_to_cfa(&row->sp, arch, &rule))
                reason = UNWIND_REASON_SP;
        return reason ? (struct unwind_rule){ .cfa = UNWIND_CFA_UNKNOWN, .reason = (uint8_t)reason } : rule;
}
