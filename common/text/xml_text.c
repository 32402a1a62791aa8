/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text/xml_text.h"

#include <string.h>

#include "common/text/utf8.h"

/* Append the character at text, or '?' for one that XML does not have. @return its size. */
static size_t append_xml_character(struct buf *to, const char *text)
{
        const size_t n = utf8_sequence_length(text, strnlen(text, 4));
        const bool is_excluded =
                n == 0 || (n == 1 && ((unsigned char)*text < 0x20 || *text == 0x7f)) ||
                (n == 3 && (memcmp(text, "\xef\xbf\xbe", 3) == 0 || memcmp(text, "\xef\xbf\xbf", 3) == 0));

        if (is_excluded)
                buf_append_str(to, "?");
        else
                buf_append(to, text, n);
        return n ? n : 1;
}

void xml_append_text(struct buf *to, const char *text)
{
        for (size_t n; *text; text += n) {
                n = 1;
                switch (*text) {
                case '&':
                        buf_append_str(to, "&amp;");
                        break;
                case '<':
                        buf_append_str(to, "&lt;");
                        break;
                case '>':
                        buf_append_str(to, "&gt;");
                        break;
                case '"':
                        buf_append_str(to, "&quot;");
                        break;
                case '\n':
                        buf_append_str(to, "&#10;");
                        break;
                default:
                        n = append_xml_character(to, text);
                }
        }
}
