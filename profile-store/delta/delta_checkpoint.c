/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/delta/delta_checkpoint.h"

#include <json-c/json.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "parquet/parquet_reader.h"

/* ---- write ---- */

#define FIELD(n, k)                                                                                                    \
        {                                                                                                              \
                .name = n, .kind = k                                                                                   \
        }
#define OPTIONAL(n, k)                                                                                                 \
        {                                                                                                              \
                .name = n, .kind = k, .optional = true                                                                 \
        }
#define GROUP(n, k, c)                                                                                                 \
        {                                                                                                              \
                .name = n, .kind = k, .optional = true, .children = c, .child_count = sizeof c / sizeof *c             \
        }

static const struct parquet_field key_value[] = { FIELD("key", PARQUET_STRING), OPTIONAL("value", PARQUET_STRING) };
static const struct parquet_field text_element[] = { OPTIONAL("element", PARQUET_STRING) };
static const struct parquet_field txn_fields[] = {
        OPTIONAL("appId", PARQUET_STRING),
        OPTIONAL("version", PARQUET_INT64),
        OPTIONAL("lastUpdated", PARQUET_INT64),
};
static const struct parquet_field add_fields[] = {
        OPTIONAL("path", PARQUET_STRING),     GROUP("partitionValues", PARQUET_MAP, key_value),
        OPTIONAL("size", PARQUET_INT64),      OPTIONAL("modificationTime", PARQUET_INT64),
        OPTIONAL("dataChange", PARQUET_BOOL), GROUP("tags", PARQUET_MAP, key_value),
        OPTIONAL("stats", PARQUET_STRING),
};
static const struct parquet_field remove_fields[] = {
        OPTIONAL("path", PARQUET_STRING),
        OPTIONAL("deletionTimestamp", PARQUET_INT64),
        OPTIONAL("dataChange", PARQUET_BOOL),
        OPTIONAL("extendedFileMetadata", PARQUET_BOOL),
        GROUP("partitionValues", PARQUET_MAP, key_value),
        OPTIONAL("size", PARQUET_INT64),
};
static const struct parquet_field format_fields[] = {
        OPTIONAL("provider", PARQUET_STRING),
        GROUP("options", PARQUET_MAP, key_value),
};
static const struct parquet_field metadata_fields[] = {
        OPTIONAL("id", PARQUET_STRING),           OPTIONAL("name", PARQUET_STRING),
        OPTIONAL("description", PARQUET_STRING),  GROUP("format", PARQUET_STRUCT, format_fields),
        OPTIONAL("schemaString", PARQUET_STRING), GROUP("partitionColumns", PARQUET_LIST, text_element),
        OPTIONAL("createdTime", PARQUET_INT64),   GROUP("configuration", PARQUET_MAP, key_value),
};
static const struct parquet_field protocol_fields[] = {
        OPTIONAL("minReaderVersion", PARQUET_INT32),
        OPTIONAL("minWriterVersion", PARQUET_INT32),
};
static const struct parquet_field checkpoint_fields[] = {
        GROUP("txn", PARQUET_STRUCT, txn_fields),           GROUP("add", PARQUET_STRUCT, add_fields),
        GROUP("remove", PARQUET_STRUCT, remove_fields),     GROUP("metaData", PARQUET_STRUCT, metadata_fields),
        GROUP("protocol", PARQUET_STRUCT, protocol_fields),
};
#define ACTIONS (sizeof checkpoint_fields / sizeof *checkpoint_fields)

/* Put null into the columns of all other actions. */
static void put_other_actions_null(struct parquet_writer *w, const char *action)
{
        for (size_t i = 0; i < ACTIONS; i++) {
                if (strcmp(checkpoint_fields[i].name, action) != 0)
                        parquet_put_null(w, parquet_writer_node(w, checkpoint_fields[i].name));
        }
}

static void put_text_column(struct parquet_writer *w, const char *path, const char *s)
{
        uint32_t node = parquet_writer_node(w, path);

        if (s)
                parquet_put_str(w, node, s);
        else
                parquet_put_null(w, node);
}

