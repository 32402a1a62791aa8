/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/delta_schema.h"

#include "common/json_out.h"
#include "common/limits.h"

static const char *primitive(enum parquet_kind kind)
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

static bool append_type(struct json_out *j, const char *key, const struct parquet_field *f, unsigned depth);

static bool append_struct(struct json_out *j, const char *key, const struct parquet_field *fields, size_t count,
                          unsigned depth)
{
        bool ok = true;

        json_out_object(j, key);
        json_out_str(j, "type", "struct");
        json_out_array(j, "fields");
        for (size_t i = 0; ok && i < count; i++) {
                json_out_object(j, NULL);
                json_out_str(j, "name", fields[i].name);
                ok = append_type(j, "type", &fields[i], depth);
                json_out_bool(j, "nullable", fields[i].optional);
                json_out_object(j, "metadata");
                json_out_object_end(j);
                json_out_object_end(j);
        }
        json_out_array_end(j);
        json_out_object_end(j);
        return ok;
}

static bool append_type(struct json_out *j, const char *key, const struct parquet_field *f, unsigned depth)
{
        bool ok;

        if (depth == 0)
                return false;
        if (primitive(f->kind)) {
                json_out_str(j, key, primitive(f->kind));
                return true;
        }
        if (f->kind == PARQUET_STRUCT)
                return append_struct(j, key, f->children, f->child_count, depth - 1);
        if (f->child_count != (f->kind == PARQUET_LIST ? 1 : 2) || f->kind > PARQUET_MAP)
                return false;
        json_out_object(j, key);
        if (f->kind == PARQUET_LIST) {
                json_out_str(j, "type", "array");
                ok = append_type(j, "elementType", &f->children[0], depth - 1);
                json_out_bool(j, "containsNull", f->children[0].optional);
        } else {
                json_out_str(j, "type", "map");
                ok = append_type(j, "keyType", &f->children[0], depth - 1) &&
                     append_type(j, "valueType", &f->children[1], depth - 1);
                json_out_bool(j, "valueContainsNull", f->children[1].optional);
        }
        json_out_object_end(j);
        return ok;
}

enum status delta_schema_append(struct buf *out, const struct parquet_field *fields, size_t count, struct error *err)
{
        struct json_out j;

        json_out_init(&j, out);
        if (!append_struct(&j, NULL, fields, count, LIMIT_PARQUET_DEPTH))
                return error_set(err, ST_USAGE, "a table's schema has a type that Delta does not have");
        return buf_status(out, err, "a table's schema");
}
