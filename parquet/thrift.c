/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/thrift.h"

#include <assert.h>
#include <string.h>

void thrift_writer_init(struct thrift_writer *w, struct buf *buf)
{
        *w = (struct thrift_writer){ .buf = buf };
}

static uint64_t append_zigzag_varint(int64_t v)
{
        return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static void append_field_header(struct thrift_writer *w, int16_t id, enum thrift_type type)
{
        int16_t delta;

        assert(w->depth > 0);
        delta = (int16_t)(id - w->last_id[w->depth - 1]);
        assert(delta > 0);
        if (delta < 16) {
                buf_append_u8(w->buf, (uint8_t)(delta << 4 | type));
        } else {
                buf_append_u8(w->buf, type);
                buf_append_uleb128(w->buf, append_zigzag_varint(id));
        }
        w->last_id[w->depth - 1] = id;
}

void thrift_struct(struct thrift_writer *w, int16_t id)
{
        if (id)
                append_field_header(w, id, THRIFT_STRUCT);
        assert(w->depth < THRIFT_DEPTH);
        w->last_id[w->depth++] = 0;
}

void thrift_struct_end(struct thrift_writer *w)
{
        assert(w->depth > 0);
        w->depth--;
        buf_append_u8(w->buf, THRIFT_STOP);
}

void thrift_i16(struct thrift_writer *w, int16_t id, int16_t v)
{
        append_field_header(w, id, THRIFT_I16);
        buf_append_uleb128(w->buf, append_zigzag_varint(v));
}

void thrift_i32(struct thrift_writer *w, int16_t id, int32_t v)
{
        append_field_header(w, id, THRIFT_I32);
        buf_append_uleb128(w->buf, append_zigzag_varint(v));
}

void thrift_i64(struct thrift_writer *w, int16_t id, int64_t v)
{
        append_field_header(w, id, THRIFT_I64);
        buf_append_uleb128(w->buf, append_zigzag_varint(v));
}

void thrift_bool(struct thrift_writer *w, int16_t id, bool v)
{
        append_field_header(w, id, v ? THRIFT_TRUE : THRIFT_FALSE);
}

void thrift_binary(struct thrift_writer *w, int16_t id, const void *data, size_t n)
{
        append_field_header(w, id, THRIFT_BINARY);
        thrift_element_binary(w, data, n);
}

void thrift_str(struct thrift_writer *w, int16_t id, const char *s)
{
        thrift_binary(w, id, s, strlen(s));
}

void thrift_list(struct thrift_writer *w, int16_t id, enum thrift_type element, size_t count)
{
        append_field_header(w, id, THRIFT_LIST);
        if (count < 15) {
                buf_append_u8(w->buf, (uint8_t)(count << 4 | element));
        } else {
                buf_append_u8(w->buf, (uint8_t)(0xf0 | element));
                buf_append_uleb128(w->buf, count);
        }
}

void thrift_element_i32(struct thrift_writer *w, int32_t v)
{
        buf_append_uleb128(w->buf, append_zigzag_varint(v));
}

void thrift_element_i64(struct thrift_writer *w, int64_t v)
{
        buf_append_uleb128(w->buf, append_zigzag_varint(v));
}

void thrift_element_bool(struct thrift_writer *w, bool v)
{
        buf_append_u8(w->buf, v ? THRIFT_TRUE : THRIFT_FALSE);
}

void thrift_element_binary(struct thrift_writer *w, const void *data, size_t n)
{
        buf_append_uleb128(w->buf, n);
        buf_append(w->buf, data, n);
}

/* ---- reading ---- */

#define SKIP_DEPTH 32

void thrift_fail(struct reader *r)
{
        if (r->failed)
                return;
        r->failed = true;
        r->fail_at = r->base + r->pos;
}

static bool read_thrift_varint(struct reader *r, uint64_t *ret)
{
        return !r->failed && reader_uleb128(r, ret);
}

static bool read_zigzag(struct reader *r, int64_t *ret)
{
        uint64_t v;

        if (!read_thrift_varint(r, &v))
                return false;
        *ret = (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
        return true;
}

bool thrift_field(struct reader *r, struct thrift_fields *s)
{
        uint8_t head;
        int64_t id;

        if (r->failed || !reader_u8(r, &head) || head == THRIFT_STOP)
                return false;
        id = s->id + (head >> 4);
        if (!(head >> 4) && !read_zigzag(r, &id))
                return false;
        s->type = head & 15;
        if (id <= s->id || id > INT16_MAX || s->type == THRIFT_STOP || s->type > THRIFT_UUID) {
                thrift_fail(r);
                return false;
        }
        s->id = (int16_t)id;
        return true;
}

static void read_list_header(struct reader *r, uint8_t *element_ret, size_t *count_ret)
{
        uint64_t count;
        uint8_t head;

        if (r->failed || !reader_u8(r, &head))
                return;
        count = head >> 4;
        if (count == 15 && !read_thrift_varint(r, &count))
                return;
        *element_ret = head & 15;
        if (count > reader_left(r) || *element_ret == THRIFT_STOP || *element_ret > THRIFT_UUID)
                thrift_fail(r);
        else
                *count_ret = (size_t)count;
}

static void skip_value(struct reader *r, uint8_t type, bool in_list, unsigned depth);

static void skip_struct(struct reader *r, unsigned depth)
{
        struct thrift_fields s = { 0 };

        while (thrift_field(r, &s))
                skip_value(r, s.type, false, depth);
}

static void skip_list(struct reader *r, unsigned depth)
{
        uint8_t element = 0;
        size_t count = 0;

        read_list_header(r, &element, &count);
        for (size_t i = 0; i < count && !r->failed; i++)
                skip_value(r, element, true, depth);
}

static void skip_map(struct reader *r, unsigned depth)
{
        uint64_t count;
        uint8_t types;

        if (!read_thrift_varint(r, &count) || count == 0 || !reader_u8(r, &types))
                return;
        for (uint64_t i = 0; i < count && !r->failed; i++) {
                skip_value(r, types >> 4, true, depth);
                skip_value(r, types & 15, true, depth);
        }
}

static void skip_value(struct reader *r, uint8_t type, bool in_list, unsigned depth)
{
        uint64_t n = 0;
        bool ok = true;

        if (r->failed)
                return;
        if (depth == 0) {
                thrift_fail(r);
                return;
        }
        switch (type) {
        case THRIFT_TRUE:
        case THRIFT_FALSE:
                ok = reader_skip(r, in_list);
                break;
        case THRIFT_I8:
                ok = reader_skip(r, 1);
                break;
        case THRIFT_I16:
        case THRIFT_I32:
        case THRIFT_I64:
                ok = read_thrift_varint(r, &n);
                break;
        case THRIFT_DOUBLE:
                ok = reader_skip(r, 8);
                break;
        case THRIFT_BINARY:
                ok = read_thrift_varint(r, &n) && reader_skip(r, n);
                break;
        case THRIFT_LIST:
        case THRIFT_SET:
                skip_list(r, depth - 1);
                break;
        case THRIFT_MAP:
                skip_map(r, depth - 1);
                break;
        case THRIFT_STRUCT:
                skip_struct(r, depth - 1);
                break;
        case THRIFT_UUID:
                ok = reader_skip(r, 16);
                break;
        default:
                ok = false;
        }
        if (!ok)
                thrift_fail(r);
}

void thrift_skip(struct reader *r, uint8_t type)
{
        skip_value(r, type, false, SKIP_DEPTH);
}

static void read_thrift_integer(struct reader *r, uint8_t type, int64_t *ret)
{
        uint8_t byte;

        if (r->failed)
                return;
        if (type == THRIFT_I8) {
                if (reader_u8(r, &byte))
                        *ret = (int8_t)byte;
        } else if (type < THRIFT_I16 || type > THRIFT_I64 || !read_zigzag(r, ret)) {
                thrift_fail(r);
        }
}

void thrift_read_i32(struct reader *r, uint8_t type, int32_t *ret)
{
        int64_t v = *ret;

        read_thrift_integer(r, type, &v);
        if (v < INT32_MIN || v > INT32_MAX)
                thrift_fail(r);
        if (!r->failed)
                *ret = (int32_t)v;
}

void thrift_read_size(struct reader *r, uint8_t type, uint64_t *ret)
{
        int64_t v = 0;

        read_thrift_integer(r, type, &v);
        if (v < 0)
                thrift_fail(r);
        if (!r->failed)
                *ret = (uint64_t)v;
}

void thrift_read_bool(struct reader *r, uint8_t type, bool *ret)
{
        if (type != THRIFT_TRUE && type != THRIFT_FALSE)
                thrift_fail(r);
        if (!r->failed)
                *ret = type == THRIFT_TRUE;
}

void thrift_read_binary(struct reader *r, uint8_t type, const uint8_t **data_ret, size_t *n_ret)
{
        const uint8_t *data;
        uint64_t n;

        if (type != THRIFT_BINARY)
                thrift_fail(r);
        if (!read_thrift_varint(r, &n) || !reader_bytes(r, n, &data))
                return;
        *data_ret = data;
        *n_ret = (size_t)n;
}

void thrift_read_struct_list(struct reader *r, uint8_t type, size_t *count_ret)
{
        uint8_t element = THRIFT_STRUCT;
        size_t count = 0;

        if (type != THRIFT_LIST)
                thrift_fail(r);
        read_list_header(r, &element, &count);
        if (count && element != THRIFT_STRUCT)
                thrift_fail(r);
        if (!r->failed)
                *count_ret = count;
}
