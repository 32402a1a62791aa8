/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a push.v1.PushRequest: docs/formats/ingest.md, 4 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/compress/compress.h"
#include "common/limits.h"
#include "profile-formats/input/push.h"
#include "profile-formats/pprof/pprof_fields.h"
#include "profile-formats/proto/push.pb-c.h"
#include "profile-formats/wire.h"
#include "tests/support/profile_text.h"
#include "tests/support/suite.h"

static char text_of_label[] = "a";

/* Decode the same series, or the same file, repeatedly. */
static enum status decode_series(size_t label_count, const struct buf *file, size_t file_count,
                                 const struct deadline *deadline, struct error *err)
{
        Push__PushRequest request = PUSH__PUSH_REQUEST__INIT;
        Push__RawProfileSeries series = PUSH__RAW_PROFILE_SERIES__INIT, *all_series[] = { &series };
        Push__LabelPair label = PUSH__LABEL_PAIR__INIT, *labels[LIMIT_LABELS_PER_SAMPLE + 1];
        Push__RawSample sample = PUSH__RAW_SAMPLE__INIT, *samples[2] = { &sample, &sample };
        struct profile p;
        uint8_t *packed;
        enum status st;
        size_t n;

        label.name = label.value = (ProtobufCBinaryData){ 1, (uint8_t *)text_of_label };
        for (size_t i = 0; i < label_count; i++)
                labels[i] = &label;
        sample.raw_profile = (ProtobufCBinaryData){ file->size, file->data };
        series.labels = labels;
        series.n_labels = label_count;
        series.samples = samples;
        series.n_samples = file_count;
        request.series = all_series;
        request.n_series = 1;
        packed = malloc(push__push_request__get_packed_size(&request));
        ck_assert_ptr_nonnull(packed);
        n = push__push_request__pack(&request, packed);
        st = push_decode(packed, n, false, deadline, &p, err);
        if (!st)
                profile_deinit(&p);
        free(packed);
        return st;
}

/* A gzip'd pprof file without samples, and an unknown field of this many bytes. */
static void make_file(size_t n, struct buf *ret)
{
        _cleanup_buf_ struct buf plain;
        uint8_t *unknown;

        buf_init(&plain, n + 16);
        buf_append(&plain, "\x32\0", 2); /* the empty string */
        buf_append_uleb128(&plain, 100 << 3 | 2);
        buf_append_uleb128(&plain, n);
        unknown = buf_reserve(&plain, n);
        ck_assert_ptr_nonnull(unknown);
        memset(unknown, 0, n);
        buf_commit(&plain, n);
        buf_init(ret, MiB(1));
        ck_assert_int_eq(gzip_compress(plain.data, plain.size, 1, ret, NULL), ST_OK);
}

START_TEST(labels_of_series_are_limited_like_those_of_samples)
{
        _cleanup_buf_ struct buf file;
        struct error err;

        make_file(1, &file);
        ck_assert_int_eq(decode_series(LIMIT_LABELS_PER_SAMPLE, &file, 1, NULL, &err), ST_OK);
        ck_assert_int_eq(decode_series(LIMIT_LABELS_PER_SAMPLE + 1, &file, 1, NULL, &err), ST_TOO_BIG);
        ck_assert_str_eq(err.text, "a series has more than 128 labels");
}
END_TEST

START_TEST(files_of_a_request_share_decompression_limit)
{
        _cleanup_buf_ struct buf file;
        struct error err;

        make_file(LIMIT_HTTP_BODY_BYTES * 5 / 8, &file);
        ck_assert_int_eq(decode_series(1, &file, 1, NULL, &err), ST_OK);
        ck_assert_int_eq(decode_series(1, &file, 2, NULL, &err), ST_TOO_BIG);
}
END_TEST

