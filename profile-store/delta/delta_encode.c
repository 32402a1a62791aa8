/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/delta/delta_encode.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "common/clock.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/text.h"

/* ---- schemaString ---- */

static const char *get_primitive_type_name(enum parquet_kind kind)
{
        switch (kind) {
        case PARQUET_BOOL:
                return "boolean";
        case PARQUET_INT32:
                return "integer";
        case PARQUET_INT64:
                return "long";
        case PARQUET_DATE:
                return "date";
        case PARQUET_TIMESTAMP:
                return "timestamp";
        case PARQUET_DOUBLE:
                return "double";
        case PARQUET_STRING:
                return "string";
        case PARQUET_BINARY:
                return "binary";
        default:
                return NULL;
        }
}

static bool append_field_type(struct json_out *j, const char *key, const struct parquet_field *f, unsigned depth);

static bool append_struct_type(struct json_out *j, const char *key, const struct parquet_field *fields, size_t count,
                               unsigned depth)
{
        bool ok = true;

        json_out_object(j, key);
        json_out_str(j, "type", "struct");
        json_out_array(j, "fields");
        for (size_t i = 0; ok && i < count; i++) {
                json_out_object(j, NULL);
                json_out_str(j, "name", fields[i].name);
                ok = append_field_type(j, "type", &fields[i], depth);
                json_out_bool(j, "nullable", fields[i].optional);
                json_out_object(j, "metadata");
                json_out_object_end(j);
                json_out_object_end(j);
        }
        json_out_array_end(j);
        json_out_object_end(j);
        return ok;
}

static bool append_field_type(struct json_out *j, const char *key, const struct parquet_field *f, unsigned depth)
{
        bool ok;

        if (depth == 0)
                return false;
        if (get_primitive_type_name(f->kind)) {
                json_out_str(j, key, get_primitive_type_name(f->kind));
                return true;
        }
        if (f->kind == PARQUET_STRUCT)
                return append_struct_type(j, key, f->children, f->child_count, depth - 1);
        if (f->child_count != (f->kind == PARQUET_LIST ? 1 : 2) || f->kind > PARQUET_MAP)
                return false;
        json_out_object(j, key);
        if (f->kind == PARQUET_LIST) {
                json_out_str(j, "type", "array");
                ok = append_field_type(j, "elementType", &f->children[0], depth - 1);
                json_out_bool(j, "containsNull", f->children[0].optional);
        } else {
                json_out_str(j, "type", "map");
                ok = append_field_type(j, "keyType", &f->children[0], depth - 1) &&
                     append_field_type(j, "valueType", &f->children[1], depth - 1);
                json_out_bool(j, "valueContainsNull", f->children[1].optional);
        }
        json_out_object_end(j);
        return ok;
}

/* Append a table's columns as Delta's schemaString (PROTOCOL.md, "Schema Serialization Format"). */
static enum status append_schema(struct buf *out, const struct parquet_field *fields, size_t count, struct error *err)
{
        struct json_out j;

        json_out_init(&j, out);
        if (!append_struct_type(&j, NULL, fields, count, LIMIT_PARQUET_DEPTH))
                return error_set(err, ST_USAGE, "a table's schema has a type that Delta does not have");
        return buf_status(out, err, "a table's schema");
}

/* ---- metaData ---- */

static struct json_object *find_schema_field(struct json_object *fields, const char *name)
{
        for (size_t i = 0; i < json_object_array_length(fields); i++) {
                struct json_object *f = json_object_array_get_idx(fields, i);
                const char *have = delta_json_get_string(f, "name");

                if (have && !strcmp(have, name))
                        return f;
        }
        return NULL;
}

static enum status check_schema_fields(struct json_object *older, struct json_object *newer, struct error *err)
{
        for (size_t i = 0; i < json_object_array_length(older); i++) {
                struct json_object *f = json_object_array_get_idx(older, i);
                const char *name = delta_json_get_string(f, "name");

                if (!name || !json_object_equal(f, find_schema_field(newer, name)))
                        return error_set(err, ST_USAGE, "the new schema drops or changes column '%s'",
                                         name ? name : "?");
        }
        for (size_t i = 0; i < json_object_array_length(newer); i++) {
                struct json_object *f = json_object_array_get_idx(newer, i);
                const char *name = delta_json_get_string(f, "name");

                if (!name || (!find_schema_field(older, name) &&
                              !json_object_get_boolean(json_object_object_get(f, "nullable"))))
                        return error_set(err, ST_USAGE, "the new column '%s' is not optional", name ? name : "?");
        }
        return ST_OK;
}

