/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/attributes.h"

/* @return false behind the last pair of an abbreviation */
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

        *a = (struct dwarf_attributes){ .context = x, .values = dwarf_context_at(x, die) };
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
