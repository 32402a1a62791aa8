/* SPDX-License-Identifier: Apache-2.0 */
/* cairn index verify: check all of the index. */
#include <inttypes.h>

#include "cli/index.h"

static void note_problem(void *context, const char *text)
{
        struct index_command *c = context;

        if (c->json)
                json_out_str(&c->out, NULL, text);
        else
                buf_printf(&c->text, "%s\n", text);
}

static void write_sums(struct index_command *c, const struct index_verify *v)
{
        if (!c->json) {
                buf_printf(&c->text,
                           "%" PRIu64 " objects, %" PRIu64 " map pages, %" PRIu64 " blocks (%" PRIu64 " shared), %" PRIu64
                           " pages of strings: %" PRIu64 " problems\n",
                           v->objects, v->map_pages, v->blocks, v->shared_blocks, v->string_pages, v->problems);
                return;
        }
        json_out_array_end(&c->out);
        json_out_uint(&c->out, "objects", v->objects);
        json_out_uint(&c->out, "map_pages", v->map_pages);
        json_out_uint(&c->out, "blocks", v->blocks);
        json_out_uint(&c->out, "shared_blocks", v->shared_blocks);
        json_out_uint(&c->out, "string_pages", v->string_pages);
        json_out_object_end(&c->out);
        buf_append_str(&c->text, "\n");
}

int index_verify(struct index_command *c, int argc, char **argv)
{
        struct index_verify v = { .problem = note_problem, .context = c };
        struct error err;
        enum status st;

        (void)argc;
        (void)argv;
        if (c->json) {
                json_out_object(&c->out, NULL);
                json_out_array(&c->out, "problems");
        }
        st = symbol_index_verify(c->index, &v, &err);
        if (!st) {
                write_sums(c, &v);
                st = index_print(c, &err);
        }
        if (!st && v.problems)
                st = error_set(&err, ST_BAD_DATA,
                               "the index has %" PRIu64 " problems; index the files again, or delete it and let cairn "
                               "serve make it anew", v.problems);
        return st ? index_fail(st, &err) : EXIT_DONE;
}
