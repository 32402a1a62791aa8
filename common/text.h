/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_TEXT_H
#define CAIRN_COMMON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline bool starts_with(const char *text, const char *prefix)
{
        return strncmp(text, prefix, strlen(prefix)) == 0;
}

static inline bool ends_with(const char *text, const char *suffix)
{
        size_t n = strlen(text), suffix_size = strlen(suffix);

        return n >= suffix_size && memcmp(text + n - suffix_size, suffix, suffix_size) == 0;
}

/** Whether a list of words separated by spaces contains this one. */
static inline bool has_word(const char *list, const char *word)
{
        size_t n = strlen(word);

        for (const char *at = list; *at; at += strspn(at, " ")) {
                size_t length = strcspn(at, " ");

                if (length == n && memcmp(at, word, n) == 0)
                        return true;
                at += length;
        }
        return false;
}

/** The value of a hexadecimal digit of either case, -1 for any other character. Independent of the locale. */
static inline int hex_digit_value(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return -1;
}

/** Write n bytes as 2 * n lower-case hexadecimal digits and a NUL. Returns out. */
static inline const char *hex_encode(const void *bytes, size_t n, char *out)
{
        static const char digits[] = "0123456789abcdef";
        const uint8_t *from = bytes;

        for (size_t i = 0; i < n; i++) {
                out[2 * i] = digits[from[i] >> 4];
                out[2 * i + 1] = digits[from[i] & 15];
        }
        out[2 * n] = 0;
        return out;
}

/** Read 2 * n hexadecimal digits of either case into n bytes. False, with ret undefined, at any other character. */
static inline bool hex_decode(const char *digits, size_t n, uint8_t *ret)
{
        for (size_t i = 0; i < n; i++) {
                int high = hex_digit_value(digits[2 * i]), low;

                if (high < 0)
                        return false;
                low = hex_digit_value(digits[2 * i + 1]);
                if (low < 0)
                        return false;
                ret[i] = (uint8_t)(high << 4 | low);
        }
        return true;
}

#endif
