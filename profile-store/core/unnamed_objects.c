/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/memory/array.h"
#include "profile-store/core/profile_store_internal.h"
#include "profile-store/core/table_follow.h"
#include "profile-store/tables/part_read.h"

struct id_list {
        struct build_id *items;
        size_t count, capacity;
};

static bool is_text_of_code(const struct parquet_column *c, uint64_t row, const char *text)
{
        const struct parquet_bytes *b = c->codes[row] == PARQUET_NULL_CODE ? NULL : &c->dict[c->codes[row]];

        return b && b->size == strlen(text) && memcmp(b->data, text, b->size) == 0;
}

/* The build-ids of a row group's rows without debuginfo, each once. */
static enum status append_unnamed_ids(const struct part_file *f, uint32_t group, struct id_list *l, struct error *err)
{
        const char *wanted = symbol_state_name(SYMBOL_NO_DEBUGINFO);
        _cleanup_parquet_column_ struct parquet_column state = { 0 }, ids = { 0 };
        _cleanup_free_ bool *is_unnamed = NULL;
        enum status st = part_file_read_column(f, group, "state", PARQUET_STRING, &state, err);

        if (!st)
                st = part_file_read_column(f, group, "build_id", PARQUET_STRING, &ids, err);
        if (st)
                return st;
        is_unnamed = calloc((size_t)ids.dict_count + 1, sizeof *is_unnamed);
        if (!is_unnamed || !array_reserve_many(&l->items, &l->capacity, l->count, ids.dict_count))
                return error_no_memory(err);
        for (uint64_t i = 0; i < ids.row_count && i < state.row_count; i++)
                if (ids.codes[i] != PARQUET_NULL_CODE && is_text_of_code(&state, i, wanted))
                        is_unnamed[ids.codes[i]] = true;
        for (uint32_t i = 0; i < ids.dict_count; i++)
                if (is_unnamed[i] &&
                    build_id_from_hex(&l->items[l->count], (const char *)ids.dict[i].data, ids.dict[i].size))
                        l->count++;
        return ST_OK;
}

static enum status append_unnamed_of_part(const struct table_part *part, struct id_list *l, struct error *err)
{
        _cleanup_part_file_ struct part_file f;
        enum status st = part_file_open(part, &f, err);

        for (uint32_t g = 0; !st && g < part_file_count_groups(&f); g++)
                st = append_unnamed_ids(&f, g, l, err);
        return st;
}

static int compare_unnamed_ids(const void *a, const void *b)
{
        return build_id_compare(a, b);
}

static void sort_unnamed_ids(struct id_list *l)
{
        size_t kept = 0;

        if (l->count)
                qsort(l->items, l->count, sizeof *l->items, compare_unnamed_ids);
        for (size_t i = 0; i < l->count; i++)
                if (!kept || build_id_compare(&l->items[kept - 1], &l->items[i]) != 0)
                        l->items[kept++] = l->items[i];
        l->count = kept;
}

static bool is_flush_of_node(const struct table_part *part, const char *node)
{
        const size_t n = strlen(PART_PREFIX);

        return strncmp(part->name, PART_PREFIX, n) == 0 && strncmp(part->name + n, node, strlen(node)) == 0;
}

enum status profile_store_list_unnamed(struct profile_store *s, struct build_id **ret, size_t *count_ret,
                                       struct error *err)
{
        struct id_list l = { 0 };
        enum status st = ST_OK;
        struct tables *t;

        if (s->options.has_no_flush) /* else flushes follow; if it fails, a later call sees what others committed */
                (void)!store_follow_for_scan(s);
        pthread_mutex_lock(&s->lock);
        t = tables_ref(s->tables);
        pthread_mutex_unlock(&s->lock);
        for (size_t i = 0; !st && i < t->part_count[TABLE_LOCATIONS] && !atomic_load(&s->stopping); i++) {
                struct table_part *part = t->parts[TABLE_LOCATIONS][i];
                struct error why = { 0 };

                if (atomic_load(&part->is_searched) || (s->has_listed_unnamed && is_flush_of_node(part, s->logs.node)))
                        continue;
                st = append_unnamed_of_part(part, &l, &why);
                if (st && part_is_unreadable(st, &why))
                        st = ST_OK;
                else if (st && err)
                        *err = why;
                if (!st)
                        atomic_store(&part->is_searched, true);
        }
        tables_unref(t);
        if (st) {
                free(l.items);
                return st;
        }
        s->has_listed_unnamed = !atomic_load(&s->stopping);
        sort_unnamed_ids(&l);
        *ret = l.items;
        *count_ret = l.count;
        return ST_OK;
}

void profile_store_list_unnamed_again(struct profile_store *s)
{
        struct tables *t;

        s->has_listed_unnamed = false;
        pthread_mutex_lock(&s->lock);
        t = tables_ref(s->tables);
        pthread_mutex_unlock(&s->lock);
        for (size_t i = 0; i < t->part_count[TABLE_LOCATIONS]; i++)
                atomic_store(&t->parts[TABLE_LOCATIONS][i]->is_searched, false);
        tables_unref(t);
}
