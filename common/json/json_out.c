/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json/json_out.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text/utf8.h"

void json_out_quote(struct buf *buf, const char *s, size_t n)
{
        buf_append_u8(buf, '"');
        for (size_t i = 0; i < n;) {
                size_t plain = utf8_count_plain(s + i, n - i), len;
                unsigned char c;
                uint32_t reordering;

                buf_append(buf, s + i, plain);
                i += plain;
                if (i == n)
                        break;
                c = (unsigned char)s[i];
                reordering = utf8_reordering_code(s + i, n - i, &len);
                if (len == 0) {
                        buf_append_str(buf, "\xef\xbf\xbd");
                        i++;
                        continue;
                }
                if (c == '"' || c == '\\')
                        buf_printf(buf, "\\%c", c);
                else if (c == '\n' || c == '\t')
                        buf_append_str(buf, c == '\n' ? "\\n" : "\\t");
                else if (c < 0x20 || c == 0x7f)
                        buf_printf(buf, "\\u%04x", c);
                else if (reordering || utf8_is_c1(s + i, n - i)) /* JSON is also displayed on terminals */
                        buf_printf(buf, "\\u%04x", reordering ? reordering : (unsigned char)s[i + 1]);
                else
                        buf_append(buf, s + i, len);
                i += len;
        }
        buf_append_u8(buf, '"');
}

void json_out_init(struct json_out *j, struct buf *buf)
{
        *j = (struct json_out){ .buf = buf };
}

static void begin_value(struct json_out *j, const char *key)
{
        if (j->comma)
                buf_append_u8(j->buf, ',');
        if (key) {
                json_out_quote(j->buf, key, strlen(key));
                buf_append_u8(j->buf, ':');
        }
        j->comma = true;
}

static void open_scope(struct json_out *j, const char *key, char c)
{
        begin_value(j, key);
        buf_append_u8(j->buf, (uint8_t)c);
        j->comma = false;
}

static void close_scope(struct json_out *j, char c)
{
        buf_append_u8(j->buf, (uint8_t)c);
        j->comma = true;
}

void json_out_object(struct json_out *j, const char *key)
{
        open_scope(j, key, '{');
}

void json_out_object_end(struct json_out *j)
{
        close_scope(j, '}');
}

void json_out_array(struct json_out *j, const char *key)
{
        open_scope(j, key, '[');
}

void json_out_array_end(struct json_out *j)
{
        close_scope(j, ']');
}

void json_out_strn(struct json_out *j, const char *key, const char *value, size_t n)
{
        begin_value(j, key);
        json_out_quote(j->buf, value, n);
}

void json_out_plain(struct json_out *j, const char *key, const char *value, size_t n)
{
        uint8_t *at;

        begin_value(j, key);
        at = buf_reserve(j->buf, n + 2);
        if (!at)
                return;
        at[0] = '"';
        memcpy(at + 1, value, n);
        at[n + 1] = '"';
        buf_commit(j->buf, n + 2);
}

void json_out_str(struct json_out *j, const char *key, const char *value)
{
        if (value) {
                json_out_strn(j, key, value, strlen(value));
                return;
        }
        begin_value(j, key);
        buf_append_str(j->buf, "null");
}

static void append_decimal(struct buf *buf, uint64_t magnitude, bool is_negative)
{
        char text[21], *at = text + sizeof text;

        do
                *--at = (char)('0' + magnitude % 10);
        while (magnitude /= 10);
        if (is_negative)
                *--at = '-';
        buf_append(buf, at, (size_t)(text + sizeof text - at));
}

void json_out_int(struct json_out *j, const char *key, int64_t value)
{
        begin_value(j, key);
        append_decimal(j->buf, value < 0 ? -(uint64_t)value : (uint64_t)value, value < 0);
}

void json_out_uint(struct json_out *j, const char *key, uint64_t value)
{
        begin_value(j, key);
        append_decimal(j->buf, value, false);
}

void json_out_double(struct json_out *j, const char *key, double value)
{
        char text[32];

        begin_value(j, key);
        snprintf(text, sizeof text, "%.15g", value);
        if (isfinite(value) && strtod(text, NULL) == value)
                buf_append_str(j->buf, text);
        else if (isfinite(value))
                buf_printf(j->buf, "%.17g", value);
        else
                buf_append_str(j->buf, "null");
}

void json_out_bool(struct json_out *j, const char *key, bool value)
{
        begin_value(j, key);
        buf_append_str(j->buf, value ? "true" : "false");
}

void json_out_values(struct json_out *j, const void *values, size_t n)
{
        if (!n)
                return;
        begin_value(j, NULL);
        buf_append(j->buf, values, n);
}
