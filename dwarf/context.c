/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A unit's own DIE gives the bases of its strings, addresses and lists. They are loaded when the unit is entered, by
 * its complete abbreviations or only by that of this DIE, and turn the values of the other DIEs into strings, addresses
 * and references.
 *
 * Order: values of a DIE, their interpretation, entering a unit, all attributes of one DIE.
 */
#include "dwarf/context.h"

#include <assert.h>

struct dwarf_cursor dwarf_context_cursor(const struct dwarf_context *x, uint64_t offset)
{
        const struct elf_section_data *d = &x->file->sections.data[DWARF_INFO];
        struct dwarf_cursor c = { .pos = d->bytes + x->unit->end,
                                  .end = d->bytes + x->unit->end,
                                  .swap = x->file->sections.swap };

        if (offset < x->unit->first_die || offset >= x->unit->end)
                dwarf_fail(&c);
        else
                c.pos = d->bytes + offset;
        return c;
}

void dwarf_context_read_die(const struct dwarf_context *x, struct dwarf_cursor *c, const struct dwarf_abbrev *a,
                            struct dwarf_die *ret)
{
        const struct dwarf_step *s = a->full.count ? x->abbrevs.steps + a->full.first : NULL;
        const struct dwarf_format *f = &x->unit->format;

        for (int i = 0; i < DWARF_ROLE_OF_UNITS; i++)
                ret->values[i].form = 0;
        for (uint32_t i = 0; i < a->full.count; i++, s++) {
                dwarf_skip(c, s->skip);
                if (s->role == DWARF_ROLE_NONE)
                        dwarf_value_skip(c, f, s->form);
                else
                        dwarf_value_read(c, f, s->form, s->implicit, &ret->values[s->role]);
        }
        dwarf_skip(c, a->full.tail);
        ret->abbrev = a;
        ret->end = (uint64_t)(c->pos - x->file->sections.data[DWARF_INFO].bytes);
}

/* interpretation of values */

static const char *resolve_indexed_string(const struct dwarf_context *x, uint64_t index)
{
        uint8_t size = x->str_offset_size;
        struct dwarf_cursor c;
        uint64_t at, offset;

        if (__builtin_mul_overflow(index, size, &at) || __builtin_add_overflow(at, x->str_offsets_base, &at))
                return NULL;
        c = dwarf_section_at(&x->file->sections, DWARF_STR_OFFSETS, at);
        offset = dwarf_uint(&c, size);
        return c.failed ? NULL : dwarf_section_string(&x->file->sections, DWARF_STR, offset);
}

const char *dwarf_context_string(const struct dwarf_context *x, const struct dwarf_value *v)
{
        switch (v->form) {
        case DW_FORM_string:
                return v->string;
        case DW_FORM_strp:
                return dwarf_section_string(&x->file->sections, DWARF_STR, v->number);
        case DW_FORM_line_strp:
                return dwarf_section_string(&x->file->sections, DWARF_LINE_STR, v->number);
        case DW_FORM_strp_sup:
        case DW_FORM_GNU_strp_alt:
                return dwarf_section_string(&x->object->alt.sections, DWARF_STR, v->number);
        case DW_FORM_strx:
        case DW_FORM_strx1:
        case DW_FORM_strx2:
        case DW_FORM_strx3:
        case DW_FORM_strx4:
        case DW_FORM_GNU_str_index:
                return resolve_indexed_string(x, v->number);
        default:
                return NULL;
        }
}

bool dwarf_context_indexed_address(const struct dwarf_context *x, uint64_t index, uint64_t *ret)
{
        uint8_t size = x->unit->format.address_size;
        struct dwarf_cursor c;
        uint64_t at, address;

        if (__builtin_mul_overflow(index, size, &at) || __builtin_add_overflow(at, x->addr_base, &at))
                return false;
        c = dwarf_section_at(&x->linked->sections, DWARF_ADDR, at);
        address = dwarf_uint(&c, size);
        if (!c.failed)
                *ret = address;
        return !c.failed;
}

/* Offsets from a discarded address are discarded too. */
static uint64_t add_to_address(const struct dwarf_context *x, uint64_t address, uint64_t offset)
{
        return dwarf_context_is_tombstone(x, address) ? address
                                                      : (address + offset) & dwarf_context_greatest_address(x);
}

