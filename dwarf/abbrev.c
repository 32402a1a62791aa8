/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table is read in full for a unit whose DIEs are walked. For a unit of which only the own DIE is wanted,
 * abbreviations are skipped up to that DIE's, whose plans are kept for the next unit.
 *
 * Order: roles and kinds, plans, one abbreviation, whole tables, the abbreviation of a unit's DIE, tables of functions.
 */
#include "dwarf/abbrev.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"
#include "common/limits.h"
#include "common/search.h"

struct spec {
        int64_t implicit;
        uint16_t form;
        uint8_t role;
        int8_t size; /* of the value; dwarf_form_size() */
};

static enum dwarf_role find_attribute_role(uint16_t attribute)
{
        switch (attribute) {
        case DW_AT_sibling:
                return DWARF_ROLE_SIBLING;
        case DW_AT_name:
                return DWARF_ROLE_NAME;
        case DW_AT_linkage_name:
        case DW_AT_MIPS_linkage_name:
                return DWARF_ROLE_LINKAGE_NAME;
        case DW_AT_abstract_origin:
                return DWARF_ROLE_ORIGIN;
        case DW_AT_specification:
                return DWARF_ROLE_SPECIFICATION;
        case DW_AT_low_pc:
                return DWARF_ROLE_LOW_PC;
        case DW_AT_high_pc:
                return DWARF_ROLE_HIGH_PC;
        case DW_AT_ranges:
                return DWARF_ROLE_RANGES;
        case DW_AT_call_file:
                return DWARF_ROLE_CALL_FILE;
        case DW_AT_call_line:
                return DWARF_ROLE_CALL_LINE;
        case DW_AT_call_column:
                return DWARF_ROLE_CALL_COLUMN;
        case DW_AT_GNU_discriminator:
                return DWARF_ROLE_CALL_DISCRIMINATOR;
        case DW_AT_decl_file:
                return DWARF_ROLE_DECL_FILE;
        case DW_AT_decl_line:
                return DWARF_ROLE_DECL_LINE;
        case DW_AT_stmt_list:
                return DWARF_ROLE_STMT_LIST;
        case DW_AT_comp_dir:
                return DWARF_ROLE_COMP_DIR;
        case DW_AT_language:
                return DWARF_ROLE_LANGUAGE;
        case DW_AT_str_offsets_base:
                return DWARF_ROLE_STR_OFFSETS_BASE;
        case DW_AT_addr_base:
        case DW_AT_GNU_addr_base:
                return DWARF_ROLE_ADDR_BASE;
        case DW_AT_rnglists_base:
                return DWARF_ROLE_RNGLISTS_BASE;
        case DW_AT_GNU_ranges_base:
                return DWARF_ROLE_GNU_RANGES_BASE;
        case DW_AT_dwo_name:
        case DW_AT_GNU_dwo_name:
                return DWARF_ROLE_DWO_NAME;
        case DW_AT_GNU_dwo_id:
                return DWARF_ROLE_DWO_ID;
        case DW_AT_signature:
                return DWARF_ROLE_SIGNATURE;
        default:
                return DWARF_ROLE_NONE;
        }
}

#define ROLES_OF_DECLARATIONS (1u << DWARF_ROLE_DECL_FILE | 1u << DWARF_ROLE_DECL_LINE)

static_assert(DWARF_ROLE_COUNT <= 32, "roles are bits of a word");

/* The roles that the full plan of a tag reads; 0: no full plan. Reading declarations of classes would waste time. */
static uint32_t get_planned_roles(uint16_t tag)
{
        switch (tag) {
        case DW_TAG_subprogram:
        case DW_TAG_entry_point:
                return UINT32_MAX;
        case DW_TAG_inlined_subroutine:
        case DW_TAG_namespace:
        case DW_TAG_module:
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
        case DW_TAG_union_type:
        case DW_TAG_interface_type:
        case DW_TAG_compile_unit:
        case DW_TAG_partial_unit:
        case DW_TAG_type_unit:
        case DW_TAG_skeleton_unit:
                return ~ROLES_OF_DECLARATIONS;
        default:
                return 0;
        }
}

