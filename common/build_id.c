/* SPDX-License-Identifier: Apache-2.0 */
#include "common/build_id.h"

#include <string.h>

#include "common/hash.h"

bool build_id_from_bytes(struct build_id *ret, const void *bytes, size_t n)
{
        if (n == 0 || n > BUILD_ID_MAX)
                return false;
        *ret = (struct build_id){ .size = (uint8_t)n };
        memcpy(ret->bytes, bytes, n);
        return true;
}

static int nibble(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return -1;
}

bool build_id_from_hex(struct build_id *ret, const char *hex, size_t n)
{
        struct build_id id = { .size = (uint8_t)(n / 2) };

        if (n == 0 || n % 2 || n / 2 > BUILD_ID_MAX)
                return false;
        for (size_t i = 0; i < n; i += 2) {
                int hi = nibble(hex[i]), lo = nibble(hex[i + 1]);

                if (hi < 0 || lo < 0)
                        return false;
                id.bytes[i / 2] = (uint8_t)(hi << 4 | lo);
        }
        *ret = id;
        return true;
}

bool build_id_from_go(struct build_id *ret, const char *text, size_t n)
{
        struct hash128 h;
        uint32_t tail;

        if (n == 0 || n > 256)
                return false;
        h = hash128(text, n);
        tail = (uint32_t)hash64(text, n);
        *ret = (struct build_id){ .size = 20 };
        memcpy(ret->bytes, h.bytes, 16);
        memcpy(ret->bytes + 16, &tail, 4);
        return true;
}

const char *build_id_hex(const struct build_id *id, char out[static BUILD_ID_HEX_MAX])
{
        static const char digits[] = "0123456789abcdef";

        for (size_t i = 0; i < id->size; i++) {
                out[2 * i] = digits[id->bytes[i] >> 4];
                out[2 * i + 1] = digits[id->bytes[i] & 15];
        }
        out[2 * id->size] = 0;
        return out;
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
