/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/object_record.h"

#include <assert.h>
#include <string.h>

#include "common/reader.h"

#define RECORD_VERSION 1
#define FLAG_PINNED 1u
#define FLAG_PUT_ID 2u

/* The key begins with the build-id, so that the records of one build-id are adjacent. */
size_t record_make_key(uint8_t out[static RECORD_KEY_MAX], const struct build_id *id, enum object_kind kind)
{
        assert(id->size <= BUILD_ID_MAX && kind < OBJECT_KIND_COUNT);
        out[0] = id->size;
        memcpy(out + 1, id->bytes, id->size);
        out[1 + id->size] = (uint8_t)kind;
        return 2u + id->size;
}

void record_encode(struct buf *to, const struct stored_object *o)
{
        assert(o->source <= SOURCE_UPSTREAM && o->quality <= QUALITY_DWARF);
        buf_append_u8(to, RECORD_VERSION);
        buf_append_u8(to, (uint8_t)o->source);
        buf_append_u8(to, (uint8_t)o->quality);
        buf_append_u8(to, (uint8_t)((o->is_pinned ? FLAG_PINNED : 0) | (o->put_id ? FLAG_PUT_ID : 0)));
        buf_append_u64(to, o->size_bytes);
        buf_append_u64(to, o->stored_bytes);
        buf_append(to, o->sha256, sizeof o->sha256);
        buf_append_u64(to, (uint64_t)o->stored_unix_s);
        buf_append_u64(to, (uint64_t)o->used_unix_s);
        buf_append(to, o->name, strlen(o->name) + 1);
        buf_append(to, o->tag, strlen(o->tag) + 1);
        buf_append(to, o->token, strlen(o->token) + 1);
        if (o->put_id)
                buf_append_u64(to, o->put_id);
}

static bool read_text_field(struct reader *r, char *ret, size_t size)
{
        const char *text;

        if (!reader_cstr(r, &text) || strlen(text) >= size)
                return false;
        memcpy(ret, text, strlen(text) + 1);
        return true;
}

static bool read_record_fields(struct reader *r, struct stored_object *o)
{
        const uint8_t *sha;
        uint8_t source, quality, flags;
        uint64_t stored, used;

        if (!reader_u8(r, &source) || !reader_u8(r, &quality) || !reader_u8(r, &flags) ||
            !reader_u64(r, &o->size_bytes) || !reader_u64(r, &o->stored_bytes) ||
            !reader_bytes(r, sizeof o->sha256, &sha) || !reader_u64(r, &stored) || !reader_u64(r, &used) ||
            !read_text_field(r, o->name, sizeof o->name) || !read_text_field(r, o->tag, sizeof o->tag) ||
            !read_text_field(r, o->token, sizeof o->token) || (flags & FLAG_PUT_ID && !reader_u64(r, &o->put_id)))
                return false;
        if (source > SOURCE_UPSTREAM || quality > QUALITY_DWARF)
                return false;
        o->source = source;
        o->quality = quality;
        o->is_pinned = flags & FLAG_PINNED;
        o->stored_unix_s = (int64_t)stored;
        o->used_unix_s = (int64_t)used;
        memcpy(o->sha256, sha, sizeof o->sha256);
        return true;
}

enum status record_decode(const void *key, size_t key_size, const void *value, size_t value_size,
                          struct stored_object *ret, struct error *err)
{
        struct stored_object o = { 0 };
        const uint8_t *k = key;
        struct reader r;
        uint8_t version;

        if (key_size < 3 || key_size != 2u + k[0] || k[0] > BUILD_ID_MAX || k[key_size - 1] >= OBJECT_KIND_COUNT)
                return error_set(err, ST_BAD_DATA, "a debuginfo record has a damaged key");
        build_id_from_bytes(&o.build_id, k + 1, k[0]);
        o.kind = k[key_size - 1];
        reader_init(&r, value, value_size);
        if (reader_u8(&r, &version) && version > RECORD_VERSION)
                return error_set(err, ST_UNSUPPORTED,
                                 "a debuginfo record has version %u, this program supports up to %u", version,
                                 RECORD_VERSION);
        if (!value_size || version == 0 || !read_record_fields(&r, &o))
                return error_set(err, ST_BAD_DATA, "a debuginfo record is damaged");
        *ret = o;
        return ST_OK;
}
