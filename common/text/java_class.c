/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text/java_class.h"

#include <stdbool.h>
#include <string.h>

static bool is_hex_digit_char(char c)
{
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Whether text[i..end) is an address that the JVM appends to the name of a hidden class: "/0x7f...", "+0x7f...". */
static bool ends_in_address(const char *text, size_t i, size_t end)
{
        if (end - i < 4 || !strchr("/+.", text[i]) || text[i + 1] != '0' || text[i + 2] != 'x')
                return false;
        for (i += 3; i < end; i++)
                if (!is_hex_digit_char(text[i]))
                        return false;
        return true;
}

size_t java_class_stable_size(const char *text, size_t size)
{
        static const char *const generated[] = { "$$Lambda$", "GeneratedMethodAccessor",
                                                 "GeneratedConstructorAccessor" };

        for (size_t i = size < 20 ? 0 : size - 20; i < size; i++) {
                if (ends_in_address(text, i, size)) {
                        size = i;
                        break;
                }
        }
        for (size_t k = 0; k < sizeof generated / sizeof *generated; k++) {
                size_t n = strlen(generated[k]), end = size;

                while (end && text[end - 1] >= '0' && text[end - 1] <= '9')
                        end--;
                if (end < size && end >= n && memcmp(text + end - n, generated[k], n) == 0)
                        size = end;
        }
        return size;
}
