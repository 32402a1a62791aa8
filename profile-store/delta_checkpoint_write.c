/* SPDX-License-Identifier: Apache-2.0 */
#include <json-c/json.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/limits.h"
#include "profile-store/delta_checkpoint.h"

#define FIELD(n, k) { .name = n, .kind = k }
#define OPTIONAL(n, k) { .name = n, .kind = k, .optional = true }
#define GROUP(n, k, c) { .name = n, .kind = k, .optional = true, .children = c, .child_count = sizeof c / sizeof *c }

static const struct parquet_field key_value[] = { FIELD("key", PARQUET_STRING), OPTIONAL("value", PARQUET_STRING) };
static const struct parquet_field text_element[] = { OPTIONAL("element", PARQUET_STRING) };
static const struct parquet_field txn_fields[] = {
        OPTIONAL("appId", PARQUET_STRING),
        OPTIONAL("version", PARQUET_INT64),
        OPTIONAL("lastUpdated", PARQUET_INT64),
};
static const struct parquet_field add_fields[] = {
        OPTIONAL("path", PARQUET_STRING),
        GROUP("partitionValues", PARQUET_MAP, key_value),
        OPTIONAL("size", PARQUET_INT64),
        OPTIONAL("modificationTime", PARQUET_INT64),
        OPTIONAL("dataChange", PARQUET_BOOL),
        GROUP("tags", PARQUET_MAP, key_value),
        OPTIONAL("stats", PARQUET_STRING),
};
static const struct parquet_field remove_fields[] = {
        OPTIONAL("path", PARQUET_STRING),
        OPTIONAL("deletionTimestamp", PARQUET_INT64),
        OPTIONAL("dataChange", PARQUET_BOOL),
};
static const struct parquet_field format_fields[] = {
        OPTIONAL("provider", PARQUET_STRING),
        GROUP("options", PARQUET_MAP, key_value),
};
static const struct parquet_field metadata_fields[] = {
        OPTIONAL("id", PARQUET_STRING),
        OPTIONAL("name", PARQUET_STRING),
        OPTIONAL("description", PARQUET_STRING),
        GROUP("format", PARQUET_STRUCT, format_fields),
        OPTIONAL("schemaString", PARQUET_STRING),
        GROUP("partitionColumns", PARQUET_LIST, text_element),
        OPTIONAL("createdTime", PARQUET_INT64),
        GROUP("configuration", PARQUET_MAP, key_value),
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

/* Put null into every action's columns but one's. */
static void only(struct parquet_writer *w, const char *action)
{
        for (size_t i = 0; i < ACTIONS; i++) {
                if (strcmp(checkpoint_fields[i].name, action) != 0)
                        parquet_put_null(w, parquet_writer_node(w, checkpoint_fields[i].name));
        }
}

static void put_text(struct parquet_writer *w, const char *path, const char *s)
{
        uint32_t node = parquet_writer_node(w, path);

        if (s)
                parquet_put_str(w, node, s);
        else
                parquet_put_null(w, node);
}

static void put_int(struct parquet_writer *w, const char *path, int64_t v)
{
        parquet_put_int(w, parquet_writer_node(w, path), v);
}

/* A JSON object of texts as a map. */
static void put_object(struct parquet_writer *w, const char *map, const char *key_path, const char *value_path,
                       struct json_object *o)
{
        if (!json_object_is_type(o, json_type_object)) {
                parquet_put_list(w, parquet_writer_node(w, map), 0);
                return;
        }
        parquet_put_list(w, parquet_writer_node(w, map), (uint64_t)json_object_object_length(o));
        json_object_object_foreach(o, key, value) {
                (void)value;
                put_text(w, key_path, key);
                put_text(w, value_path, delta_json_text(o, key));
        }
}

static void put_metadata(struct parquet_writer *w, struct json_object *m)
{
        struct json_object *format = json_object_object_get(m, "format");
        struct json_object *columns = json_object_object_get(m, "partitionColumns");
        struct json_object *created = json_object_object_get(m, "createdTime");
        size_t count = json_object_array_length(columns);

        only(w, "metaData");
        put_text(w, "metaData.id", delta_json_text(m, "id"));
        put_text(w, "metaData.name", delta_json_text(m, "name"));
        put_text(w, "metaData.description", delta_json_text(m, "description"));
        put_text(w, "metaData.format.provider", delta_json_text(format, "provider"));
        put_object(w, "metaData.format.options", "metaData.format.options.key_value.key",
                   "metaData.format.options.key_value.value", json_object_object_get(format, "options"));
        put_text(w, "metaData.schemaString", delta_json_text(m, "schemaString"));
        parquet_put_list(w, parquet_writer_node(w, "metaData.partitionColumns"), count);
        for (size_t i = 0; i < count; i++)
                put_text(w, "metaData.partitionColumns.list.element",
                         json_object_get_string(json_object_array_get_idx(columns, i)));
        put_int(w, "metaData.createdTime", json_object_get_int64(created));
        put_object(w, "metaData.configuration", "metaData.configuration.key_value.key",
                   "metaData.configuration.key_value.value", json_object_object_get(m, "configuration"));
}

static void put_add(struct parquet_writer *w, const struct delta_file *f)
{
        only(w, "add");
        put_text(w, "add.path", f->path);
        parquet_put_list(w, parquet_writer_node(w, "add.partitionValues"), f->partition_count);
        for (size_t i = 0; i < f->partition_count; i++) {
                put_text(w, "add.partitionValues.key_value.key", f->partitions[i].key);
                put_text(w, "add.partitionValues.key_value.value", f->partitions[i].value);
        }
        put_int(w, "add.size", (int64_t)f->size);
        put_int(w, "add.modificationTime", f->modified_ms);
        put_int(w, "add.dataChange", 0);
        parquet_put_null(w, parquet_writer_node(w, "add.tags"));
        put_text(w, "add.stats", f->stats);
}

static enum status put_state(struct parquet_writer *w, const struct delta_state *s, struct error *err)
{
        enum status st;

        only(w, "protocol");
        put_int(w, "protocol.minReaderVersion", DELTA_READER_VERSION);
        put_int(w, "protocol.minWriterVersion", DELTA_WRITER_VERSION);
        st = parquet_writer_end_rows(w, 1, err);
        if (st)
                return st;
        put_metadata(w, s->metadata);
        st = parquet_writer_end_rows(w, 1, err);
        for (size_t i = 0; !st && i < s->txn_count; i++) {
                only(w, "txn");
                put_text(w, "txn.appId", s->txns[i].app_id);
                put_int(w, "txn.version", s->txns[i].version);
                put_int(w, "txn.lastUpdated", s->txns[i].last_updated_ms);
                st = parquet_writer_end_rows(w, 1, err);
        }
        for (size_t i = 0; !st && i < s->slot_count; i++) {
                if (!s->slots[i])
                        continue;
                put_add(w, &s->slots[i]->file);
                st = parquet_writer_end_rows(w, 1, err);
        }
        return st ? st : parquet_writer_finish(w, err);
}

static enum status write_file(const char *path, const struct delta_state *s, struct error *err)
{
        _cleanup_free_ char *tmp = NULL;
        struct parquet_writer *w = NULL;
        int fd;
        enum status st = file_create_temporary(path, &tmp, &fd, err);

        if (st)
                return st;
        st = parquet_writer_create(fd, path, checkpoint_fields, ACTIONS, NULL, &w, err);
        if (!st)
                st = put_state(w, s, err);
        parquet_writer_destroy(w);
        if (st) {
                close(fd);
                unlink(tmp);
                return st;
        }
        return file_publish(fd, tmp, path, err);
}

static enum status write_pointer(const char *log_dir, const struct delta_state *s, struct error *err)
{
        _cleanup_free_ char *path = path_join(log_dir, "_last_checkpoint");
        _cleanup_buf_ struct buf text;

        buf_init(&text, KiB(1));
        buf_printf(&text, "{\"version\":%jd,\"size\":%zu}", (intmax_t)s->version, 2 + s->txn_count + s->file_count);
        if (!path || text.failed)
                return error_no_memory(err);
        return file_write_durable(path, text.data, text.size, err);
}

enum status delta_checkpoint_write(const char *log_dir, const struct delta_state *s, struct error *err)
{
        _cleanup_free_ char *path = NULL;
        enum status st;

        if (asprintf(&path, "%s/%020jd.checkpoint.parquet", log_dir, (intmax_t)s->version) < 0) {
                path = NULL;
                return error_no_memory(err);
        }
        st = write_file(path, s, err);
        return st ? st : write_pointer(log_dir, s, err);
}