static enum status check_schema_growth(const char *older, const char *newer, struct error *err)
{
        struct json_object *a = delta_json_parse(older, strlen(older));
        struct json_object *b = delta_json_parse(newer, strlen(newer));
        struct json_object *a_fields = json_object_object_get(a, "fields");
        struct json_object *b_fields = json_object_object_get(b, "fields");
        enum status st;

        if (!json_object_is_type(a_fields, json_type_array) || !json_object_is_type(b_fields, json_type_array))
                st = error_no_memory(err); /* both were checked before: only running out of memory is left */
        else
                st = check_schema_fields(a_fields, b_fields, err);
        json_object_put(a);
        json_object_put(b);
        return st;
}

/* The format that Spark and delta-rs write and read. */
static void format_interval(int64_t seconds, char ret[static 48])
{
        snprintf(ret, 48, "interval %jd seconds", (intmax_t)seconds);
}

/* Other programs write other units, also several of them. Months and years have no fixed length: false. */
static bool parse_interval_ms(const char *text, int64_t *ret)
{
        static const struct {
                const char *name;
                int64_t ms;
        } units[] = { { "millisecond", 1 }, { "second", 1000 },  { "minute", 60000 },
                      { "hour", 3600000 },  { "day", 86400000 }, { "week", 604800000 } };
        int64_t sum = 0, count, ms = 0;
        char unit[16];
        int n;

        if (strncasecmp(text, "interval ", 9) == 0)
                text += 9;
        for (; sscanf(text, "%12" SCNd64 " %15[A-Za-z]%n", &count, unit, &n) == 2; text += n) {
                const size_t size = strlen(unit), singular = size - (unit[size - 1] == 's');

                ms = 0;
                for (size_t i = 0; i < sizeof units / sizeof *units; i++)
                        if (strlen(units[i].name) == singular && strncasecmp(units[i].name, unit, singular) == 0)
                                ms = units[i].ms;
                if (!ms || count < 0 || __builtin_mul_overflow(count, ms, &count) ||
                    __builtin_add_overflow(sum, count, &sum))
                        return false;
        }
        *ret = sum;
        return ms && !text[strspn(text, " ")];
}

#define RETENTION_PROPERTIES 2
#define LOG_RETENTION "delta.logRetentionDuration"

int64_t delta_get_commit_lifetime_ms(const struct delta_state *s)
{
        struct json_object *configuration = json_object_object_get(s->metadata, "configuration");
        const char *text = delta_json_get_string(configuration, LOG_RETENTION);
        int64_t ms;

        return text && parse_interval_ms(text, &ms) ? ms : 0;
}

static void get_retention_properties(const struct delta_retention *r, const char *names[static RETENTION_PROPERTIES],
                                     char values[static RETENTION_PROPERTIES][48])
{
        names[0] = "delta.deletedFileRetentionDuration";
        format_interval(r->removed_s, values[0]);
        names[1] = LOG_RETENTION;
        format_interval(r->log_s, values[1]);
}

bool delta_retention_is_set(const struct delta_state *s, const struct delta_retention *r)
{
        struct json_object *configuration = json_object_object_get(s->metadata, "configuration");
        const char *names[RETENTION_PROPERTIES];
        char values[RETENTION_PROPERTIES][48];

        get_retention_properties(r, names, values);
        for (size_t i = 0; i < RETENTION_PROPERTIES; i++) {
                const char *have = delta_json_get_string(configuration, names[i]);

                if (!have || strcmp(have, values[i]) != 0)
                        return false;
        }
        return true;
}

