/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text/number_text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
static bool parse_base(const char *text, int base, uint64_t *ret)
{
        char *end;
        unsigned long long v;

        if (!isxdigit((unsigned char)text[0]))
                return false;
        errno = 0;
        v = strtoull(text, &end, base);
        if (errno || *end)
                return false;
        *ret = v;
        return true;
}

bool parse_uint(const char *text, uint64_t *ret)
{
        if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
                return parse_base(text, 16, ret);
        return parse_base(text, 10, ret);
}

struct unit {
        char letter;
        uint64_t factor;
};
static const struct unit sizes[] = { { 'K', KiB(1) }, { 'M', MiB(1) }, { 'G', GiB(1) }, { 'T', GiB(1024) }, { 0 } },
                         times[] = { { 's', 1 },      { 'm', 60 },       { 'h', 3600 }, { 'd', 86400 },
                                     { 'w', 604800 }, { 'y', 31536000 }, { 0 } };

/* A positive number, and the letter of one of the units, of which the last one is zero. */
static bool parse_amount(const char *text, const struct unit *units, bool unit_needed, uint64_t *ret)
{
        size_t n = strlen(text);
        char number[24];
        uint64_t value, factor = 1;

        if (n == 0 || n >= sizeof number)
                return false;
        memcpy(number, text, n + 1);
        for (; units->letter; units++) {
                if (number[n - 1] == units->letter) {
                        factor = units->factor;
                        number[n - 1] = 0;
                        break;
                }
        }
        if (unit_needed && !units->letter)
                return false;
        return parse_uint(number, &value) && value && !__builtin_mul_overflow(value, factor, ret);
}

bool parse_bytes(const char *text, uint64_t *ret)
{
        return parse_amount(text, sizes, false, ret);
}

bool parse_age(const char *text, uint64_t *seconds_ret)
{
        return parse_amount(text, times, true, seconds_ret);
}

const char *format_counted(uint64_t n, const char *one, const char *many, char out[static COUNTED_SIZE])
{
        snprintf(out, COUNTED_SIZE, "%" PRIu64 " %s", n, n == 1 ? one : many);
        return out;
}

bool parse_hex(const char *text, uint64_t *ret)
{
        return parse_base(text, 16, ret);
}

/* With the largest unit of which n is a multiple; 0 with none. */
static const char *format_amount(uint64_t n, const struct unit *units, char out[static NUMBER_TEXT_SIZE])
{
        const struct unit *best = NULL;

        for (; units->letter; units++)
                if (n % units->factor == 0 && n >= units->factor)
                        best = units;
        snprintf(out, NUMBER_TEXT_SIZE, "%" PRIu64 "%.1s", best ? n / best->factor : n, best ? &best->letter : "");
        return out;
}

const char *format_bytes(uint64_t bytes, char out[static NUMBER_TEXT_SIZE])
{
        return format_amount(bytes, sizes, out);
}

const char *format_age(uint64_t seconds, char out[static NUMBER_TEXT_SIZE])
{
        return format_amount(seconds, times, out);
}
