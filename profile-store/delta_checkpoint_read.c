/* SPDX-License-Identifier: Apache-2.0 */
#include <json-c/json.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/limits.h"
#include "parquet/reader.h"
#include "profile-store/delta_checkpoint.h"

/* The columns that are read; a checkpoint of another writer may lack some. */
enum column {
        ADD_PATH, ADD_KEY, ADD_VALUE, ADD_SIZE, ADD_TIME, ADD_STATS,
        TXN_APP, TXN_VERSION, TXN_UPDATED,
        META_ID, META_NAME, META_DESCRIPTION, META_PROVIDER, META_OPTION_KEY, META_OPTION_VALUE, META_SCHEMA,
        META_PARTITIONS, META_CREATED, META_CONFIG_KEY, META_CONFIG_VALUE,
        PROTOCOL_READER, PROTOCOL_WRITER,
        COLUMNS,
};

static const struct {
        const char *path;
        bool is_number;
} wanted[COLUMNS] = {
        [ADD_PATH] = { "add.path", false },
        [ADD_KEY] = { "add.partitionValues.key_value.key", false },
        [ADD_VALUE] = { "add.partitionValues.key_value.value", false },
        [ADD_SIZE] = { "add.size", true },
        [ADD_TIME] = { "add.modificationTime", true },
        [ADD_STATS] = { "add.stats", false },
        [TXN_APP] = { "txn.appId", false },
        [TXN_VERSION] = { "txn.version", true },
        [TXN_UPDATED] = { "txn.lastUpdated", true },
        [META_ID] = { "metaData.id", false },
        [META_NAME] = { "metaData.name", false },
        [META_DESCRIPTION] = { "metaData.description", false },
        [META_PROVIDER] = { "metaData.format.provider", false },
        [META_OPTION_KEY] = { "metaData.format.options.key_value.key", false },
        [META_OPTION_VALUE] = { "metaData.format.options.key_value.value", false },
        [META_SCHEMA] = { "metaData.schemaString", false },
        [META_PARTITIONS] = { "metaData.partitionColumns.list.element", false },
        [META_CREATED] = { "metaData.createdTime", true },
        [META_CONFIG_KEY] = { "metaData.configuration.key_value.key", false },
        [META_CONFIG_VALUE] = { "metaData.configuration.key_value.value", false },
        [PROTOCOL_READER] = { "protocol.minReaderVersion", true },
        [PROTOCOL_WRITER] = { "protocol.minWriterVersion", true },
};

struct group {
        struct parquet_column columns[COLUMNS];
        bool present[COLUMNS];
};

static bool is_null(const struct parquet_column *c, uint64_t slot)
{
        return c->valid && !c->valid[slot];
}

/* The slots of a row; none in a column that is absent. */
static uint64_t slots(const struct group *g, enum column column, uint64_t row, uint64_t *first_ret)
{
        const struct parquet_column *c = &g->columns[column];

        *first_ret = c->offsets ? c->offsets[row] : row;
        if (!g->present[column])
                return 0;
        return c->offsets ? c->offsets[row + 1] - c->offsets[row] : 1;
}

static bool number(const struct group *g, enum column column, uint64_t row, int64_t *ret)
{
        const struct parquet_column *c = &g->columns[column];

        if (!g->present[column] || !c->ints || is_null(c, row))
                return false;
        *ret = c->ints[row];
        return true;
}

/* A text of a slot, copied into the arena; NULL when null, absent, or with a NUL inside. */
static char *text(const struct group *g, enum column column, uint64_t slot, struct arena *a)
{
        const struct parquet_column *c = &g->columns[column];
        const struct parquet_bytes *b;

        if (!g->present[column] || !c->codes || is_null(c, slot))
                return NULL;
        b = &c->dict[c->codes[slot]];
        return b->size && memchr(b->data, 0, b->size) ? NULL : arena_strndup(a, (const char *)b->data, b->size);
}

static enum status read_add(const struct group *g, uint64_t row, struct arena *a, struct delta_actions *ret,
                            struct error *err)
{
        const char *path = text(g, ADD_PATH, row, a);
        int64_t size = 0, modified_ms = 0;
        struct delta_partition *partitions;
        uint64_t first, value_first;
        uint64_t count = slots(g, ADD_KEY, row, &first);

        if (!path)
                return ST_OK;
        if (!number(g, ADD_SIZE, row, &size) || size < 0 || slots(g, ADD_VALUE, row, &value_first) != count)
                return error_set(err, ST_BAD_DATA, "an add action is malformed");
        (void)number(g, ADD_TIME, row, &modified_ms);
        partitions = arena_alloc_array(a, count, sizeof *partitions);
        if (!partitions)
                return error_no_memory(err);
        for (uint64_t i = 0; i < count; i++) {
                partitions[i].key = text(g, ADD_KEY, first + i, a);
                partitions[i].value = text(g, ADD_VALUE, value_first + i, a);
                if (!partitions[i].key)
                        return error_set(err, ST_BAD_DATA, "a partition without a name");
        }
        return delta_actions_add(ret, path, (uint64_t)size, modified_ms, text(g, ADD_STATS, row, a), partitions, count,
                                 err);
}

