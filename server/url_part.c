/* SPDX-License-Identifier: Apache-2.0 */
#include "server/url_part.h"

#include <ctype.h>
#include <string.h>

void url_part_append(struct buf *to, const char *text, const char *also)
{
        for (const char *p = text; *p; p++) {
                if (((unsigned char)*p < 0x80 && isalnum((unsigned char)*p)) || strchr("-._~", *p) || strchr(also, *p))
                        buf_append(to, p, 1);
                else
                        buf_printf(to, "%%%02X", (unsigned char)*p);
        }
}

bool path_climbs_out(const char *path)
{
        size_t depth = 0;

        for (const char *part = path; *part;) {
                size_t n;

                part += strspn(part, "/");
                n = strcspn(part, "/");
                if (n == 2 && part[0] == '.' && part[1] == '.') {
                        if (depth-- == 0)
                                return true;
                } else if (n && !(n == 1 && part[0] == '.')) {
                        depth++;
                }
                part += n;
        }
        return false;
}
