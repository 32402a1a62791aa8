/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/thrift_write.h"

#include <assert.h>
#include <string.h>

void thrift_writer_init(struct thrift_writer *w, struct buf *buf)
{
        *w = (struct thrift_writer){ .buf = buf };
}

static uint64_t zigzag(int64_t v)
{
        return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static void field(struct thrift_writer *w, int16_t id, enum thrift_type type)
{
        int16_t delta;

        assert(w->depth > 0);
        delta = (int16_t)(id - w->last_id[w->depth - 1]);
        assert(delta > 0);
        if (delta < 16) {
                buf_append_u8(w->buf, (uint8_t)(delta << 4 | type));
        } else {
                buf_append_u8(w->buf, type);
                buf_append_uleb128(w->buf, zigzag(id));
        }
        w->last_id[w->depth - 1] = id;
}

void thrift_struct(struct thrift_writer *w, int16_t id)
{
        if (id)
                field(w, id, THRIFT_STRUCT);
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
        field(w, id, THRIFT_I16);
        buf_append_uleb128(w->buf, zigzag(v));
}

void thrift_i32(struct thrift_writer *w, int16_t id, int32_t v)
{
        field(w, id, THRIFT_I32);
        buf_append_uleb128(w->buf, zigzag(v));
}

void thrift_i64(struct thrift_writer *w, int16_t id, int64_t v)
{
        field(w, id, THRIFT_I64);
        buf_append_uleb128(w->buf, zigzag(v));
}

void thrift_bool(struct thrift_writer *w, int16_t id, bool v)
{
        field(w, id, v ? THRIFT_TRUE : THRIFT_FALSE);
}

void thrift_binary(struct thrift_writer *w, int16_t id, const void *data, size_t n)
{
        field(w, id, THRIFT_BINARY);
        thrift_element_binary(w, data, n);
}

void thrift_str(struct thrift_writer *w, int16_t id, const char *s)
{
        thrift_binary(w, id, s, strlen(s));
}

void thrift_list(struct thrift_writer *w, int16_t id, enum thrift_type element, size_t count)
{
        field(w, id, THRIFT_LIST);
        if (count < 15) {
                buf_append_u8(w->buf, (uint8_t)(count << 4 | element));
        } else {
                buf_append_u8(w->buf, (uint8_t)(0xf0 | element));
                buf_append_uleb128(w->buf, count);
        }
}

void thrift_element_i32(struct thrift_writer *w, int32_t v)
{
        buf_append_uleb128(w->buf, zigzag(v));
}

void thrift_element_i64(struct thrift_writer *w, int64_t v)
{
        buf_append_uleb128(w->buf, zigzag(v));
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