START_TEST(request_past_its_deadline_is_not_decoded)
{
        static const struct deadline past = { .expires_ns = 0, .timeout_s = 120 };
        _cleanup_buf_ struct buf file;
        struct error err;

        make_file(1, &file);
        ck_assert_int_eq(decode_series(1, &file, 1, &past, &err), ST_TIMEOUT);
}
END_TEST

static void put_text_label(struct buf *b, uint64_t key, uint64_t value)
{
        size_t l = wire_begin(b, PPROF_SAMPLE_LABEL);

        wire_put_varint(b, PPROF_LABEL_KEY, key);
        wire_put_varint(b, PPROF_LABEL_STR, value);
        wire_end(b, l);
}

/* A file with one sample, whose label "b" is there twice, as 1 and 2. */
static void put_file_with_repeated_key(struct buf *b)
{
        static const char *const strings[] = { "", "cpu", "nanoseconds", "b", "1", "2" };
        size_t m = wire_begin(b, PPROF_SAMPLE_TYPE);

        wire_put_varint(b, PPROF_VALUE_TYPE_TYPE, 1);
        wire_put_varint(b, PPROF_VALUE_TYPE_UNIT, 2);
        wire_end(b, m);
        m = wire_begin(b, PPROF_SAMPLE);
        wire_put_varint(b, PPROF_SAMPLE_LOCATION_ID, 1);
        wire_put_varint(b, PPROF_SAMPLE_VALUE, 7);
        put_text_label(b, 3, 4);
        put_text_label(b, 3, 5);
        wire_end(b, m);
        m = wire_begin(b, PPROF_LOCATION);
        wire_put_varint(b, PPROF_ID, 1);
        wire_put_varint(b, PPROF_LOCATION_ADDRESS, 16);
        wire_end(b, m);
        for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
                wire_put_bytes(b, PPROF_STRING_TABLE, strings[i], strlen(strings[i]));
}

/* In a series as in a sample. */
START_TEST(the_last_value_of_a_repeated_key_counts)
{
        Push__LabelPair pairs[2] = { PUSH__LABEL_PAIR__INIT, PUSH__LABEL_PAIR__INIT },
                        *labels[] = { &pairs[0], &pairs[1] };
        Push__RawSample sample = PUSH__RAW_SAMPLE__INIT, *samples[] = { &sample };
        Push__RawProfileSeries series = PUSH__RAW_PROFILE_SERIES__INIT, *all_series[] = { &series };
        Push__PushRequest request = PUSH__PUSH_REQUEST__INIT;
        _cleanup_free_ uint8_t *packed = NULL;
        _cleanup_free_ char *text = NULL;
        _cleanup_buf_ struct buf file;
        struct profile p;
        struct error err;

        buf_init(&file, KiB(1));
        put_file_with_repeated_key(&file);
        for (int i = 0; i < 2; i++) {
                pairs[i].name = (ProtobufCBinaryData){ 1, (uint8_t *)text_of_label };
                pairs[i].value = (ProtobufCBinaryData){ 1, (uint8_t *)(i ? "2" : "1") };
        }
        sample.raw_profile = (ProtobufCBinaryData){ file.size, file.data };
        series = (Push__RawProfileSeries){ series.base, 2, labels, 1, samples };
        request.series = all_series;
        request.n_series = 1;
        packed = malloc(push__push_request__get_packed_size(&request));
        ck_assert_ptr_nonnull(packed);
        ck_assert_msg(push_decode(packed, push__push_request__pack(&request, packed), false, NULL, &p, &err) == ST_OK,
                      "%s", err.text);
        text = profile_to_text(&p);
        profile_deinit(&p);
        ck_assert_msg(strstr(text, "{a=2} {b=2}") != NULL, "%s", text);
}
END_TEST

TEST_SUITE("push", labels_of_series_are_limited_like_those_of_samples, files_of_a_request_share_decompression_limit,
           request_past_its_deadline_is_not_decoded, the_last_value_of_a_repeated_key_counts)