static void put_int_column(struct parquet_writer *w, const char *path, int64_t v)
{
        parquet_put_int(w, parquet_writer_node(w, path), v);
}

/* Put a JSON object of strings into a map column. */
static void put_map_column(struct parquet_writer *w, const char *map, const char *key_path, const char *value_path,
                           struct json_object *o)
{
        if (!json_object_is_type(o, json_type_object)) {
                parquet_put_list(w, parquet_writer_node(w, map), 0);
                return;
        }
        parquet_put_list(w, parquet_writer_node(w, map), (uint64_t)json_object_object_length(o));
        json_object_object_foreach(o, key, value)
        {
                (void)value;
                put_text_column(w, key_path, key);
                put_text_column(w, value_path, delta_json_get_string(o, key));
        }
}

static void put_metadata_action(struct parquet_writer *w, struct json_object *m)
{
        struct json_object *format = json_object_object_get(m, "format");
        struct json_object *columns = json_object_object_get(m, "partitionColumns");
        struct json_object *created = json_object_object_get(m, "createdTime");
        size_t count = json_object_array_length(columns);

        put_other_actions_null(w, "metaData");
        put_text_column(w, "metaData.id", delta_json_get_string(m, "id"));
        put_text_column(w, "metaData.name", delta_json_get_string(m, "name"));
        put_text_column(w, "metaData.description", delta_json_get_string(m, "description"));
        put_text_column(w, "metaData.format.provider", delta_json_get_string(format, "provider"));
        put_map_column(w, "metaData.format.options", "metaData.format.options.key_value.key",
                       "metaData.format.options.key_value.value", json_object_object_get(format, "options"));
        put_text_column(w, "metaData.schemaString", delta_json_get_string(m, "schemaString"));
        parquet_put_list(w, parquet_writer_node(w, "metaData.partitionColumns"), count);
        for (size_t i = 0; i < count; i++)
                put_text_column(w, "metaData.partitionColumns.list.element",
                                json_object_get_string(json_object_array_get_idx(columns, i)));
        put_int_column(w, "metaData.createdTime", json_object_get_int64(created));
        put_map_column(w, "metaData.configuration", "metaData.configuration.key_value.key",
                       "metaData.configuration.key_value.value", json_object_object_get(m, "configuration"));
}

static void put_add_action(struct parquet_writer *w, const struct delta_file *f)
{
        put_other_actions_null(w, "add");
        put_text_column(w, "add.path", f->path);
        parquet_put_list(w, parquet_writer_node(w, "add.partitionValues"), f->partition_count);
        for (size_t i = 0; i < f->partition_count; i++) {
                put_text_column(w, "add.partitionValues.key_value.key", f->partitions[i].key);
                put_text_column(w, "add.partitionValues.key_value.value", f->partitions[i].value);
        }
        put_int_column(w, "add.size", (int64_t)f->size);
        put_int_column(w, "add.modificationTime", f->modified_ms);
        put_int_column(w, "add.dataChange", 0);
        parquet_put_null(w, parquet_writer_node(w, "add.tags"));
        put_text_column(w, "add.stats", f->stats);
}

static void put_remove_action(struct parquet_writer *w, const struct delta_file *f)
{
        put_other_actions_null(w, "remove");
        put_text_column(w, "remove.path", f->path);
        put_int_column(w, "remove.deletionTimestamp", f->removed_ms);
        put_int_column(w, "remove.dataChange", f->removal_changes_data);
        put_int_column(w, "remove.extendedFileMetadata", 1);
        parquet_put_list(w, parquet_writer_node(w, "remove.partitionValues"), f->partition_count);
        for (size_t i = 0; i < f->partition_count; i++) {
                put_text_column(w, "remove.partitionValues.key_value.key", f->partitions[i].key);
                put_text_column(w, "remove.partitionValues.key_value.value", f->partitions[i].value);
        }
        put_int_column(w, "remove.size", (int64_t)f->size);
}

static enum status put_delta_state(struct parquet_writer *w, const struct delta_state *s, struct error *err)
{
        enum status st;

