/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves the names of the functions of a unit. Each origin is resolved once, after the walk, when the outline of the
 * unit is complete. Names are resolved in the order of their DIEs, so that another unit that many of them refer to is
 * entered once.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash/hash_table.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "dwarf/dwarf_reader_internal.h"

/* "_RC4" is not Rust: v0 has letters, digits and underscores, and a tag of a path after _R. */
bool dwarf_is_mangled_name(const char *name)
{
        if (name[0] != '_')
                return false;
        if (name[1] == 'Z')
                return name[2] != '\0';
        if (name[1] == 'R')
                return name[2] && strchr("MXYNI", name[2]);
        return name[1] == 'D' && name[2] >= '0' && name[2] <= '9';
}

/* ---- which linkage names are readable ---- */

/* Languages whose linkage names are mangled as dwarf_is_mangled_name() knows, or are plain. Others encode them. */
static bool has_known_mangling(uint32_t language)
{
        switch (language) {
        case 0:
        case DW_LANG_C89:
        case DW_LANG_C:
        case DW_LANG_C_plus_plus:
        case DW_LANG_C99:
        case DW_LANG_ObjC:
        case DW_LANG_ObjC_plus_plus:
        case DW_LANG_UPC:
        case DW_LANG_D:
        case DW_LANG_OpenCL:
        case DW_LANG_C_plus_plus_03:
        case DW_LANG_C_plus_plus_11:
        case DW_LANG_Rust:
        case DW_LANG_C11:
        case DW_LANG_C_plus_plus_14:
        case DW_LANG_C_plus_plus_17:
        case DW_LANG_C_plus_plus_20:
        case DW_LANG_C17:
        case DW_LANG_C_plus_plus_23:
        case DW_LANG_C23:
                return true;
        default:
                return false;
        }
}

static bool is_swift_name(const char *name)
{
        name += *name == '_';
        return name[0] == '$' && (name[1] == 's' || name[1] == 'S');
}

/* Encoded names are identifiers; Zig and Kotlin, for example, write readable ones with other characters. */
static bool is_readable_name(struct dwarf_reader *r, const struct dwarf_context *x, const char *name)
{
        if (dwarf_is_mangled_name(name))
                return dwarf_object_test_name(r->object, name, dwarf_reader_owns_file(r, x->file));
        return !is_swift_name(name) &&
               (has_known_mangling(x->language ? x->language : r->main.language) || strpbrk(name, ".:#"));
}

/* cache of names shared by units */

void dwarf_name_cache_init(struct dwarf_name_cache *k)
{
        *k = (struct dwarf_name_cache){ 0 };
        arena_init(&k->texts, LIMIT_DWARF_UNIT_TEXT_BYTES);
}

void dwarf_name_cache_deinit(struct dwarf_name_cache *k)
{
        hash_table_deinit(&k->table);
        free(k->items);
        arena_deinit(&k->texts);
        dwarf_name_cache_init(k);
}

/* paths of declarations in other units */

void dwarf_path_cache_init(struct dwarf_path_cache *k)
{
        *k = (struct dwarf_path_cache){ .offset = UINT64_MAX };
        arena_init(&k->texts, LIMIT_DWARF_UNIT_TEXT_BYTES);
        buf_init(&k->scratch, LIMIT_PATH_BYTES + 1);
}

void dwarf_path_cache_deinit(struct dwarf_path_cache *k)
{
        hash_table_deinit(&k->table);
        free(k->items);
        dwarf_lines_deinit(&k->files);
        arena_deinit(&k->texts);
        buf_deinit(&k->scratch);
        dwarf_path_cache_init(k);
}

static bool equal_path_key(const void *context, uint32_t entry, const void *key, size_t size)
{
        const struct dwarf_path_cache *k = context;

        return memcmp(&k->items[entry].key, key, size) == 0;
}

