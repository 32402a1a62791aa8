/* SPDX-License-Identifier: Apache-2.0 */
#include "common/utf8.h"

#include <string.h>

size_t utf8_sequence(const char *s, size_t n)
{
        const unsigned char *u = (const unsigned char *)s;
        size_t len;
        unsigned min_second = 0x80, max_second = 0xbf;

        if (n == 0)
                return 0;
        if (u[0] < 0x80)
                return 1;
        if (u[0] < 0xc2 || u[0] > 0xf4)
                return 0;
        len = u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
        if (len > n)
                return 0;
        if (u[0] == 0xe0)
                min_second = 0xa0; /* no overlong forms */
        else if (u[0] == 0xed)
                max_second = 0x9f; /* no surrogates */
        else if (u[0] == 0xf0)
                min_second = 0x90;
        else if (u[0] == 0xf4)
                max_second = 0x8f; /* up to U+10FFFF */
        if (u[1] < min_second || u[1] > max_second)
                return 0;
        for (size_t i = 2; i < len; i++)
                if ((u[i] & 0xc0) != 0x80)
                        return 0;
        return len;
}

bool utf8_valid(const char *s, size_t n)
{
        while (n) {
                size_t len = utf8_sequence(s, n);

                if (len == 0)
                        return false;
                s += len;
                n -= len;
        }
        return true;
}

const char *utf8_clean(const char *text, struct buf *scratch)
{
        size_t n = strlen(text);
        const char *copy;

        if (utf8_valid(text, n))
                return text;
        buf_clear(scratch);
        for (size_t i = 0, len; i < n; i += len ? len : 1) {
                len = utf8_sequence(text + i, n - i);
                buf_append(scratch, len ? text + i : "\xef\xbf\xbd", len ? len : 3);
        }
        copy = buf_cstr(scratch);
        return copy ? copy : "";
}

bool utf8_is_c1(const char *s, size_t left)
{
        return left >= 2 && (unsigned char)s[0] == 0xc2 && (unsigned char)s[1] >= 0x80 && (unsigned char)s[1] <= 0x9f;
}

void utf8_put_escaped(struct buf *ret, const char *text)
{
        size_t left = strlen(text);

        while (left) {
                unsigned char c = (unsigned char)*text;
                size_t n = utf8_sequence(text, left);

                if (n == 0 || c < 0x20 || c == 0x7f || utf8_is_c1(text, left)) {
                        buf_printf(ret, "\\x%02x", c);
                        n = 1;
                } else {
                        buf_append(ret, text, n);
                }
                text += n;
                left -= n;
        }
}
