/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/speedscope.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"
#include "common/json/json_value.h"
#include "common/limits.h"
#include "common/text.h"
#include "common/text/number_text.h"
#include "profile-formats/profile_type.h"
#include "profile-formats/sample_labels.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"
#define NUMBER_BYTES 64

struct speedscope_reader {
        struct profile *p;
        char *text;                                  /* LIMIT_NAME_BYTES + 1 bytes */
        uint32_t *frames;                            /* of the current stack, root first */
        uint32_t leaf_first[LIMIT_STACK_FRAMES + 1]; /* one more, so that profile_add_stack() detects truncation */
        size_t depth, capacity;
        double scale;                 /* of weights */
        double remainder;             /* of the weights before, which are rounded by their sum */
        struct profile_sample sample; /* the values that all samples of a profile share */
};

static bool read_json_number(const struct json_value *value, double *ret)
{
        char text[NUMBER_BYTES], *end;

        if (!value->size || value->size >= sizeof text ||
            (value->data[0] != '-' && (value->data[0] < '0' || value->data[0] > '9')))
                return false;
        memcpy(text, value->data, value->size);
        text[value->size] = 0;
        *ret = strtod(text, &end);
        return end == text + value->size && isfinite(*ret);
}

static bool read_number_member(const struct json_value *object, const char *key, double *ret)
{
        struct json_value value;

        return json_value_member(object, key, &value) && read_json_number(&value, ret);
}

static enum status add_speedscope_text(struct speedscope_reader *r, const struct json_value *object, const char *key,
                                       uint32_t *ret, struct error *err)
{
        const char *text = json_value_text(object, key, r->text, LIMIT_NAME_BYTES + 1);

        return profile_add_string(r->p, text ? text : "", text ? strlen(text) : 0, ret, err);
}

/* Frame i becomes location i: the profile has no other. */
static enum status add_speedscope_frame(struct speedscope_reader *r, const struct json_value *frame, struct error *err)
{
        struct profile_location l = { .mapping = PROFILE_NONE, .kind = ADDRESS_NONE, .line_count = 1 };
        struct profile_line line = { 0 };
        uint32_t number;
        double at;
        enum status st = add_speedscope_text(r, frame, "name", &line.function, err);

        if (!st)
                st = add_speedscope_text(r, frame, "file", &line.file, err);
        if (read_number_member(frame, "line", &at) && at >= 1 && at <= INT32_MAX)
                line.line = (int64_t)at;
        if (!st)
                st = profile_add_line(r->p, &line, &l.first_line, err);
        return st ? st : profile_add_location(r->p, &l, &number, err);
}

static enum status read_speedscope_frames(struct speedscope_reader *r, const struct json_value *root, struct error *err)
{
        struct json_value shared, frames, frame;
        struct json_scan items;
        enum status st = ST_OK;

        if (!json_value_member(root, "shared", &shared) || !json_value_member(&shared, "frames", &frames) ||
            !json_value_open_array(&frames, &items))
                return error_set(err, ST_BAD_DATA, "the speedscope file has no shared.frames");
        while (!st && json_value_next(&items, &frame))
                st = add_speedscope_frame(r, &frame, err);
        return st;
}

static enum status push_speedscope_frame(struct speedscope_reader *r, const struct json_value *value, struct error *err)
{
        double frame;

        if (!read_json_number(value, &frame) || frame < 0 || frame >= r->p->locations.count || frame != floor(frame))
                return error_set(err, ST_BAD_DATA, "a speedscope frame is outside of the %u shared frames",
                                 r->p->locations.count);
        if (!array_reserve(&r->frames, &r->capacity, r->depth))
                return error_no_memory(err);
        r->frames[r->depth++] = (uint32_t)frame;
        return ST_OK;
}

/* Add a sample of the current stack. */
static enum status add_speedscope_sample(struct speedscope_reader *r, double weight, struct error *err)
{
        struct profile_sample s = r->sample;
        double exact = weight * r->scale + r->remainder, value = floor(exact + 0.5);
        uint32_t at, count = 0;
        enum status st;

        if (weight < 0 || value >= 0x1p63)
                return error_set(err, ST_BAD_DATA, "a speedscope weight is negative or over 63 bits");
        if (!r->depth)
                return ST_OK;
        r->remainder = exact - value;
        if (value == 0)
                return ST_OK;
        for (; count < r->depth && count <= LIMIT_STACK_FRAMES; count++)
                r->leaf_first[count] = r->frames[r->depth - 1 - count];
        s.value = (int64_t)value;
        st = profile_add_stack(r->p, r->leaf_first, count, &s.stack, err);
        return st ? st : profile_add_sample(r->p, &s, &at, err);
}

static enum status read_sampled_profile(struct speedscope_reader *r, const struct json_value *profile,
                                        struct error *err)
{
        struct json_value samples, weights, sample, weight, frame;
        struct json_scan sample_items, weight_items, frame_items;
        enum status st = ST_OK;
        double value;

        if (!json_value_member(profile, "samples", &samples) || !json_value_member(profile, "weights", &weights) ||
            !json_value_open_array(&samples, &sample_items) || !json_value_open_array(&weights, &weight_items))
                return error_set(err, ST_BAD_DATA, "a sampled speedscope profile has no samples or no weights");
        while (!st && json_value_next(&sample_items, &sample)) {
                if (!json_value_next(&weight_items, &weight) || !read_json_number(&weight, &value) ||
                    !json_value_open_array(&sample, &frame_items))
                        return error_set(err, ST_BAD_DATA, "a speedscope sample has no weight or no stack");
                r->depth = 0;
                while (!st && json_value_next(&frame_items, &frame))
                        st = push_speedscope_frame(r, &frame, err);
                if (!st)
                        st = add_speedscope_sample(r, value, err);
        }
        if (!st && json_value_next(&weight_items, &weight))
                st = error_set(err, ST_BAD_DATA, "a sampled speedscope profile has more weights than samples");
        return st;
}

