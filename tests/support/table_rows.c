/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/table_rows.h"

#include <check.h>
#include <inttypes.h>
#include <string.h>

#include "common/memory/array.h"
#include "common/limits.h"
#include "profile-store/tables/part_read.h"

struct row_texts {
        struct buf *items;
        uint64_t count;
};

static void append_slot(struct buf *to, const struct parquet_column *c, uint64_t slot)
{
        if (c->codes && c->codes[slot] != PARQUET_NULL_CODE) {
                const struct parquet_bytes *v = &c->dict[c->codes[slot]];

                for (size_t i = 0; i < v->size; i++)
                        buf_printf(to,
                                   v->data[i] > ' ' && v->data[i] < 0x7f && c->kind == PARQUET_STRING ? "%c" : "%02x",
                                   v->data[i]);
        } else if (c->ints && (!c->valid || c->valid[slot])) {
                buf_printf(to, "%" PRId64, c->ints[slot]);
        } else {
                buf_append_str(to, "null");
        }
}

static bool is_null_slot(const struct parquet_column *c, uint64_t slot)
{
        return c->codes ? c->codes[slot] == PARQUET_NULL_CODE : c->valid && !c->valid[slot];
}

static void append_cell(struct buf *to, const char *path, const struct parquet_column *c, uint64_t row)
{
        if (!c->offsets && is_null_slot(c, row))
                return;
        if (c->offsets && c->list_valid && !c->list_valid[row])
                return;
        buf_printf(to, " %s=", path);
        if (!c->offsets)
                append_slot(to, c, row);
        for (uint32_t i = c->offsets ? c->offsets[row] : 0; c->offsets && i < c->offsets[row + 1]; i++) {
                buf_append_u8(to, ',');
                append_slot(to, c, i);
        }
}

static void format_leaf_path(const struct parquet_schema *s, uint32_t node, char *ret, size_t size)
{
        char parent[512] = "";

        if (s->nodes[node].parent)
                format_leaf_path(s, s->nodes[node].parent, parent, sizeof parent);
        snprintf(ret, size, "%s%s%s", parent, parent[0] ? "." : "", s->nodes[node].name);
}

static int compare_texts(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static void append_group_rows(const struct part_file *f, uint32_t group, struct table_rows *to)
{
        const struct parquet_schema *s = parquet_file_schema(f->file);
        uint64_t rows = parquet_file_group_rows(f->file, group);
        struct buf *texts = calloc(rows + 1, sizeof *texts);
        char **paths = calloc(s->column_count + 1, sizeof *paths);

        ck_assert(texts && paths);
        for (uint64_t i = 0; i < rows; i++)
                buf_init(&texts[i], MiB(1));
        for (uint32_t i = 0; i < s->column_count; i++) {
                char path[1024];

                format_leaf_path(s, s->columns[i], path, sizeof path);
                paths[i] = strdup(path);
        }
        qsort(paths, s->column_count, sizeof *paths, compare_texts);
        for (uint32_t i = 0; i < s->column_count; i++) {
                _cleanup_parquet_column_ struct parquet_column c = { 0 };
                struct error err = { 0 };

                ck_assert_msg(parquet_read_column(f->file, group, parquet_schema_find(s, paths[i]), &c, &err) == ST_OK,
                              "%s: %s", f->path, err.text);
                for (uint64_t k = 0; k < rows; k++)
                        append_cell(&texts[k], paths[i], &c, k);
                free(paths[i]);
        }
        free(paths);
        for (uint64_t i = 0; i < rows; i++) {
                ck_assert(array_reserve(&to->items, &to->capacity, to->count));
                to->items[to->count++] = strdup(buf_cstr(&texts[i]));
                buf_deinit(&texts[i]);
        }
        free(texts);
}

static void append_part_rows(const struct table_part *part, struct table_rows *to)
{
        struct part_file f;
        struct error err = { 0 };

        ck_assert_msg(part_file_open(part, &f, &err) == ST_OK, "%s", err.text);
        for (uint32_t g = 0; g < part_file_count_groups(&f); g++)
                append_group_rows(&f, g, to);
        part_file_close(&f);
}

struct table_rows read_part_rows(const struct table_part *part)
{
        struct table_rows ret = { 0 };

        append_part_rows(part, &ret);
        return ret;
}

struct table_rows read_table_rows(struct profile_store *s, enum table table)
{
        struct table_rows ret = { 0 };
        struct tables *t;

        pthread_mutex_lock(&s->lock);
        t = tables_ref(s->tables);
        pthread_mutex_unlock(&s->lock);
        for (size_t i = 0; i < t->part_count[table]; i++)
                append_part_rows(t->parts[table][i], &ret);
        tables_unref(t);
        if (ret.count)
                qsort(ret.items, ret.count, sizeof *ret.items, compare_texts);
        return ret;
}

void table_rows_deinit(struct table_rows *r)
{
        for (size_t i = 0; i < r->count; i++)
                free(r->items[i]);
        free(r->items);
        *r = (struct table_rows){ 0 };
}

void check_same_rows(const struct table_rows *a, const struct table_rows *b)
{
        for (size_t i = 0; i < a->count && i < b->count; i++)
                ck_assert_str_eq(a->items[i], b->items[i]);
        ck_assert_uint_eq(a->count, b->count);
}
