/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cairn index dump: all ranges of an object with their frames. Printed a piece at a time, each read in a view of its
 * own: memory is that of a piece, and a reader that stops reading holds nothing of the index.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/index.h"
#include "common/limits.h"
#include "symbolizer/range_walk.h"

#define PIECE_BYTES KiB(256)

struct dump {
        struct index_command *c;
        struct symbol_view *view;
};

struct frame_texts {
        const char *function, *linkage_name, *file;
};

static enum status texts_of(const struct dump *d, const struct symbol_frame *f, struct frame_texts *ret,
                            struct error *err)
{
        enum status st = symbol_view_function(d->view, f->function, &ret->function, &ret->linkage_name, err);

        if (!st)
                st = symbol_view_file(d->view, f->file, &ret->file, err);
        if (!st && strcmp(ret->function, ret->linkage_name) == 0)
                ret->linkage_name = "";
        return st;
}

/* Names come from strangers: one with a tab or a line's end in it must not look like two. */
static void put_text(struct buf *b, const char *text)
{
        size_t first = b->size;

        buf_append_str(b, text);
        for (size_t i = first; i < b->size; i++)
                if (b->data[i] < ' ' || b->data[i] == 0x7f)
                        b->data[i] = '?';
}

static enum status write_text(struct dump *d, const struct walked_range *r, struct error *err)
{
        struct buf *b = &d->c->text;
        struct frame_texts texts;

        buf_printf(b, "0x%" PRIx64 "\t0x%" PRIx64 "\n", r->start, r->end);
        for (uint32_t i = 0; i < r->frame_count; i++) {
                enum status st = texts_of(d, &r->frames[i], &texts, err);

                if (st)
                        return st;
                buf_append_u8(b, '\t');
                put_text(b, texts.function);
                buf_append_u8(b, '\t');
                put_text(b, texts.linkage_name);
                buf_append_u8(b, '\t');
                put_text(b, texts.file);
                buf_printf(b, "\t%" PRIu32 "%s\n", r->frames[i].line, r->frames[i].inlined ? "\tinlined" : "");
        }
        return ST_OK;
}

static void write_json_address(struct json_out *out, const char *key, uint64_t address)
{
        char text[24];

        snprintf(text, sizeof text, "0x%" PRIx64, address);
        json_out_str(out, key, text);
}

static enum status write_json(struct dump *d, const struct walked_range *r, struct error *err)
{
        struct json_out *out = &d->c->out;
        struct frame_texts texts;

        json_out_init(out, &d->c->text);
        json_out_object(out, NULL);
        write_json_address(out, "start", r->start);
        write_json_address(out, "end", r->end);
        json_out_array(out, "frames");
        for (uint32_t i = 0; i < r->frame_count; i++) {
                enum status st = texts_of(d, &r->frames[i], &texts, err);

                if (st)
                        return st;
                json_out_object(out, NULL);
                json_out_str(out, "function", texts.function);
                json_out_str(out, "linkage_name", texts.linkage_name);
                json_out_str(out, "file", texts.file);
                json_out_uint(out, "line", r->frames[i].line);
                json_out_bool(out, "inlined", r->frames[i].inlined);
                json_out_object_end(out);
        }
        json_out_array_end(out);
        json_out_object_end(out);
        buf_append_str(&d->c->text, "\n");
        return ST_OK;
}

static enum status visit(void *context, const struct walked_range *range, bool *pause, struct error *err)
{
        struct dump *d = context;
        enum status st = d->c->json ? write_json(d, range, err) : write_text(d, range, err);

        *pause = d->c->text.size >= PIECE_BYTES;
        return st;
}

static enum status dump_piece(struct dump *d, struct range_walk *walk, struct error *err)
{
        enum status st = symbol_view_begin(d->c->index, &d->view, err);

        if (st)
                return st;
        st = range_walk_on(walk, d->view, visit, d, err);
        symbol_view_end(d->view);
        return st ? st : index_print(d->c, err);
}

int index_dump(struct index_command *c, int argc, char **argv)
{
        struct dump d = { .c = c };
        struct symbol_object object;
        struct range_walk walk;
        struct build_id id;
        struct error err;
        enum status st = index_argument(argv[0], &id, &err);

        (void)argc;
        if (!st)
                st = index_object_known(c, &id, &object, &err);
        if (!st)
                st = range_walk_init(&walk, &id, &err);
        if (st)
                return index_fail(st, &err);
        while (!st && !walk.is_done)
                st = dump_piece(&d, &walk, &err);
        range_walk_deinit(&walk);
        return st ? index_fail(st, &err) : EXIT_DONE;
}
