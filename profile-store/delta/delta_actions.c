/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In the file: counted files; the calls that add an action, used by the reader of checkpoints, too; JSON of actions;
 * an action of each kind; the lines of a commit.
 */
#include "profile-store/delta/delta_actions.h"

#include <assert.h>
#include <json-c/json.h>
#include <string.h>

#include "common/memory/array.h"
#include "common/cleanup.h"
#include "common/limits.h"
#include "common/text.h"

#define JSON_DEPTH 32
#define PARTITIONS_MAX 32
#define BATCH_ID_DIGITS 32

void delta_counted_file_ref(struct delta_counted_file *f)
{
        atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
}

void delta_counted_file_unref(struct delta_counted_file *f)
{
        if (atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) != 1)
                return;
        for (size_t i = 0; i < f->file.partition_count * 2 + 3; i++)
                free(f->memory[i]);
        free(f);
}

void delta_actions_deinit(struct delta_actions *a)
{
        for (size_t i = 0; i < a->add_count; i++)
                delta_counted_file_unref(a->adds[i]);
        for (size_t i = 0; i < a->remove_count; i++)
                delta_counted_file_unref(a->removes[i]);
        for (size_t i = 0; i < a->txn_count; i++)
                free(a->txns[i].app_id);
        free(a->adds);
        free(a->removes);
        free(a->txns);
        free(a->batch_ids);
        json_object_put(a->metadata);
        *a = (struct delta_actions){ 0 };
}

/* Percent-decode a path in place. False when it leads outside the table. */
static bool decode_file_path(char *path)
{
        char *to = path;

        assert(path);
        for (const char *from = path; *from; from++) {
                int high, low;

                if (*from != '%') {
                        *to++ = *from;
                        continue;
                }
                high = hex_digit_value(from[1]);
                low = high < 0 ? -1 : hex_digit_value(from[2]);
                if (low < 0 || (high | low) == 0)
                        return false;
                *to++ = (char)(high << 4 | low);
                from += 2;
        }
        *to = 0;
        if (!*path || *path == '/' || strlen(path) >= LIMIT_PATH_BYTES || strstr(path, "://"))
                return false;
        for (const char *part = path; part; part = strchr(part, '/')) {
                part += *part == '/';
                if (!strncmp(part, "..", 2) && (part[2] == '/' || !part[2]))
                        return false;
        }
        return true;
}

/* strdup() that accepts NULL. False when memory runs out. */
static bool duplicate_string(const char *s, char **ret)
{
        *ret = s ? strdup(s) : NULL;
        return !s || *ret;
}

/* Append a copy of f without its numbers to a list; *ret is in the list even after a failure. */
static enum status append_counted_file(struct delta_counted_file ***list, size_t *count, size_t *capacity,
                                       const struct delta_file *from, struct delta_counted_file **ret,
                                       struct error *err)
{
        struct delta_partition *copies;
        struct delta_counted_file *f;
        bool ok;

        if (*count >= LIMIT_DELTA_FILES)
                return error_set(err, ST_TOO_BIG, "a table of more than %d files", LIMIT_DELTA_FILES);
        if (from->partition_count > PARTITIONS_MAX)
                return error_set(err, ST_TOO_BIG, "a file with %zu partition values", from->partition_count);
        f = calloc(1, sizeof *f + (from->partition_count * 2 + 3) * sizeof *f->memory);
        if (!f || !array_reserve(list, capacity, *count)) {
                free(f);
                return error_no_memory(err);
        }
        f->refs = 1;
        f->file.partition_count = from->partition_count;
        copies = calloc(from->partition_count + 1, sizeof *copies);
        f->memory[0] = (char *)copies;
        ok = copies && duplicate_string(from->path, &f->memory[1]) && duplicate_string(from->stats, &f->memory[2]);
        for (size_t i = 0; ok && i < from->partition_count; i++) {
                ok = duplicate_string(from->partitions[i].key, &f->memory[3 + 2 * i]) &&
                     duplicate_string(from->partitions[i].value, &f->memory[4 + 2 * i]);
                copies[i] = (struct delta_partition){ f->memory[3 + 2 * i], f->memory[4 + 2 * i] };
        }
        (*list)[(*count)++] = f;
        if (!ok)
                return error_no_memory(err);
        if (!decode_file_path(f->memory[1]))
                return error_set(err, ST_BAD_DATA, "a file '%s' outside the table", from->path);
        f->file.path = f->memory[1];
        f->file.stats = f->memory[2];
        f->file.partitions = copies;
        *ret = f;
        return ST_OK;
}

enum status delta_actions_add_file(struct delta_actions *a, const struct delta_file *from, struct error *err)
{
        struct delta_counted_file *f;
        enum status st = append_counted_file(&a->adds, &a->add_count, &a->add_capacity, from, &f, err);

        if (st)
                return st;
        f->file.size = from->size;
        f->file.modified_ms = from->modified_ms;
        return ST_OK;
}

