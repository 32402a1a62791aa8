/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/rows/identity.h"

#include <endian.h>
#include <string.h>

#include "common/text/utf8.h"

void location_identity_normalize(struct location_identity *l)
{
        bool known_object = l->build_id && l->build_id->size;

        if (!known_object && l->frame_count)
                l->kind = ADDRESS_NONE;
        if (l->kind == ADDRESS_NONE)
                l->address = 0;
}

static void append_identity_text(struct buf *b, const char *s)
{
        buf_append(b, s, strlen(s) + 1);
}

/* Of a location of a known object without frames, which are most: the same bytes, without a buffer. */
static uint64_t hash_object_address(const struct location_identity *l)
{
        uint8_t bytes[2 + sizeof l->address + 1 + sizeof l->build_id->bytes];
        uint64_t address = htole64(l->address);

        bytes[0] = (uint8_t)l->kind;
        bytes[1] = l->is_kernel;
        memcpy(bytes + 2, &address, sizeof address);
        bytes[10] = l->build_id->size;
        memcpy(bytes + 11, l->build_id->bytes, l->build_id->size);
        return hash_bytes64(bytes, 11 + (size_t)l->build_id->size);
}

enum status location_identity_hash(const struct location_identity *l, struct buf *scratch, uint64_t *ret,
                                   struct error *err)
{
        bool known_object = l->build_id && l->build_id->size;
        enum status st;

        if (known_object && !l->frame_count) {
                *ret = hash_object_address(l);
                return ST_OK;
        }
        buf_clear(scratch);
        buf_append_u8(scratch, (uint8_t)l->kind);
        buf_append_u8(scratch, l->is_kernel);
        buf_append_u64(scratch, l->address);
        buf_append_u8(scratch, known_object ? l->build_id->size : 0);
        if (known_object)
                buf_append(scratch, l->build_id->bytes, l->build_id->size);
        else
                append_identity_text(scratch, l->mapping);
        for (uint32_t i = 0; i < l->frame_count; i++) {
                append_identity_text(scratch, l->frames[i].function);
                append_identity_text(scratch, l->frames[i].linkage_name);
                append_identity_text(scratch, l->frames[i].file);
                buf_append_u64(scratch, (uint64_t)l->frames[i].line);
        }
        st = buf_status(scratch, err, "a location's identity");
        if (!st)
                *ret = hash_bytes64(scratch->data, scratch->size);
        return st;
}

struct hash128 hash_stack_identity(const uint64_t *location_ids, size_t count)
{
        _Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "location ids are hashed in little-endian order");

        return hash_bytes128(location_ids, count * sizeof *location_ids);
}

static char normalize_ascii(char c)
{
        if (c >= 'A' && c <= 'Z')
                return (char)(c - 'A' + 'a');
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '_';
}

void normalize_label_key(const char *key, char *out)
{
        size_t left = strlen(key), reordering;

        while (left) {
                size_t n = utf8_sequence_length(key, left);

                if (n > 1 && !utf8_is_c1(key, left) && !utf8_reordering_code(key, left, &reordering)) {
                        memcpy(out, key, n);
                } else {
                        n = 1;
                        *out = normalize_ascii(*key);
                }
                key += n;
                out += n;
                left -= n;
        }
        *out = 0;
}
