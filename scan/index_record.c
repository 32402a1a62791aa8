/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/reader.h"
#include "scan/index_internal.h"

void scan_put_be32(uint8_t *to, uint32_t v)
{
        for (unsigned i = 0; i < 4; i++)
                to[i] = (uint8_t)(v >> (24 - 8 * i));
}

void scan_put_be64(uint8_t *to, uint64_t v)
{
        scan_put_be32(to, (uint32_t)(v >> 32));
        scan_put_be32(to + 4, (uint32_t)v);
}

uint32_t scan_get_be32(const uint8_t *from)
{
        return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

size_t scan_object_key(uint8_t out[static SCAN_KEY_MAX], const struct build_id *id, uint32_t number, uint32_t ordinal)
{
        out[0] = id->size;
        memcpy(out + 1, id->bytes, id->size);
        scan_put_be32(out + 1 + id->size, number);
        scan_put_be32(out + 5 + id->size, ordinal);
        return 9u + id->size;
}

void scan_sections_key(uint8_t out[static 8], uint32_t number, uint32_t ordinal)
{
        scan_put_be32(out, number);
        scan_put_be32(out + 4, ordinal);
}

void scan_file_encode(struct buf *to, const struct scan_file *f)
{
        buf_append_u64(to, (uint64_t)f->mtime_ns);
        buf_append_u64(to, f->size_bytes);
        buf_append_u64(to, f->inode);
        buf_append_u8(to, (uint8_t)f->class);
        buf_append_u8(to, f->is_of_use);
        buf_append(to, f->path, strlen(f->path) + 1);
}

enum status scan_file_decode(const MDB_val *value, struct scan_file *ret, struct error *err)
{
        uint64_t mtime;
        uint8_t class, of_use;
        struct reader r;

        reader_init(&r, value->mv_data, value->mv_size);
        if (!reader_u64(&r, &mtime) || !reader_u64(&r, &ret->size_bytes) || !reader_u64(&r, &ret->inode) ||
            !reader_u8(&r, &class) || !reader_u8(&r, &of_use) || !reader_cstr(&r, &ret->path) || class > FOUND_ARCHIVE)
                return error_set(err, ST_BAD_DATA, "a record of the scan index is damaged");
        ret->mtime_ns = (int64_t)mtime;
        ret->class = class;
        ret->is_of_use = of_use;
        return ST_OK;
}

void scan_object_encode(struct buf *to, const struct found_object *o)
{
        buf_append_u8(to, o->kinds);
        buf_append_u8(to, (uint8_t)o->quality);
        buf_append_u64(to, o->size_bytes);
        buf_append(to, o->path, strlen(o->path) + 1);
}

enum status scan_object_decode(const MDB_val *key, const MDB_val *value, struct found_object *ret, uint32_t *number_ret,
                               struct error *err)
{
        const uint8_t *k = key->mv_data;
        size_t n = key->mv_size;
        struct reader r;
        uint8_t quality;

        reader_init(&r, value->mv_data, value->mv_size);
        if (n < 10 || k[0] != n - 9 || !build_id_from_bytes(&ret->build_id, k + 1, n - 9) || !reader_u8(&r, &ret->kinds) ||
            !reader_u8(&r, &quality) || !reader_u64(&r, &ret->size_bytes) || !reader_cstr(&r, &ret->path) ||
            quality > QUALITY_DWARF)
                return error_set(err, ST_BAD_DATA, "a record of the scan index is damaged");
        ret->quality = quality;
        *number_ret = scan_get_be32(k + n - 8);
        ret->ordinal = scan_get_be32(k + n - 4);
        return ST_OK;
}