static enum dwarf_kind classify_tag(uint16_t tag, uint32_t roles)
{
        const uint32_t places = 1u << DWARF_ROLE_LOW_PC | 1u << DWARF_ROLE_RANGES;

        switch (tag) {
        case DW_TAG_subprogram:
                if (roles & places)
                        return DWARF_KIND_FUNCTION;
                return (roles & 1u << DWARF_ROLE_NAME) && !(roles & 1u << DWARF_ROLE_LINKAGE_NAME)
                               ? DWARF_KIND_DECLARED
                               : DWARF_KIND_ABSTRACT;
        case DW_TAG_inlined_subroutine:
                return DWARF_KIND_INLINED;
        case DW_TAG_namespace:
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
        case DW_TAG_union_type:
        case DW_TAG_interface_type:
                return DWARF_KIND_SCOPE;
        case DW_TAG_module:
        case DW_TAG_lexical_block:
        case DW_TAG_try_block:
        case DW_TAG_catch_block:
        case DW_TAG_with_stmt:
                return DWARF_KIND_BLOCK;
        default:
                return DWARF_KIND_PLAIN;
        }
}

/* Compile attribute specifications into a plan. @return false when out of memory */
static bool add_plan(struct dwarf_abbrevs *t, const struct spec *specs, size_t count, uint32_t wanted,
                     struct dwarf_plan *ret)
{
        struct dwarf_plan plan = { .first = (uint32_t)t->step_count };

        for (size_t i = 0; i < count; i++) {
                uint8_t role = wanted & 1u << specs[i].role ? specs[i].role : DWARF_ROLE_NONE;

                if (role == DWARF_ROLE_NONE && specs[i].size >= 0) {
                        plan.tail += (uint32_t)specs[i].size;
                        continue;
                }
                if (!array_reserve(&t->steps, &t->step_capacity, t->step_count))
                        return false;
                t->steps[t->step_count++] = (struct dwarf_step){ specs[i].implicit, plan.tail, specs[i].form, role };
                plan.tail = 0;
                plan.count++;
        }
        *ret = plan;
        return true;
}

/* An unknown form affects only the DIEs that use it, so it is not an error of the table. */
static enum status read_specs(struct dwarf_cursor *c, const struct dwarf_format *f, struct spec *specs,
                              size_t *count_ret, uint32_t *roles)
{
        size_t count = 0;

        for (;;) {
                uint64_t attribute = dwarf_uleb(c), form = dwarf_uleb(c);
                int64_t implicit = form == DW_FORM_implicit_const ? dwarf_sleb(c) : 0;
                enum dwarf_role role;

                if (c->failed || attribute > UINT16_MAX || form > UINT16_MAX)
                        return ST_BAD_DATA;
                if (attribute == 0 && form == 0)
                        break;
                if (count == LIMIT_DWARF_ATTRIBUTES)
                        return ST_TOO_BIG;
                role = find_attribute_role((uint16_t)attribute);
                *roles |= 1u << role;
                specs[count++] = (struct spec){ implicit, (uint16_t)form, (uint8_t)role,
                                                (int8_t)dwarf_form_size((uint16_t)form, f) };
        }
        *count_ret = count;
        return ST_OK;
}

static enum status read_abbrev(struct dwarf_abbrevs *t, struct dwarf_cursor *c, uint64_t code)
{
        struct spec specs[LIMIT_DWARF_ATTRIBUTES];
        struct dwarf_abbrev a = { .code = code };
        uint64_t tag = dwarf_uleb(c);
        uint32_t roles = 0, planned;
        size_t count;
        enum status st;

