/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/input/push.h"

#include <string.h>

#include "common/limits.h"
#include "common/text.h"
#include "profile-formats/json/json_wire.h"
#include "profile-formats/pprof/pprof.h"
#include "profile-formats/profile_copy.h"
#include "profile-formats/proto/push.pb-c.h"
#include "profile-formats/proto_message.h"
#include "profile-formats/sample_labels.h"

#define LABEL_TEXT_BYTES (LIMIT_LABEL_BYTES + 1)

/* A label's name or value as text. */
static enum status copy_label_text(const ProtobufCBinaryData *from, char *to, struct error *err)
{
        if (from->len > LIMIT_LABEL_BYTES || (from->len && memchr(from->data, 0, from->len)))
                return error_set(err, ST_BAD_DATA, "a label is longer than %zu bytes or holds NUL",
                                 (size_t)LIMIT_LABEL_BYTES);
        if (from->len)
                memcpy(to, from->data, from->len);
        to[from->len] = 0;
        return ST_OK;
}

/* A request that is being decoded. */
struct push_decoder {
        struct profile all;
        const struct deadline *deadline;
        struct pprof_files files;
        struct error *err;
};

/* Find the type's name among the labels of a series, and check all of them. */
static enum status read_profile_type_name(const Push__RawProfileSeries *series, char *type_name, struct error *err)
{
        char name[LABEL_TEXT_BYTES], value[LABEL_TEXT_BYTES];
        enum status st = ST_OK;

        if (series->n_labels > LIMIT_LABELS_PER_SAMPLE)
                return error_set(err, ST_TOO_BIG, "a series has more than %d labels", LIMIT_LABELS_PER_SAMPLE);
        for (size_t i = 0; !st && i < series->n_labels; i++) {
                st = copy_label_text(&series->labels[i]->name, name, err);
                if (!st)
                        st = copy_label_text(&series->labels[i]->value, value, err);
                if (!st && strcmp(name, "__name__") == 0)
                        memcpy(type_name, value, strlen(value) + 1);
        }
        return st;
}

/* The last of several values of a label counts, as in pprof and OTLP. */
static enum status collect_series_label(const struct push_decoder *d, const Push__LabelPair *label, struct profile *p,
                                        struct sample_labels *labels)
{
        char name[LABEL_TEXT_BYTES], value[LABEL_TEXT_BYTES];
        enum status st = copy_label_text(&label->name, name, d->err);

        if (!st)
                st = copy_label_text(&label->value, value, d->err);
        if (st || !*name || starts_with(name, "__"))
                return st;
        return sample_labels_set_text(labels, p, name, value, strlen(value), d->err);
}

static enum status add_series_labels(const struct push_decoder *d, const Push__RawProfileSeries *series,
                                     struct profile *p)
{
        struct sample_labels labels = { .count = 0 };
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < series->n_labels; i++)
                st = collect_series_label(d, series->labels[i], p, &labels);
        return st ? st : profile_add_labels_to_all(p, &labels, d->err);
}

/* Decode one pprof file with the labels of its series, and append it to all. */
static enum status add_pushed_profile(struct push_decoder *d, const Push__RawProfileSeries *series,
                                      const char *type_name, const ProtobufCBinaryData *raw)
{
        const size_t unpacked_before = d->files.unpacked_left;
        struct profile p;
        enum status st = deadline_check(d->deadline, d->err);

        if (!st)
                st = pprof_decode_one_of(raw->data, raw->len, *type_name ? type_name : NULL, &d->files, &p, d->err);
        if (st)
                return st;
        st = add_series_labels(d, series, &p);
        d->all.max_work += LIMIT_DECODE_WORK_PER_BYTE * (unpacked_before - d->files.unpacked_left);
        if (!st)
                st = profile_count_work(&d->all, p.work + LIMIT_DECODE_FILE_WORK, d->err);
        if (!st)
                st = profile_merge(&d->all, &p, d->err);
        profile_deinit(&p);
        return st;
}

static enum status add_pushed_series(struct push_decoder *d, const Push__RawProfileSeries *series)
{
        char type_name[LABEL_TEXT_BYTES] = "";
        enum status st = read_profile_type_name(series, type_name, d->err);

        for (size_t i = 0; !st && i < series->n_samples; i++)
                if (series->samples[i]->raw_profile.len)
                        st = add_pushed_profile(d, series, type_name, &series->samples[i]->raw_profile);
        return st;
}

/* ---- ProtoJSON ---- */