/* A constant and the operation that adds it. */
static uint64_t read_added_constant(struct dwarf_cursor *c)
{
        uint8_t operation = dwarf_u8(c);
        uint64_t constant;

        switch (operation) {
        case DW_OP_plus_uconst:
                return dwarf_uleb(c);
        case DW_OP_const1u:
        case DW_OP_const2u:
        case DW_OP_const4u:
        case DW_OP_const8u:
                constant = dwarf_uint(c, 1u << (operation - DW_OP_const1u) / 2);
                break;
        case DW_OP_constu:
                constant = dwarf_uleb(c);
                break;
        default:
                return dwarf_fail(c);
        }
        return dwarf_u8(c) == DW_OP_plus ? constant : dwarf_fail(c);
}

static bool evaluate_address(const struct dwarf_context *x, const struct dwarf_value *v, uint64_t *ret)
{
        struct dwarf_cursor c = { .pos = v->block, .end = v->block + v->number, .swap = x->file->sections.swap };
        uint64_t address = 0;

        switch (dwarf_u8(&c)) {
        case DW_OP_addr:
                address = dwarf_uint(&c, x->unit->format.address_size);
                break;
        case DW_OP_addrx:
        case DW_OP_GNU_addr_index:
                if (!dwarf_context_indexed_address(x, dwarf_uleb(&c), &address))
                        return false;
                break;
        default:
                return false;
        }
        while (dwarf_left(&c))
                address = add_to_address(x, address, read_added_constant(&c));
        if (!c.failed)
                *ret = address;
        return !c.failed;
}

bool dwarf_context_address(const struct dwarf_context *x, const struct dwarf_value *v, uint64_t *ret)
{
        uint64_t address;

        switch (v->form) {
        case DW_FORM_addr:
                *ret = v->number;
                return true;
        case DW_FORM_addrx:
        case DW_FORM_addrx1:
        case DW_FORM_addrx2:
        case DW_FORM_addrx3:
        case DW_FORM_addrx4:
        case DW_FORM_GNU_addr_index:
                return dwarf_context_indexed_address(x, v->number, ret);
        case DW_FORM_LLVM_addrx_offset:
                if (!dwarf_context_indexed_address(x, (uint32_t)v->number, &address))
                        return false;
                *ret = add_to_address(x, address, v->number >> 32);
                return true;
        case DW_FORM_exprloc:
                return evaluate_address(x, v, ret);
        default:
                return false;
        }
}

dwarf_ref dwarf_context_reference(const struct dwarf_context *x, const struct dwarf_value *v)
{
        dwarf_ref here = x->file == &x->object->alt ? DWARF_REF_ALT : 0;
        uint64_t offset;

        switch (v->form) {
        case DW_FORM_ref1:
        case DW_FORM_ref2:
        case DW_FORM_ref4:
        case DW_FORM_ref8:
        case DW_FORM_ref_udata:
                if (__builtin_add_overflow(v->number, x->unit->offset, &offset) || offset >= x->unit->end)
                        return DWARF_NO_REF;
                return here | offset;
        case DW_FORM_ref_addr:
                return v->number < x->file->sections.data[DWARF_INFO].size ? here | v->number : DWARF_NO_REF;
        case DW_FORM_GNU_ref_alt:
        case DW_FORM_ref_sup4:
        case DW_FORM_ref_sup8:
                return v->number < x->object->alt.sections.data[DWARF_INFO].size ? DWARF_REF_ALT | v->number
                                                                                 : DWARF_NO_REF;
        default: /* ref_sig8 refers to types, never to functions */
                return DWARF_NO_REF;
        }
}

/* ---- entering a unit ---- */

static enum status load_abbrevs(struct dwarf_context *x, uint64_t only)
{
        struct dwarf_abbrevs *t = &x->abbrevs;
        const struct dwarf_unit *u = x->unit;
        const struct dwarf_sections *s = &x->file->sections;
        enum status st;

        if (!dwarf_object_spend(x->object, DWARF_BUDGET_ABBREV, 1))
                return ST_TOO_BIG;
        st = only ? dwarf_abbrevs_read_one(t, s, u->abbrev_offset, &u->format, only)
                  : dwarf_abbrevs_read(t, s, u->abbrev_offset, &u->format);
        if (!dwarf_object_spend(x->object, DWARF_BUDGET_ABBREV, t->bytes))
                st = ST_TOO_BIG;
        return st;
}

static bool is_same_abbrev_table(const struct dwarf_context *x, const struct dwarf_file *file,
                                 const struct dwarf_unit *unit)
{
        const struct dwarf_format *a = &x->abbrevs.format, *b = &unit->format;

        return x->file == file && x->abbrevs.offset == unit->abbrev_offset && a->version == b->version &&
               a->address_size == b->address_size && a->offset_size == b->offset_size;
}