        a.has_children = dwarf_u8(c) != 0;
        if (c->failed)
                return ST_BAD_DATA;
        a.tag = tag > UINT16_MAX ? UINT16_MAX : (uint16_t)tag;
        st = read_specs(c, &t->format, specs, &count, &roles);
        if (st)
                return st;
        if (t->count == LIMIT_DWARF_ABBREVS)
                return ST_TOO_BIG;
        a.kind = (uint8_t)classify_tag(a.tag, roles);
        if (!add_plan(t, specs, count, 1u << DWARF_ROLE_SIBLING, &a.skip))
                return ST_NO_MEMORY;
        a.full = a.skip;
        planned = get_planned_roles(a.tag);
        if (planned && !add_plan(t, specs, count, planned, &a.full))
                return ST_NO_MEMORY;
        if (!array_reserve(&t->items, &t->capacity, t->count))
                return ST_NO_MEMORY;
        t->is_dense &= code == t->count + 1;
        t->items[t->count++] = a;
        return ST_OK;
}

/* By code, then by position. */
static int compare_abbrev_codes(const void *x, const void *y, void *items)
{
        uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
        const struct dwarf_abbrev *of = items;

        if (of[a].code != of[b].code)
                return of[a].code < of[b].code ? -1 : 1;
        return a < b ? -1 : a > b;
}

static bool sort_abbrevs_by_code(struct dwarf_abbrevs *t)
{
        if (!array_reserve_many(&t->order, &t->order_capacity, 0, t->count))
                return false;
        for (size_t i = 0; i < t->count; i++)
                t->order[i] = (uint32_t)i;
        if (t->count > 1)
                qsort_r(t->order, t->count, sizeof *t->order, compare_abbrev_codes, t->items);
        return true;
}

/* Skip nearly all pairs of an attribute and a form: they have one byte each, as has an implicit value. */
static inline void skip_short_specs(struct dwarf_cursor *c)
{
        const uint8_t *p = c->pos, *end = c->end;

        while (end - p >= 3 && p[0] && (p[0] | p[1]) < 0x80) {
                if (p[1] == DW_FORM_implicit_const && p[2] >= 0x80)
                        break;
                p += p[1] == DW_FORM_implicit_const ? 3 : 2;
        }
        c->pos = p;
}

/* Skip an abbreviation: pairs of attribute and form up to a pair of zeroes. */
static enum status skip_abbrev(struct dwarf_cursor *c)
{
        uint64_t attribute, form;

        dwarf_skip_leb(c);
        dwarf_u8(c);
        do {
                skip_short_specs(c);
                attribute = dwarf_uleb(c);
                form = dwarf_uleb(c);
                if (form == DW_FORM_implicit_const)
                        dwarf_skip_leb(c);
        } while (!c->failed && (attribute || form));
        return c->failed ? ST_BAD_DATA : ST_OK;
}

static void begin_abbrev_table(struct dwarf_abbrevs *t, uint64_t offset, const struct dwarf_format *format)
{
        t->count = t->step_count = t->kept_size = 0;
        t->is_dense = true;
        t->is_valid = t->is_one = false;
        t->offset = offset;
        t->format = *format;
}

enum status dwarf_abbrevs_read(struct dwarf_abbrevs *t, const struct dwarf_sections *s, uint64_t offset,
                               const struct dwarf_format *format)
{
        struct dwarf_cursor c = dwarf_section_at(s, DWARF_ABBREV, offset);
        const uint8_t *start = c.pos;
        enum status st = ST_OK;
        uint64_t code = 0;

        begin_abbrev_table(t, offset, format);
        while (!st && dwarf_left(&c) && (code = dwarf_uleb(&c)) != 0)
                st = read_abbrev(t, &c, code);
        t->bytes = (size_t)(c.pos - start);
        if (!st && c.failed)
                st = ST_BAD_DATA;
        if (!st && !t->is_dense && !sort_abbrevs_by_code(t))
                st = ST_NO_MEMORY;
        t->is_valid = !st;
        return st;
}

