/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/explain.h"

#include "dwarf/attributes.h"
#include "dwarf/explain_line.h"
#include "dwarf/ranges.h"
#include "dwarf/reader.h"

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

        if (!dwarf_unit_has_code(unit) || (x->unit != unit && dwarf_context_enter(x, r->object, &r->object->main, unit)))
                return false;
        c = dwarf_context_at(x, unit->first_die);
        a = dwarf_abbrevs_find(&x->abbrevs, dwarf_uleb(&c));
        if (!a)
                return false;
        dwarf_context_die(x, &c, a, &d);
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
        struct dwarf_unit_found found = { .unit = x->unit, .tag = x->tag, .directory = x->directory,
                                          .line_table = x->has_lines ? x->line_offset : UINT64_MAX };
        struct dwarf_attributes a;
        struct dwarf_value v;
        uint16_t attribute;

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
        size_t low = 0, high = l->row_count;

        while (low < high) {
                size_t mid = low + (high - low) / 2;

                if (l->rows[mid].end <= address)
                        low = mid + 1;
                else
                        high = mid;
        }
        return (low < l->row_count && l->rows[low].start <= address) || dwarf_scope_at(code, address) != DWARF_NO_SCOPE;
}

/* The values of a DIE, and the unit that holds it; false when it cannot be read. */
static bool read_die(struct dwarf_reader *r, dwarf_ref ref, struct dwarf_context **x_ret, struct dwarf_die *ret)
{
        struct dwarf_context *x = dwarf_reader_context(r, ref);
        const struct dwarf_abbrev *a;
        struct dwarf_cursor c;

        if (!x)
                return false;
        c = dwarf_context_at(x, ref & ~DWARF_REF_ALT);
        a = dwarf_abbrevs_find(&x->abbrevs, dwarf_uleb(&c));
        if (!a || c.failed)
                return false;
        dwarf_context_die(x, &c, a, ret);
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

                s->list = (uint64_t)(ranges.list.pos - file->sections.data[is_new ? DWARF_RNGLISTS : DWARF_RANGES].bytes);
        }
        while (dwarf_ranges_next(&ranges, &s->start, &s->end)) {
                s->has_interval = s->start <= address && address < s->end;
                if (s->has_interval)
                        return;
                s->entry++;
        }
}

static bool has_text(const struct dwarf_context *x, const struct dwarf_die *d, enum dwarf_role role)
{
        const char *text = dwarf_context_string(x, &d->values[role]);

        return text && text[0];
}

/* As names.c goes: the first linkage name, else the first plain name; an inlined call's own name does not count. */
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
                *hop = (struct dwarf_hop){ .die = ref, .unit = x->unit->offset, .tag = d.abbrev->tag, .how = how,
                                           .has_linkage_name = has_text(x, &d, DWARF_ROLE_LINKAGE_NAME),
                                           .has_name = has_text(x, &d, DWARF_ROLE_NAME) };
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
                if (counts && hop->has_linkage_name) {
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

        *ret = (struct dwarf_scope_found){ .die = of->die, .name = code->names[of->name], .call_file = of->call_file,
                                           .call_line = of->call_line };
        if (!read_die(r, ref, &x, &d))
                return;
        ret->tag = d.abbrev->tag;
        find_interval(r, &d, address, ret);
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