enum status delta_actions_remove_file(struct delta_actions *a, const struct delta_file *from, struct error *err)
{
        struct delta_counted_file *f;
        enum status st = append_counted_file(&a->removes, &a->remove_count, &a->remove_capacity, from, &f, err);

        if (st)
                return st;
        f->file.size = from->size;
        f->file.removed_ms = from->removed_ms;
        f->file.removal_changes_data = from->removal_changes_data;
        return ST_OK;
}

enum status delta_actions_add_txn(struct delta_actions *a, const char *app_id, int64_t version, int64_t last_updated_ms,
                                  struct error *err)
{
        char *copy;

        if (!array_reserve(&a->txns, &a->txn_capacity, a->txn_count) || !(copy = strdup(app_id)))
                return error_no_memory(err);
        a->txns[a->txn_count++] = (struct delta_txn){ copy, version, last_updated_ms };
        return ST_OK;
}

enum status delta_actions_set_protocol(struct delta_actions *a, int64_t reader, int64_t writer, struct error *err)
{
        if (reader > DELTA_READER_VERSION || writer > DELTA_WRITER_VERSION)
                return error_set(err, ST_UNSUPPORTED,
                                 "the table needs Delta reader %jd and writer %jd; supported are %d and %d",
                                 (intmax_t)reader, (intmax_t)writer, DELTA_READER_VERSION, DELTA_WRITER_VERSION);
        a->has_protocol = true;
        return ST_OK;
}

enum status delta_actions_set_metadata(struct delta_actions *a, struct json_object *metadata, struct error *err)
{
        struct json_object *columns = json_object_object_get(metadata, "partitionColumns");
        const char *schema = delta_json_get_string(metadata, "schemaString");
        struct json_object *parsed = schema ? delta_json_parse(schema, strlen(schema)) : NULL;
        struct json_object *fields = json_object_object_get(parsed, "fields");
        bool ok = json_object_is_type(fields, json_type_array) && json_object_is_type(columns, json_type_array) &&
                  json_object_array_length(columns) <= PARTITIONS_MAX && delta_json_get_string(metadata, "id");

        for (size_t i = 0; ok && i < json_object_array_length(columns); i++)
                ok = json_object_is_type(json_object_array_get_idx(columns, i), json_type_string);
        for (size_t i = 0; ok && i < json_object_array_length(fields); i++)
                ok = delta_json_get_string(json_object_array_get_idx(fields, i), "name") != NULL;
        json_object_put(parsed);
        json_object_put(a->metadata);
        a->metadata = metadata;
        return ok ? ST_OK : error_set(err, ST_BAD_DATA, "a metaData action is malformed");
}

const char *delta_json_get_string(struct json_object *o, const char *key)
{
        struct json_object *v = json_object_is_type(o, json_type_object) ? json_object_object_get(o, key) : NULL;
        const char *s;

        if (!json_object_is_type(v, json_type_string))
                return NULL;
        s = json_object_get_string(v);
        return strlen(s) == (size_t)json_object_get_string_len(v) ? s : NULL;
}

struct json_object *delta_json_parse(const char *text, size_t n)
{
        struct json_tokener *t;
        struct json_object *o;

        if (n > LIMIT_DELTA_LINE_BYTES || !(t = json_tokener_new_ex(JSON_DEPTH)))
                return NULL;
        o = json_tokener_parse_ex(t, text, (int)n);
        if (!o && json_tokener_get_error(t) == json_tokener_continue)
                o = json_tokener_parse_ex(t, "", 1); /* a number needs a delimiter */
        else if (json_tokener_get_parse_end(t) != n) {
                json_object_put(o);
                o = NULL;
        }
        json_tokener_free(t);
        return o;
}

static bool get_json_int(struct json_object *o, const char *key, int64_t *ret)
{
        struct json_object *v = json_object_object_get(o, key);

        if (!json_object_is_type(v, json_type_int))
                return false;
        *ret = json_object_get_int64(v);
        return true;
}

/* False when absent, malformed, or too many. The texts are borrowed. */
static bool get_partition_values(struct json_object *o, struct delta_partition ret[static PARTITIONS_MAX],
                                 size_t *count_ret)
{
        struct json_object *values = json_object_object_get(o, "partitionValues");
        size_t count = 0;

        if (!json_object_is_type(values, json_type_object) || json_object_object_length(values) > PARTITIONS_MAX)
                return false;
        json_object_object_foreach(values, key, value)
        {
                (void)value;
                ret[count++] = (struct delta_partition){ key, delta_json_get_string(values, key) };
        }
        *count_ret = count;
        return true;
}

static enum status parse_add_action(struct delta_actions *a, struct json_object *o, struct error *err)
{
        struct delta_partition partitions[PARTITIONS_MAX];
        struct delta_file f = { .path = delta_json_get_string(o, "path"),
                                .stats = delta_json_get_string(o, "stats"),
                                .partitions = partitions };
        int64_t size;

        if (!f.path || !get_json_int(o, "size", &size) || size < 0 ||
            !get_json_int(o, "modificationTime", &f.modified_ms) ||
            !get_partition_values(o, partitions, &f.partition_count))
                return error_set(err, ST_BAD_DATA, "an add action is malformed");
        f.size = (uint64_t)size;
        return delta_actions_add_file(a, &f, err);
}