/* Open or close a frame, after the time up to here is added to the open ones. */
static enum status read_speedscope_event(struct speedscope_reader *r, const struct json_value *event, double *last,
                                         struct error *err)
{
        struct json_value frame;
        char type[4] = "";
        uint32_t opened;
        double at;
        enum status st;

        if (!json_value_text(event, "type", type, sizeof type) || (strcmp(type, "O") != 0 && strcmp(type, "C") != 0) ||
            !read_number_member(event, "at", &at) || !json_value_member(event, "frame", &frame) || at < *last)
                return error_set(err, ST_BAD_DATA, "a speedscope event is malformed or out of order");
        st = add_speedscope_sample(r, at - *last, err);
        *last = at;
        if (!st)
                st = push_speedscope_frame(r, &frame, err);
        if (st || *type == 'O')
                return st;
        opened = r->frames[--r->depth]; /* of the event itself; the open one is below */
        if (!r->depth || r->frames[r->depth - 1] != opened)
                return error_set(err, ST_BAD_DATA, "a speedscope event closes a frame that is not the innermost");
        r->depth--;
        return ST_OK;
}

static enum status read_evented_profile(struct speedscope_reader *r, const struct json_value *profile,
                                        struct error *err)
{
        struct json_value events, event;
        struct json_scan items;
        double last = 0;
        enum status st = ST_OK;

        if (!json_value_member(profile, "events", &events) || !json_value_open_array(&events, &items))
                return error_set(err, ST_BAD_DATA, "an evented speedscope profile has no events");
        (void)read_number_member(profile, "startValue", &last);
        r->depth = 0;
        while (!st && json_value_next(&items, &event))
                st = read_speedscope_event(r, &event, &last, err);
        if (!st && r->depth)
                return error_set(err, ST_BAD_DATA, "a speedscope profile ends with %s open; it may be cut off",
                                 COUNTED(r->depth, "frame", "frames"));
        return st;
}

static enum status set_speedscope_type(struct speedscope_reader *r, const char *unit, bool several, struct error *err)
{
        const char *type = "process_cpu:samples:count::";
        struct profile_unit known;

        r->scale = 1;
        r->remainder = 0;
        if (profile_unit_find(unit, strlen(unit), &known)) {
                r->scale = (double)known.factor;
                if (!known.is_time)
                        type = "memory:samples:bytes::";
                else if (several)
                        type = "wall:wall:nanoseconds:wall:nanoseconds";
                else
                        type = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
        }
        return profile_type_add_id(r->p, type, 0, &r->sample.type, err);
}

static enum status read_speedscope_profile(struct speedscope_reader *r, const struct json_value *profile, bool several,
                                           struct error *err)
{
        struct sample_labels labels = { .count = 0 };
        char unit[16] = "none", type[16] = "";
        const char *name = json_value_text(profile, "name", r->text, LIMIT_LABEL_BYTES + 1);
        enum status st = ST_OK;

        r->sample = (struct profile_sample){ 0 };
        if (name && *name)
                st = sample_labels_set_text(&labels, r->p, "profile_name", name, strlen(name), err);
        if (!st)
                st = profile_add_label_set(r->p, labels.items, labels.count, &r->sample.first_label, err);
        r->sample.label_count = labels.count;
        (void)json_value_text(profile, "unit", unit, sizeof unit);
        (void)json_value_text(profile, "type", type, sizeof type);
        if (!st)
                st = set_speedscope_type(r, unit, several, err);
        if (st)
                return st;
        if (strcmp(type, "sampled") == 0)
                return read_sampled_profile(r, profile, err);
        if (strcmp(type, "evented") == 0)
                return read_evented_profile(r, profile, err);
        return error_set(err, ST_BAD_DATA, "speedscope profiles of type '%.16s' are not supported", type);
}

static enum status read_speedscope_file(struct speedscope_reader *r, const void *data, size_t n, struct error *err)
{
        struct json_value root, profiles, profile;
        struct json_scan items;
        bool several;
        enum status st = json_value_parse(data, n, &root, err);

        if (st)
                return st;
        if (!json_value_text(&root, "$schema", r->text, LIMIT_NAME_BYTES) || strcmp(r->text, SCHEMA) != 0)
                return error_set(err, ST_BAD_DATA, "not a speedscope file: its $schema is not " SCHEMA);
        if (!json_value_member(&root, "profiles", &profiles) || !json_value_open_array(&profiles, &items))
                return error_set(err, ST_BAD_DATA, "the speedscope file has no profiles");
        several = json_value_count(&profiles, 2) > 1;
        st = read_speedscope_frames(r, &root, err);
        while (!st && json_value_next(&items, &profile))
                st = read_speedscope_profile(r, &profile, several, err);
        return st;
}

enum status speedscope_decode(const void *data, size_t n, struct profile *ret, struct error *err)
{
        struct profile p;
        struct speedscope_reader r = { .p = &p, .text = malloc(LIMIT_NAME_BYTES + 1) };
        enum status st;

        if (!r.text)
                return error_no_memory(err);
        st = profile_init(&p, LIMIT_PROFILE_MEMORY_BYTES, err);
        if (!st) {
                profile_limit_work(&p, n);
                st = read_speedscope_file(&r, data, n, err);
                p.max_work = 0; /* additions by the caller are not part of the input */
                if (st)
                        profile_deinit(&p);
                else
                        *ret = p;
        }
        free(r.text);
        free(r.frames);
        return st;
}
