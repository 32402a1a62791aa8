/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/json/json_wire.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json_scan.h"
#include "common/text/base64.h"
#include "common/text.h"
#include "profile-formats/wire.h"

#define NUMBER_BYTES 64 /* 17 digits determine a double */

bool json_wire_skip_null(struct json_scan *s)
{
        return json_scan_peek(s) == 'n' && json_scan_skip(s);
}

/* The text of a number, without quotes. */
static bool scan_number_span(struct json_scan *s, struct json_span *ret)
{
        uint8_t c = json_scan_peek(s);
        const uint8_t *begin = s->at;

        if (c == '"')
                return json_scan_str(s, ret);
        if (c != '-' && (c < '0' || c > '9'))
                return json_scan_fail(s, begin, "a number");
        if (!json_scan_skip(s))
                return false;
        *ret = (struct json_span){ (const char *)begin, (size_t)(s->at - begin), false };
        return true;
}

static bool parse_json_double(const struct json_span *span, double *ret)
{
        char text[NUMBER_BYTES + 1], *end;

        if (!span->size || span->size > NUMBER_BYTES)
                return false;
        for (size_t i = 0; i < span->size; i++)
                if (!span->text[i] || !strchr("+-.0123456789eE", span->text[i]))
                        return false;
        memcpy(text, span->text, span->size);
        text[span->size] = 0;
        *ret = strtod(text, &end);
        return !*end;
}

/* The exponent of a number, from its 'e' on; beyond any that a number of 64 bits has it is cut off. */
static int read_decimal_exponent(const char *at, const char *end)
{
        bool is_negative = ++at < end && *at == '-';
        int exponent = 0;

        for (at += at < end && (*at == '-' || *at == '+'); at < end && exponent < 1000; at++)
                exponent = exponent * 10 + (*at - '0');
        return is_negative ? -exponent : exponent;
}

/*
 * "5.0", "1.7e18": whole numbers with a fraction or an exponent, in the grammar of JSON: without leading zeros. They
 * are read as decimals, since a double has not all numbers of 64 bits.
 */
static bool parse_whole_decimal(const struct json_span *span, uint64_t *ret)
{
        const char *at = span->text, *end = at + span->size;
        bool is_negative = at < end && *at == '-', in_fraction = false;
        struct json_scan number;
        int scale = 0; /* the value is v * 10^scale */
        uint64_t v = 0;
        int zeros = 0; /* that follow v; trailing ones are not multiplied */

        json_scan_init(&number, span->text, span->size);
        if (span->size > NUMBER_BYTES || !json_scan_skip(&number) || number.at != number.end)
                return false;
        for (at += is_negative; at < end && *at != 'e' && *at != 'E'; at++) {
                if (*at == '.') {
                        in_fraction = true;
                        continue;
                }
                if (*at < '0' || *at > '9')
                        return false; /* a word or a text */
                scale -= in_fraction;
                zeros++;
                for (; *at != '0' && zeros; zeros--)
                        if (__builtin_mul_overflow(v, 10, &v))
                                return false;
                if (__builtin_add_overflow(v, *at - '0', &v))
                        return false;
        }
        if (at < end)
                scale += read_decimal_exponent(at, end);
        for (scale += zeros; scale > 0 && v; scale--)
                if (__builtin_mul_overflow(v, 10, &v))
                        return false;
        for (; scale < 0 && v; scale++, v /= 10)
                if (v % 10)
                        return false;
        if (is_negative && v > (uint64_t)INT64_MAX + 1)
                return false;
        *ret = is_negative ? 0 - v : v;
        return true;
}

bool json_wire_scan_integer(struct json_scan *s, uint64_t *ret, bool *is_negative_ret)
{
        struct json_span span;
        struct json_scan inner;
        bool is_negative, ok;

        if (!scan_number_span(s, &span))
                return false;
        is_negative = span.size && span.text[0] == '-';
        json_scan_init(&inner, span.text, span.size);
        if (is_negative)
                ok = json_scan_int(&inner, (int64_t *)ret);
        else
                ok = json_scan_uint(&inner, ret);
        ok = ok && inner.at == inner.end;
        if (!ok && !parse_whole_decimal(&span, ret))
                return json_scan_fail(s, (const uint8_t *)span.text, "a whole number of 64 bits");
        *is_negative_ret = is_negative && *ret;
        return true;
}

/* A number of the kind, which is not that of a message or a text. */
static bool scan_integer_of_kind(struct json_scan *s, enum json_wire_kind kind, uint64_t *ret)
{
        const uint8_t *begin;
        bool is_negative;

        json_scan_peek(s); /* skips blanks */
        begin = s->at;
        if (!json_wire_scan_integer(s, ret, &is_negative))
                return false;
        if (kind == JSON_WIRE_INTEGER ? !is_negative && *ret > INT64_MAX : is_negative)
                return json_scan_fail(s, begin, "a number that fits the field");
        return true;
}

bool json_wire_scan_double(struct json_scan *s, double *ret)
{
        static const struct {
                const char *name;
                double value;
        } named[] = { { "NaN", NAN }, { "Infinity", INFINITY }, { "-Infinity", -INFINITY } };
        struct json_span span;

        if (!scan_number_span(s, &span))
                return false;
        for (size_t i = 0; i < sizeof named / sizeof *named; i++)
                if (json_span_is(&span, named[i].name)) {
                        *ret = named[i].value;
                        return true;
                }
        return parse_json_double(&span, ret) || json_scan_fail(s, (const uint8_t *)span.text, "a number");
}