/* Both spellings of a name, as protobuf's own parsers accept them. push.proto has the numbers. */
static const struct json_wire_field label_fields[] = {
        { "name", 1, JSON_WIRE_TEXT, false, NULL },
        { "value", 2, JSON_WIRE_TEXT, false, NULL },
        { 0 },
};
static const struct json_wire_field sample_fields[] = {
        { "rawProfile", 1, JSON_WIRE_BASE64, false, NULL },
        { "raw_profile", 1, JSON_WIRE_BASE64, false, NULL },
        { 0 },
};
static const struct json_wire_field series_fields[] = {
        { "labels", 1, JSON_WIRE_MESSAGE, true, label_fields },
        { "samples", 2, JSON_WIRE_MESSAGE, true, sample_fields },
        { 0 },
};
static const struct json_wire_field request_fields[] = {
        { "series", 1, JSON_WIRE_MESSAGE, true, series_fields },
        { 0 },
};

static enum status transcode_push_json(const void *data, size_t n, struct buf *wire, struct error *err)
{
        struct json_scan s;
        enum status st;

        json_scan_init(&s, data, n);
        json_wire_append(&s, request_fields, wire);
        st = buf_status(wire, err, "a push request in JSON");
        return st ? st : json_scan_end(&s, err);
}

/* ---- the request ---- */

static enum status decode_push_series(struct push_decoder *d, const void *message)
{
        const Push__PushRequest *request = message;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < request->n_series; i++)
                st = add_pushed_series(d, request->series[i]);
        return st;
}

/* Parca's series have their labels in a message of their own. */
static enum status decode_write_raw_series(struct push_decoder *d, const void *message)
{
        const Push__WriteRawRequest *request = message;
        enum status st = ST_OK;

        d->files.has_object_addresses = request->normalized;
        for (size_t i = 0; !st && i < request->n_series; i++) {
                const Push__LabeledSeries *from = request->series[i];
                Push__RawProfileSeries series = PUSH__RAW_PROFILE_SERIES__INIT;

                series.n_samples = from->n_samples;
                series.samples = from->samples;
                if (from->labels) {
                        series.n_labels = from->labels->n_labels;
                        series.labels = from->labels->labels;
                }
                st = add_pushed_series(d, &series);
        }
        return st;
}

struct push_message {
        const ProtobufCMessageDescriptor *type;
        const char *what;
        enum status (*decode)(struct push_decoder *d, const void *message);
};
static const struct push_message push_request = { &push__push_request__descriptor, "push request", decode_push_series };
static const struct push_message write_raw_request = { &push__write_raw_request__descriptor, "WriteRaw request",
                                                       decode_write_raw_series };

/* input_bytes: of the request as received, which the work is limited by. */
static enum status decode_push_message(struct push_decoder *d, const struct push_message *kind, const void *data,
                                       size_t n, size_t input_bytes, struct profile *ret)
{
        _cleanup_arena_ struct arena memory;
        const void *message;
        enum status st;

        arena_init_budget(&memory, LIMIT_PROFILE_MEMORY_BYTES, MEMORY_INGEST);
        st = proto_message_decode(kind->type, data, n, &memory, kind->what, &message, d->err);
        if (st)
                return st;
        st = profile_init(&d->all, LIMIT_PROFILE_MEMORY_BYTES, d->err);
        if (st)
                return st;
        profile_limit_work(&d->all, input_bytes);
        st = kind->decode(d, message);
        d->all.max_work = 0; /* additions by the caller are not part of the input */
        if (st)
                profile_deinit(&d->all);
        else
                *ret = d->all;
        return st;
}

enum status push_decode(const void *data, size_t n, bool is_json, const struct deadline *deadline, struct profile *ret,
                        struct error *err)
{
        struct push_decoder d = { .deadline = deadline, .files.unpacked_left = LIMIT_HTTP_BODY_BYTES, .err = err };
        _cleanup_buf_ struct buf wire;
        enum status st;

        buf_init_budget(&wire, LIMIT_HTTP_BODY_BYTES, MEMORY_INGEST);
        if (!is_json)
                return decode_push_message(&d, &push_request, data, n, n, ret);
        st = transcode_push_json(data, n, &wire, err);
        return st ? st : decode_push_message(&d, &push_request, wire.data, wire.size, n, ret);
}

enum status push_decode_write_raw(const void *data, size_t n, const struct deadline *deadline, struct profile *ret,
                                  struct error *err)
{
        struct push_decoder d = { .deadline = deadline, .files.unpacked_left = LIMIT_HTTP_BODY_BYTES, .err = err };

        return decode_push_message(&d, &write_raw_request, data, n, n, ret);
}
