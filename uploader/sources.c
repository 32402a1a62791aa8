/* SPDX-License-Identifier: Apache-2.0 */
#include "uploader/sources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/text.h"
#include "dwarf/source_names.h"
#include "source-bundle/bundle.h"

struct named_source {
        char *name;       /* owned */
        char *text;       /* owned; of the line table; NULL: not embedded, too large, or not read yet */
        bool is_examined; /* the text was copied, or is too large */
};

struct source_name_list {
        struct named_source *items; /* owned */
        size_t count, capacity;
        uint64_t text_bytes; /* that were examined */
        bool has_texts;      /* some are embedded */
};

static void free_named_source(struct named_source *s)
{
        free(s->name);
        free(s->text);
}

static void source_names_deinit(struct source_name_list *n)
{
        for (size_t i = 0; i < n->count; i++)
                free_named_source(&n->items[i]);
        free(n->items);
}

static int compare_source_names(const void *a, const void *b)
{
        const struct named_source *x = a, *y = b;

        return strcmp(x->name, y->name);
}

/* The bundle has absolute paths: one of a unit with a relative compilation directory becomes "/./PATH". */
static char *make_bundle_name(const char *path)
{
        const char *root = *path == '/' ? "" : starts_with(path, "./") ? "/" : "/./";
        char *ret;

        return asprintf(&ret, "%s%s", root, path) < 0 ? NULL : ret;
}

static bool add_source_name(void *context, const struct dwarf_source *source)
{
        struct source_name_list *n = context;
        char *name;

        if (!array_reserve(&n->items, &n->capacity, n->count))
                return false;
        name = make_bundle_name(source->path);
        if (!name)
                return false;
        n->items[n->count++] = (struct named_source){ .name = name };
        n->has_texts |= source->text != NULL;
        return true;
}

/*
 * Copy a text once: units repeat the headers that they embed. Texts that are too large count towards the limit, too, so
 * that a file of many names for one large text takes no longer than one of many texts.
 */
static bool add_source_text(void *context, const struct dwarf_source *source)
{
        struct source_name_list *n = context;
        const uint64_t left = LIMIT_EMBEDDED_SOURCES_BYTES - n->text_bytes,
                       max = left < LIMIT_SOURCE_FILE_BYTES ? left : LIMIT_SOURCE_FILE_BYTES;
        _cleanup_free_ char *name = NULL;
        struct named_source *found;
        size_t size;

        if (!source->text || !max)
                return true;
        name = make_bundle_name(source->path);
        if (!name)
                return false;
        found = bsearch(&(struct named_source){ .name = name }, n->items, n->count, sizeof *n->items,
                        compare_source_names);
        if (!found || found->is_examined)
                return true;
        found->is_examined = true;
        size = strnlen(source->text, max + 1);
        if (size > max) {
                n->text_bytes += max;
                return true;
        }
        n->text_bytes += size;
        found->text = strndup(source->text, size);
        return found->text != NULL;
}

static void sort_source_names(struct source_name_list *n)
{
        size_t kept = 0;

        if (n->count)
                qsort(n->items, n->count, sizeof *n->items, compare_source_names);
        for (size_t i = 0; i < n->count; i++) {
                if (kept && strcmp(n->items[i].name, n->items[kept - 1].name) == 0)
                        free_named_source(&n->items[i]);
                else
                        n->items[kept++] = n->items[i];
        }
        n->count = kept;
}

static enum status list_debuginfo_sources(const struct elf_image *img, struct source_name_list *ret, struct error *err)
{
        enum status st = dwarf_source_names(img, false, 0, add_source_name, ret, err);

        if (!st)
                sort_source_names(ret);
        if (!st && ret->has_texts)
                st = dwarf_source_names(img, false, 0, add_source_text, ret, err);
        return st;
}

/* Apply the first matching map to a path of the debuginfo. */
static char *map_source_name(const struct source_options *o, const char *name)
{
        for (size_t i = 0; i < o->map_count; i++) {
                const char *equals = strchr(o->maps[i], '=');
                size_t n = (size_t)(equals - o->maps[i]);
                char *ret;

                while (n && o->maps[i][n - 1] == '/')
                        n--;
                if (strncmp(name, o->maps[i], n) == 0 && (name[n] == '/' || !name[n]))
                        return asprintf(&ret, "%s%s", equals + 1, name + n) < 0 ? NULL : ret;
        }
        return strdup(name);
}