static void put_json_hex(struct json_scan *s, uint32_t number, struct buf *to)
{
        struct json_span span;
        size_t mark;

        if (!json_scan_str(s, &span))
                return;
        mark = wire_begin(to, number);
        for (size_t i = 0; i < span.size; i += 2) {
                int high = hex_digit_value(span.text[i]),
                    low = i + 1 < span.size ? hex_digit_value(span.text[i + 1]) : -1;

                if (high < 0 || low < 0) {
                        json_scan_fail(s, (const uint8_t *)span.text, "bytes as hexadecimal digits");
                        return;
                }
                buf_append_u8(to, (uint8_t)(high << 4 | low));
        }
        wire_end(to, mark);
}

void json_wire_put_text(struct json_scan *s, uint32_t number, struct buf *to)
{
        struct json_span span;
        size_t mark;

        if (!json_scan_str(s, &span))
                return;
        mark = wire_begin(to, number);
        json_span_unescape(&span, to);
        wire_end(to, mark);
}

/* An encoder may escape '/' and '='. */
static bool append_escaped_base64(struct buf *to, const struct json_span *span)
{
        _cleanup_buf_ struct buf text;

        buf_init_budget(&text, span->size, MEMORY_INGEST);
        json_span_unescape(span, &text);
        if (text.failed && !to->failed)
                to->failed = text.failed;
        return base64_decode_append(to, (const char *)text.data, text.size);
}

void json_wire_put_base64(struct json_scan *s, uint32_t number, struct buf *to)
{
        struct json_span span;
        size_t mark;

        if (!json_scan_str(s, &span))
                return;
        mark = wire_begin(to, number);
        if (!(span.escaped ? append_escaped_base64(to, &span) : base64_decode_append(to, span.text, span.size)))
                json_scan_fail(s, (const uint8_t *)span.text, "bytes in base64");
        wire_end(to, mark);
}

static void put_nested_message(struct json_scan *s, const struct json_wire_field *f, struct buf *to)
{
        size_t mark = wire_begin(to, f->number);

        json_wire_append(s, f->fields, to);
        wire_end(to, mark);
}

/* A singular value, or an element of a repeated field that is not packed. */
static void put_json_value(struct json_scan *s, const struct json_wire_field *f, struct buf *to)
{
        uint64_t v;
        double number = 0;
        bool truth;

        switch (f->kind) {
        case JSON_WIRE_MESSAGE:
                put_nested_message(s, f, to);
                break;
        case JSON_WIRE_INTEGER:
        case JSON_WIRE_UNSIGNED:
                if (scan_integer_of_kind(s, f->kind, &v))
                        wire_put_varint(to, f->number, v);
                break;
        case JSON_WIRE_FIXED64:
                if (scan_integer_of_kind(s, f->kind, &v))
                        wire_put_fixed64(to, f->number, v);
                break;
        case JSON_WIRE_DOUBLE:
                if (json_wire_scan_double(s, &number))
                        wire_put_double(to, f->number, number);
                break;
        case JSON_WIRE_BOOL:
                if (json_scan_bool(s, &truth))
                        wire_put_varint(to, f->number, truth);
                break;
        case JSON_WIRE_TEXT:
                json_wire_put_text(s, f->number, to);
                break;
        case JSON_WIRE_HEX:
                put_json_hex(s, f->number, to);
                break;
        case JSON_WIRE_BASE64:
                json_wire_put_base64(s, f->number, to);
                break;
        }
}

static void put_packed_array(struct json_scan *s, const struct json_wire_field *f, struct buf *to)
{
        size_t mark = wire_begin(to, f->number);
        uint64_t v;

        while (json_scan_item(s)) {
                if (!scan_integer_of_kind(s, f->kind, &v))
                        break;
                if (f->kind == JSON_WIRE_FIXED64)
                        buf_append_u64(to, v);
                else
                        buf_append_uleb128(to, v);
        }
        wire_end(to, mark);
}

static void put_json_member(struct json_scan *s, const struct json_wire_field *f, struct buf *to)
{
        if (json_wire_skip_null(s))
                return;
        if (!f->repeated) {
                put_json_value(s, f, to);
                return;
        }
        if (!json_scan_array(s))
                return;
        if (f->kind == JSON_WIRE_INTEGER || f->kind == JSON_WIRE_FIXED64) {
                put_packed_array(s, f, to);
                return;
        }
        while (json_scan_item(s) && !to->failed)
                put_json_value(s, f, to);
}

void json_wire_append(struct json_scan *s, const struct json_wire_field *fields, struct buf *to)
{
        struct json_span key;

        if (json_wire_skip_null(s) || !json_scan_object(s))
                return;
        while (json_scan_key(s, &key) && !to->failed) {
                const struct json_wire_field *f = fields;

                while (f->name && !json_span_is(&key, f->name))
                        f++;
                if (f->name)
                        put_json_member(s, f, to);
                else
                        json_scan_skip(s);
        }
}