        put_other_actions_null(w, "protocol");
        put_int_column(w, "protocol.minReaderVersion", DELTA_READER_VERSION);
        put_int_column(w, "protocol.minWriterVersion", DELTA_WRITER_VERSION);
        st = parquet_writer_end_rows(w, 1, err);
        if (st)
                return st;
        put_metadata_action(w, s->metadata);
        st = parquet_writer_end_rows(w, 1, err);
        for (size_t i = 0; !st && i < s->txn_count; i++) {
                put_other_actions_null(w, "txn");
                put_text_column(w, "txn.appId", s->txns[i].app_id);
                put_int_column(w, "txn.version", s->txns[i].version);
                put_int_column(w, "txn.lastUpdated", s->txns[i].last_updated_ms);
                st = parquet_writer_end_rows(w, 1, err);
        }
        for (size_t i = 0; !st && i < s->live.count; i++) {
                put_add_action(w, &s->live.items[i]->file);
                st = parquet_writer_end_rows(w, 1, err);
        }
        for (size_t i = 0; !st && i < s->removed.count; i++) {
                put_remove_action(w, &s->removed.items[i]->file);
                st = parquet_writer_end_rows(w, 1, err);
        }
        return st ? st : parquet_writer_finish(w, err);
}

static enum status write_checkpoint_file(const struct delta_place *p, const struct delta_state *s, struct error *err)
{
        _cleanup_free_ char *key = delta_make_version_key(p, s->version, DELTA_CHECKPOINT_SUFFIX);
        struct parquet_writer *w = NULL;
        struct storage_upload u;
        enum status st = key ? storage_begin(p->storage, key, &u, err) : error_no_memory(err);

        if (st)
                return st;
        st = parquet_writer_create(u.fd, u.name, checkpoint_fields, ACTIONS, NULL, &w, err);
        if (!st)
                st = put_delta_state(w, s, err);
        parquet_writer_destroy(w);
        if (!st)
                return storage_publish(&u, STORAGE_REPLACE, err);
        storage_discard(&u);
        return st;
}

static enum status write_last_checkpoint(const struct delta_place *p, const struct delta_state *s, struct error *err)
{
        _cleanup_free_ char *key = delta_make_log_key(p, DELTA_LAST_CHECKPOINT);
        _cleanup_buf_ struct buf text;

        buf_init(&text, KiB(1));
        buf_printf(&text, "{\"version\":%jd,\"size\":%zu,\"numOfAddFiles\":%zu}", (intmax_t)s->version,
                   2 + s->txn_count + s->live.count + s->removed.count, s->live.count);
        if (!key || text.failed)
                return error_no_memory(err);
        return storage_put(p->storage, key, text.data, text.size, STORAGE_REPLACE, err);
}

int64_t delta_checkpoint_read_hint(const struct delta_place *p)
{
        _cleanup_free_ char *key = delta_make_log_key(p, DELTA_LAST_CHECKPOINT);
        _cleanup_buf_ struct buf text;
        struct json_object *o, *version;
        int64_t ret = -1;

        buf_init(&text, KiB(64));
        if (!key || storage_read(p->storage, key, &text, NULL))
                return -1;
        o = delta_json_parse((const char *)text.data, text.size);
        version = json_object_is_type(o, json_type_object) ? json_object_object_get(o, "version") : NULL;
        if (json_object_is_type(version, json_type_int))
                ret = json_object_get_int64(version);
        json_object_put(o);
        return ret;
}

enum status delta_checkpoint_write(const struct delta_place *p, const struct delta_state *s, struct error *err)
{
        enum status st = write_checkpoint_file(p, s, err);

        return st ? st : write_last_checkpoint(p, s, err);
}

/* ---- read ---- */

/* The columns that are read; checkpoints of other writers may lack some. */
enum checkpoint_column {
        ADD_PATH,
        ADD_KEY,
        ADD_VALUE,
        ADD_SIZE,
        ADD_TIME,
        ADD_STATS,
        REMOVE_PATH,
        REMOVE_KEY,
        REMOVE_VALUE,
        REMOVE_SIZE,
        REMOVE_TIME,
        REMOVE_DATA_CHANGE,
        TXN_APP,
        TXN_VERSION,
        TXN_UPDATED,
        META_ID,
        META_NAME,
        META_DESCRIPTION,
        META_PROVIDER,
        META_OPTION_KEY,
        META_OPTION_VALUE,
        META_SCHEMA,
        META_PARTITIONS,
        META_CREATED,
        META_CONFIG_KEY,
        META_CONFIG_VALUE,
        PROTOCOL_READER,
        PROTOCOL_WRITER,
        COLUMNS,
};

