/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/libdw_names.h"

#include <dwarf.h>
#include <stdlib.h>

#include "common/hash.h"
#include "common/limits.h"
#include "symbol-index/demangle.h"

#define ORIGIN_DEPTH_MAX 16 /* maximum length of a chain of abstract origins and specifications */

void libdw_names_init(struct libdw_names *n, struct symbol_table_builder *builder)
{
        *n = (struct libdw_names){ .builder = builder };
}

void libdw_names_deinit(struct libdw_names *n)
{
        free(n->functions.entries);
        free(n->qualifiers.entries);
        *n = (struct libdw_names){ 0 };
}

/* The slot of a DIE, or the free slot for it. */
static struct libdw_name_entry *map_slot(const struct libdw_name_map *m, const void *die)
{
        size_t at = hash_bytes64(&die, sizeof die) & (m->slot_count - 1);

        while (m->entries[at].die && m->entries[at].die != die)
                at = (at + 1) & (m->slot_count - 1);
        return &m->entries[at];
}

static bool grow_map(struct libdw_name_map *m)
{
        struct libdw_name_map grown = { .slot_count = m->slot_count ? m->slot_count * 2 : 1024, .count = m->count };

        if (m->count * 2 < m->slot_count)
                return true;
        grown.entries = calloc(grown.slot_count, sizeof *grown.entries);
        if (!grown.entries)
                return false;
        for (size_t i = 0; i < m->slot_count; i++)
                if (m->entries[i].die)
                        *map_slot(&grown, m->entries[i].die) = m->entries[i];
        free(m->entries);
        *m = grown;
        return true;
}

/* On allocation failure the entry is not stored; the builder has failed or is about to fail. */
static void map_put(struct libdw_name_map *m, const void *die, uint32_t value)
{
        struct libdw_name_entry *entry;

        if (!grow_map(m))
                return;
        entry = map_slot(m, die);
        m->count += !entry->die;
        *entry = (struct libdw_name_entry){ die, value };
}

static bool map_get(const struct libdw_name_map *m, const void *die, uint32_t *ret)
{
        const struct libdw_name_entry *entry = m->slot_count ? map_slot(m, die) : NULL;

        if (!entry || !entry->die)
                return false;
        *ret = entry->value;
        return true;
}

void libdw_names_note_qualifier(struct libdw_names *n, Dwarf_Die *die, uint32_t qualifier)
{
        map_put(&n->qualifiers, die->addr, qualifier);
}

/* The DIE of which die is an instance or the definition. */
static bool get_origin(Dwarf_Die *die, Dwarf_Die *ret)
{
        Dwarf_Attribute attr;

        if (!dwarf_attr(die, DW_AT_abstract_origin, &attr) && !dwarf_attr(die, DW_AT_specification, &attr))
                return false;
        return dwarf_formref_die(&attr, ret) != NULL;
}

static const char *get_text(Dwarf_Die *die, unsigned name)
{
        Dwarf_Attribute attr;

        return dwarf_attr(die, name, &attr) ? dwarf_formstring(&attr) : NULL;
}

/* String offset of the name qualified with its enclosing scopes. */
static uint32_t add_qualified_name(struct libdw_names *n, Dwarf_Die *die, const char *name)
{
        struct symbol_table_builder *b = n->builder;
        _cleanup_buf_ struct buf full = { 0 };
        uint32_t qualifier;
        const char *s;

        if (!map_get(&n->qualifiers, die->addr, &qualifier) || b->failed)
                return symbol_table_builder_add_string(b, name);
        buf_init(&full, 2 * LIMIT_NAME_BYTES + 4);
        buf_printf(&full, "%s::%s", (const char *)b->strings.data + qualifier, name);
        s = buf_cstr(&full);
        return symbol_table_builder_add_string(b, s ? s : name);
}

/* libdw joins directory and file, but omits the unit's own directory, unless it is the table's directory 0. */
uint32_t libdw_path_add(struct symbol_table_builder *b, const char *directory, const char *path)
{
        _cleanup_buf_ struct buf full = { 0 };

        size_t n = directory ? strlen(directory) : 0;

        if (!path || !path[0] || path[0] == '/' || !n || (strncmp(path, directory, n) == 0 && path[n] == '/'))
                return symbol_table_builder_add_string(b, path ? path : "");
        buf_init(&full, 2 * LIMIT_NAME_BYTES);
        buf_printf(&full, "%s/%s", directory, path);
        return symbol_table_builder_add_string(b, buf_cstr(&full) ? buf_cstr(&full) : path);
}