/* False when memory runs out. */
static bool set_retention_properties(struct json_object *metadata, const struct delta_retention *r)
{
        struct json_object *configuration = json_object_object_get(metadata, "configuration");
        const char *names[RETENTION_PROPERTIES];
        char values[RETENTION_PROPERTIES][48];
        bool ok = true;

        if (!json_object_is_type(configuration, json_type_object)) {
                configuration = json_object_new_object();
                if (json_object_object_add(metadata, "configuration", configuration) < 0)
                        return false;
        }
        get_retention_properties(r, names, values);
        for (size_t i = 0; ok && i < RETENTION_PROPERTIES; i++)
                ok = json_object_object_add(configuration, names[i], json_object_new_string(values[i])) == 0;
        return ok;
}

/* Append a metaData action: a copy of metadata with another schema or other properties; NULL keeps the current ones. */
static enum status append_changed_metadata(struct buf *out, struct json_object *metadata, const char *schema_json,
                                           const struct delta_retention *retention, struct error *err)
{
        struct json_object *copy = NULL;
        enum status st =
                schema_json ? check_schema_growth(delta_json_get_string(metadata, "schemaString"), schema_json, err)
                            : ST_OK;

        if (st)
                return st;
        if (json_object_deep_copy(metadata, &copy, NULL) < 0)
                return error_no_memory(err);
        if ((schema_json && json_object_object_add(copy, "schemaString", json_object_new_string(schema_json)) < 0) ||
            (retention && !set_retention_properties(copy, retention))) {
                json_object_put(copy);
                return error_no_memory(err);
        }
        buf_append_str(out, "{\"metaData\":");
        buf_append_str(out,
                       json_object_to_json_string_ext(copy, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
        buf_append_str(out, "}\n");
        json_object_put(copy);
        return buf_status(out, err, "a commit");
}

/* Whether a file's partition values have exactly the table's partition columns as keys, in any order. */
static bool match_partition_columns(struct json_object *metadata, const struct delta_add *add)
{
        struct json_object *columns = json_object_object_get(metadata, "partitionColumns");

        if (json_object_array_length(columns) != add->partition_count)
                return false;
        for (size_t i = 0; i < add->partition_count; i++) {
                const char *name = json_object_get_string(json_object_array_get_idx(columns, i));
                bool found = false;

                for (size_t k = 0; k < add->partition_count && !found; k++)
                        found = !strcmp(add->partitions[k].key, name);
                if (!found)
                        return false;
        }
        return true;
}

/* ---- commits ---- */

static int64_t get_unix_ms(void)
{
        return wall_clock_ns() / 1000000;
}

static void begin_action_line(struct json_out *j, struct buf *out, const char *action)
{
        json_out_init(j, out);
        json_out_object(j, NULL);
        json_out_object(j, action);
}

static void end_action_line(struct json_out *j)
{
        json_out_object_end(j);
        json_out_object_end(j);
        buf_append_u8(j->buf, '\n');
}

static void append_id_digits(struct buf *text, const struct hash128 *ids, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                char hex[2 * sizeof ids->bytes + 1];

                buf_append_str(text, hex_encode(ids[i].bytes, sizeof ids[i].bytes, hex));
        }
}

static void append_batch_ids(struct json_out *j, const struct delta_commit *c)
{
        _cleanup_buf_ struct buf text;

        buf_init(&text, LIMIT_DELTA_LINE_BYTES);
        append_id_digits(&text, c->batch_ids, c->batch_id_count);
        for (size_t i = 0; i < c->included_count; i++)
                append_id_digits(&text, c->included[i]->batch_ids, c->included[i]->batch_id_count);
        if (buf_status(&text, NULL, ""))
                j->buf->failed = ST_TOO_BIG;
        else if (text.size)
                json_out_strn(j, DELTA_BATCH_IDS, (const char *)text.data, text.size);
}

/* is_blind_append: the commit reads nothing and only adds, so no concurrent commit conflicts with it. */
static void append_commit_info(struct buf *out, const struct delta_commit *c, bool is_blind_append)
{
        struct json_out j;

        begin_action_line(&j, out, "commitInfo");
        json_out_int(&j, "timestamp", get_unix_ms());
        json_out_str(&j, "operation", c->operation ? c->operation : "WRITE");
        json_out_object(&j, "operationParameters");
        if (c->parameter.name)
                json_out_str(&j, c->parameter.name, c->parameter.value);
        json_out_object_end(&j);
        json_out_bool(&j, "isBlindAppend", is_blind_append);
        json_out_str(&j, "engineInfo", "cairn/" CAIRN_VERSION);
        append_batch_ids(&j, c);
        end_action_line(&j);
}

/* A random UUID, version 4 (RFC 9562). */
static bool make_uuid(char ret[37])
{
        uint8_t b[16];

        if (getrandom(b, sizeof b, 0) != sizeof b)
                return false;
        b[6] = (b[6] & 0x0f) | 0x40;
        b[8] = (b[8] & 0x3f) | 0x80;
        for (size_t i = 0, at = 0; i < sizeof b; i++) {
                if (i == 4 || i == 6 || i == 8 || i == 10)
                        ret[at++] = '-';
                snprintf(ret + at, 3, "%02x", b[i]);
                at += 2;
        }
        return true;
}

static bool can_partition_by(const struct parquet_field *fields, size_t count, const char *name)
{
        for (size_t i = 0; i < count; i++) {
                if (!strcmp(fields[i].name, name))
                        return fields[i].kind == PARQUET_STRING || fields[i].kind == PARQUET_DATE;
        }
        return false;
}

enum status delta_encode_create(struct buf *out, const struct parquet_field *fields, size_t field_count,
                                const char *const *partition_columns, size_t partition_count,
                                const struct delta_retention *retention, struct error *err)
{
        const char *names[RETENTION_PROPERTIES];
        char values[RETENTION_PROPERTIES][48];
        _cleanup_buf_ struct buf schema;
        struct json_out j;
        char uuid[37];
        enum status st;

        buf_init(&schema, LIMIT_DELTA_LINE_BYTES);
        st = append_schema(&schema, fields, field_count, err);
        if (st)
                return st;
        if (!make_uuid(uuid))
                return error_os(err, errno, "cannot get random bytes for a table's identity");
        append_commit_info(out, &(struct delta_commit){ .operation = "CREATE TABLE" }, true);
        begin_action_line(&j, out, "protocol");
        json_out_int(&j, "minReaderVersion", DELTA_READER_VERSION);
        json_out_int(&j, "minWriterVersion", DELTA_WRITER_VERSION);
        end_action_line(&j);
        begin_action_line(&j, out, "metaData");
        json_out_str(&j, "id", uuid);
        json_out_object(&j, "format");
        json_out_str(&j, "provider", "parquet");
        json_out_object(&j, "options");
        json_out_object_end(&j);
        json_out_object_end(&j);
        json_out_strn(&j, "schemaString", (const char *)schema.data, schema.size);
        json_out_array(&j, "partitionColumns");
        for (size_t i = 0; i < partition_count; i++) {
                if (!can_partition_by(fields, field_count, partition_columns[i]))
                        return error_set(err, ST_USAGE,
                                         "cannot partition a table by '%s': no such string or date column",
                                         partition_columns[i]);
                json_out_str(&j, NULL, partition_columns[i]);
        }
        json_out_array_end(&j);
        json_out_object(&j, "configuration");
        if (retention) {
                get_retention_properties(retention, names, values);
                for (size_t i = 0; i < RETENTION_PROPERTIES; i++)
                        json_out_str(&j, names[i], values[i]);
        }
        json_out_object_end(&j);
        json_out_int(&j, "createdTime", get_unix_ms());
        end_action_line(&j);
        return buf_status(out, err, "a commit");
}

static enum status append_metadata_change(struct buf *out, const struct delta_state *s, const struct delta_commit *c,
                                          struct error *err)
{
        _cleanup_buf_ struct buf schema;
        const char *text;
        enum status st;

        buf_init(&schema, LIMIT_DELTA_LINE_BYTES);
        if (!c->fields)
                return append_changed_metadata(out, s->metadata, NULL, c->retention, err);
        st = append_schema(&schema, c->fields, c->field_count, err);
        if (st)
                return st;
        text = buf_cstr(&schema);
        return text ? append_changed_metadata(out, s->metadata, text, c->retention, err)
                    : buf_status(&schema, err, "a table's schema");
}

static bool is_valid_part_path(const char *path)
{
        return *path &&
               strspn(path, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._=/-") == strlen(path);
}

static void append_partition_values(struct json_out *j, const struct delta_partition *partitions, size_t count)
{
        json_out_object(j, "partitionValues");
        for (size_t i = 0; i < count; i++)
                json_out_str(j, partitions[i].key, partitions[i].value);
        json_out_object_end(j);
}

static void append_remove_action(struct buf *out, const struct delta_file *f, bool data_change)
{
        struct json_out j;

        begin_action_line(&j, out, "remove");
        json_out_str(&j, "path", f->path);
        json_out_int(&j, "deletionTimestamp", get_unix_ms());
        json_out_bool(&j, "dataChange", data_change);
        json_out_bool(&j, "extendedFileMetadata", true);
        append_partition_values(&j, f->partitions, f->partition_count);
        json_out_uint(&j, "size", f->size);
        end_action_line(&j);
}

static void append_add_action(struct buf *out, const struct delta_add *a, bool data_change)
{
        struct json_out j;

        begin_action_line(&j, out, "add");
        json_out_str(&j, "path", a->path);
        append_partition_values(&j, a->partitions, a->partition_count);
        json_out_uint(&j, "size", a->size);
        json_out_int(&j, "modificationTime", get_unix_ms());
        json_out_bool(&j, "dataChange", data_change);
        if (a->stats)
                json_out_str(&j, "stats", a->stats);
        end_action_line(&j);
}

static void append_txn(struct buf *out, const char *app_id, int64_t version)
{
        struct json_out j;

        begin_action_line(&j, out, "txn");
        json_out_str(&j, "appId", app_id);
        json_out_int(&j, "version", version);
        json_out_int(&j, "lastUpdated", get_unix_ms());
        end_action_line(&j);
}

static enum status append_checked_add(struct buf *out, const struct delta_state *s, const struct delta_add *a,
                                      bool data_change, struct error *err)
{
        if (!is_valid_part_path(a->path) || !match_partition_columns(s->metadata, a))
                return error_set(err, ST_USAGE, "cannot add file '%s': invalid path or partition values", a->path);
        append_add_action(out, a, data_change);
        return ST_OK;
}

static enum status append_included(struct buf *out, const struct delta_state *s, const struct delta_actions *a,
                                   struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; i < a->txn_count; i++)
                append_txn(out, a->txns[i].app_id, a->txns[i].version);
        for (size_t i = 0; !st && i < a->add_count; i++) {
                const struct delta_file *f = &a->adds[i]->file;
                const struct delta_add add = { .path = f->path,
                                               .size = f->size,
                                               .stats = f->stats,
                                               .partitions = f->partitions,
                                               .partition_count = f->partition_count };

                st = append_checked_add(out, s, &add, true, err);
        }
        return st;
}

enum status delta_encode_commit(struct buf *out, const struct delta_state *s, const struct delta_commit *c,
                                struct error *err)
{
        append_commit_info(out, c, (c->add_count || c->included_count) && !c->remove_count);
        if (c->app_id)
                append_txn(out, c->app_id, c->txn_version);
        if (c->fields || c->retention) {
                enum status st = append_metadata_change(out, s, c, err);

                if (st)
                        return st;
        }
        for (size_t i = 0; i < c->remove_count; i++) {
                const struct delta_counted_file *f = delta_state_find(s, c->removes[i]);

                if (!f)
                        return error_set(err, ST_NOT_FOUND, "cannot remove file '%s': not in the table", c->removes[i]);
                append_remove_action(out, &f->file, !c->rearranges);
        }
        for (size_t i = 0; i < c->add_count; i++) {
                enum status st = append_checked_add(out, s, &c->adds[i], !c->rearranges, err);

                if (st)
                        return st;
        }
        for (size_t i = 0; i < c->included_count; i++) {
                enum status st = append_included(out, s, c->included[i], err);

                if (st)
                        return st;
        }
        return buf_status(out, err, "a commit");
}