/* Load the files of the unit's line table into the cache. False when they cannot be read. */
static bool read_declared_files(struct dwarf_path_cache *k, const struct dwarf_context *x)
{
        struct dwarf_line_header h = { 0 };

        if (k->file != x->file || k->offset != x->line_offset) {
                dwarf_lines_clear(&k->files);
                k->file = x->file;
                k->offset = x->line_offset;
                if (dwarf_object_spend(x->object, DWARF_BUDGET_FILES, 1) &&
                    dwarf_line_header_read(&h, &k->files, x, x->line_offset))
                        dwarf_lines_clear(&k->files);
                if (!dwarf_object_spend(x->object, DWARF_BUDGET_FILES,
                                        4 * (k->files.file_count + k->files.directory_count)))
                        dwarf_lines_clear(&k->files);
        }
        k->files.unit_directory = x->directory; /* units with different ones may share a table */
        return k->files.file_count != 0;
}

static const char *make_declared_path(struct dwarf_path_cache *k, const struct dwarf_context *x, uint64_t number)
{
        const char *path;

        if (!read_declared_files(k, x))
                return NULL;
        buf_clear(&k->scratch);
        dwarf_lines_path(&k->files, number, &k->scratch);
        path = buf_cstr(&k->scratch);
        return path && path[0] ? arena_strndup(&k->texts, path, k->scratch.size) : NULL;
}

/* The path of a file of another unit's line table; NULL unknown, and at the limit. */
static const char *find_declared_path(struct dwarf_reader *r, const struct dwarf_context *x, uint64_t number)
{
        struct dwarf_path_cache *k = &r->path_cache;
        struct dwarf_path_key key = { x->file, x->directory, x->line_offset, number };
        uint32_t hash = hash_table_hash(&key, sizeof key), entry;

        /* Not of a companion, which is closed soon. */
        if (!x->has_lines || (x->file != &r->object->main && x->file != &r->object->alt))
                return NULL;
        if (hash_table_find(&k->table, hash, equal_path_key, k, &key, sizeof key, &entry))
                return k->items[entry].path;
        entry = k->table.count;
        if (entry >= LIMIT_DWARF_KNOWN_NAMES || hash_table_reserve(&k->table, NULL) ||
            !array_reserve(&k->items, &k->capacity, entry))
                return NULL;
        k->items[entry] = (struct dwarf_declared_path){ key, make_declared_path(k, x, number) };
        hash_table_insert(&k->table, hash, entry);
        return k->items[entry].path;
}

static bool equal_cached_ref(const void *context, uint32_t entry, const void *key, size_t size)
{
        const struct dwarf_name_cache *k = context;

        assert(size == sizeof k->items->ref);
        return memcmp(&k->items[entry].ref, key, size) == 0;
}

/* NULL: not cached. Borrowed until the next one is added. */
static const struct dwarf_name *name_cache_find(const struct dwarf_name_cache *k, dwarf_ref ref)
{
        uint32_t entry;

        return hash_table_find(&k->table, hash_table_hash(&ref, sizeof ref), equal_cached_ref, k, &ref, sizeof ref,
                               &entry)
                       ? &k->items[entry].name
                       : NULL;
}

/* Make room for one more. False at the limit or without memory: the name is then not cached. */
static bool name_cache_reserve(struct dwarf_name_cache *k)
{
        return k->table.count < LIMIT_DWARF_KNOWN_NAMES && k->texts.used <= k->texts.max / 2 &&
               hash_table_reserve(&k->table, NULL) == ST_OK && array_reserve(&k->items, &k->capacity, k->table.count);
}

static void name_cache_add(struct dwarf_name_cache *k, dwarf_ref ref, const struct dwarf_name *name)
{
        uint32_t entry = k->table.count;

        assert(entry < k->capacity);
        k->items[entry] = (struct dwarf_cached_name){ ref, *name };
        hash_table_insert(&k->table, hash_table_hash(&ref, sizeof ref), entry);
}

/* ---- outlines of other units ---- */

static const struct dwarf_outline *get_unit_outline(struct dwarf_reader *r, const struct dwarf_context *x)
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

