/* SPDX-License-Identifier: Apache-2.0 */
#define ERROR_BODIES
#include "common/reader.h"

#include <assert.h>
#include <endian.h>
#include <inttypes.h>
#include <string.h>

void reader_init(struct reader *r, const void *data, size_t size)
{
        *r = (struct reader){ .data = data, .size = size };
}

static bool reader_fail(struct reader *r)
{
        if (!r->failed) {
                r->failed = true;
                r->fail_at = r->base + r->pos;
        }
        return false;
}

static bool reader_copy(struct reader *r, void *ret, size_t n)
{
        assert(r->pos <= r->size);
        if (n > reader_left(r))
                return reader_fail(r);
        memcpy(ret, r->data + r->pos, n);
        r->pos += n;
        return true;
}

bool reader_u8(struct reader *r, uint8_t *ret)
{
        return reader_copy(r, ret, 1);
}

bool reader_u16(struct reader *r, uint16_t *ret)
{
        uint16_t v;

        if (!reader_copy(r, &v, sizeof v))
                return false;
        *ret = r->big_endian ? be16toh(v) : le16toh(v);
        return true;
}

bool reader_u32(struct reader *r, uint32_t *ret)
{
        uint32_t v;

        if (!reader_copy(r, &v, sizeof v))
                return false;
        *ret = r->big_endian ? be32toh(v) : le32toh(v);
        return true;
}

bool reader_u64(struct reader *r, uint64_t *ret)
{
        uint64_t v;

        if (!reader_copy(r, &v, sizeof v))
                return false;
        *ret = r->big_endian ? be64toh(v) : le64toh(v);
        return true;
}

bool reader_uleb128(struct reader *r, uint64_t *ret)
{
        uint64_t v = 0;
        size_t pos = r->pos;

        for (unsigned shift = 0;; shift += 7) {
                uint8_t byte;

                if (pos == r->size)
                        return reader_fail(r);
                byte = r->data[pos++];
                if (shift >= 64 ? (byte & 0x7f) != 0 : shift == 63 && (byte & 0x7e))
                        return reader_fail(r);
                if (shift < 64)
                        v |= (uint64_t)(byte & 0x7f) << shift;
                if (!(byte & 0x80))
                        break;
                if (shift > 140)
                        return reader_fail(r);
        }
        r->pos = pos;
        *ret = v;
        return true;
}

bool reader_sleb128(struct reader *r, int64_t *ret)
{
        uint64_t v = 0;
        unsigned shift = 0;
        size_t pos = r->pos;
        uint8_t byte;

        do {
                if (pos == r->size)
                        return reader_fail(r);
                byte = r->data[pos++];
                if (shift < 63)
                        v |= (uint64_t)(byte & 0x7f) << shift;
                else if (shift == 63 && (byte & 0x7f) != 0 && (byte & 0x7f) != 0x7f)
                        return reader_fail(r);
                else if (shift == 63)
                        v |= (uint64_t)(byte & 1) << 63;
                else if ((byte & 0x7f) != ((v >> 63) ? 0x7f : 0) || shift > 140)
                        return reader_fail(r);
                shift += 7;
        } while (byte & 0x80);
        if (shift < 64 && (byte & 0x40))
                v |= UINT64_MAX << shift;
        r->pos = pos;
        *ret = (int64_t)v;
        return true;
}

bool reader_bytes(struct reader *r, uint64_t n, const uint8_t **ret)
{
        assert(r->pos <= r->size);
        if (n > reader_left(r))
                return reader_fail(r);
        *ret = r->data + r->pos;
        r->pos += n;
        return true;
}

bool reader_cstr(struct reader *r, const char **ret)
{
        const uint8_t *start = r->data + r->pos;
        const uint8_t *nul = reader_left(r) ? memchr(start, 0, reader_left(r)) : NULL;

        if (!nul)
                return reader_fail(r);
        r->pos += (size_t)(nul - start) + 1;
        *ret = (const char *)start;
        return true;
}

bool reader_skip(struct reader *r, uint64_t n)
{
        if (n > reader_left(r))
                return reader_fail(r);
        r->pos += n;
        return true;
}

bool reader_seek(struct reader *r, uint64_t pos)
{
        if (pos > r->size)
                return reader_fail(r);
        r->pos = pos;
        return true;
}

bool reader_sub(struct reader *r, uint64_t n, struct reader *ret)
{
        struct reader sub;

        assert(ret != r);
        if (n > reader_left(r))
                return reader_fail(r);
        reader_init(&sub, r->data + r->pos, n);
        sub.base = r->base + r->pos;
        sub.big_endian = r->big_endian;
        r->pos += n;
        *ret = sub;
        return true;
}

enum status reader_error(const struct reader *r, struct error *err, const char *what)
{
        uint64_t at = r->failed ? r->fail_at : r->base + r->pos;

        return error_at(err, ST_BAD_DATA, at, "%s is cut off or malformed at 0x%" PRIx64, what, at);
}
