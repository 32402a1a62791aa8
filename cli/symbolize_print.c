/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/symbolize.h"
#include "common/buf.h"
#include "common/json_out.h"
#include "common/utf8.h"

#define NUMBER_BYTES 16 /* a line's digits, and what stands around them */

static char *put(char *at, const char *data, size_t size)
{
        memcpy(at, data, size);
        return at + size;
}

static char *put_text(char *at, const struct answer_text *t)
{
        return t->size ? put(at, t->data, t->size) : put(at, "??", 2);
}

/* Both texts with their escapes, as begin_frame() leaves them; for names that hold a control character. */
static char *put_escaped_texts(struct buf *out, const struct answer_frame *f, char **start_ret)
{
        const struct answer_text *const texts[] = { &f->function, &f->file };

        for (int i = 0; i < 2; i++) {
                utf8_put_escaped_n(out, texts[i]->size ? texts[i]->data : "??", texts[i]->size ? texts[i]->size : 2);
                buf_append_u8(out, i ? ':' : '\n');
        }
        return *start_ret = buf_reserve(out, NUMBER_BYTES);
}

static char *put_number(char *at, uint32_t n)
{
        char digits[10];
        size_t used = sizeof digits;

        do
                digits[--used] = (char)('0' + n % 10);
        while (n /= 10);
        return put(at, digits + used, sizeof digits - used);
}

/* "FUNCTION\nFILE:"; *at_ret is where the line goes. */
static bool begin_frame(struct buf *out, const struct answer_frame *f, char **start_ret, char **at_ret)
{
        char *at;

        if (utf8_needs_escape(f->function.data, f->function.size) || utf8_needs_escape(f->file.data, f->file.size))
                return (*at_ret = put_escaped_texts(out, f, start_ret)) != NULL;
        at = buf_reserve(out, f->function.size + f->file.size + 8 + NUMBER_BYTES);

        *start_ret = at;
        if (!at)
                return false;
        at = put_text(at, &f->function);
        *at++ = '\n';
        at = put_text(at, &f->file);
        *at++ = ':';
        *at_ret = at;
        return true;
}

void answer_print_addr2line(struct buf *out, const struct answer *a)
{
        char *start, *at;

        if (a->frame_count == 0)
                buf_append(out, "??\n??:0\n", 8);
        for (size_t i = 0; i < a->frame_count; i++) {
                const struct answer_frame *f = &a->frames[i];

                if (!begin_frame(out, f, &start, &at))
                        return;
                if (f->line)
                        at = put_number(at, f->line);
                else
                        *at++ = '?';
                *at++ = '\n';
                buf_commit(out, (size_t)(at - start));
        }
}

/* Columns are not kept; 0 is how llvm-symbolizer writes an unknown one. */
void answer_print_llvm(struct buf *out, const struct answer *a)
{
        char *start, *at;

        if (a->frame_count == 0)
                buf_append(out, "??\n??:0:0\n", 10);
        for (size_t i = 0; i < a->frame_count; i++) {
                if (!begin_frame(out, &a->frames[i], &start, &at))
                        return;
                at = put_number(at, a->frames[i].line);
                at = put(at, ":0\n", 3);
                buf_commit(out, (size_t)(at - start));
        }
        buf_append_u8(out, '\n');
}

void answer_print_json(struct json_out *j, const struct answer *a)
{
        char address[32];

        snprintf(address, sizeof address, "0x%" PRIx64, a->address);
        json_out_object(j, NULL);
        json_out_str(j, "address", address);
        json_out_str(j, "state", a->state);
        json_out_array(j, "frames");
        for (size_t i = 0; i < a->frame_count; i++) {
                const struct answer_frame *f = &a->frames[i];

                json_out_object(j, NULL);
                json_out_strn(j, "function", f->function.data, f->function.size);
                json_out_strn(j, "linkage_name", f->linkage_name.data, f->linkage_name.size);
                json_out_strn(j, "file", f->file.data, f->file.size);
                json_out_uint(j, "line", f->line);
                json_out_bool(j, "inlined", f->inlined);
                json_out_object_end(j);
        }
        json_out_array_end(j);
        json_out_object_end(j);
}
