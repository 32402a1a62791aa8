/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <string.h>
#include <lz4frame.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#include "common/compress/compress.h"
#include "common/compress/content_coding.h"
#include "common/compress/stream_compressor.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "tests/support/suite.h"

typedef enum status pack_fn(const void *, size_t, int, struct buf *, struct error *);
typedef enum status unpack_fn(const void *, size_t, struct buf *, struct error *);

static enum status zstd_pack(const void *data, size_t n, int level, struct buf *ret, struct error *err)
{
        void *to = buf_reserve(ret, ZSTD_compressBound(n));

        ck_assert_ptr_nonnull(to);
        buf_commit(ret, ZSTD_compress(to, ZSTD_compressBound(n), data, n, level));
        return buf_status(ret, err, "zstd output");
}

static enum status lz4_pack(const void *data, size_t n, int level, struct buf *ret, struct error *err)
{
        size_t bound = LZ4F_compressFrameBound(n, NULL);
        void *to = buf_reserve(ret, bound);

        (void)level;
        ck_assert_ptr_nonnull(to);
        buf_commit(ret, LZ4F_compressFrame(to, bound, data, n, NULL));
        return buf_status(ret, err, "lz4 output");
}

static enum status snappy_pack(const void *data, size_t n, int level, struct buf *ret, struct error *err)
{
        size_t bound = snappy_max_compressed_length(n);
        char *to = buf_reserve(ret, bound);

        (void)level;
        ck_assert_ptr_nonnull(to);
        ck_assert_int_eq(snappy_compress(data, n, to, &bound), SNAPPY_OK);
        buf_commit(ret, bound);
        return buf_status(ret, err, "snappy output");
}

static enum status zlib_pack(const void *data, size_t n, int level, struct buf *ret, struct error *err)
{
        uLong bound = compressBound(n);
        void *to = buf_reserve(ret, bound);

        ck_assert_ptr_nonnull(to);
        ck_assert_int_eq(compress2(to, &bound, data, n, level), Z_OK);
        buf_commit(ret, bound);
        return buf_status(ret, err, "zlib output");
}

static enum status lz4_unpack(const void *data, size_t n, struct buf *ret, struct error *err)
{
        return content_coding_decode("lz4", data, n, ret, err);
}

static enum status snappy_unpack(const void *data, size_t n, struct buf *ret, struct error *err)
{
        return content_coding_decode("Snappy", data, n, ret, err);
}

static enum status zlib_unpack(const void *data, size_t n, struct buf *ret, struct error *err)
{
        return content_coding_decode("zlib", data, n, ret, err);
}

#define FORMATS 5
static pack_fn *const packs[FORMATS] = { gzip_compress, zstd_pack, lz4_pack, snappy_pack, zlib_pack };
static unpack_fn *const unpacks[FORMATS] = { gzip_decompress, zstd_decompress, lz4_unpack, snappy_unpack, zlib_unpack };

/* 1 MiB that compresses well, but not extremely. */
static uint8_t *make_text(void)
{
        uint8_t *text = malloc(MiB(1));
        uint32_t seed = 1;

        for (size_t i = 0; i < MiB(1); i++) {
                seed = seed * 1103515245 + 12345;
                text[i] = "abcdefgh"[seed >> 29];
        }
        return text;
}

START_TEST(compressed_text_round_trips)
{
        _cleanup_free_ uint8_t *text = make_text();

        for (int i = 0; i < FORMATS; i++) {
                _cleanup_buf_ struct buf packed, back;

                buf_init(&packed, MiB(2));
                buf_init(&back, MiB(1));
                ck_assert_int_eq(packs[i](text, MiB(1), 3, &packed, NULL), ST_OK);
                ck_assert_uint_lt(packed.size, i < 2 ? MiB(1) / 2 : MiB(1));
                buf_init(&back, MiB(1)); /* exactly the size of the output is enough */
                ck_assert_int_eq(unpacks[i](packed.data, packed.size, &back, NULL), ST_OK);
                ck_assert_uint_eq(back.size, MiB(1));
                ck_assert_mem_eq(back.data, text, MiB(1));
                ck_assert(gzip_detect(packed.data, packed.size) == (i == 0));
                ck_assert(zstd_detect(packed.data, packed.size) == (i == 1));
        }
}
END_TEST

START_TEST(bomb_stops_at_limit)
{
        for (int i = 0; i < FORMATS; i++) {
                _cleanup_free_ uint8_t *zeros = calloc(1, MiB(32));
                _cleanup_buf_ struct buf packed, back;
                struct error err;

                buf_init(&packed, MiB(40));
                ck_assert_int_eq(packs[i](zeros, MiB(32), 3, &packed, NULL), ST_OK);
                ck_assert_uint_lt(packed.size, MiB(2)); /* snappy compresses it to a twentieth */
                buf_init(&back, MiB(1));
                buf_append_str(&back, "before");
                ck_assert_int_eq(unpacks[i](packed.data, packed.size, &back, &err), ST_TOO_BIG);
                ck_assert_ptr_nonnull(strstr(err.text, "unpacks to more than 1048576 bytes"));
                ck_assert_uint_eq(back.size, 6);
                ck_assert_uint_le(back.capacity, MiB(1));
        }
}
END_TEST

