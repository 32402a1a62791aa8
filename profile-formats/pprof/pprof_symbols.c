/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies a file field by field, and rewrites mappings and locations. New functions and strings are appended at the end,
 * since a pprof file may have its tables in any order and in pieces.
 */
#include "profile-formats/pprof/pprof_symbols.h"

#include <string.h>

#include "common/limits.h"
#include "profile-formats/sample_labels.h"
#include "profile-formats/number_map.h"
#include "profile-formats/pprof/pprof_fields.h"
#include "profile-formats/wire.h"

struct mapping_flags {
        bool functions, files, lines, inlined;
};

struct pprof_rewriter {
        const struct profile *p;
        const bool *changed;
        struct buf *out;
        struct mapping_flags *flags; /* by mapping; owned */
        uint32_t *strings;           /* by string of p: index in the file's table plus one; owned */
        uint32_t string_count;       /* of the file's table and added ones */
        struct buf added;            /* encoded strings and functions for the end of the file */
        struct number_map functions; /* (name, linkage name, file) */
        uint64_t last_function_id;   /* of the file */
        uint32_t location, mapping;  /* next one of the file */
};

static void copy_field(struct buf *out, const struct reader *r, size_t start)
{
        buf_append(out, r->data + start, r->pos - start);
}

/* ---- first pass: strings and ids of the file ------------------------------------------------ */

static void note_file_string(struct pprof_rewriter *w, const struct reader *text)
{
        size_t n = utf8_truncate(text->data, text->size, LIMIT_NAME_BYTES);
        uint32_t number;

        if (n == text->size && profile_find_string(w->p, (const char *)text->data, n, &number) && !w->strings[number])
                w->strings[number] = w->string_count + 1;
        w->string_count++;
}

static void note_function_id(struct pprof_rewriter *w, struct reader r)
{
        struct wire_field f;

        while (wire_next(&r, &f))
                if (f.number == PPROF_ID && f.type == WIRE_VARINT && f.value > w->last_function_id)
                        w->last_function_id = f.value;
}

static enum status scan_pprof_file(struct pprof_rewriter *w, struct reader r, struct error *err)
{
        struct wire_field f;

        while (wire_next(&r, &f)) {
                if (f.number == PPROF_STRING_TABLE && f.type == WIRE_BYTES)
                        note_file_string(w, &f.bytes);
                else if (f.number == PPROF_FUNCTION && f.type == WIRE_BYTES)
                        note_function_id(w, f.bytes);
        }
        if (r.failed)
                return reader_error(&r, err, "pprof file");
        if (w->last_function_id > UINT64_MAX / 2)
                return error_set(err, ST_TOO_BIG, "pprof file has function ids over 2^63");
        return ST_OK;
}

static void note_mapping_flags(struct pprof_rewriter *w)
{
        for (uint32_t i = 0; i < w->p->locations.count; i++) {
                const struct profile_location *l = &w->p->locations.items[i];

                if (!w->changed[i] || l->mapping == PROFILE_NONE)
                        continue;
                w->flags[l->mapping].inlined |= l->line_count > 1;
                for (uint32_t n = 0; n < l->line_count; n++) {
                        const struct profile_line *line = &w->p->lines.items[l->first_line + n];

                        w->flags[l->mapping].functions |= line->function != 0;
                        w->flags[l->mapping].files |= line->file != 0;
                        w->flags[l->mapping].lines |= line->line != 0;
                }
        }
}

/* ---- second pass: copying ---------------------------------------------------------------- */

static uint32_t get_string_index(struct pprof_rewriter *w, uint32_t string)
{
        const struct profile_string *s = &w->p->strings.items[string];

        if (string == 0)
                return 0;
        if (!w->strings[string]) {
                wire_put_bytes(&w->added, PPROF_STRING_TABLE, s->text, s->size);
                w->strings[string] = ++w->string_count;
        }
        return w->strings[string] - 1;
}

static enum status get_function_id(struct pprof_rewriter *w, const struct profile_line *line, uint64_t *ret,
                                   struct error *err)
{
        struct number_key key = { { line->function, line->linkage_name, line->file } };
        uint32_t number, name, linkage_name, file;
        size_t mark;
        bool fresh;
        enum status st = number_map_get(&w->functions, &key, &number, &fresh, err);

