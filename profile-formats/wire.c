/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/wire.h"

#include <assert.h>
#include <string.h>

#define MAX_FIELD_NUMBER ((1u << 29) - 1)

static bool fail_wire_reader(struct reader *r)
{
        if (!r->failed) {
                r->failed = true;
                r->fail_at = r->base + r->pos;
        }
        return false;
}

static inline bool read_wire_varint(struct reader *r, uint64_t *ret)
{
        if (r->pos < r->size && r->data[r->pos] < 0x80) {
                *ret = r->data[r->pos++];
                return true;
        }
        return reader_uleb128(r, ret);
}

static bool read_wire_fixed32(struct reader *r, uint64_t *ret)
{
        uint32_t v;

        if (!reader_u32(r, &v))
                return false;
        *ret = v;
        return true;
}

bool wire_next(struct reader *r, struct wire_field *ret)
{
        uint64_t key, length;

        if (r->failed || reader_left(r) == 0 || !read_wire_varint(r, &key))
                return false;
        if (key >> 3 == 0 || key >> 3 > MAX_FIELD_NUMBER)
                return fail_wire_reader(r);
        ret->number = (uint32_t)(key >> 3);
        ret->type = key & 7;
        ret->consumed = false;
        ret->value = 0;
        switch (ret->type) {
        case WIRE_VARINT:
                reader_init(&ret->bytes, NULL, 0);
                return read_wire_varint(r, &ret->value);
        case WIRE_FIXED64:
                reader_init(&ret->bytes, NULL, 0);
                return reader_u64(r, &ret->value);
        case WIRE_FIXED32:
                reader_init(&ret->bytes, NULL, 0);
                return read_wire_fixed32(r, &ret->value);
        case WIRE_BYTES:
                return read_wire_varint(r, &length) && reader_sub(r, length, &ret->bytes);
        }
        return fail_wire_reader(r);
}

bool wire_next_number(struct wire_field *f, enum wire_type element, uint64_t *ret)
{
        assert(element == WIRE_VARINT || element == WIRE_FIXED64);
        if (f->type == WIRE_BYTES) {
                if (f->bytes.failed || reader_left(&f->bytes) == 0)
                        return false;
                return element == WIRE_FIXED64 ? reader_u64(&f->bytes, ret) : read_wire_varint(&f->bytes, ret);
        }
        if (f->type != element)
                return fail_wire_reader(&f->bytes);
        if (f->consumed)
                return false;
        f->consumed = true;
        *ret = f->value;
        return true;
}

static void put_wire_key(struct buf *b, uint32_t number, enum wire_type type)
{
        buf_append_uleb128(b, (uint64_t)number << 3 | type);
}

void wire_put_varint(struct buf *b, uint32_t number, uint64_t value)
{
        put_wire_key(b, number, WIRE_VARINT);
        buf_append_uleb128(b, value);
}

void wire_put_uint(struct buf *b, uint32_t number, uint64_t value)
{
        if (value)
                wire_put_varint(b, number, value);
}

static void put_wire_fixed64(struct buf *b, uint32_t number, uint64_t value)
{
        put_wire_key(b, number, WIRE_FIXED64);
        buf_append_u64(b, value);
}

void wire_put_fixed64(struct buf *b, uint32_t number, uint64_t value)
{
        if (value)
                put_wire_fixed64(b, number, value);
}

void wire_put_double(struct buf *b, uint32_t number, double value)
{
        uint64_t bits;

        memcpy(&bits, &value, sizeof bits);
        put_wire_fixed64(b, number, bits);
}

void wire_put_bytes(struct buf *b, uint32_t number, const void *data, size_t n)
{
        put_wire_key(b, number, WIRE_BYTES);
        buf_append_uleb128(b, n);
        buf_append(b, data, n);
}

void wire_put_str(struct buf *b, uint32_t number, const char *s)
{
        if (*s)
                wire_put_bytes(b, number, s, strlen(s));
}

size_t wire_begin(struct buf *b, uint32_t number)
{
        assert(number > 0 && number <= MAX_FIELD_NUMBER);
        put_wire_key(b, number, WIRE_BYTES);
        buf_append_u8(b, 0);
        return b->size;
}

void wire_end(struct buf *b, size_t mark)
{
        size_t content, extra = 0;
        uint8_t length[10];

        if (b->failed)
                return;
        assert(mark >= 2 && mark <= b->size); /* a tag and a length come before */
        content = b->size - mark;
        for (size_t n = content;; n >>= 7, extra++) {
                length[extra] = (n & 0x7f) | (n >> 7 ? 0x80 : 0);
                if (!(n >> 7))
                        break;
        }
        if (extra) {
                if (!buf_reserve(b, extra))
                        return;
                memmove(b->data + mark + extra, b->data + mark, content);
                buf_commit(b, extra);
        }
        memcpy(b->data + mark - 1, length, extra + 1);
}
