/* SPDX-License-Identifier: Apache-2.0 */
#include "common/build_id.h"

#include <assert.h>
#include <string.h>

#include "common/hash.h"
#include "common/text.h"

const struct build_id unknown_build_id;

bool build_id_from_bytes(struct build_id *ret, const void *bytes, size_t n)
{
        if (n == 0 || n > BUILD_ID_MAX)
                return false;
        *ret = (struct build_id){ .size = (uint8_t)n };
        memcpy(ret->bytes, bytes, n);
        return true;
}

bool build_id_from_hex(struct build_id *ret, const char *hex, size_t n)
{
        struct build_id id = { .size = (uint8_t)(n / 2) };

        if (n == 0 || n % 2 || n / 2 > BUILD_ID_MAX || !hex_decode(hex, n / 2, id.bytes))
                return false;
        *ret = id;
        return true;
}

bool build_id_from_go(struct build_id *ret, const char *text, size_t n)
{
        struct hash128 h;
        uint32_t tail;

        if (n == 0 || n > 256)
                return false;
        h = hash_bytes128(text, n);
        tail = (uint32_t)hash_bytes64(text, n);
        *ret = (struct build_id){ .size = 20 };
        memcpy(ret->bytes, h.bytes, 16);
        memcpy(ret->bytes + 16, &tail, 4);
        return true;
}

const char *build_id_hex(const struct build_id *id, char out[static BUILD_ID_HEX_MAX])
{
        assert(id->size <= BUILD_ID_MAX);
        return hex_encode(id->bytes, id->size, out);
}

bool build_id_is_placeholder(const struct build_id *id)
{
        size_t zeros = 0;

        while (zeros < id->size && !id->bytes[zeros])
                zeros++;
        return id->size && (id->size < BUILD_ID_MIN || zeros == id->size);
}

bool build_id_equal(const struct build_id *a, const struct build_id *b)
{
        return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

int build_id_compare(const struct build_id *a, const struct build_id *b)
{
        int c = memcmp(a->bytes, b->bytes, a->size < b->size ? a->size : b->size);

        return c ? c : (int)a->size - (int)b->size;
}
