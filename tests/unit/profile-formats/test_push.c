/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a push.v1.PushRequest: docs/formats/ingest.md, 4 */
#include <check.h>
#include <stdlib.h>

#include "common/compress/compress.h"
#include "common/limits.h"
#include "profile-formats/input/push.h"
#include "profile-formats/proto/push.pb-c.h"
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

TEST_SUITE("push", labels_of_series_are_limited_like_those_of_samples, files_of_a_request_share_decompression_limit,
           request_past_its_deadline_is_not_decoded)
