/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names behind signatures. With -fdebug-types-section a unit may have of a class
 * only the functions it defines, around them a DIE without a name and the
 * signature of the type unit that has it (clang; GCC repeats the name).
 *
 * A name is looked up once per file and remembered there; in a package once for
 * each function that needs it.
 */
#include "dwarf/package.h"
#include "dwarf/reader.h"
#include "dwarf/types.h"

enum step { STEP_NAMED, STEP_SIGNATURE, STEP_LOST };

/* Look at a type unit's type: it has a name, or says where else there is one. */
static enum step look_at(struct dwarf_reader *r, struct dwarf_file *file, const struct dwarf_unit *unit,
                         const char **name_ret, uint64_t *signature_ret)
{
        struct dwarf_context *x = &r->types;
        uint64_t offset = unit->type_offset;
        enum status st = x->unit == unit ? ST_OK : dwarf_context_enter(x, r->object, file, unit);

        if (st) {
                r->names_damage = st;
                return STEP_LOST;
        }
        for (int hops = 0; hops < LIMIT_DWARF_ORIGINS && offset != DWARF_NO_REF; hops++) {
                struct dwarf_cursor c = dwarf_context_at(x, offset & ~DWARF_REF_ALT);
                const struct dwarf_abbrev *a = dwarf_abbrevs_find(&x->abbrevs, dwarf_uleb(&c));
                struct dwarf_die d;

                if (!a || c.failed)
                        return STEP_LOST;
                dwarf_context_die(x, &c, a, &d);
                if (c.failed)
                        return STEP_LOST;
                *name_ret = dwarf_context_string(x, &d.values[DWARF_ROLE_NAME]);
                if (*name_ret && (*name_ret)[0])
                        return STEP_NAMED;
                if (d.values[DWARF_ROLE_SIGNATURE].form == DW_FORM_ref_sig8) {
                        *signature_ret = d.values[DWARF_ROLE_SIGNATURE].number;
                        return STEP_SIGNATURE;
                }
                offset = dwarf_context_reference(x, &d.values[DWARF_ROLE_SPECIFICATION]);
        }
        return STEP_LOST;
}

static enum step look_in_package(struct dwarf_reader *r, uint64_t signature, const char **name_ret, uint64_t *signature_ret)
{
        const struct dwarf_package *package = r->object->companions.package;
        struct dwarf_companion *c;
        enum step step = STEP_LOST;

        if (!package || dwarf_companion_of_type(package, signature, &c))
                return STEP_LOST;
        if (dwarf_object_allow(r->object, &c->file.sections)) {
                struct dwarf_type *type;

                if (dwarf_types_find(&c->file, signature, &type) == ST_OK)
                        step = look_at(r, type->file, type->unit, name_ret, signature_ret);
        } else {
                r->names_damage = ST_TOO_BIG;
        }
        dwarf_context_forget(&r->types);
        dwarf_companion_close(c);
        return step;
}

static enum step look_up(struct dwarf_reader *r, struct dwarf_file *file, struct dwarf_type *type, uint64_t signature,
                         const char **name_ret, uint64_t *signature_ret)
{
        if (!type)
                return file == &r->object->main || file == &r->object->alt ?
                               STEP_LOST :
                               look_in_package(r, signature, name_ret, signature_ret);
        *name_ret = atomic_load_explicit(&type->name, memory_order_relaxed);
        if (*name_ret)
                return (*name_ret)[0] ? STEP_NAMED : STEP_LOST;
        return look_at(r, type->file, type->unit, name_ret, signature_ret);
}

const char *dwarf_reader_type_name(struct dwarf_reader *r, struct dwarf_file *file, uint64_t signature)
{
        struct dwarf_type *first = NULL;
        enum step step = STEP_SIGNATURE;
        const char *name = NULL;

        for (int hops = 0; hops < LIMIT_DWARF_ORIGINS && step == STEP_SIGNATURE; hops++) {
                struct dwarf_type *type = NULL;
                enum status st = dwarf_types_find(file, signature, &type);

                if (st == ST_NO_MEMORY)
                        r->names_damage = st;
                if (hops == 0)
                        first = type;
                step = look_up(r, file, type, signature, &name, &signature);
        }
        name = step == STEP_NAMED ? name : NULL;
        if (first)
                atomic_store_explicit(&first->name, name ? name : "", memory_order_relaxed);
        return name;
}