static const struct {
        const char *path;
        bool is_number;
} checkpoint_columns[COLUMNS] = {
        [ADD_PATH] = { "add.path", false },
        [ADD_KEY] = { "add.partitionValues.key_value.key", false },
        [ADD_VALUE] = { "add.partitionValues.key_value.value", false },
        [ADD_SIZE] = { "add.size", true },
        [ADD_TIME] = { "add.modificationTime", true },
        [ADD_STATS] = { "add.stats", false },
        [REMOVE_PATH] = { "remove.path", false },
        [REMOVE_KEY] = { "remove.partitionValues.key_value.key", false },
        [REMOVE_VALUE] = { "remove.partitionValues.key_value.value", false },
        [REMOVE_SIZE] = { "remove.size", true },
        [REMOVE_TIME] = { "remove.deletionTimestamp", true },
        [REMOVE_DATA_CHANGE] = { "remove.dataChange", true },
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

struct checkpoint_group {
        struct parquet_column columns[COLUMNS];
        bool present[COLUMNS];
};

static bool is_null_slot(const struct parquet_column *c, uint64_t slot)
{
        return c->valid && !c->valid[slot];
}

/* Number of slots of a row; 0 in an absent column. */
static uint64_t get_row_slots(const struct checkpoint_group *g, enum checkpoint_column column, uint64_t row,
                              uint64_t *first_ret)
{
        const struct parquet_column *c = &g->columns[column];

        *first_ret = c->offsets ? c->offsets[row] : row;
        if (!g->present[column])
                return 0;
        return c->offsets ? c->offsets[row + 1] - c->offsets[row] : 1;
}

static bool get_int_value(const struct checkpoint_group *g, enum checkpoint_column column, uint64_t row, int64_t *ret)
{
        const struct parquet_column *c = &g->columns[column];

        if (!g->present[column] || !c->ints || is_null_slot(c, row))
                return false;
        *ret = c->ints[row];
        return true;
}

/* Copy a slot's text into the arena; NULL when it is null, absent, or contains a NUL. */
static char *copy_text_value(const struct checkpoint_group *g, enum checkpoint_column column, uint64_t slot,
                             struct arena *a)
{
        const struct parquet_column *c = &g->columns[column];
        const struct parquet_bytes *b;

        if (!g->present[column] || !c->codes || is_null_slot(c, slot))
                return NULL;
        b = &c->dict[c->codes[slot]];
        return b->size && memchr(b->data, 0, b->size) ? NULL : arena_strndup(a, (const char *)b->data, b->size);
}

/* Set the partition values of a file from a row; they are allocated in the arena. */
static enum status read_partition_values(const struct checkpoint_group *g, enum checkpoint_column keys,
                                         enum checkpoint_column values, uint64_t row, struct arena *a,
                                         struct delta_file *f, struct error *err)
{
        struct delta_partition *partitions;
        uint64_t first, value_first;
        uint64_t count = get_row_slots(g, keys, row, &first);

        if (get_row_slots(g, values, row, &value_first) != count)
                return error_set(err, ST_BAD_DATA, "a partition without a value");
        partitions = arena_alloc_array(a, count, sizeof *partitions);
        if (!partitions)
                return error_no_memory(err);
        for (uint64_t i = 0; i < count; i++) {
                partitions[i].key = copy_text_value(g, keys, first + i, a);
                partitions[i].value = copy_text_value(g, values, value_first + i, a);
                if (!partitions[i].key)
                        return error_set(err, ST_BAD_DATA, "a partition without a name");
        }
        f->partitions = partitions;
        f->partition_count = count;
        return ST_OK;
}

static enum status read_add_action(const struct checkpoint_group *g, uint64_t row, struct arena *a,
                                   struct delta_actions *ret, struct error *err)
{
        struct delta_file f = { .path = copy_text_value(g, ADD_PATH, row, a) };
        int64_t size = 0;
        enum status st;

        if (!f.path)
                return ST_OK;
        if (!get_int_value(g, ADD_SIZE, row, &size) || size < 0)
                return error_set(err, ST_BAD_DATA, "an add action is malformed");
        f.size = (uint64_t)size;
        (void)get_int_value(g, ADD_TIME, row, &f.modified_ms);
        st = read_partition_values(g, ADD_KEY, ADD_VALUE, row, a, &f, err);
        if (st)
                return st;
        f.stats = copy_text_value(g, ADD_STATS, row, a);
        return delta_actions_add_file(ret, &f, err);
}

static enum status read_remove_action(const struct checkpoint_group *g, uint64_t row, struct arena *a,
                                      struct delta_actions *ret, struct error *err)
{
        struct delta_file f = { .path = copy_text_value(g, REMOVE_PATH, row, a) };
        int64_t size = 0, data_change = 1;
        enum status st;

        if (!f.path)
                return ST_OK;
        if (get_int_value(g, REMOVE_SIZE, row, &size) && size > 0)
                f.size = (uint64_t)size;
        (void)get_int_value(g, REMOVE_TIME, row, &f.removed_ms);
        (void)get_int_value(g, REMOVE_DATA_CHANGE, row, &data_change);
        f.removal_changes_data = data_change;
        st = read_partition_values(g, REMOVE_KEY, REMOVE_VALUE, row, a, &f, err);
        return st ? st : delta_actions_remove_file(ret, &f, err);
}

static void add_json_text(struct json_object *o, const char *key, const char *value)
{
        if (value)
                json_object_object_add(o, key, json_object_new_string(value));
}

static struct json_object *read_text_map(const struct checkpoint_group *g, enum checkpoint_column keys,
                                         enum checkpoint_column values, uint64_t row, struct arena *a)
{
        struct json_object *o = json_object_new_object();
        uint64_t first, value_first;
        uint64_t count = get_row_slots(g, keys, row, &first);

        if (get_row_slots(g, values, row, &value_first) != count)
                return o;
        for (uint64_t i = 0; i < count; i++) {
                const char *key = copy_text_value(g, keys, first + i, a);

                if (key)
                        add_json_text(o, key, copy_text_value(g, values, value_first + i, a));
        }
        return o;
}

static enum status read_metadata_action(const struct checkpoint_group *g, uint64_t row, struct arena *a,
                                        struct delta_actions *ret, struct error *err)
{
        const char *id = copy_text_value(g, META_ID, row, a);
        struct json_object *o, *format, *columns;
        uint64_t first, count;
        int64_t created;

        if (!id)
                return ST_OK;
        o = json_object_new_object();
        format = json_object_new_object();
        columns = json_object_new_array();
        add_json_text(o, "id", id);
        add_json_text(o, "name", copy_text_value(g, META_NAME, row, a));
        add_json_text(o, "description", copy_text_value(g, META_DESCRIPTION, row, a));
        add_json_text(format, "provider", copy_text_value(g, META_PROVIDER, row, a));
        json_object_object_add(format, "options", read_text_map(g, META_OPTION_KEY, META_OPTION_VALUE, row, a));
        json_object_object_add(o, "format", format);
        add_json_text(o, "schemaString", copy_text_value(g, META_SCHEMA, row, a));
        count = get_row_slots(g, META_PARTITIONS, row, &first);
        for (uint64_t i = 0; i < count; i++) {
                const char *name = copy_text_value(g, META_PARTITIONS, first + i, a);

                json_object_array_add(columns, name ? json_object_new_string(name) : NULL);
        }
        json_object_object_add(o, "partitionColumns", columns);
        json_object_object_add(o, "configuration", read_text_map(g, META_CONFIG_KEY, META_CONFIG_VALUE, row, a));
        if (get_int_value(g, META_CREATED, row, &created))
                json_object_object_add(o, "createdTime", json_object_new_int64(created));
        return delta_actions_set_metadata(ret, o, err);
}

static enum status read_checkpoint_row(const struct checkpoint_group *g, uint64_t row, struct delta_actions *ret,
                                       struct error *err)
{
        _cleanup_arena_ struct arena a;
        int64_t x, y;
        const char *app;
        enum status st;

        arena_init(&a, LIMIT_DELTA_LINE_BYTES * 4);
        st = read_add_action(g, row, &a, ret, err);
        if (!st)
                st = read_remove_action(g, row, &a, ret, err);
        if (!st)
                st = read_metadata_action(g, row, &a, ret, err);
        if (!st && get_int_value(g, PROTOCOL_READER, row, &x) && get_int_value(g, PROTOCOL_WRITER, row, &y))
                st = delta_actions_set_protocol(ret, x, y, err);
        if (!st && (app = copy_text_value(g, TXN_APP, row, &a)) && get_int_value(g, TXN_VERSION, row, &x)) {
                y = 0;
                (void)get_int_value(g, TXN_UPDATED, row, &y);
                st = delta_actions_add_txn(ret, app, x, y, err);
        }
        return a.failed ? arena_error(&a, err, "the texts of an action") : st; /* a failed copy looks like null */
}

static enum status read_checkpoint_group(struct parquet_file *f, uint32_t group, struct delta_actions *ret,
                                         struct error *err)
{
        const struct parquet_schema *schema = parquet_file_schema(f);
        struct checkpoint_group g = { 0 };
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < COLUMNS; i++) {
                uint32_t node = parquet_schema_find(schema, checkpoint_columns[i].path);

                if (schema->nodes[node].column == PARQUET_NO_COLUMN)
                        continue;
                st = parquet_read_column(f, group, node, &g.columns[i], err);
                g.present[i] = !st;
                if (!st && (checkpoint_columns[i].is_number ? !g.columns[i].ints : !g.columns[i].codes))
                        st = error_set(err, ST_BAD_DATA, "column '%s' has another type", checkpoint_columns[i].path);
        }
        for (uint64_t row = 0; !st && row < parquet_file_group_rows(f, group); row++)
                st = read_checkpoint_row(&g, row, ret, err);
        for (size_t i = 0; i < COLUMNS; i++)
                parquet_column_deinit(&g.columns[i]);
        return st;
}

