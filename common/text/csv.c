/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text/csv.h"

#include <string.h>

#include "common/text/utf8.h"

void csv_put_text(struct buf *ret, const char *text, char end)
{
        bool quoted = strpbrk(text, ",\"") || *text == ' ' || (*text && text[strlen(text) - 1] == ' ');

        if (quoted)
                buf_append_u8(ret, '"');
        while (*text) {
                size_t n = strcspn(text, "\"");

                utf8_append_escaped_n(ret, text, n);
                text += n;
                if (*text) {
                        buf_append_str(ret, "\"\"");
                        text++;
                }
        }
        if (quoted)
                buf_append_u8(ret, '"');
        buf_append_u8(ret, (uint8_t)end);
}
