/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/tables/known_rows.h"

#include <assert.h>
#include <string.h>

#include "common/memory/array.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "profile-store/tables/part_read.h"

static struct metric skipped_parts =
        METRIC_COUNTER("cairn_damaged_parts_total", "Files of a table that a flush could not read and skipped.", "");

static void known_set_deinit(struct known_set *s)
{
        key_map_deinit(&s->keys);
        tables_unref(s->seen);
        s->seen = NULL;
        s->loaded = false;
}

void known_rows_deinit(struct known_rows *k)
{
        known_set_deinit(&k->locations);
        for (int i = 0; i < KNOWN_DAYS; i++)
                known_set_deinit(&k->days[i].stacks);
        *k = (struct known_rows){ .node = k->node };
}

/* ---- ids of a part ---- */

typedef enum status visit_id(void *context, const struct hash128 *id, struct error *err);

static enum status visit_location_ids(const struct part_file *f, uint32_t group, visit_id *visit, void *context,
                                      struct error *err)
{
        _cleanup_parquet_column_ struct parquet_column ids = { 0 };
        enum status st = part_file_read_column(f, group, "location_id", PARQUET_INT64, &ids, err);

        for (uint64_t i = 0; !st && i < ids.row_count; i++) {
                struct hash128 id = make_u64_key((uint64_t)ids.ints[i]);

                st = visit(context, &id, err);
        }
        return st;
}

static enum status visit_stack_ids(const struct part_file *f, uint32_t group, visit_id *visit, void *context,
                                   struct error *err)
{
        _cleanup_parquet_column_ struct parquet_column ids = { 0 };
        enum status st = part_file_read_column(f, group, "stack_id", PARQUET_BINARY, &ids, err);

        for (uint64_t i = 0; !st && i < ids.row_count; i++) {
                struct hash128 id;

                if (part_read_stack_id(&ids, i, &id))
                        st = visit(context, &id, err);
        }
        return st;
}

/*
 * The rows of a missing or damaged part count as absent and are written again when next sampled. *readable_ret is then
 * false; some ids may have been visited already, but the whole file will be replaced.
 */
static enum status visit_part_ids(const struct table_part *part, enum table table, visit_id *visit, void *context,
                                  bool *readable_ret, struct error *err)
{
        _cleanup_part_file_ struct part_file f;
        struct error why = { 0 };
        enum status st = part_file_open(part, &f, &why);

        for (uint32_t g = 0; !st && g < part_file_count_groups(&f); g++)
                st = table == TABLE_LOCATIONS ? visit_location_ids(&f, g, visit, context, &why)
                                              : visit_stack_ids(&f, g, visit, context, &why);
        *readable_ret = st == ST_OK;
        if (part_is_unreadable(st, &why)) {
                metric_add(&skipped_parts, 1);
                log_error("store", "%s; its rows are written again when sampled, restore the file from a backup",
                          why.text);
                return ST_OK;
        }
        if (st && err)
                *err = why;
        return st;
}

/* ---- cached sets ---- */

/* Parts of locations have no day. */
static bool is_part_of_day(const struct table_part *part, enum table table, int64_t day)
{
        return table == TABLE_LOCATIONS || (part->has_day && part->day == day);
}

static enum status add_known_id(void *context, const struct hash128 *id, struct error *err)
{
        return key_map_put(context, id, 0, NULL, NULL, err);
}

/* Whether the ids fit into the cache budget. While the map doubles, both copies are in memory. */
static bool may_fit_cache(const struct tables *t, enum table table, int64_t day)
{
        uint64_t rows = 0;

        for (size_t i = 0; i < t->part_count[table]; i++) {
                if (is_part_of_day(t->parts[table][i], table, day))
                        rows += t->parts[table][i]->rows;
        }
        return rows <= memory_use_ceiling(MEMORY_CACHES) / (2 * KEY_MAP_SLOT_BYTES);
}

static enum status add_part_ids(struct known_set *s, const struct table_part *part, enum table table, struct error *err)
{
        _cleanup_key_map_ struct key_map keys = { .memory.use = MEMORY_CACHES };
        bool readable = false;
        enum status st = visit_part_ids(part, table, add_known_id, &keys, &readable, err);

        return st || !readable ? st : key_map_merge(&s->keys, &keys, err);
}

static enum status load_known_set(struct known_set *s, struct tables *t, enum table table, int64_t day,
                                  struct error *err)
{
        enum status st = ST_OK;

        s->keys.memory.use = MEMORY_CACHES;
        for (size_t i = 0; !st && i < t->part_count[table]; i++) {
                if (is_part_of_day(t->parts[table][i], table, day))
                        st = add_part_ids(s, t->parts[table][i], table, err);
        }
        if (st) {
                known_set_deinit(s);
                return st;
        }
        s->loaded = true;
        s->seen = tables_ref(t);
        return ST_OK;
}

/* ---- files of other nodes ---- */