/* As above, with the functions that have a linkage name. Only that of the last unit is kept: it is seldom needed. */
static const struct dwarf_outline *get_full_outline(struct dwarf_reader *r, const struct dwarf_context *x)
{
        struct dwarf_outline *o = &r->full_outline;

        if (o->unit == x->unit)
                return o;
        if (!dwarf_object_spend(r->object, DWARF_BUDGET_INFO, x->unit->end - x->unit->offset)) {
                r->names_damage = ST_TOO_BIG;
                return NULL;
        }
        o->unit = NULL;
        o->is_full = true;
        o->qualifier_count = o->declared_count = 0;
        if (dwarf_walk(r, x, o, NULL) == ST_NO_MEMORY)
                return NULL;
        o->unit = x->unit;
        return o;
}

/* ---- "ns::Class::name" ---- */

static const char *get_qualifier_text(struct dwarf_reader *r, const struct dwarf_context *x,
                                      const struct dwarf_qualifier *q)
{
        const char *text = q->name.form == DW_FORM_ref_sig8 ? dwarf_reader_type_name(r, x->file, q->name.number)
                                                            : dwarf_context_string(x, &q->name);

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
        const char *encoded; /* a linkage name that is not readable */
        dwarf_ref plain_ref; /* the DIE with the plain name */
        bool has_file;       /* of the declaration */
        bool wants_start;    /* find the declaration too */
        bool is_shared;      /* by units: its file is a path, not a number in a unit's table */
};

/* Note the place of declaration, as far as earlier DIEs of the chain leave it open. */
static void note_declaration(struct dwarf_reader *r, const struct dwarf_context *x, const struct dwarf_die *d,
                             struct found *f)
{
        uint64_t number;

        if (!f->name.start_line && dwarf_value_uint(&d->values[DWARF_ROLE_DECL_LINE], &number) && number <= UINT32_MAX)
                f->name.start_line = (uint32_t)number;
        if (f->has_file || !dwarf_value_uint(&d->values[DWARF_ROLE_DECL_FILE], &number))
                return;
        f->has_file = true;
        if (x != &r->main || f->is_shared)
                f->name.start_path = find_declared_path(r, x, number);
        else if (number < UINT32_MAX)
                f->name.start_file = (uint32_t)number;
}

/* Crystal repeats the name of a method as its linkage name, without its class. */
static bool has_same_text(const struct dwarf_value *a, const struct dwarf_value *b)
{
        return a->form == b->form &&
               (a->form == DW_FORM_string ? strcmp(a->string, b->string) == 0 : a->number == b->number);
}

/* Read one DIE. @return the next DIE of the chain, DWARF_NO_REF at its end and when nothing more is wanted */
static dwarf_ref read_die_name(struct dwarf_reader *r, dwarf_ref ref, struct found *f)
{
        struct dwarf_context *x = dwarf_reader_context(r, ref);
        const struct dwarf_abbrev *a;
        const char *text;
        struct dwarf_cursor c;
        struct dwarf_die d;
        dwarf_ref next;

        if (!x)
                return DWARF_NO_REF;
        c = dwarf_context_cursor(x, ref & ~DWARF_REF_ALT);
        a = dwarf_abbrevs_find(&x->abbrevs, dwarf_uleb(&c));
        if (!a || c.failed)
                return DWARF_NO_REF;
        dwarf_context_read_die(x, &c, a, &d);
        if (c.failed)
                return DWARF_NO_REF;
        if (f->wants_start)
                note_declaration(r, x, &d, f);
        text = f->name.linkage ? NULL : dwarf_context_string(x, &d.values[DWARF_ROLE_LINKAGE_NAME]);
        if (text && text[0]) {
                *(is_readable_name(r, x, text) ? &f->name.linkage : &f->encoded) = text;
                f->name.is_bare = f->name.linkage && !dwarf_is_mangled_name(text) &&
                                  has_same_text(&d.values[DWARF_ROLE_LINKAGE_NAME], &d.values[DWARF_ROLE_NAME]);
        }
        if (f->name.linkage && (!f->wants_start || (f->name.start_line && f->has_file)))
                return DWARF_NO_REF;
        if (!f->name.linkage && !f->name.plain) {
                f->name.plain = dwarf_context_string(x, &d.values[DWARF_ROLE_NAME]);
                f->plain_ref = ref;
                if (f->name.plain && dwarf_is_mangled_name(f->name.plain))
                        f->name.linkage = f->name.plain; /* thunks of GCC */
        }
        next = dwarf_context_reference(x, &d.values[DWARF_ROLE_ORIGIN]);
        return next != DWARF_NO_REF ? next : dwarf_context_reference(x, &d.values[DWARF_ROLE_SPECIFICATION]);
}

