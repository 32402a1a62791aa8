/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "http/server_internal.h"

/* The q of one element's parameters, of which codings have no other; 1 when there is none. RFC 9110, 12.4.2. */
static double weight(const char *p, const char *end)
{
        for (; p < end; p++)
                if (*p == ';') {
                        p += 1 + strspn(p + 1, " \t");
                        if ((*p | 0x20) == 'q' && p[1] == '=')
                                return strtod(p + 2, NULL);
                }
        return 1;
}

enum packing accepted_packing(const char *header)
{
        double gzip = 0, zstd = 0;

        while (header && *header) {
                size_t n = strcspn(header, ",");
                const char *end = header + n, *name = header + strspn(header, " \t");
                size_t name_size = strcspn(name, " \t;,");

                if (name_size == 4 && strncasecmp(name, "gzip", 4) == 0)
                        gzip = weight(name, end);
                else if (name_size == 4 && strncasecmp(name, "zstd", 4) == 0)
                        zstd = weight(name, end);
                header = end + (*end == ',');
        }
        if (zstd > 0 && zstd >= gzip)
                return PACKING_ZSTD;
        return gzip > 0 ? PACKING_GZIP : PACKING_NONE;
}