/* Flushes of this node are recorded by known_rows_add_locations() and known_rows_add_stacks(). */
static bool is_part_of_node(const struct table_part *part, const char *node)
{
        const char *slash = strrchr(part->name, '/'), *name = slash ? slash + 1 : part->name;

        return strncmp(name, PART_PREFIX, strlen(PART_PREFIX)) == 0 &&
               strncmp(name + strlen(PART_PREFIX), node, strlen(node)) == 0;
}

/*
 * Follow the tables. A merge moves rows, and only a removal of rows leaves fewer of them than there are ids: then the
 * set is dropped.
 */
static enum status follow_known_set(struct known_set *s, const char *node, struct tables *t, enum table table,
                                    int64_t day, struct error *err)
{
        uint64_t rows = 0;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < t->part_count[table]; i++) {
                const struct table_part *part = t->parts[table][i];

                if (!is_part_of_day(part, table, day))
                        continue;
                rows += part->rows;
                if (!find_live_part(s->seen, table, part->name) && !is_part_of_node(part, node))
                        st = add_part_ids(s, part, table, err);
        }
        if (st || rows < s->keys.count) {
                known_set_deinit(s);
                return st;
        }
        tables_unref(s->seen);
        s->seen = tables_ref(t);
        return ST_OK;
}

/* ---- without a cache ---- */

struct id_matches {
        const struct key_map *ids;
        uint64_t **values; /* entries of ids that the part has; owned */
        size_t count, capacity;
};

static enum status match_id(void *context, const struct hash128 *id, struct error *err)
{
        struct id_matches *m = context;
        uint64_t *value = key_map_find(m->ids, id);

        if (!value || *value == KNOWN_ROW)
                return ST_OK;
        if (!array_reserve(&m->values, &m->capacity, m->count))
                return error_no_memory(err);
        m->values[m->count++] = value;
        return ST_OK;
}

static enum status mark_by_reading(const struct tables *t, enum table table, int64_t day, struct key_map *ids,
                                   struct error *err)
{
        struct id_matches m = { .ids = ids };
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < t->part_count[table]; i++) {
                bool readable = false;

                if (!is_part_of_day(t->parts[table][i], table, day))
                        continue;
                m.count = 0;
                st = visit_part_ids(t->parts[table][i], table, match_id, &m, &readable, err);
                for (size_t k = 0; !st && readable && k < m.count; k++)
                        *m.values[k] = KNOWN_ROW;
        }
        free(m.values);
        return st;
}

/* ---- interface ---- */

static enum status mark_known_ids(struct known_set *s, const char *node, struct tables *t, enum table table,
                                  int64_t day, struct key_map *ids, struct error *err)
{
        enum status st = ST_OK;

        if (s->loaded && node && s->seen != t)
                st = follow_known_set(s, node, t, table, day, err);
        if (!st && !s->loaded)
                st = may_fit_cache(t, table, day) ? load_known_set(s, t, table, day, err) : ST_NO_MEMORY;
        if (st == ST_NO_MEMORY)
                return mark_by_reading(t, table, day, ids, err);
        for (size_t i = 0; !st && i < ids->capacity; i++) {
                if (ids->tags[i] && key_map_find(&s->keys, &ids->slots[i].key))
                        ids->slots[i].value = KNOWN_ROW;
        }
        return st;
}

/* A set that cannot grow is dropped: the next flush decides again whether it fits. */
static void extend_known_set(struct known_set *s, const struct key_map *ids)
{
        if (s->loaded && key_map_merge(&s->keys, ids, NULL))
                known_set_deinit(s);
}

static struct known_day *find_known_day(struct known_rows *k, int64_t day)
{
        for (int i = 0; i < KNOWN_DAYS; i++) {
                if (k->days[i].last_use && k->days[i].day == day)
                        return &k->days[i];
        }
        return NULL;
}

static struct known_day *evict_known_day(struct known_rows *k, int64_t day)
{
        struct known_day *oldest = &k->days[0];

        for (int i = 1; i < KNOWN_DAYS; i++) {
                if (k->days[i].last_use < oldest->last_use)
                        oldest = &k->days[i];
        }
        known_set_deinit(&oldest->stacks);
        oldest->day = day;
        return oldest;
}

enum status known_rows_mark_locations(struct known_rows *k, struct tables *t, struct key_map *ids, struct error *err)
{
        return mark_known_ids(&k->locations, k->node, t, TABLE_LOCATIONS, 0, ids, err);
}

enum status known_rows_mark_stacks(struct known_rows *k, struct tables *t, int64_t day, struct key_map *ids,
                                   struct error *err)
{
        struct known_day *d = find_known_day(k, day);

        if (!d)
                d = evict_known_day(k, day);
        d->last_use = ++k->uses;
        assert(d->day == day);
        return mark_known_ids(&d->stacks, k->node, t, TABLE_STACKS, day, ids, err);
}

void known_rows_forget_locations(struct known_rows *k)
{
        known_set_deinit(&k->locations);
}

void known_rows_add_locations(struct known_rows *k, const struct key_map *ids)
{
        extend_known_set(&k->locations, ids);
}

void known_rows_add_stacks(struct known_rows *k, int64_t day, const struct key_map *ids)
{
        struct known_day *d = find_known_day(k, day);

        if (d)
                extend_known_set(&d->stacks, ids);
}
