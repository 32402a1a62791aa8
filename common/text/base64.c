/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text/base64.h"

#define BAD_DIGIT 64

static unsigned base64_digit_value(char c)
{
        if (c >= 'A' && c <= 'Z')
                return (unsigned)(c - 'A');
        if (c >= 'a' && c <= 'z')
                return (unsigned)(c - 'a') + 26;
        if (c >= '0' && c <= '9')
                return (unsigned)(c - '0') + 52;
        if (c == '+' || c == '-')
                return 62;
        return c == '/' || c == '_' ? 63 : BAD_DIGIT;
}

bool base64_decode_append(struct buf *to, const char *text, size_t n)
{
        size_t digits = n, written = 0;
        unsigned held = 0, bits = 0;
        uint8_t *out;

        while (digits && n - digits < 2 && text[digits - 1] == '=')
                digits--;
        if (digits % 4 == 1 || (digits < n && n % 4))
                return false;
        out = buf_reserve(to, digits / 4 * 3 + 3);
        if (!out)
                return true;
        for (size_t i = 0; i < digits; i++) {
                unsigned v = base64_digit_value(text[i]);

                if (v == BAD_DIGIT)
                        return false;
                bits = (bits << 6 | v) & 0xffff;
                held += 6;
                if (held >= 8) {
                        held -= 8;
                        out[written++] = (uint8_t)(bits >> held);
                }
        }
        buf_commit(to, written);
        return true;
}

void base64_encode_append(struct buf *to, const uint8_t *data, size_t n)
{
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

        for (size_t i = 0; i < n; i += 3) {
                size_t left = n - i;
                uint32_t bits = (uint32_t)data[i] << 16 | (left > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
                                (left > 2 ? data[i + 2] : 0);
                const char group[4] = { digits[bits >> 18], digits[bits >> 12 & 63],
                                        left > 1 ? digits[bits >> 6 & 63] : '=', left > 2 ? digits[bits & 63] : '=' };

                buf_append(to, group, sizeof group);
        }
}