static uint64_t section_offset_or(const struct dwarf_value *v, uint64_t otherwise)
{
        uint64_t number;

        if (v->form == DW_FORM_sec_offset)
                return v->number;
        return dwarf_value_uint(v, &number) ? number : otherwise;
}

/*
 * A table that the unit does not point to, of a split unit, is at the start of the section. Its format is its own:
 * llvm-dwp writes 64-bit offsets for 32-bit units (--dwarf64-str-offsets-promotion).
 */
static void find_string_offsets(struct dwarf_context *x, const struct dwarf_value *base)
{
        const struct dwarf_format *f = &x->unit->format;
        struct dwarf_cursor c = dwarf_section_at(&x->file->sections, DWARF_STR_OFFSETS, 0);

        x->str_offset_size = f->offset_size;
        x->str_offsets_base = section_offset_or(base, f->version >= 5 ? 2u * f->offset_size : 0);
        if (f->version < 5 || base->form)
                return;
        dwarf_initial_length(&c, &x->str_offset_size);
        if (c.failed)
                x->str_offset_size = f->offset_size;
        x->str_offsets_base = 2u * x->str_offset_size;
}

/* Bases are read first, because other values of the unit may depend on them regardless of their order. */
static void load_unit_values(struct dwarf_context *x, const struct dwarf_die *d)
{
        const struct dwarf_format *f = &x->unit->format;
        uint64_t header = f->version >= 5 ? 2u * f->offset_size : 0; /* of .debug_addr */
        uint64_t number;

        find_string_offsets(x, &d->values[DWARF_ROLE_STR_OFFSETS_BASE]);
        x->addr_base = section_offset_or(&d->values[DWARF_ROLE_ADDR_BASE], header);
        x->rnglists_base = section_offset_or(&d->values[DWARF_ROLE_RNGLISTS_BASE], header ? header + 4 : 0);
        x->ranges_base = section_offset_or(&d->values[DWARF_ROLE_GNU_RANGES_BASE], 0);
        x->low_pc = 0;
        if (!dwarf_context_address(x, &d->values[DWARF_ROLE_LOW_PC], &x->low_pc))
                x->low_pc = 0;
        x->line_offset = section_offset_or(&d->values[DWARF_ROLE_STMT_LIST], UINT64_MAX);
        x->has_lines = x->line_offset != UINT64_MAX;
        x->has_addresses = d->values[DWARF_ROLE_LOW_PC].form || d->values[DWARF_ROLE_RANGES].form;
        x->language = dwarf_value_uint(&d->values[DWARF_ROLE_LANGUAGE], &number) && number < UINT32_MAX
                              ? (uint32_t)number
                              : 0;
        x->directory = dwarf_context_string(x, &d->values[DWARF_ROLE_COMP_DIR]);
        x->dwo_name = dwarf_context_string(x, &d->values[DWARF_ROLE_DWO_NAME]);
        x->dwo_id = f->version >= 5 ? x->unit->signature : section_offset_or(&d->values[DWARF_ROLE_DWO_ID], 0);
}

bool dwarf_context_may_have_code(const struct dwarf_context *x)
{
        return x->tag != DW_TAG_type_unit && (x->tag != DW_TAG_partial_unit || x->has_addresses);
}

bool dwarf_context_may_have_functions(struct dwarf_context *x)
{
        size_t bytes;
        bool found;

        if (!dwarf_object_spend(x->object, DWARF_BUDGET_ABBREV, 1)) /* many units may have one large table */
                return true;
        found = dwarf_abbrevs_may_have_functions(&x->file->sections, x->unit->abbrev_offset, &bytes);
        return !dwarf_object_spend(x->object, DWARF_BUDGET_ABBREV, bytes) || found;
}

static enum status read_unit_die(struct dwarf_context *x, const struct dwarf_unit *unit, bool only_die,
                                 struct dwarf_die *die)
{
        struct dwarf_cursor c = dwarf_context_cursor(x, unit->first_die);
        uint64_t code = dwarf_uleb(&c);
        const struct dwarf_abbrev *a = NULL;
        enum status st;

        if (c.failed || code == 0)
                return ST_BAD_DATA;
        if (x->abbrevs.is_valid || (only_die && x->abbrevs.is_one))
                a = dwarf_abbrevs_find(&x->abbrevs, code);
        if (!a && !x->abbrevs.is_valid) {
                st = load_abbrevs(x, only_die ? code : 0);
                if (st)
                        return st;
                a = dwarf_abbrevs_find(&x->abbrevs, code);
        }
        if (!a)
                return ST_BAD_DATA;
        *die = (struct dwarf_die){ 0 };
        dwarf_context_read_die(x, &c, a, die);
        if (c.failed)
                return ST_BAD_DATA;
        x->tag = a->tag;
        x->has_children = a->has_children;
        x->children = die->end;
        load_unit_values(x, die);
        return ST_OK;
}

