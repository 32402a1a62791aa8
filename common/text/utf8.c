/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text/utf8.h"

#include <stdio.h>
#include <string.h>

size_t utf8_sequence_length(const char *s, size_t n)
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
                min_second = 0xa0; /* excludes overlong forms */
        else if (u[0] == 0xed)
                max_second = 0x9f; /* excludes surrogates */
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
                size_t len = utf8_sequence_length(s, n);

                if (len == 0)
                        return false;
                s += len;
                n -= len;
        }
        return true;
}

const char *utf8_replace_invalid(const char *text, struct buf *scratch)
{
        size_t n = strlen(text);
        const char *copy;

        if (utf8_valid(text, n))
                return text;
        buf_clear(scratch);
        for (size_t i = 0, len; i < n; i += len ? len : 1) {
                len = utf8_sequence_length(text + i, n - i);
                buf_append(scratch, len ? text + i : "\xef\xbf\xbd", len ? len : 3);
        }
        copy = buf_cstr(scratch);
        return copy ? copy : "";
}

void utf8_append_code_point(struct buf *to, uint32_t c)
{
        uint8_t bytes[4];
        unsigned n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

        for (unsigned i = n; i-- > 1; c >>= 6)
                bytes[i] = (uint8_t)(0x80 | (c & 0x3f));
        bytes[0] = (uint8_t)(n == 1 ? c : (0xf00u >> n & 0xf0) | c);
        buf_append(to, bytes, n);
}

bool utf8_is_c1(const char *s, size_t left)
{
        return left >= 2 && (unsigned char)s[0] == 0xc2 && (unsigned char)s[1] >= 0x80 && (unsigned char)s[1] <= 0x9f;
}

/* A character that reorders or breaks the surrounding text. Source: Unicode Standard Annex 9, 2. */
static uint32_t code_of_reordering(const char *s, size_t size)
{
        const unsigned char *u = (const unsigned char *)s;
        uint32_t code = size == 2   ? (u[0] & 0x1fu) << 6 | (u[1] & 0x3fu)
                        : size == 3 ? (u[0] & 0x0fu) << 12 | (u[1] & 0x3fu) << 6 | (u[2] & 0x3fu)
                                    : 0;
        bool reorders = code == 0x61c || code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
                        (code >= 0x2066 && code <= 0x2069);

        return reorders ? code : 0;
}

#define EACH_BYTE(c) (UINT64_C(0x0101010101010101) * (c))

/* The high bit of some byte is set if a byte is less than c; exact for words of ASCII. */
static inline uint64_t find_bytes_below(uint64_t word, uint8_t c)
{
        return (word - EACH_BYTE(c)) & ~word;
}

/* Whether all 8 bytes are plain. A borrow between bytes only comes from a byte that is not. */
static inline bool is_plain_word(uint64_t word)
{
        uint64_t other = word | find_bytes_below(word, 0x20) | find_bytes_below(word ^ EACH_BYTE(0x7f), 1) |
                         find_bytes_below(word ^ EACH_BYTE('"'), 1) | find_bytes_below(word ^ EACH_BYTE('\\'), 1);

        return (other & EACH_BYTE(0x80)) == 0;
}

size_t utf8_count_plain(const char *s, size_t n)
{
        size_t i = 0;
        uint64_t word;

        for (; n - i >= sizeof word; i += sizeof word) {
                memcpy(&word, s + i, sizeof word);
                if (!is_plain_word(word))
                        break;
        }
        while (i < n && s[i] >= ' ' && s[i] < 0x7f && s[i] != '"' && s[i] != '\\')
                i++;
        return i;
}

/* Number of leading bytes that need no escape. */
static size_t plain_prefix(const char *text, size_t left)
{
        size_t at = 0;

        while ((at += utf8_count_plain(text + at, left - at)) < left) {
                unsigned char c = (unsigned char)text[at];
                size_t n = c < 0x80 ? 1 : utf8_sequence_length(text + at, left - at);

                if (n == 0 || c < 0x20 || c == 0x7f || utf8_is_c1(text + at, left - at) ||
                    code_of_reordering(text + at, n))
                        break;
                at += n;
        }
        return at;
}

uint32_t utf8_reordering_code(const char *s, size_t n, size_t *size_ret)
{
        *size_ret = utf8_sequence_length(s, n);
        return code_of_reordering(s, *size_ret);
}

const char *utf8_printable(const char *text, char *out, size_t size)
{
        size_t left = strlen(text), used = 0;

        while (left) {
                char escape[16];
                size_t n, plain = plain_prefix(text,
                                               utf8_sequence_length(text, left) ? utf8_sequence_length(text, left) : 1);
                const char *from = plain ? text : escape;

                if (plain) {
                        n = utf8_sequence_length(text, left); /* one character at a time, so that none is truncated */
                        plain = n;
                } else {
                        size_t taken;
                        uint32_t code = utf8_reordering_code(text, left, &taken);

                        n = (size_t)(code ? snprintf(escape, sizeof escape, "\\u{%x}", code)
                                          : snprintf(escape, sizeof escape, "\\x%02x", (unsigned char)*text));
                        plain = code ? taken : 1;
                }
                if (used + n >= size)
                        break;
                memcpy(out + used, from, n);
                used += n;
                text += plain;
                left -= plain;
        }
        out[used] = 0;
        return out;
}

void utf8_mask_controls(char *text)
{
        size_t left = strlen(text);

        while (left) {
                size_t n = plain_prefix(text, left);

                text += n;
                left -= n;
                if (!left)
                        break;
                n = utf8_sequence_length(text, left);
                for (n = n ? n : 1; n; n--, left--)
                        *text++ = '?';
        }
}

void utf8_append_escaped_n(struct buf *ret, const char *text, size_t left)
{
        while (left) {
                size_t n = plain_prefix(text, left);
                uint32_t code;

                buf_append(ret, text, n);
                text += n;
                left -= n;
                if (!left)
                        break;
                n = utf8_sequence_length(text, left);
                code = code_of_reordering(text, n);
                if (code)
                        buf_printf(ret, "\\u{%x}", code);
                else
                        buf_printf(ret, "\\x%02x", (unsigned char)*text);
                n = code ? n : 1;
                text += n;
                left -= n;
        }
}

void utf8_append_escaped(struct buf *ret, const char *text)
{
        utf8_append_escaped_n(ret, text, strlen(text));
}

void utf8_append_source_line(struct buf *ret, const char *text, size_t n)
{
        size_t column = 0;

        while (n) {
                const char *tab = memchr(text, '\t', n);
                size_t part = tab ? (size_t)(tab - text) : n;

                for (size_t i = 0; i < part; i++) /* one column for each code point */
                        column += ((unsigned char)text[i] & 0xc0) != 0x80;
                utf8_append_escaped_n(ret, text, part);
                if (!tab)
                        return;
                do
                        buf_append_u8(ret, ' ');
                while (++column % 8);
                text += part + 1;
                n -= part + 1;
        }
}
