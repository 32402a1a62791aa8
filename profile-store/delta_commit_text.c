/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/delta_commit_text.h"

#include <string.h>
#include <sys/random.h>

#include "common/clock.h"
#include "common/json_out.h"
#include "common/limits.h"
#include "profile-store/delta_metadata.h"
#include "profile-store/delta_schema.h"

static int64_t now_ms(void)
{
        return wall_clock_ns() / 1000000;
}

static void line_begin(struct json_out *j, struct buf *out, const char *action)
{
        json_out_init(j, out);
        json_out_object(j, NULL);
        json_out_object(j, action);
}

static void line_end(struct json_out *j)
{
        json_out_object_end(j);
        json_out_object_end(j);
        buf_append_u8(j->buf, '\n');
}

static void append_commit_info(struct buf *out, const char *operation)
{
        struct json_out j;

        line_begin(&j, out, "commitInfo");
        json_out_int(&j, "timestamp", now_ms());
        json_out_str(&j, "operation", operation);
        json_out_object(&j, "operationParameters");
        json_out_object_end(&j);
        json_out_str(&j, "engineInfo", "cairn/" CAIRN_VERSION);
        line_end(&j);
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

static bool has_field(const struct parquet_field *fields, size_t count, const char *name)
{
        for (size_t i = 0; i < count; i++) {
                if (!strcmp(fields[i].name, name))
                        return fields[i].kind == PARQUET_STRING || fields[i].kind == PARQUET_DATE;
        }
        return false;
}

enum status delta_commit_text_create(struct buf *out, const struct parquet_field *fields, size_t field_count,
                                     const char *const *partition_columns, size_t partition_count, struct error *err)
{
        _cleanup_buf_ struct buf schema;
        struct json_out j;
        char uuid[37];
        enum status st;

        buf_init(&schema, LIMIT_DELTA_LINE_BYTES);
        st = delta_schema_append(&schema, fields, field_count, err);
        if (st)
                return st;
        if (!make_uuid(uuid))
                return error_os(err, errno, "cannot get random bytes for a table's identity");
        append_commit_info(out, "CREATE TABLE");
        line_begin(&j, out, "protocol");
        json_out_int(&j, "minReaderVersion", DELTA_READER_VERSION);
        json_out_int(&j, "minWriterVersion", DELTA_WRITER_VERSION);
        line_end(&j);
        line_begin(&j, out, "metaData");
        json_out_str(&j, "id", uuid);
        json_out_object(&j, "format");
        json_out_str(&j, "provider", "parquet");
        json_out_object(&j, "options");
        json_out_object_end(&j);
        json_out_object_end(&j);
        json_out_strn(&j, "schemaString", (const char *)schema.data, schema.size);
        json_out_array(&j, "partitionColumns");
        for (size_t i = 0; i < partition_count; i++) {
                if (!has_field(fields, field_count, partition_columns[i]))
                        return error_set(err, ST_USAGE, "'%s' cannot partition a table: no such string or date column",
                                         partition_columns[i]);
                json_out_str(&j, NULL, partition_columns[i]);
        }
        json_out_array_end(&j);
        json_out_object(&j, "configuration");
        json_out_object_end(&j);
        json_out_int(&j, "createdTime", now_ms());
        line_end(&j);
        return buf_status(out, err, "a commit");
}

static enum status append_schema_change(struct buf *out, const struct delta_state *s, const struct delta_commit *c,
                                        struct error *err)
{
        _cleanup_buf_ struct buf schema;
        const char *text;
        enum status st;

        buf_init(&schema, LIMIT_DELTA_LINE_BYTES);
        st = delta_schema_append(&schema, c->fields, c->field_count, err);
        if (st)
                return st;
        text = buf_cstr(&schema);
        return text ? delta_metadata_append(out, s->metadata, text, err) : buf_status(&schema, err, "a table's schema");
}

static bool path_valid(const char *path)
{
        return *path && strspn(path, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._=/-") == strlen(path);
}

static void append_partitions(struct json_out *j, const struct delta_partition *partitions, size_t count)
{
        json_out_object(j, "partitionValues");
        for (size_t i = 0; i < count; i++)
                json_out_str(j, partitions[i].key, partitions[i].value);
        json_out_object_end(j);
}

static void append_remove(struct buf *out, const struct delta_file *f, bool data_change)
{
        struct json_out j;

        line_begin(&j, out, "remove");
        json_out_str(&j, "path", f->path);
        json_out_int(&j, "deletionTimestamp", now_ms());
        json_out_bool(&j, "dataChange", data_change);
        json_out_bool(&j, "extendedFileMetadata", true);
        append_partitions(&j, f->partitions, f->partition_count);
        json_out_uint(&j, "size", f->size);
        line_end(&j);
}

static void append_add(struct buf *out, const struct delta_add *a, bool data_change)
{
        struct json_out j;

        line_begin(&j, out, "add");
        json_out_str(&j, "path", a->path);
        append_partitions(&j, a->partitions, a->partition_count);
        json_out_uint(&j, "size", a->size);
        json_out_int(&j, "modificationTime", now_ms());
        json_out_bool(&j, "dataChange", data_change);
        if (a->stats)
                json_out_str(&j, "stats", a->stats);
        line_end(&j);
}

enum status delta_commit_text(struct buf *out, const struct delta_state *s, const struct delta_commit *c,
                              struct error *err)
{
        struct json_out j;

        append_commit_info(out, c->operation ? c->operation : "WRITE");
        if (c->app_id) {
                line_begin(&j, out, "txn");
                json_out_str(&j, "appId", c->app_id);
                json_out_int(&j, "version", c->txn_version);
                json_out_int(&j, "lastUpdated", now_ms());
                line_end(&j);
        }
        if (c->fields) {
                enum status st = append_schema_change(out, s, c, err);

                if (st)
                        return st;
        }
        for (size_t i = 0; i < c->remove_count; i++) {
                const struct delta_live_file *f = delta_state_find(s, c->removes[i]);

                if (!f)
                        return error_set(err, ST_NOT_FOUND, "file '%s' to remove is not in the table", c->removes[i]);
                append_remove(out, &f->file, !c->rearranges);
        }
        for (size_t i = 0; i < c->add_count; i++) {
                if (!path_valid(c->adds[i].path) || !delta_metadata_partitions_fit(s->metadata, &c->adds[i]))
                        return error_set(err, ST_USAGE, "file '%s' cannot be added: its path or partition values do not fit",
                                         c->adds[i].path);
                append_add(out, &c->adds[i], !c->rearranges);
        }
        return buf_status(out, err, "a commit");
}