static enum status read_mapped_checkpoint(const struct storage_map *map, const char *name, struct delta_actions *ret,
                                          struct error *err)
{
        struct delta_actions a = { 0 };
        struct parquet_file *f = NULL;
        enum status st = parquet_file_open(map->file.data, map->file.size, name, &f, err);

        for (uint32_t g = 0; !st && g < parquet_file_row_groups(f); g++)
                st = read_checkpoint_group(f, g, &a, err);
        parquet_file_close(f);
        if (!st && (!a.metadata || !a.has_protocol))
                st = error_set(err, ST_BAD_DATA, "'%s' is not a checkpoint: it lacks metaData or protocol", name);
        if (st)
                delta_actions_deinit(&a);
        else
                *ret = a;
        return st;
}

enum status delta_checkpoint_read(const struct delta_place *p, int64_t version, struct delta_actions *ret,
                                  struct error *err)
{
        _cleanup_free_ char *key = delta_make_version_key(p, version, DELTA_CHECKPOINT_SUFFIX);
        _cleanup_free_ char *name = key ? storage_make_name(p->storage, key) : NULL;
        _cleanup_storage_map_ struct storage_map map = { 0 };
        struct file_range whole = { 0 };
        enum status reloaded;
        enum status st =
                name ? storage_map(p->storage, key, LIMIT_PARQUET_FILE_BYTES, &map, err) : error_no_memory(err);

        if (st)
                return st;
        whole.size = map.file.size;
        st = storage_require(&map, &whole, 1, err);
        if (!st)
                st = read_mapped_checkpoint(&map, name, ret, err);
        if (st != ST_BAD_DATA && st != ST_UNSUPPORTED && st != ST_TOO_BIG)
                return st;
        reloaded = storage_reload(&map, &whole, 1, err);
        if (reloaded)
                return reloaded == ST_UNSUPPORTED ? st : reloaded;
        return read_mapped_checkpoint(&map, name, ret, err);
}
