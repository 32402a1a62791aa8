/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json_text.h"

#include <string.h>

#define REPLACEMENT 0xfffd

/* Four hexadecimal digits, which the scanner has looked at. */
static uint32_t read_unit(const char *digits)
{
        uint32_t v = 0;

        for (unsigned i = 0; i < 4; i++) {
                unsigned c = (unsigned char)digits[i];

                v = v << 4 | (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
        }
        return v;
}

static void append_code_point(struct buf *to, uint32_t c)
{
        uint8_t bytes[4];
        unsigned n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

        for (unsigned i = n; i-- > 1; c >>= 6)
                bytes[i] = (uint8_t)(0x80 | (c & 0x3f));
        bytes[0] = (uint8_t)(n == 1 ? c : (0xf00u >> n & 0xf0) | c);
        buf_append(to, bytes, n);
}

/* From the 'u' of an escape on; where it ends. */
static const char *append_unicode(const char *p, const char *end, struct buf *to)
{
        uint32_t c = read_unit(p + 1);

        p += 5;
        if (c >= 0xd800 && c < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
                uint32_t low = read_unit(p + 2);

                if (low >= 0xdc00 && low < 0xe000) {
                        append_code_point(to, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00));
                        return p + 6;
                }
        }
        append_code_point(to, c >= 0xd800 && c < 0xe000 ? REPLACEMENT : c);
        return p;
}

static char named(char c)
{
        static const char names[] = "bfnrt", values[] = "\b\f\n\r\t";
        const char *at = strchr(names, c);

        return at ? values[at - names] : c;
}

void json_span_append(const struct json_span *span, struct buf *to)
{
        const char *p = span->text, *end = p + span->size;

        while (p < end) {
                const char *stop = span->escaped ? memchr(p, '\\', (size_t)(end - p)) : NULL;

                if (!stop)
                        stop = end;
                buf_append(to, p, (size_t)(stop - p));
                if (stop == end)
                        return;
                p = stop + 1;
                if (*p == 'u')
                        p = append_unicode(p, end, to);
                else
                        buf_append_u8(to, (uint8_t)named(*p++));
        }
}
