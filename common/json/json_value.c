/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json/json_value.h"

#include <string.h>

#include "common/json/json_scan.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"

#define KEY_BYTES 256 /* no key used by this program is longer */

enum status json_value_parse(const void *data, size_t n, struct json_value *ret, struct error *err)
{
        struct json_scan s;
        enum status st;

        json_scan_init(&s, data, n);
        if (json_scan_peek(&s) != '{')
                json_scan_fail(&s, s.at, "an object");
        else
                json_scan_skip(&s);
        st = json_scan_end(&s, err);
        if (st)
                return st;
        if (!utf8_valid(data, n))
                return error_set(err, ST_BAD_DATA, "the JSON is not valid UTF-8");
        *ret = (struct json_value){ data, n };
        return ST_OK;
}

/* Read the next value, which is well-formed. */
static bool take_value(struct json_scan *s, struct json_value *ret)
{
        const uint8_t *begin;

        json_scan_peek(s); /* skip white space */
        begin = s->at;
        if (!json_scan_skip(s))
                return false;
        *ret = (struct json_value){ begin, (size_t)(s->at - begin) };
        return true;
}

static bool key_matches(const struct json_span *span, const char *key)
{
        _cleanup_buf_ struct buf text;

        buf_init(&text, KEY_BYTES);
        if (!span->escaped)
                return json_span_is(span, key);
        json_span_unescape(span, &text);
        return !text.failed && text.size == strlen(key) && memcmp(text.data, key, text.size) == 0;
}

enum status json_value_check_members(const struct json_value *object, const char *const *names, struct error *err)
{
        struct json_value value;
        struct json_span span;
        struct json_scan s;

        json_scan_init(&s, object->data, object->size);
        json_scan_object(&s);
        while (json_scan_key(&s, &span) && take_value(&s, &value)) {
                const char *const *name = names;

                while (*name && !key_matches(&span, *name))
                        name++;
                if (!*name)
                        return error_set(err, ST_BAD_DATA, "the member '%.*s' is unknown",
                                         span.size < 60 ? (int)span.size : 60, span.text);
        }
        return ST_OK;
}

bool json_value_member(const struct json_value *object, const char *key, struct json_value *ret)
{
        struct json_value value;
        struct json_span span;
        struct json_scan s;
        bool found = false;

        json_scan_init(&s, object->data, object->size);
        json_scan_object(&s);
        while (json_scan_key(&s, &span)) {
                if (!take_value(&s, &value))
                        break;
                if (!key_matches(&span, key))
                        continue;
                *ret = value;
                found = true;
        }
        return found;
}

bool json_value_copy(const struct json_value *value, char *to, size_t size)
{
        _cleanup_buf_ struct buf text;
        struct json_span span;
        struct json_scan s;

        buf_init(&text, size - 1);
        json_scan_init(&s, value->data, value->size);
        if (!json_scan_str(&s, &span))
                return false;
        json_span_unescape(&span, &text);
        if (text.failed || (text.size && memchr(text.data, 0, text.size)))
                return false;
        if (text.size)
                memcpy(to, text.data, text.size);
        to[text.size] = 0;
        return true;
}

const char *json_value_text(const struct json_value *object, const char *key, char *to, size_t size)
{
        struct json_value value;

        return json_value_member(object, key, &value) && json_value_copy(&value, to, size) ? to : NULL;
}

uint64_t json_value_uint(const struct json_value *object, const char *key, uint64_t absent_value)
{
        struct json_value value;
        struct json_scan s;
        char text[32];
        uint64_t n;

        if (!json_value_member(object, key, &value))
                return absent_value;
        if (value.data[0] == '"')
                return json_value_copy(&value, text, sizeof text) && parse_uint(text, &n) ? n : UINT64_MAX;
        json_scan_init(&s, value.data, value.size);
        return json_scan_uint(&s, &n) ? n : UINT64_MAX;
}

bool json_value_bool(const struct json_value *object, const char *key, bool *ret)
{
        struct json_value value;
        struct json_scan s;

        if (!json_value_member(object, key, &value))
                return true;
        json_scan_init(&s, value.data, value.size);
        return json_scan_bool(&s, ret);
}

bool json_value_open_array(const struct json_value *array, struct json_scan *items_ret)
{
        json_scan_init(items_ret, array->data, array->size);
        return json_scan_array(items_ret);
}

bool json_value_next(struct json_scan *items, struct json_value *ret)
{
        return json_scan_item(items) && take_value(items, ret);
}

size_t json_value_count(const struct json_value *array, size_t max)
{
        struct json_value item;
        struct json_scan s;
        size_t count = 0;

        if (json_value_open_array(array, &s))
                while (count <= max && json_value_next(&s, &item))
                        count++;
        return count;
}
