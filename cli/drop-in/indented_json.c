/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/drop-in/indented_json.h"

#include <string.h>

static void append_line_break(struct buf *out, unsigned depth)
{
        buf_append_u8(out, '\n');
        while (depth--)
                buf_append_str(out, "  ");
}

/* @return the size of the string, with its quotes */
static size_t measure_json_string(const char *text, size_t size)
{
        size_t at = 1;

        while (at < size && text[at] != '"')
                at += text[at] == '\\' ? 2 : 1;
        return at + 1 < size ? at + 1 : size;
}

void append_indented_json(struct buf *out, const char *json, size_t size, unsigned depth)
{
        for (size_t at = 0; at < size;) {
                size_t string_size = json[at] == '"' ? measure_json_string(json + at, size - at) : 0;
                char c = json[at];

                if (string_size) {
                        buf_append(out, json + at, string_size);
                        at += string_size;
                        continue;
                }
                at++;
                if ((c == '{' || c == '[') && at < size && (json[at] == '}' || json[at] == ']')) {
                        buf_append(out, json + at - 1, 2);
                        at++;
                        continue;
                }
                if (c == '}' || c == ']')
                        append_line_break(out, --depth);
                buf_append_u8(out, (uint8_t)c);
                if (c == '{' || c == '[')
                        append_line_break(out, ++depth);
                else if (c == ',')
                        append_line_break(out, depth);
                else if (c == ':')
                        buf_append_u8(out, ' ');
        }
}
