/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/form.h"

#define VARIES (-1)
#define UNKNOWN (-2)

int dwarf_form_size(uint16_t form, const struct dwarf_format *f)
{
        switch (form) {
        case DW_FORM_flag_present:
        case DW_FORM_implicit_const:
                return 0;
        case DW_FORM_data1:
        case DW_FORM_ref1:
        case DW_FORM_flag:
        case DW_FORM_strx1:
        case DW_FORM_addrx1:
                return 1;
        case DW_FORM_data2:
        case DW_FORM_ref2:
        case DW_FORM_strx2:
        case DW_FORM_addrx2:
                return 2;
        case DW_FORM_strx3:
        case DW_FORM_addrx3:
                return 3;
        case DW_FORM_data4:
        case DW_FORM_ref4:
        case DW_FORM_ref_sup4:
        case DW_FORM_strx4:
        case DW_FORM_addrx4:
                return 4;
        case DW_FORM_data8:
        case DW_FORM_ref8:
        case DW_FORM_ref_sup8:
        case DW_FORM_ref_sig8:
                return 8;
        case DW_FORM_data16:
                return 16;
        case DW_FORM_addr:
                return f->address_size;
        case DW_FORM_ref_addr: /* version 2 has it as wide as an address */
                return f->version <= 2 ? f->address_size : f->offset_size;
        case DW_FORM_strp:
        case DW_FORM_line_strp:
        case DW_FORM_sec_offset:
        case DW_FORM_strp_sup:
        case DW_FORM_GNU_strp_alt:
        case DW_FORM_GNU_ref_alt:
                return f->offset_size;
        case DW_FORM_string:
        case DW_FORM_block:
        case DW_FORM_block1:
        case DW_FORM_block2:
        case DW_FORM_block4:
        case DW_FORM_exprloc:
        case DW_FORM_sdata:
        case DW_FORM_udata:
        case DW_FORM_ref_udata:
        case DW_FORM_strx:
        case DW_FORM_addrx:
        case DW_FORM_loclistx:
        case DW_FORM_rnglistx:
        case DW_FORM_GNU_addr_index:
        case DW_FORM_GNU_str_index:
        case DW_FORM_LLVM_addrx_offset:
        case DW_FORM_indirect:
                return VARIES;
        default:
                return UNKNOWN;
        }
}

/* DW_FORM_indirect: the form precedes the value. A second indirect form or an implicit constant is malformed. */
static uint16_t read_indirect(struct dwarf_cursor *c)
{
        uint64_t form = dwarf_uleb(c);

        if (form == DW_FORM_indirect || form == DW_FORM_implicit_const || form > UINT16_MAX) {
                dwarf_fail(c);
                return DW_FORM_flag_present;
        }
        return (uint16_t)form;
}

void dwarf_value_skip(struct dwarf_cursor *c, const struct dwarf_format *f, uint16_t form)
{
        int size;

        switch (form) {
        case DW_FORM_block:
        case DW_FORM_exprloc:
                dwarf_skip(c, dwarf_uleb(c));
                return;
        case DW_FORM_block1:
                dwarf_skip(c, dwarf_u8(c));
                return;
        case DW_FORM_block2:
                dwarf_skip(c, dwarf_u16(c));
                return;
        case DW_FORM_block4:
                dwarf_skip(c, dwarf_u32(c));
                return;
        case DW_FORM_string:
                dwarf_cstr(c);
                return;
        case DW_FORM_sdata:
        case DW_FORM_udata:
        case DW_FORM_ref_udata:
        case DW_FORM_strx:
        case DW_FORM_addrx:
        case DW_FORM_loclistx:
        case DW_FORM_rnglistx:
        case DW_FORM_GNU_addr_index:
        case DW_FORM_GNU_str_index:
                dwarf_skip_leb(c);
                return;
        case DW_FORM_LLVM_addrx_offset:
                dwarf_skip_leb(c);
                dwarf_skip(c, sizeof(uint32_t));
                return;
        case DW_FORM_indirect:
                form = read_indirect(c);
                size = dwarf_form_size(form, f);
                if (size == VARIES)
                        dwarf_value_skip(c, f, form); /* which is not indirect */
                else
                        dwarf_skip(c, size < 0 ? UINT64_MAX : (uint64_t)size);
                return;
        default:
                size = dwarf_form_size(form, f);
                dwarf_skip(c, size < 0 ? UINT64_MAX : (uint64_t)size);
        }
}

void dwarf_value_read(struct dwarf_cursor *c, const struct dwarf_format *f, uint16_t form, int64_t implicit,
                      struct dwarf_value *ret)
{
        int size;

        if (form == DW_FORM_indirect)
                form = read_indirect(c);
        *ret = (struct dwarf_value){ .form = form };
        switch (form) {
        case DW_FORM_flag_present:
                ret->number = 1;
                return;
        case DW_FORM_implicit_const:
                ret->number = (uint64_t)implicit;
                return;
        case DW_FORM_sdata:
                ret->number = (uint64_t)dwarf_sleb(c);
                return;
        case DW_FORM_udata:
        case DW_FORM_ref_udata:
        case DW_FORM_strx:
        case DW_FORM_addrx:
        case DW_FORM_loclistx:
        case DW_FORM_rnglistx:
        case DW_FORM_GNU_addr_index:
        case DW_FORM_GNU_str_index:
                ret->number = dwarf_uleb(c);
                return;
        case DW_FORM_string:
                ret->string = dwarf_cstr(c);
                return;
        case DW_FORM_exprloc:
                ret->number = dwarf_uleb(c);
                ret->block = c->pos;
                dwarf_skip(c, ret->number);
                return;
        case DW_FORM_LLVM_addrx_offset:
                ret->number = dwarf_uleb(c);
                if (ret->number > UINT32_MAX)
                        dwarf_fail(c);
                ret->number |= (uint64_t)dwarf_u32(c) << 32;
                return;
        default:
                size = dwarf_form_size(form, f);
                if (size >= 0 && size <= 8)
                        ret->number = dwarf_uint(c, (unsigned)size);
                else if (size > 8)
                        dwarf_skip(c, (uint64_t)size);
                else
                        dwarf_value_skip(c, f, form);
        }
}
