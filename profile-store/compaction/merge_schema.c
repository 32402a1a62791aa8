/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "profile-store/compaction/merge_input.h"
#include "profile-store/tables/part_fetch.h"

/* ---- flattening ---------------------------------------------------------------------------- */

static size_t count_leaves(const struct parquet_field *f)
{
        size_t n = 0;

        for (size_t i = 0; i < f->child_count; i++)
                n += count_leaves(&f->children[i]);
        return f->child_count ? n : 1;
}

static char *join_leaf_path(struct arena *a, const char *parent, const char *name)
{
        size_t n = strlen(parent) + strlen(name) + 2;
        char *ret = arena_alloc(a, n);

        if (ret)
                snprintf(ret, n, "%s.%s", parent, name);
        return ret;
}

/* Add the leaves of a field with this path. Tables nest no deeper than a list of structs. */
static enum status add_leaves(struct merge_schema *s, const struct parquet_field *f, const char *path,
                              struct error *err)
{
        static const char *const middle[] = { [PARQUET_LIST] = "list", [PARQUET_MAP] = "key_value" };
        const char *parent = path;

        if (!path)
                return error_no_memory(err);
        if (!f->child_count) {
                s->leaves[s->leaf_count++] =
                        (struct merge_leaf){ .path = path, .kind = f->kind, .is_key = !f->optional };
                return ST_OK;
        }
        if (f->kind == PARQUET_LIST || f->kind == PARQUET_MAP)
                parent = join_leaf_path(&s->arena, path, middle[f->kind]);
        if (!parent)
                return error_no_memory(err);
        for (size_t i = 0; i < f->child_count; i++) {
                enum status st =
                        add_leaves(s, &f->children[i], join_leaf_path(&s->arena, parent, f->children[i].name), err);

                if (st)
                        return st;
        }
        return ST_OK;
}

static size_t find_leaf(const struct merge_schema *s, const char *path)
{
        size_t i = 0;

        while (i < s->leaf_count && strcmp(s->leaves[i].path, path) != 0)
                i++;
        return i;
}

static void find_key_leaves(struct merge_schema *s)
{
        s->type = find_leaf(s, "profile_type");
        s->unit = find_leaf(s, "unit");
        s->stack = find_leaf(s, "stack_id");
        s->time = find_leaf(s, "time");
        s->rest_key = find_leaf(s, "labels_rest.key_value.key");
        s->rest_value = find_leaf(s, "labels_rest.key_value.value");
        s->build_id = find_leaf(s, "build_id");
        s->address = find_leaf(s, "address");
        s->id = find_leaf(s, "location_id");
        s->state = find_leaf(s, "state");
        s->quality = find_leaf(s, "quality");
        s->generation = find_leaf(s, "generation");
}

/* Sort labels by name, as a flush does. */
static enum status sort_label_leaves(struct merge_schema *s, const struct label_columns *columns, struct error *err)
{
        size_t n = columns ? columns->count : 0;

        s->labels = arena_alloc_array(&s->arena, n + 1, sizeof *s->labels);
        s->label_names = arena_alloc_array(&s->arena, n + 1, sizeof *s->label_names);
        if (!s->labels || !s->label_names)
                return error_no_memory(err);
        for (size_t i = 0; i < s->leaf_count; i++) {
                size_t at = s->label_count;
                const char *name = s->leaves[i].path + strlen(LABEL_COLUMN_PREFIX);

                if (strncmp(s->leaves[i].path, LABEL_COLUMN_PREFIX, strlen(LABEL_COLUMN_PREFIX)) != 0)
                        continue;
                for (; at > 0 && strcmp(s->label_names[at - 1], name) > 0; at--) {
                        s->label_names[at] = s->label_names[at - 1];
                        s->labels[at] = s->labels[at - 1];
                }
                s->label_names[at] = name;
                s->labels[at] = i;
                s->label_count++;
        }
        return ST_OK;
}

enum status merge_schema_init(struct merge_schema *s, enum table t, const struct label_columns *columns,
                              struct error *err)
{
        const struct parquet_field *fields;
        size_t leaves = 0;
        enum status st;

        *s = (struct merge_schema){ .table = t };
        arena_init(&s->arena, MiB(16));
        st = make_table_fields(&s->arena, t, columns, false, &fields, &s->field_count, err);
        if (st)
                return st;
        for (size_t i = 0; i < s->field_count; i++)
                leaves += count_leaves(&fields[i]);
        s->fields = arena_alloc_array(&s->arena, s->field_count, sizeof *s->fields);
        s->leaves = arena_alloc_array(&s->arena, leaves, sizeof *s->leaves);
        if (!s->fields || !s->leaves)
                return error_no_memory(err);
        for (size_t i = 0; !st && i < s->field_count; i++) {
                s->fields[i] = (struct merge_field){ .name = fields[i].name,
                                                     .is_repeated = fields[i].kind == PARQUET_LIST ||
                                                                    fields[i].kind == PARQUET_MAP,
                                                     .first_leaf = s->leaf_count,
                                                     .leaf_count = count_leaves(&fields[i]) };
                st = add_leaves(s, &fields[i], fields[i].name, err);
        }
        find_key_leaves(s);
        return st ? st : sort_label_leaves(s, columns, err);
}

void merge_schema_deinit(struct merge_schema *s)
{
        arena_deinit(&s->arena);
}

/* ---- files --------------------------------------------------------------------------------- */

enum status merge_schema_check_file(const struct merge_schema *s, const struct part_file *f, struct error *err)
{
        const struct parquet_schema *file = parquet_file_schema(f->file);
        _cleanup_free_ bool *known = calloc(file->node_count, sizeof *known);

        if (!known)
                return error_no_memory(err);
        for (size_t i = 0; i < s->leaf_count; i++)
                known[parquet_schema_find(file, s->leaves[i].path)] = true;
        for (uint32_t i = 0; i < file->column_count; i++) {
                if (!known[file->columns[i]])
                        return error_set(err, ST_UNSUPPORTED,
                                         "'%s' was written by another program: its column '%s' is not in the table",
                                         f->path, file->nodes[file->columns[i]].name);
        }
        return ST_OK;
}

enum status merge_schema_fetch_files(const struct merge_schema *s, struct table_part *const *parts, size_t count,
                                     struct error *err)
{
        _cleanup_free_ const char **columns = calloc(s->leaf_count + 1, sizeof *columns);
        const struct part_fetch what = { .columns = columns, .column_count = s->leaf_count };

        if (!columns)
                return error_no_memory(err);
        for (size_t i = 0; i < s->leaf_count; i++)
                columns[i] = s->leaves[i].path;
        return part_files_fetch(parts, count, &what, NULL, err);
}

bool is_null_throughout(const struct part_file *f, uint32_t group, const char *path)
{
        uint32_t node = parquet_schema_find(parquet_file_schema(f->file), path);
        struct parquet_stats stats;

        if (!node)
                return true;
        if (parquet_file_schema(f->file)->nodes[node].max_rep)
                return false;
        parquet_file_stats(f->file, group, node, &stats);
        return stats.has_null_count && stats.null_count == stats.value_count;
}
