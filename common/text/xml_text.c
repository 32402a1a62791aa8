/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text/xml_text.h"

void xml_append_text(struct buf *to, const char *text)
{
        for (const char *p = text; *p; p++) {
                switch (*p) {
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
                        if ((unsigned char)*p < 0x20 || *p == 0x7f)
                                buf_append_str(to, "?");
                        else
                                buf_append(to, p, 1);
                }
        }
}