static bool is_below_root(const char *path, const char *root)
{
        size_t n = strlen(root);

        if (strcmp(root, "/") == 0)
                return true;
        return strncmp(path, root, n) == 0 && path[n] == '/';
}

/* Find the regular file at this path, if it is below a root. */
static bool open_source_path(const struct source_options *o, char *const *roots, const char *path,
                             struct source_file *ret)
{
        _cleanup_free_ char *real = realpath(path, NULL);
        struct stat st;

        if (!real || stat(real, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size > LIMIT_SOURCE_FILE_BYTES)
                return false;
        for (size_t i = 0; i < o->root_count; i++) {
                if (!is_below_root(real, roots[i]))
                        continue;
                *ret = (struct source_file){ .path = steal_ptr(real), .size_bytes = (uint64_t)st.st_size };
                return true;
        }
        return false;
}

/* Look for a "/./PATH" below each root. */
static bool find_relative_source(const struct source_options *o, char *const *roots, const char *name,
                                 struct source_file *ret)
{
        bool found = false;

        for (size_t i = 0; i < o->root_count && !found; i++) {
                _cleanup_free_ char *path = path_join(roots[i], name);

                found = path && open_source_path(o, roots, path, ret);
        }
        return found;
}

/* The text of the line table is that which was compiled, and is uploaded with it anyway. */
static bool find_source_file(const struct source_options *o, char *const *roots, const struct named_source *source,
                             struct source_file *ret)
{
        const char *name = source->name;
        _cleanup_free_ char *path = map_source_name(o, name);

        if (source->text && strlen(name) <= LIMIT_PATH_BYTES) {
                *ret = (struct source_file){ .name = strdup(name),
                                             .text = source->text,
                                             .size_bytes = strlen(source->text) };
                return ret->name != NULL;
        }
        if (strlen(name) > LIMIT_PATH_BYTES || !path ||
            (!open_source_path(o, roots, path, ret) &&
             !(starts_with(name, "/./") && find_relative_source(o, roots, name + 1, ret))))
                return false;
        ret->name = strdup(name);
        if (!ret->name)
                free(ret->path);
        return ret->name != NULL;
}

static enum status resolve_source_roots(const struct source_options *o, char ***ret, struct error *err)
{
        char **roots = calloc(o->root_count + 1, sizeof *roots);

        if (!roots)
                return error_no_memory(err);
        *ret = roots; /* set also on failure: the caller frees it */
        for (size_t i = 0; i < o->root_count; i++) {
                roots[i] = realpath(o->roots[i], NULL);
                if (!roots[i])
                        return error_os(err, errno, "cannot find the source folder '%s'", o->roots[i]);
        }
        return ST_OK;
}

static void free_source_roots(char **roots)
{
        for (size_t i = 0; roots && roots[i]; i++)
                free(roots[i]);
        free(roots);
}

enum status source_options_check(const struct source_options *o, struct error *err)
{
        char **roots = NULL;
        enum status st = resolve_source_roots(o, &roots, err);

        free_source_roots(roots);
        for (size_t i = 0; !st && i < o->map_count; i++)
                if (!strchr(o->maps[i], '=') || o->maps[i][0] != '/')
                        st = error_set(err, ST_USAGE, "'%.200s' is not a source map; write /OLD=NEW", o->maps[i]);
        return st;
}

enum status sources_write(const struct elf_image *img, const struct source_options *o, int fd, uint64_t *size_ret,
                          size_t *found_ret, size_t *named_ret, struct error *err)
{
        struct source_name_list names = { 0 };
        struct source_file *files = NULL;
        char **roots = NULL;
        size_t count = 0;
        enum status st = resolve_source_roots(o, &roots, err);

        if (!st)
                st = list_debuginfo_sources(img, &names, err);
        if (!st) {
                files = calloc(names.count + 1, sizeof *files);
                st = files ? ST_OK : error_no_memory(err);
        }
        for (size_t i = 0; !st && i < names.count; i++)
                count += find_source_file(o, roots, &names.items[i], &files[count]);
        if (!st && !count)
                st = error_set(err, ST_NOT_FOUND,
                               "'%s': none of the %zu source files that it names is below the folders given "
                               "with --sources",
                               img->name, names.count);
        if (!st)
                st = source_bundle_write(fd, &img->build_id, files, count, size_ret, err);
        *found_ret = count;
        *named_ret = names.count;
        for (size_t i = 0; i < count; i++) {
                free(files[i].name);
                free(files[i].path);
        }
        free(files);
        source_names_deinit(&names);
        free_source_roots(roots);
        return st;
}