/* The abbreviation read last, behind its code, is usually that of the next unit too, and then has the same plans. */
static bool is_kept_abbrev(const struct dwarf_abbrevs *t, const struct dwarf_cursor *c,
                           const struct dwarf_format *format)
{
        return t->kept_size && t->format.version == format->version && t->format.address_size == format->address_size &&
               t->format.offset_size == format->offset_size && dwarf_left(c) >= t->kept_size &&
               memcmp(c->pos, t->kept, t->kept_size) == 0;
}

static enum status read_only_abbrev(struct dwarf_abbrevs *t, struct dwarf_cursor *c, uint64_t code)
{
        const uint8_t *start = c->pos;
        enum status st = read_abbrev(t, c, code);
        size_t size = (size_t)(c->pos - start);

        if (!st && size <= sizeof t->kept) {
                memcpy(t->kept, start, size);
                t->kept_size = size;
        }
        return st;
}

enum status dwarf_abbrevs_read_one(struct dwarf_abbrevs *t, const struct dwarf_sections *s, uint64_t offset,
                                   const struct dwarf_format *format, uint64_t code)
{
        struct dwarf_cursor c = dwarf_section_at(s, DWARF_ABBREV, offset);
        const uint8_t *start = c.pos;
        enum status st = ST_OK;
        uint64_t found = 0;

        assert(code);
        while (!st && dwarf_left(&c) && (found = dwarf_uleb(&c)) != 0 && found != code)
                st = skip_abbrev(&c);
        if (!st && found == code && is_kept_abbrev(t, &c, format)) {
                t->offset = offset;
                t->is_valid = false;
                t->items[0].code = code;
                t->is_dense = code == 1;
                dwarf_skip(&c, t->kept_size);
        } else {
                begin_abbrev_table(t, offset, format);
                if (!st && found == code)
                        st = read_only_abbrev(t, &c, code);
        }
        t->bytes = (size_t)(c.pos - start);
        if (!st && c.failed)
                st = ST_BAD_DATA;
        if (!st && !t->is_dense && !sort_abbrevs_by_code(t))
                st = ST_NO_MEMORY;
        t->is_one = !st;
        return st;
}

/* Whether the abbreviation behind its code is that of a function with addresses. */
static bool is_function_with_code(struct dwarf_cursor *c)
{
        const bool is_function = dwarf_uleb(c) == DW_TAG_subprogram;
        uint64_t attribute, form;
        bool has_place = false;

        dwarf_u8(c);
        do {
                if (!is_function)
                        skip_short_specs(c);
                attribute = dwarf_uleb(c);
                form = dwarf_uleb(c);
                if (form == DW_FORM_implicit_const)
                        dwarf_skip_leb(c);
                has_place |= attribute == DW_AT_low_pc || attribute == DW_AT_ranges;
        } while (!c->failed && (attribute || form));
        return is_function && has_place;
}

bool dwarf_abbrevs_may_have_functions(const struct dwarf_sections *s, uint64_t offset, size_t *bytes_ret)
{
        struct dwarf_cursor c = dwarf_section_at(s, DWARF_ABBREV, offset);
        const uint8_t *start = c.pos;
        bool found = false;

        while (!found && !c.failed && dwarf_left(&c) && dwarf_uleb(&c) != 0)
                found = is_function_with_code(&c);
        *bytes_ret = (size_t)(c.pos - start);
        return found || c.failed;
}

void dwarf_abbrevs_deinit(struct dwarf_abbrevs *t)
{
        free(t->items);
        free(t->order);
        free(t->steps);
        *t = (struct dwarf_abbrevs){ 0 };
}

const struct dwarf_abbrev *dwarf_abbrevs_search(const struct dwarf_abbrevs *t, uint64_t code)
{
        size_t at = find_lower_bound(i, 0, t->count, t->items[t->order[i]].code < code);

        return at < t->count && t->items[t->order[at]].code == code ? &t->items[t->order[at]] : NULL;
}
