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

/* ---- names with what is around ---- */

static struct found follow(struct dwarf_reader *r, dwarf_ref ref)
{
        struct found f = { .plain_ref = DWARF_NO_REF };

        for (int hops = 0; hops < LIMIT_DWARF_ORIGINS && ref != DWARF_NO_REF; hops++)
                ref = take(r, ref, &f);
        return f;
}

/* "ns::Class::name", written from its end to its start. One that gets too long stays without its scopes. */
static const char *joined(const char *const *parts, size_t count, struct arena *texts)
{
        size_t size = 1, at;
        char *text;

        for (size_t i = 0; i < count; i++)
                size += strlen(parts[i]) + (i ? 2 : 0);
        text = size <= LIMIT_NAME_BYTES ? arena_alloc(texts, size) : NULL;
        if (!text)
                return parts[0];
        at = size - 1;
        text[at] = '\0';
        for (size_t i = 0; i < count; i++) {
                size_t n = strlen(parts[i]);

                at -= n;
                memcpy(text + at, parts[i], n);
                if (i + 1 < count)
                        memcpy(text + (at -= 2), "::", 2);
        }
        return text;
}

/* Where a function is declared says what it stands in; where its code is may be at the top of the unit. */
static uint32_t outside_of(const struct dwarf_context *x, const struct dwarf_outline *outline, uint32_t function,
                           dwarf_ref declared)
{
        uint64_t offset = declared & ~DWARF_REF_ALT;
        uint32_t q = declared != DWARF_NO_REF && offset >= x->unit->offset && offset < x->unit->end ?
                             dwarf_outline_find(outline, offset) :
                             DWARF_NO_QUALIFIER;

        return q != DWARF_NO_QUALIFIER ? q : outline->qualifiers[function].parent;
}

/* Put what is around in front of a plain name, up to a function with a linkage name, which says the rest. */
static void qualify(struct dwarf_reader *r, struct arena *texts, const struct dwarf_outline *outline, uint32_t q,
                    const struct found *f, struct dwarf_name *ret)
{
        const char *parts[LIMIT_DWARF_NAME_SCOPES] = { f->name.plain };
        const struct dwarf_context *x = dwarf_reader_context(r, f->plain_ref);
        size_t count = 1, functions = 0;

        while (x && q != DWARF_NO_QUALIFIER && count < LIMIT_DWARF_NAME_SCOPES && functions < LIMIT_DWARF_ORIGINS) {
                const struct dwarf_qualifier *at = &outline->qualifiers[q];
                struct found around;

                if (at->tag != DW_TAG_subprogram) {
                        parts[count++] = qualifier_text(r, x, at);
                        q = at->parent;
                        continue;
                }
                functions++;
                around = follow(r, at->name.number);
                ret->around = around.name.linkage;
                if (ret->around)
                        break;
                if (around.name.plain && around.name.plain[0])
                        parts[count++] = around.name.plain;
                x = dwarf_reader_context(r, f->plain_ref); /* another one may have taken its place */
                if (x)
                        q = outside_of(x, outline, q, around.plain_ref);
        }
        ret->plain = joined(parts, count, texts);
}

static void resolve_with(struct dwarf_reader *r, struct arena *texts, dwarf_ref ref, struct dwarf_name *ret)
{
        struct found f = follow(r, ref);
        const struct dwarf_outline *outline;
        struct dwarf_context *x;
        uint32_t q;

        *ret = f.name;
        if (f.name.linkage || !f.name.plain || !f.name.plain[0])
                return;
        x = dwarf_reader_context(r, f.plain_ref);
        outline = x ? outline_of(r, x) : NULL;
        q = outline ? dwarf_outline_find(outline, f.plain_ref & ~DWARF_REF_ALT) : DWARF_NO_QUALIFIER;
        if (q != DWARF_NO_QUALIFIER)
                qualify(r, texts, outline, q, &f, ret);
}

/* ---- once for all units ---- */

static bool is_outside(const struct dwarf_reader *r, dwarf_ref ref)
{
        const struct dwarf_unit *unit = r->main.unit;

        return (ref & DWARF_REF_ALT) || (unit && (ref < unit->first_die || ref >= unit->end));
}

/* Does the DIE say nothing itself, and lead to another unit? @return where, else the DIE itself. */
static dwarf_ref skip_to_other_unit(struct dwarf_reader *r, dwarf_ref ref)
{
        struct found f = { .plain_ref = DWARF_NO_REF };
        dwarf_ref next = is_outside(r, ref) ? ref : take(r, ref, &f);

        return next != DWARF_NO_REF && !f.name.plain && is_outside(r, next) ? next : ref;
}

/* References in another half are of that file, which is closed soon. */
static void resolve(struct dwarf_reader *r, struct dwarf_code *code, dwarf_ref ref, struct dwarf_name *ret)
{
        struct dwarf_known_names *known = &r->known_names;
        const struct dwarf_name *found;

        ref = code->companion ? ref : skip_to_other_unit(r, ref);
        if (code->companion || !is_outside(r, ref)) {
                resolve_with(r, &code->texts, ref, ret);
                return;
        }
        found = dwarf_known_names_find(known, ref);
        if (found) {
                *ret = *found;
        } else if (dwarf_known_names_have_room(known)) {
                resolve_with(r, &known->texts, ref, ret);
                dwarf_known_names_add(known, ref, ret);
        } else {
                resolve_with(r, &code->texts, ref, ret);
        }
}

static int by_ref(const void *a, const void *b, void *refs)
{
        dwarf_ref x = ((const dwarf_ref *)refs)[*(const uint32_t *)a], y = ((const dwarf_ref *)refs)[*(const uint32_t *)b];

        return x < y ? -1 : x > y;
}

enum status dwarf_names_resolve(struct dwarf_reader *r, struct dwarf_code *code)
{
        _cleanup_free_ bool *marks = NULL;
        size_t n = code->name_count, kept = 0;

        if (r->wanted) {
                marks = calloc(n + 1, sizeof *marks);
                if (!marks)
                        return ST_NO_MEMORY;
                dwarf_wanted_mark_names(code, marks);
        }
        if (n > r->by_ref_capacity) {
                uint32_t *grown = reallocarray(r->by_ref, n, sizeof *grown);

                if (!grown)
                        return ST_NO_MEMORY;
                r->by_ref = grown;
                r->by_ref_capacity = n;
        }
        for (size_t i = 0; i < n; i++)
                if (!marks || marks[i])
                        r->by_ref[kept++] = (uint32_t)i;
        if (kept)
                qsort_r(r->by_ref, kept, sizeof *r->by_ref, by_ref, r->refs);
        for (size_t i = 0; i < kept; i++)
                resolve(r, code, r->refs[r->by_ref[i]], &code->names[r->by_ref[i]]);
        return ST_OK;
}
