/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/struct_members.h"

#include "common/limits.h"
#include "dwarf/constants.h"
#include "dwarf/context.h"

struct member_search {
        struct dwarf_context unit;
        struct dwarf_member *members;
        size_t count, left;
        uint64_t work; /* bytes of abbreviations passed */
};

/* Read the attributes of a DIE, whose abbreviation is searched each time: bounded, since a table may be long. */
static bool begin_attributes(struct member_search *s, uint64_t die, struct dwarf_attributes *ret)
{
        s->work += s->unit.abbrevs.bytes;
        return s->work <= LIMIT_DWARF_MEMBER_WORK && dwarf_attributes_begin(ret, &s->unit, die);
}

/* Note the offset of a member, if it is sought. */
static void note_struct_member(struct member_search *s, const char *structure, uint64_t die)
{
        const char *name = NULL;
        struct dwarf_attributes a;
        struct dwarf_value v;
        uint16_t attribute;
        uint64_t offset = 0;
        bool has_offset = false;

        if (!begin_attributes(s, die, &a))
                return;
        while (dwarf_attributes_next(&a, &attribute, &v)) {
                if (attribute == DW_AT_name)
                        name = dwarf_context_string(&s->unit, &v);
                else if (attribute == DW_AT_data_member_location)
                        has_offset = dwarf_value_uint(&v, &offset);
        }
        for (size_t i = 0; name && has_offset && i < s->count; i++) {
                struct dwarf_member *m = &s->members[i];

                if (m->is_found || strcmp(m->structure, structure) != 0 || strcmp(m->name, name) != 0)
                        continue;
                m->is_found = true;
                m->offset = offset;
                s->left--;
        }
}

/* The name of a structure of which a member is sought; else NULL. */
static const char *find_sought_structure(struct member_search *s, uint64_t die)
{
        const char *name = NULL;
        struct dwarf_attributes a;
        struct dwarf_value v;
        uint16_t attribute;

        if (!begin_attributes(s, die, &a))
                return NULL;
        while (!name && dwarf_attributes_next(&a, &attribute, &v))
                if (attribute == DW_AT_name)
                        name = dwarf_context_string(&s->unit, &v);
        for (size_t i = 0; name && i < s->count; i++)
                if (strcmp(s->members[i].structure, name) == 0)
                        return name;
        return NULL;
}

static void search_unit_structures(struct member_search *s)
{
        const uint8_t *section = s->unit.file->sections.data[DWARF_INFO].bytes;
        struct dwarf_cursor c = dwarf_context_cursor(&s->unit, s->unit.children);
        const char *structure = NULL; /* at depth 1 */
        unsigned depth = 1;

        while (s->left && depth && !c.failed && c.pos < c.end) {
                uint64_t die = (uint64_t)(c.pos - section), code = dwarf_uleb(&c);
                const struct dwarf_abbrev *a = code ? dwarf_abbrevs_find(&s->unit.abbrevs, code) : NULL;
                struct dwarf_die ignored;

                if (!code) {
                        depth--;
                        continue;
                }
                if (!a)
                        return;
                if (depth == 1)
                        structure = a->tag == DW_TAG_structure_type ? find_sought_structure(s, die) : NULL;
                else if (depth == 2 && structure && a->tag == DW_TAG_member)
                        note_struct_member(s, structure, die);
                dwarf_context_read_die(&s->unit, &c, a, &ignored);
                depth += a->has_children;
                if (depth > LIMIT_DIE_DEPTH)
                        return;
        }
}

/* Whether the unit has this name. */
static bool enter_named_unit(struct member_search *s, struct dwarf_object *object, const struct dwarf_unit *u,
                             const char *unit)
{
        const char *name = NULL;
        struct dwarf_attributes a;
        struct dwarf_value v;
        struct dwarf_die die;
        uint16_t attribute;

        if (dwarf_context_peek(&s->unit, object, &object->main, u, &die) ||
            !dwarf_attributes_begin(&a, &s->unit, u->first_die))
                return false;
        while (!name && dwarf_attributes_next(&a, &attribute, &v))
                if (attribute == DW_AT_name)
                        name = dwarf_context_string(&s->unit, &v);
        return name && strcmp(name, unit) == 0;
}

enum status dwarf_struct_members_find(struct dwarf_object *object, const char *unit, struct dwarf_member *members,
                                      size_t count)
{
        struct member_search s = { .members = members, .count = count, .left = count };
        enum status st = ST_OK;

        for (size_t i = 0; i < object->main.units.count && s.left && !st; i++) {
                const struct dwarf_unit *u = &object->main.units.items[i];

                if (!enter_named_unit(&s, object, u, unit))
                        continue;
                st = dwarf_context_enter(&s.unit, object, &object->main, u);
                if (!st)
                        search_unit_structures(&s);
        }
        dwarf_context_deinit(&s.unit);
        return st;
}
