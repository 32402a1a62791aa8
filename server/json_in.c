/* SPDX-License-Identifier: Apache-2.0 */
#include "server/json_in.h"

#include <json-c/json_object.h>
#include <json-c/json_tokener.h>
#include <limits.h>

#include "common/options.h"

#define MAX_DEPTH 16

enum status json_in_parse(const uint8_t *data, size_t n, struct json_object **ret, struct error *err)
{
        struct json_tokener *t;
        struct json_object *o;
        enum json_tokener_error bad;
        size_t end;

        if (n > INT_MAX)
                return error_set(err, ST_TOO_BIG, "the JSON is too large");
        t = json_tokener_new_ex(MAX_DEPTH);
        if (!t)
                return error_no_memory(err);
        json_tokener_set_flags(t, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
        o = json_tokener_parse_ex(t, n ? (const char *)data : "", (int)n);
        bad = json_tokener_get_error(t);
        end = json_tokener_get_parse_end(t);
        json_tokener_free(t);
        if (bad == json_tokener_success && json_object_is_type(o, json_type_object)) {
                *ret = o;
                return ST_OK;
        }
        json_object_put(o);
        return error_at(err, ST_BAD_DATA, end, "the body is no JSON object: %s at byte %zu",
                        bad == json_tokener_success ? "another type" : json_tokener_error_desc(bad), end);
}

const char *json_in_str(struct json_object *o, const char *key)
{
        struct json_object *v;

        return json_object_object_get_ex(o, key, &v) && json_object_is_type(v, json_type_string) ? json_object_get_string(v)
                                                                                                  : NULL;
}

uint64_t json_in_uint(struct json_object *o, const char *key, uint64_t absent_value)
{
        struct json_object *v;
        uint64_t n;

        if (!json_object_object_get_ex(o, key, &v))
                return absent_value;
        if (json_object_is_type(v, json_type_string))
                return parse_uint(json_object_get_string(v), &n) ? n : UINT64_MAX;
        if (!json_object_is_type(v, json_type_int) || (json_object_get_int64(v) < 0))
                return UINT64_MAX;
        return json_object_get_uint64(v);
}

bool json_in_bool(struct json_object *o, const char *key, bool *ret)
{
        struct json_object *v;

        if (!json_object_object_get_ex(o, key, &v))
                return true;
        if (!json_object_is_type(v, json_type_boolean))
                return false;
        *ret = json_object_get_boolean(v);
        return true;
}

struct json_object *json_in_object(struct json_object *o, const char *key)
{
        struct json_object *v;

        return json_object_object_get_ex(o, key, &v) && json_object_is_type(v, json_type_object) ? v : NULL;
}

struct json_object *json_in_array(struct json_object *o, const char *key)
{
        struct json_object *v;

        return json_object_object_get_ex(o, key, &v) && json_object_is_type(v, json_type_array) ? v : NULL;
}

void json_in_free(struct json_object *o)
{
        json_object_put(o);
}

size_t json_in_array_size(struct json_object *array)
{
        return json_object_array_length(array);
}

struct json_object *json_in_array_object(struct json_object *array, size_t i)
{
        struct json_object *v = json_object_array_get_idx(array, i);

        return json_object_is_type(v, json_type_object) ? v : NULL;
}

const char *json_in_array_str(struct json_object *array, size_t i)
{
        struct json_object *v = json_object_array_get_idx(array, i);

        return json_object_is_type(v, json_type_string) ? json_object_get_string(v) : NULL;
}
