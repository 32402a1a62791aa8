/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/profile_output.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/run_query.h"
#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/files/output_file.h"
#include "common/limits.h"
#include "profile-formats/folded.h"
#include "profile-formats/otlp/otlp.h"
#include "profile-formats/pprof/pprof.h"

static const char *const names[] = { "text", "json", "html", "folded", "pprof", "otlp" };

enum status profile_shape_parse(const char *name, enum profile_shape *ret, struct error *err)
{
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
                if (strcmp(name, names[i]) == 0) {
                        *ret = (enum profile_shape)i;
                        return ST_OK;
                }
        }
        return error_set(err, ST_USAGE, "format '%.40s' is not one of text, json, html, folded, pprof, otlp", name);
}

enum status profile_shape_of(const char *path, enum profile_shape *ret, struct error *err)
{
        static const struct {
                const char *end;
                enum profile_shape shape;
        } endings[] = {
                { ".html", SHAPE_HTML },   { ".htm", SHAPE_HTML },      { ".json", SHAPE_JSON },
                { ".txt", SHAPE_TEXT },    { ".folded", SHAPE_FOLDED }, { ".pb.gz", SHAPE_PPROF },
                { ".pprof", SHAPE_PPROF }, { ".otlp", SHAPE_OTLP },
        };
        size_t n = strlen(path);

        for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
                size_t m = strlen(endings[i].end);

                if (n >= m && strcmp(path + n - m, endings[i].end) == 0) {
                        *ret = endings[i].shape;
                        return ST_OK;
                }
        }
        return error_set(err, ST_USAGE,
                         "'%.100s' has no known suffix: use .html, .pb.gz, .folded, .otlp, .json or .txt, or "
                         "give --format",
                         path);
}

bool profile_shape_is_binary(enum profile_shape s)
{
        return s == SHAPE_PPROF || s == SHAPE_OTLP;
}

enum status profile_shape_put(const struct profile *p, enum profile_shape s, const struct profile_form *form,
                              struct buf *ret, struct error *err)
{
        struct query_params params = { 0 };

        assert(s >= SHAPE_TEXT && s <= SHAPE_OTLP);
        if (!p->samples.count && (s == SHAPE_TEXT || s == SHAPE_FOLDED))
                return ST_OK;
        query_param_add(&params, "names", form->names);
        if (p->samples.count)
                query_param_add(&params, "type", form->type);
        switch (s) {
        case SHAPE_TEXT:
        case SHAPE_JSON:
                query_param_add(&params, "limit", form->limit);
                query_param_add(&params, "format", s == SHAPE_TEXT ? "text" : "rows");
                return query_profiles(&p, 1, "top", &params, ret, err);
        case SHAPE_HTML:
                query_param_add(&params, "format", "html");
                return query_profiles(&p, 1, "flame", &params, ret, err);
        case SHAPE_FOLDED:
                return folded_encode(p, form->type, NULL, ret, err);
        case SHAPE_PPROF:
                return pprof_encode(p, ret, err);
        case SHAPE_OTLP:
                return otlp_encode(p, ret, err);
        }
        return ST_USAGE;
}

/* ---- files ------------------------------------------------------------------------------------- */

static bool is_standard_output(const char *path)
{
        return !path || strcmp(path, "-") == 0;
}

enum status profile_output_check(const char *path, struct error *err)
{
        return is_standard_output(path) ? ST_OK : output_file_check(path, err);
}

enum status profile_output_write(const char *path, const struct buf *b, struct error *err)
{
        if (is_standard_output(path))
                return file_write_all(STDOUT_FILENO, b->data, b->size, "standard output", err);
        return output_file_write(path, OUTPUT_OF_COMMAND, b->data, b->size, err);
}

/* ---- root frames ---- */

/* String number of the label's value; 0 none. */
static uint32_t root_label_value(const struct profile *p, const struct profile_sample *s, uint32_t key)
{
        for (uint32_t i = 0; i < s->label_count; i++)
                if (p->labels.items[s->first_label + i].key == key)
                        return p->labels.items[s->first_label + i].value;
        return 0;
}

/* *ret: the location with that name, created if needed. */
static enum status find_or_add_root(struct profile *p, uint32_t value, uint32_t *known, uint32_t *ret,
                                    struct error *err)
{
        struct profile_location l = { .mapping = PROFILE_NONE, .kind = ADDRESS_NONE, .line_count = 1 };
        struct profile_line line = { .function = value };
        enum status st;

        if (known[value] != PROFILE_NONE) {
                *ret = known[value];
                return ST_OK;
        }
        st = profile_add_line(p, &line, &l.first_line, err);
        if (!st)
                st = profile_add_location(p, &l, ret, err);
        if (!st)
                known[value] = *ret;
        return st;
}

/* A stack of the maximum length loses its outermost frame to the root. */
static enum status add_root_location(struct profile *p, struct profile_sample *s, uint32_t frame, struct error *err)
{
        const struct profile_stack from = p->stacks.items[s->stack];
        uint32_t frames[LIMIT_STACK_FRAMES], count = from.location_count;
        enum status st;

        if (count == LIMIT_STACK_FRAMES)
                count--;
        memcpy(frames, p->stack_locations.items + from.first_location, count * sizeof *frames);
        frames[count++] = frame;
        st = profile_add_stack(p, frames, count, &s->stack, err);
        if (!st)
                p->stacks.items[s->stack].truncated |= from.truncated;
        return st;
}

enum status profile_add_roots(struct profile *p, const char *label, struct error *err)
{
        _cleanup_free_ uint32_t *known = malloc(p->strings.count * sizeof *known);
        enum status st = ST_OK;
        uint32_t key;

        if (!known)
                return error_no_memory(err);
        memset(known, 0xff, p->strings.count * sizeof *known); /* PROFILE_NONE */
        if (!profile_find_string(p, label, strlen(label), &key))
                return ST_OK;
        for (uint32_t i = 0; i < p->samples.count && !st; i++) {
                struct profile_sample *s = &p->samples.items[i];
                uint32_t value = root_label_value(p, s, key), frame = 0;

                if (!value)
                        continue;
                st = find_or_add_root(p, value, known, &frame, err);
                if (!st)
                        st = add_root_location(p, s, frame, err);
        }
        return st;
}