START_TEST(truncated_input_is_bad_data)
{
        static const char text[] = "a text that is long enough to have a stream of its own, is it not, is it not";

        for (int i = 0; i < FORMATS; i++) {
                _cleanup_buf_ struct buf packed, back;

                buf_init(&packed, KiB(4));
                buf_init(&back, KiB(4));
                ck_assert_int_eq(packs[i](text, sizeof text, 3, &packed, NULL), ST_OK);
                for (size_t n = 0; n < packed.size; n++) {
                        _cleanup_free_ uint8_t *copy = malloc(n + 1);

                        memcpy(copy, packed.data, n);
                        ck_assert_int_eq(unpacks[i](copy, n, &back, NULL), ST_BAD_DATA);
                        ck_assert_uint_eq(back.size, 0);
                }
                ck_assert_int_eq(unpacks[i](NULL, 0, &back, NULL), ST_BAD_DATA);
        }
}
END_TEST

/* As written by the Go libraries that the OpenTelemetry Collector uses. */
START_TEST(output_of_go_libraries_is_decompressed)
{
        static const char *const names[][2] = {
                { "lz4", "lz4" },
                { "snappy-block", "snappy" },
                { "snappy-stream", "snappy" },
                { "snappy-stream", "x-snappy-framed" },
        };

        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
                _cleanup_buf_ struct buf packed, back;
                char path[100];

                buf_init(&packed, MiB(1));
                buf_init(&back, 66000);
                snprintf(path, sizeof path, "tests/corpus/content_coding/good/%s", names[i][0]);
                ck_assert_int_eq(file_read(path, &packed, NULL), ST_OK);
                ck_assert_int_eq(content_coding_decode(names[i][1], packed.data, packed.size, &back, NULL), ST_OK);
                ck_assert_uint_eq(back.size, 66000);
                ck_assert_mem_eq(back.data + 65978, "stack of frame 4;leaf\n", 22);
                buf_deinit(&back);
                buf_init(&back, 65999);
                ck_assert_int_eq(content_coding_decode(names[i][1], packed.data, packed.size, &back, NULL), ST_TOO_BIG);
        }
}
END_TEST

static void check_coding(const char *coding, const char *file, const char *why)
{
        _cleanup_buf_ struct buf packed, back;
        struct error err = { 0 };
        char path[100];

        buf_init(&packed, MiB(1));
        buf_init(&back, MiB(64));
        snprintf(path, sizeof path, "tests/corpus/content_coding/%s", file);
        ck_assert_int_eq(file_read(path, &packed, NULL), ST_OK);
        ck_assert_msg(content_coding_decode(coding, packed.data, packed.size, &back, &err) != ST_OK, "%s", file);
        ck_assert_msg(strstr(err.text, why) != NULL, "%s: %s", file, err.text);
        ck_assert_uint_lt(back.capacity, MiB(1));
}

START_TEST(damaged_lz4_and_snappy_are_refused)
{
        check_coding("lz4", "bad/lz4-cut", "cut off");
        check_coding("snappy", "bad/snappy-stream-cut", "cut off");
        check_coding("snappy", "bad/snappy-stream-checksum", "wrong checksum");
        check_coding("snappy", "bad/snappy-block-claims-4-gib", "damaged");
        check_coding("x-snappy-framed", "good/snappy-block", "does not begin with its identifier");
        check_coding("br", "good/lz4", "'br' is not known");
}
END_TEST

START_TEST(consecutive_gzip_members_are_concatenated)
{
        _cleanup_buf_ struct buf packed, back;

        buf_init(&packed, KiB(4));
        buf_init(&back, KiB(4));
        ck_assert_int_eq(gzip_compress("one ", 4, 6, &packed, NULL), ST_OK);
        ck_assert_int_eq(gzip_compress("two", 3, 6, &packed, NULL), ST_OK);
        ck_assert_int_eq(gzip_decompress(packed.data, packed.size, &back, NULL), ST_OK);
        ck_assert_uint_eq(back.size, 7);
        ck_assert_mem_eq(back.data, "one two", 7);
        buf_append_str(&packed, "trailing bytes that are no member");
        ck_assert_int_eq(gzip_decompress(packed.data, packed.size, &back, NULL), ST_BAD_DATA);
}
END_TEST

static void pack(int window_bits, struct buf *ret)
{
        static const char text[] = "main;work;read 12\nmain;work;write 3\n";
        z_stream z = { .next_in = (Bytef *)text, .avail_in = sizeof text };

        ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
        z.next_out = buf_reserve(ret, 200);
        z.avail_out = 200;
        ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
        buf_commit(ret, 200 - z.avail_out);
        deflateEnd(&z);
}