/* All members but the path are optional (PROTOCOL.md, "Add File and Remove File"). */
static enum status parse_remove_action(struct delta_actions *a, struct json_object *o, struct error *err)
{
        struct delta_partition partitions[PARTITIONS_MAX];
        struct json_object *data_change = json_object_object_get(o, "dataChange");
        struct delta_file f = { .path = delta_json_get_string(o, "path"), .removal_changes_data = true };
        int64_t size;

        if (!f.path)
                return error_set(err, ST_BAD_DATA, "a remove action has no path");
        if (get_json_int(o, "size", &size) && size > 0)
                f.size = (uint64_t)size;
        if (json_object_is_type(data_change, json_type_boolean))
                f.removal_changes_data = json_object_get_boolean(data_change);
        (void)get_json_int(o, "deletionTimestamp", &f.removed_ms);
        if (get_partition_values(o, partitions, &f.partition_count))
                f.partitions = partitions;
        return delta_actions_remove_file(a, &f, err);
}

static bool parse_batch_id_digits(const char *digits, struct hash128 *ret)
{
        for (size_t i = 0; i < sizeof ret->bytes; i++) {
                int high = hex_digit_value(digits[2 * i]), low = hex_digit_value(digits[2 * i + 1]);

                if (high < 0 || low < 0)
                        return false;
                ret->bytes[i] = (uint8_t)(high << 4 | low);
        }
        return true;
}

static enum status parse_commit_info(struct delta_actions *a, struct json_object *o, struct error *err)
{
        const char *text = delta_json_get_string(o, DELTA_BATCH_IDS);
        size_t count = text ? strlen(text) / BATCH_ID_DIGITS : 0;

        if (!count)
                return ST_OK;
        free(a->batch_ids);
        a->batch_id_count = 0;
        a->batch_ids = calloc(count, sizeof *a->batch_ids);
        if (!a->batch_ids)
                return error_no_memory(err);
        while (a->batch_id_count < count) {
                if (!parse_batch_id_digits(text + a->batch_id_count * BATCH_ID_DIGITS,
                                           &a->batch_ids[a->batch_id_count]))
                        return error_set(err, ST_BAD_DATA, "a batch id of a commit is malformed");
                a->batch_id_count++;
        }
        return ST_OK;
}

static enum status parse_delta_action(struct delta_actions *a, const char *kind, struct json_object *o,
                                      struct error *err)
{
        const char *text;
        int64_t x = 0, y = 0;

        if (!json_object_is_type(o, json_type_object))
                return error_set(err, ST_BAD_DATA, "action '%.40s' is not an object", kind);
        if (!strcmp(kind, "add"))
                return parse_add_action(a, o, err);
        if (!strcmp(kind, "remove"))
                return parse_remove_action(a, o, err);
        if (!strcmp(kind, "metaData"))
                return delta_actions_set_metadata(a, json_object_get(o), err);
        if (!strcmp(kind, "protocol")) {
                if (!get_json_int(o, "minReaderVersion", &x) || !get_json_int(o, "minWriterVersion", &y))
                        return error_set(err, ST_BAD_DATA, "a protocol action has no versions");
                return delta_actions_set_protocol(a, x, y, err);
        }
        if (!strcmp(kind, "txn")) {
                text = delta_json_get_string(o, "appId");
                if (!text || !get_json_int(o, "version", &x))
                        return error_set(err, ST_BAD_DATA, "a txn action is malformed");
                (void)get_json_int(o, "lastUpdated", &y);
                return delta_actions_add_txn(a, text, x, y, err);
        }
        if (!strcmp(kind, "commitInfo"))
                return parse_commit_info(a, o, err);
        return ST_OK; /* other actions that a reader may ignore */
}

static enum status parse_delta_line(struct delta_actions *a, const char *line, size_t n, struct error *err)
{
        struct json_object *o = delta_json_parse(line, n);
        enum status st = ST_OK;

        if (!json_object_is_type(o, json_type_object)) {
                json_object_put(o);
                return error_set(err, ST_BAD_DATA, "a line is not a JSON object");
        }
        json_object_object_foreach(o, kind, action)
        {
                st = parse_delta_action(a, kind, action, err);
                if (st)
                        break;
        }
        json_object_put(o);
        return st;
}

enum status delta_actions_parse(const char *text, size_t n, struct delta_actions *ret, struct error *err)
{
        struct delta_actions a = { 0 };

        for (size_t pos = 0; pos < n;) {
                const char *end = memchr(text + pos, '\n', n - pos);
                size_t len = end ? (size_t)(end - text) - pos : n - pos;
                enum status st = len ? parse_delta_line(&a, text + pos, len, err) : ST_OK;

                if (st) {
                        delta_actions_deinit(&a);
                        if (err)
                                err->offset = pos;
                        return st;
                }
                pos += len + 1;
        }
        *ret = a;
        return ST_OK;
}
