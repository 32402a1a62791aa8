/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf/types.h"

#include <stdlib.h>

#include "common/search.h"
#include "dwarf/dwarf_reader_internal.h"
#include "dwarf/package.h"

static bool is_type_unit(const struct dwarf_unit *u)
{
        return u->type == DW_UT_type || u->type == DW_UT_split_type;
}

static size_t count_type_units(const struct dwarf_units *units)
{
        size_t count = 0;

        for (size_t i = 0; i < units->count; i++)
                count += is_type_unit(&units->items[i]);
        return count;
}

static void add_type_units(struct dwarf_types *t, struct dwarf_file *f)
{
        for (size_t i = 0; i < f->units.count; i++)
                if (is_type_unit(&f->units.items[i]))
                        t->items[t->count++] = (struct dwarf_type){ .signature = f->units.items[i].signature,
                                                                    .file = f,
                                                                    .unit = &f->units.items[i] };
}

static int compare_type_signatures(const void *x, const void *y)
{
        const struct dwarf_type *a = x, *b = y;

        if (a->signature != b->signature)
                return a->signature < b->signature ? -1 : 1;
        if (a->file != b->file)
                return a->file->sections.holds_types ? 1 : -1;
        return a->unit < b->unit ? -1 : a->unit > b->unit;
}

static struct dwarf_types *create_types(struct dwarf_file *f)
{
        struct dwarf_types *t = calloc(1, sizeof *t);
        struct dwarf_sections sections;
        size_t count;

        if (!t)
                return NULL;
        dwarf_sections_of_types(&f->sections, &sections);
        if (dwarf_file_init(&t->old, &sections, NULL)) {
                dwarf_types_destroy(t);
                return NULL;
        }
        count = count_type_units(&f->units) + count_type_units(&t->old.units);
        t->items = calloc(count + 1, sizeof *t->items);
        if (!t->items) {
                dwarf_types_destroy(t);
                return NULL;
        }
        add_type_units(t, f);
        add_type_units(t, &t->old);
        qsort(t->items, t->count, sizeof *t->items, compare_type_signatures);
        return t;
}

void dwarf_types_destroy(struct dwarf_types *t)
{
        if (!t)
                return;
        dwarf_file_deinit(&t->old);
        free(t->items);
        free(t);
}

static struct dwarf_types *get_types(struct dwarf_file *f)
{
        struct dwarf_types *t = atomic_load_explicit(&f->types, memory_order_acquire);

        if (t)
                return t;
        pthread_mutex_lock(&f->lock);
        t = atomic_load_explicit(&f->types, memory_order_relaxed);
        if (!t) {
                t = create_types(f);
                atomic_store_explicit(&f->types, t, memory_order_release);
        }
        pthread_mutex_unlock(&f->lock);
        return t;
}

/* The first of several with this signature. */
static enum status find_signature_type(struct dwarf_file *f, uint64_t signature, struct dwarf_type **ret)
{
        struct dwarf_types *t = get_types(f);
        size_t at = find_lower_bound(i, 0, t ? t->count : 0, t->items[i].signature < signature);

        if (!t)
                return ST_NO_MEMORY;
        if (at == t->count || t->items[at].signature != signature)
                return ST_NOT_FOUND;
        *ret = &t->items[at];
        return ST_OK;
}

/* ---- names of types ---- */

/*
 * Names of types by their signature. With -fdebug-types-section a unit may
 * contain, of a class, only the functions that it defines, in a DIE without a
 * name but with the signature of the type unit that has it (clang; GCC repeats
 * the name).
 *
 * A name is looked up once per file and cached there; in a package once for each
 * function that needs it.
 */

enum step { STEP_NAMED, STEP_SIGNATURE, STEP_LOST };

/* Read the name of a type unit's type, or the signature of the type that has the name. */
static enum step read_type_unit_name(struct dwarf_reader *r, struct dwarf_file *file, const struct dwarf_unit *unit,
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
                struct dwarf_cursor c = dwarf_context_cursor(x, offset & ~DWARF_REF_ALT);
                const struct dwarf_abbrev *a = dwarf_abbrevs_find(&x->abbrevs, dwarf_uleb(&c));
                struct dwarf_die d;

                if (!a || c.failed)
                        return STEP_LOST;
                dwarf_context_read_die(x, &c, a, &d);
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

static enum step find_type_in_package(struct dwarf_reader *r, uint64_t signature, const char **name_ret,
                                      uint64_t *signature_ret)
{
        const struct dwarf_package *package = r->object->companions.package;
        struct dwarf_companion *c;
        enum step step = STEP_LOST;

        if (!package || dwarf_companion_of_type(package, signature, &c))
                return STEP_LOST;
        if (dwarf_object_allow(r->object, &c->file.sections)) {
                struct dwarf_type *type;

                if (find_signature_type(&c->file, signature, &type) == ST_OK)
                        step = read_type_unit_name(r, type->file, type->unit, name_ret, signature_ret);
        } else {
                r->names_damage = ST_TOO_BIG;
        }
        dwarf_context_forget(&r->types);
        dwarf_companion_close(c);
        return step;
}

static enum step find_type_name(struct dwarf_reader *r, struct dwarf_file *file, struct dwarf_type *type,
                                uint64_t signature, const char **name_ret, uint64_t *signature_ret)
{
        if (!type)
                return file == &r->object->main || file == &r->object->alt
                               ? STEP_LOST
                               : find_type_in_package(r, signature, name_ret, signature_ret);
        *name_ret = atomic_load_explicit(&type->name, memory_order_relaxed);
        if (*name_ret)
                return (*name_ret)[0] ? STEP_NAMED : STEP_LOST;
        return read_type_unit_name(r, type->file, type->unit, name_ret, signature_ret);
}

const char *dwarf_reader_type_name(struct dwarf_reader *r, struct dwarf_file *file, uint64_t signature)
{
        struct dwarf_type *first = NULL;
        enum step step = STEP_SIGNATURE;
        const char *name = NULL;

        for (int hops = 0; hops < LIMIT_DWARF_ORIGINS && step == STEP_SIGNATURE; hops++) {
                struct dwarf_type *type = NULL;
                enum status st = find_signature_type(file, signature, &type);

                if (st == ST_NO_MEMORY)
                        r->names_damage = st;
                if (hops == 0)
                        first = type;
                step = find_type_name(r, file, type, signature, &name, &signature);
        }
        name = step == STEP_NAMED ? name : NULL;
        if (first)
                atomic_store_explicit(&first->name, name ? name : "", memory_order_relaxed);
        return name;
}