START_TEST(zlib_data_is_told_from_text_with_its_header)
{
        _cleanup_buf_ struct buf packed;

        buf_init(&packed, KiB(4));
        pack(15, &packed);
        ck_assert(zlib_detect(packed.data, packed.size));
        ck_assert(!zlib_detect(packed.data, 1));
        packed.size = 0;
        pack(15 + 16, &packed);
        ck_assert(!zlib_detect(packed.data, packed.size));
        ck_assert(!zlib_detect("x^main;work 5\n", 14)); /* 0x78 0x5e is a header of zlib */
}
END_TEST

START_TEST(damaged_data_is_named_by_its_format)
{
        static const struct {
                int window_bits;
                size_t missing;
                const char *text;
        } cases[] = {
                { -15, 0, "this is raw deflate data" },
                { 15, 1, "zlib data is cut off" },
                { 15 + 16, 1, "gzip data is cut off" },
        };
        struct error err;

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                _cleanup_buf_ struct buf packed, back;

                buf_init(&packed, KiB(4));
                buf_init(&back, KiB(4));
                pack(cases[i].window_bits, &packed);
                ck_assert_int_eq(gzip_decompress(packed.data, packed.size - cases[i].missing, &back, &err),
                                 ST_BAD_DATA);
                ck_assert_ptr_nonnull(strstr(err.text, cases[i].text));
                ck_assert_int_eq(gzip_decompress("main;a 5", 8, &back, &err), ST_BAD_DATA);
                ck_assert_str_eq(err.text, "this is neither gzip nor zlib data");
        }
}
END_TEST

START_TEST(zeros_may_follow_gzip_data)
{
        static const uint8_t zeros[600];
        _cleanup_buf_ struct buf packed, back;

        buf_init(&packed, 1 << 20);
        buf_init(&back, 1 << 20);
        ck_assert_int_eq(gzip_compress("one ", 4, 6, &packed, NULL), ST_OK);
        ck_assert_int_eq(buf_append(&packed, zeros, sizeof zeros), ST_OK);
        ck_assert_int_eq(gzip_decompress(packed.data, packed.size, &back, NULL), ST_OK);
        ck_assert_mem_eq(back.data, "one ", 4);
        ck_assert_uint_eq(back.size, 4);
        ck_assert_int_eq(gzip_compress("two", 3, 6, &packed, NULL), ST_OK);
        ck_assert_int_eq(gzip_decompress(packed.data, packed.size, &back, NULL), ST_BAD_DATA);
}
END_TEST

START_TEST(frames_of_pzstd_are_zstd_data)
{
        static const uint8_t skippable[] = { 0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4 };
        _cleanup_buf_ struct buf packed, back;

        buf_init(&packed, 1 << 20);
        buf_init(&back, 1 << 20);
        ck_assert_int_eq(buf_append(&packed, skippable, sizeof skippable), ST_OK);
        ck_assert_int_eq(zstd_pack("one", 3, 3, &packed, NULL), ST_OK);
        ck_assert(zstd_detect(packed.data, packed.size));
        ck_assert_int_eq(zstd_decompress(packed.data, packed.size, &back, NULL), ST_OK);
        ck_assert_uint_eq(back.size, 3);
        ck_assert(!zstd_detect("_*M", 3));
}
END_TEST

START_TEST(each_chunk_is_flushed_and_concatenates)
{
        static const enum compression kinds[] = { COMPRESSION_GZIP, COMPRESSION_ZSTD };

        for (unsigned k = 0; k < 2; k++) {
                _cleanup_buf_ struct buf packed, back;
                struct stream_compressor *p = NULL;

                buf_init(&packed, MiB(1));
                buf_init(&back, MiB(1));
                ck_assert_int_eq(stream_compressor_create(kinds[k], &p, NULL), ST_OK);
                for (unsigned i = 0; i < 1000; i++) {
                        size_t before = packed.size;
                        char text[32];

                        snprintf(text, sizeof text, "piece %u of a text\n", i);
                        ck_assert_int_eq(stream_compressor_add(p, text, strlen(text), i == 999, &packed, NULL), ST_OK);
                        ck_assert_uint_gt(packed.size, before);
                }
                ck_assert_int_eq((k ? zstd_decompress : gzip_decompress)(packed.data, packed.size, &back, NULL), ST_OK);
                ck_assert_uint_eq(back.size, 10 * 18 + 90 * 19 + 900 * 20);
                ck_assert_int_eq(memcmp(back.data + back.size - 20, "piece 999 of a text\n", 20), 0);
                stream_compressor_destroy(p);
        }
}
END_TEST

TEST_SUITE("compress", each_chunk_is_flushed_and_concatenates, compressed_text_round_trips, bomb_stops_at_limit,
           truncated_input_is_bad_data, output_of_go_libraries_is_decompressed, damaged_lz4_and_snappy_are_refused,
           consecutive_gzip_members_are_concatenated, zlib_data_is_told_from_text_with_its_header,
           damaged_data_is_named_by_its_format, zeros_may_follow_gzip_data, frames_of_pzstd_are_zstd_data)
