/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of a unit's functions, each origin resolved once, after the walk:
 * by then the outline of the unit is complete, wherever the DIEs stand. They
 * are resolved in the order of their DIEs, so that another unit that many of
 * them refer to is made ready once.
 */
#include <stdlib.h>

#include "dwarf/reader.h"

/* ---- outlines of other units ---- */

static const struct dwarf_outline *outline_of(struct dwarf_reader *r, const struct dwarf_context *x)
{
        struct dwarf_outline *outline;

        if (x == &r->main)
                return &r->outline;
        outline = dwarf_file_outline(x->file, x->unit);
        if (outline)
                return outline;
        if (!dwarf_object_spend(r->object, DWARF_BUDGET_INFO, x->unit->end - x->unit->offset)) {
                r->names_damage = ST_TOO_BIG;
                return NULL;
        }
        outline = calloc(1, sizeof *outline);
        if (!outline)
                return NULL;
        outline->unit = x->unit;
        if (dwarf_walk(r, x, outline, NULL) == ST_NO_MEMORY) {
                dwarf_outline_deinit(outline);
                free(outline);
                return NULL;
        }
        dwarf_file_keep_outline(x->file, outline);
        return outline;
}

/* ---- "ns::Class::name" ---- */

static const char *qualifier_text(struct dwarf_reader *r, const struct dwarf_context *x, const struct dwarf_qualifier *q)
{
        const char *text = q->name.form == DW_FORM_ref_sig8 ? dwarf_reader_type_name(r, x->file, q->name.number) :
                                                              dwarf_context_string(x, &q->name);

        if (text && text[0])
                return text;
        switch (q->tag) {
        case DW_TAG_namespace:
                return "(anonymous namespace)";
        case DW_TAG_class_type:
                return "(anonymous class)";
        case DW_TAG_union_type:
                return "(anonymous union)";
        default:
                return "(anonymous struct)";
        }
}

/* Written from its end to its start. A name that gets too long stays without its scopes. */
static const char *qualified(struct dwarf_reader *r, const struct dwarf_context *x, const struct dwarf_outline *outline,
                             uint32_t qualifier, const char *name, struct arena *texts)
{
        size_t size = strlen(name) + 1, at;
        char *text;

        for (uint32_t q = qualifier; q != DWARF_NO_QUALIFIER && size <= LIMIT_NAME_BYTES; q = outline->qualifiers[q].parent)
                size += strlen(qualifier_text(r, x, &outline->qualifiers[q])) + 2;
        text = size <= LIMIT_NAME_BYTES ? arena_alloc(texts, size) : NULL;
        if (!text)
                return name;
        at = size - strlen(name) - 1;
        memcpy(text + at, name, size - at);
        for (uint32_t q = qualifier; q != DWARF_NO_QUALIFIER; q = outline->qualifiers[q].parent) {
                const char *part = qualifier_text(r, x, &outline->qualifiers[q]);
                size_t n = strlen(part);

                memcpy(text + at - 2, "::", 2);
                at -= n + 2;
                memcpy(text + at, part, n);
        }
        return text;
}

/* ---- following origins ---- */

struct found {
        struct dwarf_name name;
        dwarf_ref plain_ref; /* where the plain name is */
};

/* Take what a DIE has. @return the next DIE to look at, DWARF_NO_REF when this was the last. */
static dwarf_ref take(struct dwarf_reader *r, dwarf_ref ref, struct found *f)
{
        struct dwarf_context *x = dwarf_reader_context(r, ref);
        const struct dwarf_abbrev *a;
        const char *text;
        struct dwarf_cursor c;
        struct dwarf_die d;
        dwarf_ref next;

        if (!x)
                return DWARF_NO_REF;
        c = dwarf_context_at(x, ref & ~DWARF_REF_ALT);
        a = dwarf_abbrevs_find(&x->abbrevs, dwarf_uleb(&c));
        if (!a || c.failed)
                return DWARF_NO_REF;
        dwarf_context_die(x, &c, a, &d);
        if (c.failed)
                return DWARF_NO_REF;
        text = dwarf_context_string(x, &d.values[DWARF_ROLE_LINKAGE_NAME]);
        if (text && text[0]) {
                f->name.linkage = text;
                return DWARF_NO_REF;
        }
        if (!f->name.plain) {
                f->name.plain = dwarf_context_string(x, &d.values[DWARF_ROLE_NAME]);
                f->plain_ref = ref;
        }
        next = dwarf_context_reference(x, &d.values[DWARF_ROLE_ORIGIN]);
        return next != DWARF_NO_REF ? next : dwarf_context_reference(x, &d.values[DWARF_ROLE_SPECIFICATION]);
}

static void resolve(struct dwarf_reader *r, struct dwarf_code *code, dwarf_ref ref, struct dwarf_name *ret)
{
        struct found f = { .plain_ref = DWARF_NO_REF };
        const struct dwarf_outline *outline;
        struct dwarf_context *x;
        uint32_t qualifier;

        for (int hops = 0; hops < LIMIT_DWARF_ORIGINS && ref != DWARF_NO_REF; hops++)
                ref = take(r, ref, &f);
        *ret = f.name;
        if (f.name.linkage || !f.name.plain || !f.name.plain[0])
                return;
        x = dwarf_reader_context(r, f.plain_ref);
        outline = x ? outline_of(r, x) : NULL;
        if (!outline)
                return;
        qualifier = dwarf_outline_find(outline, f.plain_ref & ~DWARF_REF_ALT);
        if (qualifier != DWARF_NO_QUALIFIER)
                ret->plain = qualified(r, x, outline, qualifier, f.name.plain, &code->texts);
}

static int by_ref(const void *a, const void *b, void *refs)
{
        dwarf_ref x = ((const dwarf_ref *)refs)[*(const uint32_t *)a], y = ((const dwarf_ref *)refs)[*(const uint32_t *)b];

        return x < y ? -1 : x > y;
}

enum status dwarf_names_resolve(struct dwarf_reader *r, struct dwarf_code *code)
{
        size_t n = code->name_count;

        if (n > r->by_ref_capacity) {
                uint32_t *grown = reallocarray(r->by_ref, n, sizeof *grown);

                if (!grown)
                        return ST_NO_MEMORY;
                r->by_ref = grown;
                r->by_ref_capacity = n;
        }
        for (size_t i = 0; i < n; i++)
                r->by_ref[i] = (uint32_t)i;
        if (n)
                qsort_r(r->by_ref, n, sizeof *r->by_ref, by_ref, r->refs);
        for (size_t i = 0; i < n; i++)
                resolve(r, code, r->refs[r->by_ref[i]], &code->names[r->by_ref[i]]);
        return ST_OK;
}
