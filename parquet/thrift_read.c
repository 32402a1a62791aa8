/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/thrift_read.h"

#define SKIP_DEPTH 32

void thrift_fail(struct reader *r)
{
        if (r->failed)
                return;
        r->failed = true;
        r->fail_at = r->base + r->pos;
}

static bool varint(struct reader *r, uint64_t *ret)
{
        return !r->failed && reader_uleb128(r, ret);
}

static bool zigzag(struct reader *r, int64_t *ret)
{
        uint64_t v;

        if (!varint(r, &v))
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
        if (!(head >> 4) && !zigzag(r, &id))
                return false;
        s->type = head & 15;
        if (id <= s->id || id > INT16_MAX || s->type == THRIFT_STOP || s->type > THRIFT_UUID) {
                thrift_fail(r);
                return false;
        }
        s->id = (int16_t)id;
        return true;
}

static void list_header(struct reader *r, uint8_t *element_ret, size_t *count_ret)
{
        uint64_t count;
        uint8_t head;

        if (r->failed || !reader_u8(r, &head))
                return;
        count = head >> 4;
        if (count == 15 && !varint(r, &count))
                return;
        *element_ret = head & 15;
        if (count > reader_left(r) || *element_ret == THRIFT_STOP || *element_ret > THRIFT_UUID)
                thrift_fail(r);
        else
                *count_ret = (size_t)count;
}

static void skip(struct reader *r, uint8_t type, bool in_list, unsigned depth);

static void skip_struct(struct reader *r, unsigned depth)
{
        struct thrift_fields s = { 0 };

        while (thrift_field(r, &s))
                skip(r, s.type, false, depth);
}

static void skip_list(struct reader *r, unsigned depth)
{
        uint8_t element = 0;
        size_t count = 0;

        list_header(r, &element, &count);
        for (size_t i = 0; i < count && !r->failed; i++)
                skip(r, element, true, depth);
}

static void skip_map(struct reader *r, unsigned depth)
{
        uint64_t count;
        uint8_t types;

        if (!varint(r, &count) || count == 0 || !reader_u8(r, &types))
                return;
        for (uint64_t i = 0; i < count && !r->failed; i++) {
                skip(r, types >> 4, true, depth);
                skip(r, types & 15, true, depth);
        }
}

static void skip(struct reader *r, uint8_t type, bool in_list, unsigned depth)
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
                ok = varint(r, &n);
                break;
        case THRIFT_DOUBLE:
                ok = reader_skip(r, 8);
                break;
        case THRIFT_BINARY:
                ok = varint(r, &n) && reader_skip(r, n);
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
        skip(r, type, false, SKIP_DEPTH);
}

void thrift_read_i64(struct reader *r, uint8_t type, int64_t *ret)
{
        uint8_t byte;

        if (r->failed)
                return;
        if (type == THRIFT_I8) {
                if (reader_u8(r, &byte))
                        *ret = (int8_t)byte;
        } else if (type < THRIFT_I16 || type > THRIFT_I64 || !zigzag(r, ret)) {
                thrift_fail(r);
        }
}

void thrift_read_i32(struct reader *r, uint8_t type, int32_t *ret)
{
        int64_t v = *ret;

        thrift_read_i64(r, type, &v);
        if (v < INT32_MIN || v > INT32_MAX)
                thrift_fail(r);
        if (!r->failed)
                *ret = (int32_t)v;
}

void thrift_read_size(struct reader *r, uint8_t type, uint64_t *ret)
{
        int64_t v = 0;

        thrift_read_i64(r, type, &v);
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
        if (!varint(r, &n) || !reader_bytes(r, n, &data))
                return;
        *data_ret = data;
        *n_ret = (size_t)n;
}

void thrift_read_list(struct reader *r, uint8_t type, uint8_t *element_ret, size_t *count_ret)
{
        if (type != THRIFT_LIST)
                thrift_fail(r);
        list_header(r, element_ret, count_ret);
}

void thrift_read_struct_list(struct reader *r, uint8_t type, size_t *count_ret)
{
        uint8_t element = THRIFT_STRUCT;
        size_t count = 0;

        thrift_read_list(r, type, &element, &count);
        if (count && element != THRIFT_STRUCT)
                thrift_fail(r);
        if (!r->failed)
                *count_ret = count;
}
