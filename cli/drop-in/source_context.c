/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/drop-in/source_context.h"

#include <inttypes.h>
#include <string.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "common/text/utf8.h"

/* ceil(log10(last)), which LLVM prints numbers with: 10 itself is wider. */
static int count_number_digits(uint64_t last)
{
        int digits = 1;

        for (uint64_t power = 10; power < last; power *= 10) {
                digits++;
                if (power > UINT64_MAX / 10)
                        break;
        }
        return digits;
}

/* Tabs stay; other controls are escaped. */
static void append_source_text(struct buf *out, const char *text, size_t n)
{
        const char *tab;

        while ((tab = n ? memchr(text, '\t', n) : NULL)) {
                utf8_append_escaped_n(out, text, (size_t)(tab - text));
                buf_append_u8(out, '\t');
                n -= (size_t)(tab + 1 - text);
                text = tab + 1;
        }
        if (n)
                utf8_append_escaped_n(out, text, n);
}

static void append_text_lines(const char *text, size_t size, uint64_t line, uint64_t count, struct buf *out)
{
        uint64_t first = line > count / 2 ? line - count / 2 : 1, last = first + count - 1, number = 1;
        const char *end = text + size;
        int width = count_number_digits(last);

        for (const char *at = text; at < end && number <= last; number++) {
                const char *newline = memchr(at, '\n', (size_t)(end - at));
                size_t n = (size_t)((newline ? newline : end) - at);

                if (number >= first) {
                        buf_printf(out, "%*" PRIu64 " %s: ", width, number, number == line ? ">" : " ");
                        append_source_text(out, at, n && at[n - 1] == '\r' ? n - 1 : n);
                        buf_append_u8(out, '\n');
                }
                at = newline ? newline + 1 : end;
        }
}

void append_source_lines(const struct answer_source *source, uint64_t address, const struct answer_frame *f,
                         uint64_t count, struct buf *out)
{
        _cleanup_file_map_ struct file_map map = { 0 };
        struct answer_text text;

        if (!count || !f->line || !f->file.size)
                return;
        if (source && source->find_text && !source->find_text(source->context, address, f->file.data, &text, NULL))
                append_text_lines(text.data, text.size, f->line, count, out);
        else if (!file_map_open(f->file.data, LIMIT_SOURCE_FILE_BYTES, &map, NULL) && map.size)
                append_text_lines(map.data, map.size, f->line, count, out);
}