/* qualified names */

static struct found make_found(bool wants_start, bool is_shared)
{
        return (struct found){ .name.start_file = UINT32_MAX,
                               .plain_ref = DWARF_NO_REF,
                               .wants_start = wants_start,
                               .is_shared = is_shared };
}

static void follow_origins(struct dwarf_reader *r, dwarf_ref ref, struct found *f)
{
        for (int hops = 0; hops < LIMIT_DWARF_ORIGINS && ref != DWARF_NO_REF; hops++)
                ref = read_die_name(r, ref, f);
}

/*
 * "ns::Class::name", composed from its end to its start. A name that would exceed LIMIT_NAME_BYTES stays unqualified.
 */
static const char *join_name_parts(const char *const *parts, size_t count, struct arena *texts)
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

/* The declaration of a function gives its enclosing scope; its definition may be at the top level of the unit. */
static uint32_t find_enclosing_qualifier(const struct dwarf_context *x, const struct dwarf_outline *outline,
                                         uint32_t function, dwarf_ref declared)
{
        uint64_t offset = declared & ~DWARF_REF_ALT;
        uint32_t q = declared != DWARF_NO_REF && offset >= x->unit->offset && offset < x->unit->end
                             ? dwarf_outline_find(outline, offset)
                             : DWARF_NO_QUALIFIER;

        return q != DWARF_NO_QUALIFIER ? q : outline->qualifiers[function].parent;
}

/* Prefix a plain name with its enclosing scopes, up to a function with a linkage name. */
static void qualify_name(struct dwarf_reader *r, struct arena *texts, const struct dwarf_outline *outline, uint32_t q,
                         const struct found *f, struct dwarf_name *ret)
{
        const char *parts[LIMIT_DWARF_NAME_SCOPES] = { f->name.plain };
        const struct dwarf_context *x = dwarf_reader_context(r, f->plain_ref);
        size_t count = 1, functions = 0;

        while (x && q != DWARF_NO_QUALIFIER && count < LIMIT_DWARF_NAME_SCOPES && functions < LIMIT_DWARF_ORIGINS) {
                const struct dwarf_qualifier *at = &outline->qualifiers[q];
                struct found around = make_found(false, false);

                if (at->tag != DW_TAG_subprogram) {
                        parts[count++] = get_qualifier_text(r, x, at);
                        q = at->parent;
                        continue;
                }
                functions++;
                follow_origins(r, at->name.number, &around);
                ret->around = around.name.linkage;
                if (ret->around)
                        break;
                if (around.name.plain && around.name.plain[0])
                        parts[count++] = around.name.plain;
                x = dwarf_reader_context(r, f->plain_ref); /* the slot may have been reused for another unit */
                if (x)
                        q = find_enclosing_qualifier(x, outline, q, around.plain_ref);
        }
        ret->plain = join_name_parts(parts, count, texts);
}

/* All languages but C, and an unknown one: skeleton units may have none. */
static bool mangles_names(uint32_t language)
{
        switch (language) {
        case DW_LANG_C89:
        case DW_LANG_C:
        case DW_LANG_C99:
        case DW_LANG_C11:
        case DW_LANG_C17:
        case DW_LANG_C23:
                return false;
        default:
                return true;
        }
}

/* No name, or a label: GHC makes up L and a number, whose upper byte is a letter: of 9 digits at least. */
static bool is_made_up_name(const char *name)
{
        size_t digits = name && name[0] == 'L' ? strspn(name + 1, "0123456789") : 0;

        return !name || !name[0] || (digits >= 9 && !name[1 + digits]);
}

