/* SPDX-License-Identifier: Apache-2.0 */
/* cairn index stat: what the index has of one object. */
#include <inttypes.h>

#include "cli/index.h"

/* Bytes of an object's blocks by kind; blocks shared with others are counted too. */
static void write_json(struct index_command *c, const struct build_id *id, const struct symbol_object *o,
                       const struct index_object_blocks *b)
{
        json_out_object(&c->out, NULL);
        index_write_members(c, id, o);
        json_out_object(&c->out, "blocks");
        json_out_uint(&c->out, "count", b->blocks);
        json_out_uint(&c->out, "shared", b->shared);
        json_out_uint(&c->out, "map_bytes", b->map_bytes);
        json_out_uint(&c->out, "start_bytes", b->sizes.starts);
        json_out_uint(&c->out, "run_bytes", b->sizes.runs);
        json_out_uint(&c->out, "line_bytes", b->sizes.lines);
        json_out_uint(&c->out, "scope_bytes", b->sizes.scopes);
        json_out_uint(&c->out, "node_bytes", b->sizes.nodes);
        json_out_uint(&c->out, "site_bytes", b->sizes.sites);
        json_out_uint(&c->out, "head_bytes", b->sizes.heads);
        json_out_object_end(&c->out);
        json_out_object_end(&c->out);
        buf_append_str(&c->text, "\n");
}

static void write_text(struct index_command *c, const struct build_id *id, const struct symbol_object *o,
                       const struct index_object_blocks *b)
{
        char hex[BUILD_ID_HEX_MAX];

        buf_printf(&c->text, "build-id:    %s\nstate:       %s%s%s\nquality:     %s\ngeneration:  %" PRIu64 "\n",
                   build_id_hex(id, hex), symbol_object_state_name(o->state), o->reason[0] ? ": " : "", o->reason,
                   symbol_quality_name(o->quality), o->generation);
        if (o->partial[0])
                buf_printf(&c->text, "partial:     %s\n", o->partial);
        buf_printf(&c->text, "ranges:      %" PRIu64 "\nfunctions:   %" PRIu64 "\nfiles:       %" PRIu64 "\n",
                   o->range_count, o->function_count, o->file_count);
        buf_printf(&c->text, "index bytes: %" PRIu64 " (blocks %" PRIu64 ", strings %" PRIu64 ")\n", o->index_bytes,
                   o->block_bytes, o->string_bytes);
        buf_printf(&c->text,
                   "blocks:      %" PRIu64 ", %" PRIu64 " of them shared; maps %" PRIu64 " bytes\n"
                   "in blocks:   starts %" PRIu64 ", runs %" PRIu64 ", lines %" PRIu64 ", scopes %" PRIu64
                   ", nodes %" PRIu64 ", sites %" PRIu64 ", heads %" PRIu64 " bytes\n",
                   b->blocks, b->shared, b->map_bytes, b->sizes.starts, b->sizes.runs, b->sizes.lines, b->sizes.scopes,
                   b->sizes.nodes, b->sizes.sites, b->sizes.heads);
}

int index_stat(struct index_command *c, int argc, char **argv)
{
        struct index_object_blocks blocks;
        struct symbol_object object;
        struct build_id id;
        struct error err;
        enum status st = index_argument(argv[0], &id, &err);

        (void)argc;
        if (!st)
                st = index_object_known(c, &id, &object, &err);
        if (!st)
                st = symbol_index_blocks(c->index, &id, &blocks, &err);
        if (st)
                return index_fail(st, &err);
        if (c->json)
                write_json(c, &id, &object, &blocks);
        else
                write_text(c, &id, &object, &blocks);
        st = index_print(c, &err);
        return st ? index_fail(st, &err) : EXIT_DONE;
}