static void put_text(struct json_object *o, const char *key, const char *value)
{
        if (value)
                json_object_object_add(o, key, json_object_new_string(value));
}

static struct json_object *read_map(const struct group *g, enum column keys, enum column values, uint64_t row,
                                    struct arena *a)
{
        struct json_object *o = json_object_new_object();
        uint64_t first, value_first;
        uint64_t count = slots(g, keys, row, &first);

        if (slots(g, values, row, &value_first) != count)
                return o;
        for (uint64_t i = 0; i < count; i++) {
                const char *key = text(g, keys, first + i, a);

                if (key)
                        put_text(o, key, text(g, values, value_first + i, a));
        }
        return o;
}

static enum status read_metadata(const struct group *g, uint64_t row, struct arena *a, struct delta_actions *ret,
                                 struct error *err)
{
        const char *id = text(g, META_ID, row, a);
        struct json_object *o, *format, *columns;
        uint64_t first, count;
        int64_t created;

        if (!id)
                return ST_OK;
        o = json_object_new_object();
        format = json_object_new_object();
        columns = json_object_new_array();
        put_text(o, "id", id);
        put_text(o, "name", text(g, META_NAME, row, a));
        put_text(o, "description", text(g, META_DESCRIPTION, row, a));
        put_text(format, "provider", text(g, META_PROVIDER, row, a));
        json_object_object_add(format, "options", read_map(g, META_OPTION_KEY, META_OPTION_VALUE, row, a));
        json_object_object_add(o, "format", format);
        put_text(o, "schemaString", text(g, META_SCHEMA, row, a));
        count = slots(g, META_PARTITIONS, row, &first);
        for (uint64_t i = 0; i < count; i++) {
                const char *name = text(g, META_PARTITIONS, first + i, a);

                json_object_array_add(columns, name ? json_object_new_string(name) : NULL);
        }
        json_object_object_add(o, "partitionColumns", columns);
        json_object_object_add(o, "configuration", read_map(g, META_CONFIG_KEY, META_CONFIG_VALUE, row, a));
        if (number(g, META_CREATED, row, &created))
                json_object_object_add(o, "createdTime", json_object_new_int64(created));
        return delta_actions_metadata(ret, o, err);
}

static enum status read_row(const struct group *g, uint64_t row, struct delta_actions *ret, struct error *err)
{
        _cleanup_arena_ struct arena a;
        int64_t x, y;
        const char *app;
        enum status st;

        arena_init(&a, LIMIT_DELTA_LINE_BYTES * 4);
        st = read_add(g, row, &a, ret, err);
        if (!st)
                st = read_metadata(g, row, &a, ret, err);
        if (!st && number(g, PROTOCOL_READER, row, &x) && number(g, PROTOCOL_WRITER, row, &y))
                st = delta_actions_protocol(ret, x, y, err);
        if (!st && (app = text(g, TXN_APP, row, &a)) && number(g, TXN_VERSION, row, &x)) {
                y = 0;
                (void)number(g, TXN_UPDATED, row, &y);
                st = delta_actions_txn(ret, app, x, y, err);
        }
        return st;
}

static enum status read_group(struct parquet_file *f, uint32_t group, struct delta_actions *ret, struct error *err)
{
        const struct parquet_schema *schema = parquet_file_schema(f);
        struct group g = { 0 };
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < COLUMNS; i++) {
                uint32_t node = parquet_schema_find(schema, wanted[i].path);

                if (schema->nodes[node].column == PARQUET_NO_COLUMN)
                        continue;
                st = parquet_read_column(f, group, node, &g.columns[i], err);
                g.present[i] = !st;
                if (!st && (wanted[i].is_number ? !g.columns[i].ints : !g.columns[i].codes))
                        st = error_set(err, ST_BAD_DATA, "column '%s' has another type", wanted[i].path);
        }
        for (uint64_t row = 0; !st && row < parquet_file_group_rows(f, group); row++)
                st = read_row(&g, row, ret, err);
        for (size_t i = 0; i < COLUMNS; i++)
                parquet_column_deinit(&g.columns[i]);
        return st;
}

enum status delta_checkpoint_read(const char *path, struct delta_actions *ret, struct error *err)
{
        _cleanup_file_map_ struct file_map map = { 0 };
        struct delta_actions a = { 0 };
        struct parquet_file *f = NULL;
        enum status st = file_map_open(path, LIMIT_PARQUET_FILE_BYTES, &map, err);

        if (!st)
                st = parquet_file_open(map.data, map.size, path, &f, err);
        for (uint32_t g = 0; !st && g < parquet_file_row_groups(f); g++)
                st = read_group(f, g, &a, err);
        parquet_file_close(f);
        if (!st && (!a.metadata || !a.has_protocol))
                st = error_set(err, ST_BAD_DATA, "'%s' is no checkpoint: it lacks metaData or protocol", path);
        if (st)
                delta_actions_deinit(&a);
        else
                *ret = a;
        return st;
}
