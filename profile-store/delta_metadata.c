/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/delta_metadata.h"

#include <json-c/json.h>
#include <string.h>

static struct json_object *find_field(struct json_object *fields, const char *name)
{
        for (size_t i = 0; i < json_object_array_length(fields); i++) {
                struct json_object *f = json_object_array_get_idx(fields, i);
                const char *have = delta_json_text(f, "name");

                if (have && !strcmp(have, name))
                        return f;
        }
        return NULL;
}

static enum status check_fields(struct json_object *older, struct json_object *newer, struct error *err)
{
        for (size_t i = 0; i < json_object_array_length(older); i++) {
                struct json_object *f = json_object_array_get_idx(older, i);
                const char *name = delta_json_text(f, "name");

                if (!name || !json_object_equal(f, find_field(newer, name)))
                        return error_set(err, ST_USAGE, "the new schema drops or changes column '%s'", name ? name : "?");
        }
        for (size_t i = 0; i < json_object_array_length(newer); i++) {
                struct json_object *f = json_object_array_get_idx(newer, i);
                const char *name = delta_json_text(f, "name");

                if (!name || (!find_field(older, name) &&
                              !json_object_get_boolean(json_object_object_get(f, "nullable"))))
                        return error_set(err, ST_USAGE, "the new column '%s' is not optional", name ? name : "?");
        }
        return ST_OK;
}

static enum status check_growth(const char *older, const char *newer, struct error *err)
{
        struct json_object *a = delta_json_parse(older, strlen(older));
        struct json_object *b = delta_json_parse(newer, strlen(newer));
        struct json_object *a_fields = json_object_object_get(a, "fields");
        struct json_object *b_fields = json_object_object_get(b, "fields");
        enum status st;

        if (!json_object_is_type(a_fields, json_type_array) || !json_object_is_type(b_fields, json_type_array))
                st = error_no_memory(err); /* both were checked before: only memory can lack */
        else
                st = check_fields(a_fields, b_fields, err);
        json_object_put(a);
        json_object_put(b);
        return st;
}

enum status delta_metadata_append(struct buf *out, struct json_object *metadata, const char *schema_json,
                                  struct error *err)
{
        struct json_object *copy = NULL;
        enum status st = check_growth(delta_json_text(metadata, "schemaString"), schema_json, err);

        if (st)
                return st;
        if (json_object_deep_copy(metadata, &copy, NULL) < 0)
                return error_no_memory(err);
        json_object_object_add(copy, "schemaString", json_object_new_string(schema_json));
        buf_append_str(out, "{\"metaData\":");
        buf_append_str(out, json_object_to_json_string_ext(copy, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
        buf_append_str(out, "}\n");
        json_object_put(copy);
        return buf_status(out, err, "a commit");
}

bool delta_metadata_partitions_fit(struct json_object *metadata, const struct delta_add *add)
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