/* @param is_shared the name is kept for other units. */
static void resolve_uncached(struct dwarf_reader *r, struct arena *texts, dwarf_ref ref, bool is_shared,
                             struct dwarf_name *ret)
{
        struct found f = make_found(true, is_shared);
        const struct dwarf_outline *outline;
        struct dwarf_context *x;
        uint32_t q;

        follow_origins(r, ref, &f);
        if (f.name.start_line && !f.has_file)
                f.name.start_path = "";
        if (f.encoded && !f.name.linkage && is_made_up_name(f.name.plain))
                f.name.linkage = f.encoded;
        *ret = f.name;
        if (f.name.linkage || !f.name.plain || !f.name.plain[0])
                return;
        x = dwarf_reader_context(r, f.plain_ref);
        outline = !x ? NULL : f.encoded ? get_full_outline(r, x) : get_unit_outline(r, x);
        q = outline ? dwarf_outline_find(outline, f.plain_ref & ~DWARF_REF_ALT) : DWARF_NO_QUALIFIER;
        if (q != DWARF_NO_QUALIFIER)
                qualify_name(r, texts, outline, q, &f, ret);
        else
                ret->is_bare = x && !f.encoded && mangles_names(x->language);
}

/* names in other units */

static bool is_other_unit(const struct dwarf_reader *r, dwarf_ref ref)
{
        const struct dwarf_unit *unit = r->main.unit;

        return (ref & DWARF_REF_ALT) || (unit && (ref < unit->first_die || ref >= unit->end));
}

/*
 * If the DIE has no name and no declaration and refers to a DIE in another unit, return that one, else the DIE itself.
 */
static dwarf_ref skip_to_other_unit(struct dwarf_reader *r, dwarf_ref ref)
{
        struct found f = make_found(true, false);
        dwarf_ref next = is_other_unit(r, ref) ? ref : read_die_name(r, ref, &f);
        bool is_plain_instance = !f.name.linkage && !f.name.plain && !f.name.start_line && !f.has_file;

        return next != DWARF_NO_REF && is_plain_instance && is_other_unit(r, next) ? next : ref;
}

/* References inside a companion are relative to that file, which is closed soon, so they are not cached. */
static void resolve_name(struct dwarf_reader *r, struct dwarf_code *code, dwarf_ref ref, struct dwarf_name *ret)
{
        struct dwarf_name_cache *known = &r->name_cache;
        const struct dwarf_name *found;

        ref = code->companion ? ref : skip_to_other_unit(r, ref);
        if (code->companion || !is_other_unit(r, ref)) {
                resolve_uncached(r, &code->texts, ref, false, ret);
                return;
        }
        found = name_cache_find(known, ref);
        if (found) {
                *ret = *found;
        } else if (name_cache_reserve(known)) {
                resolve_uncached(r, &known->texts, ref, true, ret);
                name_cache_add(known, ref, ret);
        } else {
                resolve_uncached(r, &code->texts, ref, true, ret);
        }
}

static int compare_name_refs(const void *a, const void *b, void *refs)
{
        dwarf_ref x = ((const dwarf_ref *)refs)[*(const uint32_t *)a],
                  y = ((const dwarf_ref *)refs)[*(const uint32_t *)b];

        return x < y ? -1 : x > y;
}

enum status dwarf_names_resolve(struct dwarf_reader *r, struct dwarf_code *code)
{
        _cleanup_free_ bool *marks = NULL;
        size_t n = code->name_count, kept = 0;

        if (r->filter) {
                marks = calloc(n + 1, sizeof *marks);
                if (!marks)
                        return ST_NO_MEMORY;
                dwarf_address_filter_mark_names(code, marks);
        }
        if (!array_reserve_many(&r->by_ref, &r->by_ref_capacity, 0, n))
                return ST_NO_MEMORY;
        for (size_t i = 0; i < n; i++)
                if (!marks || marks[i])
                        r->by_ref[kept++] = (uint32_t)i;
        if (kept)
                qsort_r(r->by_ref, kept, sizeof *r->by_ref, compare_name_refs, r->refs);
        for (size_t i = 0; i < kept; i++)
                resolve_name(r, code, r->refs[r->by_ref[i]], &code->names[r->by_ref[i]]);
        return ST_OK;
}