static enum status context_set_up(struct dwarf_context *x, struct dwarf_object *o, struct dwarf_file *file,
                                  const struct dwarf_unit *unit, bool only_die, struct dwarf_die *die)
{
        enum status st;

        if (!is_same_abbrev_table(x, file, unit))
                x->abbrevs.is_valid = x->abbrevs.is_one = false;
        x->object = o;
        x->file = file;
        x->linked = file;
        x->unit = unit;
        st = read_unit_die(x, unit, only_die, die);
        if (st)
                x->unit = NULL;
        return st;
}

enum status dwarf_context_enter(struct dwarf_context *x, struct dwarf_object *o, struct dwarf_file *file,
                                const struct dwarf_unit *unit)
{
        struct dwarf_die die;

        return context_set_up(x, o, file, unit, false, &die);
}

enum status dwarf_context_enter_die(struct dwarf_context *x, struct dwarf_object *o, struct dwarf_file *file,
                                    const struct dwarf_unit *unit, struct dwarf_die *die_ret)
{
        return context_set_up(x, o, file, unit, false, die_ret);
}

enum status dwarf_context_peek(struct dwarf_context *x, struct dwarf_object *o, struct dwarf_file *file,
                               const struct dwarf_unit *unit, struct dwarf_die *die_ret)
{
        return context_set_up(x, o, file, unit, true, die_ret);
}

/* Source: DWARF 5, 3.1.3. For earlier versions GCC and clang do the same. */
void dwarf_context_inherit(struct dwarf_context *x, const struct dwarf_context *skeleton)
{
        assert(skeleton->unit);
        x->linked = skeleton->file;
        x->addr_base = skeleton->addr_base;
        x->ranges_base = skeleton->ranges_base;
        x->low_pc = skeleton->low_pc;
        x->line_offset = skeleton->line_offset;
        x->has_lines = skeleton->has_lines;
        x->directory = skeleton->directory;
}

void dwarf_context_forget(struct dwarf_context *x)
{
        x->unit = NULL;
        x->file = NULL;
        x->abbrevs.is_valid = x->abbrevs.is_one = false;
}

void dwarf_context_deinit(struct dwarf_context *x)
{
        dwarf_abbrevs_deinit(&x->abbrevs);
        *x = (struct dwarf_context){ 0 };
}

/* ---- all attributes of one DIE ---- */

/* @return false after the last pair of an abbreviation */
static bool next_spec(struct dwarf_cursor *c, uint64_t *attribute, uint64_t *form, int64_t *implicit)
{
        *attribute = dwarf_uleb(c);
        *form = dwarf_uleb(c);
        *implicit = *form == DW_FORM_implicit_const ? dwarf_sleb(c) : 0;
        return !c->failed && (*attribute || *form);
}

/* Of several abbreviations with one code the first. */
static bool find_specs(struct dwarf_attributes *a, uint64_t wanted)
{
        struct dwarf_cursor c = dwarf_section_at(&a->context->file->sections, DWARF_ABBREV, a->context->abbrevs.offset);
        uint64_t code, attribute, form;
        int64_t implicit;

        while ((code = dwarf_uleb(&c)) != 0) {
                uint64_t tag = dwarf_uleb(&c);

                dwarf_u8(&c); /* whether it has children */
                if (code == wanted) {
                        a->tag = (uint16_t)tag;
                        a->specs = c;
                        return !c.failed;
                }
                while (next_spec(&c, &attribute, &form, &implicit))
                        ;
        }
        return false;
}

bool dwarf_attributes_begin(struct dwarf_attributes *a, const struct dwarf_context *x, uint64_t die)
{
        uint64_t code;

        *a = (struct dwarf_attributes){ .context = x, .values = dwarf_context_cursor(x, die) };
        code = dwarf_uleb(&a->values);
        return !a->values.failed && code != 0 && find_specs(a, code);
}

bool dwarf_attributes_next(struct dwarf_attributes *a, uint16_t *attribute_ret, struct dwarf_value *ret)
{
        uint64_t attribute, form;
        int64_t implicit;

        if (!next_spec(&a->specs, &attribute, &form, &implicit) || attribute > UINT16_MAX || form > UINT16_MAX)
                return false;
        dwarf_value_read(&a->values, &a->context->unit->format, (uint16_t)form, implicit, ret);
        *attribute_ret = (uint16_t)attribute;
        return !a->values.failed;
}