        if (st)
                return st;
        *ret = w->last_function_id + 1 + number;
        if (!fresh)
                return ST_OK;
        name = get_string_index(w, line->function);
        linkage_name = line->linkage_name ? get_string_index(w, line->linkage_name) : name;
        file = get_string_index(w, line->file);
        mark = wire_begin(&w->added, PPROF_FUNCTION);
        wire_put_uint(&w->added, PPROF_ID, *ret);
        wire_put_uint(&w->added, PPROF_FUNCTION_NAME, name);
        wire_put_uint(&w->added, PPROF_FUNCTION_SYSTEM_NAME, linkage_name);
        wire_put_uint(&w->added, PPROF_FUNCTION_FILENAME, file);
        wire_end(&w->added, mark);
        return ST_OK;
}

static enum status put_new_lines(struct pprof_rewriter *w, const struct profile_location *l, struct error *err)
{
        enum status st = ST_OK;

        for (uint32_t i = 0; !st && i < l->line_count; i++) {
                const struct profile_line *line = &w->p->lines.items[l->first_line + i];
                uint64_t id;
                size_t mark;

                st = get_function_id(w, line, &id, err);
                if (st)
                        break;
                mark = wire_begin(w->out, PPROF_LOCATION_LINE);
                wire_put_uint(w->out, PPROF_LINE_FUNCTION_ID, id);
                wire_put_uint(w->out, PPROF_LINE_LINE, (uint64_t)line->line);
                wire_end(w->out, mark);
        }
        return st;
}

static enum status rewrite_location(struct pprof_rewriter *w, struct reader r, struct error *err)
{
        size_t mark = wire_begin(w->out, PPROF_LOCATION), start = 0;
        bool changed = w->changed[w->location];
        struct wire_field f;
        enum status st = ST_OK;

        for (; wire_next(&r, &f); start = r.pos)
                if (!changed || f.number != PPROF_LOCATION_LINE)
                        copy_field(w->out, &r, start);
        if (changed)
                st = put_new_lines(w, &w->p->locations.items[w->location], err);
        w->location++;
        wire_end(w->out, mark);
        return st;
}

static void rewrite_mapping(struct pprof_rewriter *w, struct reader r)
{
        const struct mapping_flags *flags = &w->flags[w->mapping++];
        const bool set[] = { flags->functions, flags->files, flags->lines, flags->inlined };
        size_t mark = wire_begin(w->out, PPROF_MAPPING), start = 0;
        struct wire_field f;

        for (; wire_next(&r, &f); start = r.pos) {
                bool is_flag = f.number >= PPROF_MAPPING_HAS_FUNCTIONS && f.number <= PPROF_MAPPING_HAS_INLINE_FRAMES;

                if (!is_flag || !set[f.number - PPROF_MAPPING_HAS_FUNCTIONS])
                        copy_field(w->out, &r, start);
        }
        for (uint32_t i = 0; i < 4; i++)
                wire_put_uint(w->out, PPROF_MAPPING_HAS_FUNCTIONS + i, set[i]);
        wire_end(w->out, mark);
}

static enum status rewrite_pprof_file(struct pprof_rewriter *w, struct reader r, struct error *err)
{
        size_t start = 0;
        struct wire_field f;
        enum status st = ST_OK;

        for (; !st && wire_next(&r, &f); start = r.pos) {
                if (f.number == PPROF_LOCATION && f.type == WIRE_BYTES && w->location < w->p->locations.count)
                        st = rewrite_location(w, f.bytes, err);
                else if (f.number == PPROF_MAPPING && f.type == WIRE_BYTES && w->mapping < w->p->mappings.count)
                        rewrite_mapping(w, f.bytes);
                else
                        copy_field(w->out, &r, start);
        }
        if (st)
                return st;
        if (w->string_count > LIMIT_STRINGS)
                return error_set(err, ST_TOO_BIG, "pprof file would have more than %d strings", LIMIT_STRINGS);
        buf_append(w->out, w->added.data, w->added.size);
        st = buf_status(&w->added, err, "pprof file");
        return st ? st : buf_status(w->out, err, "pprof file");
}

enum status pprof_put_symbols(const void *data, size_t n, const struct profile *p, const bool *changed, struct buf *ret,
                              struct error *err)
{
        struct pprof_rewriter w = { .p = p, .changed = changed, .out = ret };
        struct reader r;
        enum status st = ST_OK;

        reader_init(&r, data, n);
        buf_init(&w.added, ret->max);
        w.flags = calloc(p->mappings.count + 1u, sizeof *w.flags);
        w.strings = calloc(p->strings.count + 1u, sizeof *w.strings);
        if (!w.flags || !w.strings)
                st = error_no_memory(err);
        if (!st)
                st = scan_pprof_file(&w, r, err);
        if (!st) {
                note_mapping_flags(&w);
                st = rewrite_pprof_file(&w, r, err);
        }
        free(w.flags);
        free(w.strings);
        buf_deinit(&w.added);
        number_map_deinit(&w.functions);
        return st;
}
