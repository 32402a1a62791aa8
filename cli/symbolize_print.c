/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "cli/symbolize.h"
#include "common/json_out.h"

static const char *or_unknown(const char *text)
{
        return text[0] ? text : "??";
}

void answer_print_addr2line(const struct answer *a)
{
        if (a->frame_count == 0)
                fputs("??\n??:0\n", stdout);
        for (size_t i = 0; i < a->frame_count; i++) {
                const struct answer_frame *f = &a->frames[i];

                if (f->line == 0)
                        printf("%s\n%s:?\n", or_unknown(f->function), or_unknown(f->file));
                else
                        printf("%s\n%s:%" PRIu32 "\n", or_unknown(f->function), or_unknown(f->file), f->line);
        }
}

/* Columns are not kept; 0 is how llvm-symbolizer writes an unknown one. */
void answer_print_llvm(const struct answer *a)
{
        if (a->frame_count == 0)
                fputs("??\n??:0:0\n", stdout);
        for (size_t i = 0; i < a->frame_count; i++) {
                const struct answer_frame *f = &a->frames[i];

                printf("%s\n%s:%" PRIu32 ":0\n", or_unknown(f->function), or_unknown(f->file), f->line);
        }
        fputc('\n', stdout);
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
                json_out_str(j, "function", f->function);
                json_out_str(j, "linkage_name", f->linkage_name);
                json_out_str(j, "file", f->file);
                json_out_uint(j, "line", f->line);
                json_out_bool(j, "inlined", f->inlined);
                json_out_object_end(j);
        }
        json_out_array_end(j);
        json_out_object_end(j);
}