/*
 * DW_AT_decl_file is an index into the file table of the unit of the DIE that has it. False if no DIE of the chain has
 * one.
 */
static bool find_declared_file(struct libdw_names *n, Dwarf_Die *die, uint32_t *ret)
{
        Dwarf_Die at = *die, next, unit;
        Dwarf_Attribute attr;
        Dwarf_Files *files;
        Dwarf_Word number;
        size_t count;

        *ret = 0;
        for (int depth = 0; depth < ORIGIN_DEPTH_MAX; depth++) {
                if (dwarf_attr(&at, DW_AT_decl_file, &attr)) {
                        const char *directory = NULL;

                        if (dwarf_formudata(&attr, &number) || !dwarf_diecu(&at, &unit, NULL, NULL) ||
                            dwarf_getsrcfiles(&unit, &files, &count) || number >= count)
                                return true;
                        if (dwarf_attr(&unit, DW_AT_comp_dir, &attr))
                                directory = dwarf_formstring(&attr);
                        *ret = libdw_path_add(n->builder, directory, dwarf_filesrc(files, number, NULL, NULL));
                        return true;
                }
                if (!get_origin(&at, &next))
                        break;
                at = next;
        }
        return false;
}

/* Follow the chain of origins to a linkage name, otherwise to the first plain name. */
static const char *follow_origins(Dwarf_Die *die, const char **plain_ret, Dwarf_Die *named_ret)
{
        Dwarf_Die at = *die, next;

        *plain_ret = NULL;
        for (int depth = 0; depth < ORIGIN_DEPTH_MAX; depth++) {
                const char *linkage_name = get_text(&at, DW_AT_linkage_name);

                if (!linkage_name)
                        linkage_name = get_text(&at, DW_AT_MIPS_linkage_name);
                if (linkage_name && linkage_name[0])
                        return linkage_name;
                if (!*plain_ret) {
                        *plain_ret = get_text(&at, DW_AT_name);
                        *named_ret = at;
                }
                if (!get_origin(&at, &next))
                        break;
                at = next;
        }
        return NULL;
}

bool libdw_names_around(struct libdw_names *n, Dwarf_Die *function, uint32_t qualifier, struct buf *to)
{
        _cleanup_buf_ struct buf scratch = { 0 };
        const char *name, *linkage_name;
        Dwarf_Die named;

        linkage_name = follow_origins(function, &name, &named);
        buf_init(&scratch, LIMIT_DEMANGLED_BYTES + 1);
        if (linkage_name) {
                buf_append_str(to, symbol_demangle(linkage_name, &scratch));
                return true;
        }
        if (name)
                map_get(&n->qualifiers, named.addr, &qualifier);
        if (qualifier && !n->builder->failed)
                buf_printf(to, "%s%s", (const char *)n->builder->strings.data + qualifier, name && name[0] ? "::" : "");
        buf_append_str(to, name ? name : "");
        return qualifier || (name && name[0]);
}

static uint32_t resolve_function(struct libdw_names *n, Dwarf_Die *die)
{
        const char *name, *linkage_name;
        struct symbol_function f = { 0 };
        Dwarf_Die named;
        int line;

        linkage_name = follow_origins(die, &name, &named);
        if (!linkage_name && (!name || !name[0]))
                return SYMBOL_NO_FUNCTION;
        if (linkage_name)
                f.linkage_name = symbol_table_builder_add_string(n->builder, linkage_name);
        else
                f.name = add_qualified_name(n, &named, name);
        if ((!find_declared_file(n, die, &f.file) || f.file) && dwarf_decl_line(die, &line) == 0 && line > 0)
                f.start_line = (uint32_t)line;
        return symbol_table_builder_intern_function(n->builder, &f);
}

uint32_t libdw_names_function(struct libdw_names *n, Dwarf_Die *die)
{
        Dwarf_Die key;
        uint32_t function;

        /*
         * All inlined calls of a function share their origin, so it is resolved once. A definition may have a name of
         * its own (a constructor's C1 with an origin named C4).
         */
        if (dwarf_tag(die) != DW_TAG_inlined_subroutine || !get_origin(die, &key))
                return resolve_function(n, die);
        if (map_get(&n->functions, key.addr, &function))
                return function;
        function = resolve_function(n, &key);
        map_put(&n->functions, key.addr, function);
        return function;
}
