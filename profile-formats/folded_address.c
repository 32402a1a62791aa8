/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/folded_address.h"

#include <string.h>

#define BUILD_ID_LEAST 16 /* hexadecimal digits, so that no file name is taken for one */

static bool parse_address(const char *text, size_t n, uint64_t *ret)
{
        uint64_t v = 0;

        if (n < 3 || n > 18 || text[0] != '0' || text[1] != 'x')
                return false;
        for (size_t i = 2; i < n; i++) {
                unsigned c = (unsigned char)text[i];
                unsigned digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 :
                                 c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;

                if (digit == 16)
                        return false;
                v = v << 4 | digit;
        }
        *ret = v;
        return true;
}

/* "OBJECT+0x1f2c" */
static bool parse_sum(const char *text, size_t n, struct folded_address *ret)
{
        const char *plus = n ? memrchr(text, '+', n) : NULL;
        size_t size = plus ? (size_t)(plus - text) : 0;

        if (!size || !parse_address(plus + 1, n - size - 1, &ret->address))
                return false;
        ret->object = text;
        ret->object_size = size;
        return true;
}

/* "0x1f2c [OBJECT]" */
static bool parse_pair(const char *text, size_t n, struct folded_address *ret)
{
        const char *blank = memchr(text, ' ', n);
        size_t size = blank ? (size_t)(blank - text) : 0;

        if (!size || n < size + 4 || blank[1] != '[' || text[n - 1] != ']' || !parse_address(text, size, &ret->address))
                return false;
        ret->object = blank + 2;
        ret->object_size = n - size - 3;
        return true;
}

bool folded_address_parse(const char *text, size_t n, struct folded_address *ret)
{
        struct folded_address a = { .object = "" };

        if (n > 2 && text[0] == '[' && text[n - 1] == ']') {
                if (!parse_sum(text + 1, n - 2, &a))
                        return false;
        } else if (!parse_address(text, n, &a.address) && !parse_pair(text, n, &a) &&
                   !(memchr(text, '/', n) && parse_sum(text, n, &a))) {
                return false; /* without a slash, "malloc+0x20" is a function */
        }
        if (a.object_size >= BUILD_ID_LEAST && !build_id_from_hex(&a.build_id, a.object, a.object_size))
                a.build_id.size = 0;
        *ret = a;
        return true;
}
