/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text/number_text.h"

#include <ctype.h>
#include <errno.h>
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

bool parse_amount(const char *text, const struct unit *units, bool unit_needed, uint64_t *ret)
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
        static const struct unit sizes[] = {
                { 'K', KiB(1) }, { 'M', MiB(1) }, { 'G', GiB(1) }, { 'T', GiB(1024) }, { 0 }
        };

        return parse_amount(text, sizes, false, ret);
}

bool parse_hex(const char *text, uint64_t *ret)
{
        return parse_base(text, 16, ret);
}
