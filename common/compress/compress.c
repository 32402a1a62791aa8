/* SPDX-License-Identifier: Apache-2.0 */
#include "common/compress/compress.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "common/limits.h"

#define STEP_BYTES ((size_t)64 << 10)

bool gzip_detect(const void *data, size_t n)
{
        return n >= 2 && memcmp(data, "\x1f\x8b", 2) == 0;
}

/* A frame of data, or a skippable one, with which pzstd begins. */
bool zstd_detect(const void *data, size_t n)
{
        const uint8_t *magic = data;

        return n >= 4 && (memcmp(magic, "\x28\xb5\x2f\xfd", 4) == 0 ||
                          (magic[0] >> 4 == 5 && memcmp(magic + 1, "\x2a\x4d\x18", 3) == 0));
}

/* Free space of the buffer, at least one step unless that exceeds its maximum; 0 if it is full or out of memory. */
static size_t reserve_output_space(struct buf *b, void **ret)
{
        size_t left = b->max - b->size;
        size_t want = left < STEP_BYTES ? left : STEP_BYTES;

        *ret = want ? buf_reserve(b, want) : NULL;
        if (!*ret)
                return 0;
        return b->capacity - b->size < left ? b->capacity - b->size : left;
}

static enum status report_output_full(struct buf *b, const char *what, struct error *err)
{
        if (b->failed == ST_NO_MEMORY)
                return error_no_memory(err);
        return error_set(err, ST_TOO_BIG, "%s unpacks to more than %zu bytes", what, b->max);
}

/* The end of the zeros at data + at, which pad members to blocks. */
static size_t skip_zero_padding(const uint8_t *data, size_t at, size_t n)
{
        while (at < n && !data[at])
                at++;
        return at;
}

/* Whether data, or its beginning, unpacks as a deflate stream with the header that zlib's window_bits names. */
static bool is_deflate(const uint8_t *data, size_t n, int window_bits)
{
        uint8_t out[4096];
        z_stream z = { .next_in = (Bytef *)data, .avail_in = (uInt)(n < STEP_BYTES ? n : STEP_BYTES) };
        size_t unpacked = 0;
        int rc = inflateInit2(&z, window_bits);

        if (rc != Z_OK)
                return false;
        do {
                z.next_out = out;
                z.avail_out = sizeof out;
                rc = inflate(&z, Z_NO_FLUSH);
                unpacked += sizeof out - z.avail_out;
        } while (rc == Z_OK && unpacked < STEP_BYTES);
        inflateEnd(&z);
        return rc == Z_STREAM_END || (rc == Z_OK && unpacked >= STEP_BYTES);
}

/* RFC 1950, 2.2. */
static bool has_zlib_header(const uint8_t *data, size_t n)
{
        return n >= 2 && (data[0] & 15) == Z_DEFLATED && data[0] >> 4 <= 7 && (data[0] << 8 | data[1]) % 31 == 0;
}

bool zlib_detect(const void *data, size_t n)
{
        return has_zlib_header(data, n) && is_deflate(data, n, 15);
}

/* What data is by its first bytes; NULL: neither. */
static const char *name_zlib_format(const uint8_t *data, size_t n)
{
        if (n < 2 || gzip_detect(data, n))
                return "gzip data";
        return has_zlib_header(data, n) ? "zlib data" : NULL;
}

static enum status refuse_unknown_header(const uint8_t *data, size_t n, struct error *err)
{
        return error_set(err, ST_BAD_DATA, "%s",
                         is_deflate(data, n, -15) ? "this is raw deflate data: the coding 'deflate' has a zlib header, "
                                                    "which is missing (RFC 9110, 8.4.1.2)"
                                                  : "this is neither gzip nor zlib data");
}

static enum status decompress_gzip_members(z_stream *z, const char *what, const uint8_t *data, size_t n,
                                           struct buf *ret, struct error *err)
{
        size_t taken = 0; /* bytes passed to z */
        uint8_t spare = 0;

        for (;;) {
                void *to;
                size_t space = reserve_output_space(ret, &to);
                int rc;

                if (ret->failed)
                        return report_output_full(ret, what, err);
                if (z->avail_in == 0) {
                        size_t step = n - taken < UINT_MAX ? n - taken : UINT_MAX;

                        z->next_in = step ? (Bytef *)(data + taken) : Z_NULL;
                        z->avail_in = (uInt)step;
                        taken += step;
                }
                /* At the maximum, one spare byte distinguishes output that just fits from output that continues. */
                z->next_out = space ? to : &spare;
                z->avail_out = space ? (uInt)(space < UINT_MAX ? space : UINT_MAX) : 1;
                rc = inflate(z, Z_NO_FLUSH);
                if (space)
                        buf_commit(ret, (size_t)(z->next_out - (Bytef *)to));
                else if (z->avail_out == 0)
                        return report_output_full(ret, what, err);
                if (rc == Z_STREAM_END) {
                        if (skip_zero_padding(data, taken - z->avail_in, n) == n)
                                return ST_OK;
                        if (inflateReset(z) != Z_OK)
                                return error_no_memory(err);
                } else if (rc == Z_MEM_ERROR) {
                        return error_no_memory(err);
                } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
                        return error_set(err, ST_BAD_DATA, "%s is damaged: %s", what, z->msg ? z->msg : "bad stream");
                } else if (z->avail_in == 0 && taken == n && z->avail_out) {
                        return error_set(err, ST_BAD_DATA, "%s is cut off", what);
                }
        }
}

enum status gzip_decompress(const void *data, size_t n, struct buf *ret, struct error *err)
{
        const char *what = name_zlib_format(data, n);
        size_t before = ret->size;
        z_stream z = { 0 };
        enum status st;

        if (!what)
                return refuse_unknown_header(data, n, err);
        if (inflateInit2(&z, 15 + 32) != Z_OK) /* 32: gzip or zlib, by its header */
                return error_no_memory(err);
        st = decompress_gzip_members(&z, what, data, n, ret, err);
        inflateEnd(&z);
        if (st)
                ret->size = before;
        return st;
}

enum status gzip_compress(const void *data, size_t n, int level, struct buf *ret, struct error *err)
{
        z_stream z = { .next_in = (Bytef *)data };
        size_t taken = 0;
        int rc = Z_OK;

        if (deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
                return error_no_memory(err);
        while (rc != Z_STREAM_END) {
                void *to;
                size_t space = reserve_output_space(ret, &to);

                if (!space) {
                        (void)buf_reserve(ret, 1); /* marks ret as too big if it is full */
                        break;
                }
                if (z.avail_in == 0) {
                        size_t step = n - taken < UINT_MAX ? n - taken : UINT_MAX;

                        z.avail_in = (uInt)step;
                        taken += step;
                }
                z.next_out = to;
                z.avail_out = (uInt)(space < UINT_MAX ? space : UINT_MAX);
                rc = deflate(&z, taken == n ? Z_FINISH : Z_NO_FLUSH);
                buf_commit(ret, (size_t)(z.next_out - (Bytef *)to));
        }
        deflateEnd(&z);
        return buf_status(ret, err, "gzip output");
}

enum status zstd_decompress(const void *data, size_t n, struct buf *ret, struct error *err)
{
        ZSTD_inBuffer in = { data, n, 0 };
        ZSTD_DCtx *z = ZSTD_createDCtx();
        size_t before = ret->size, rc = 1;
        enum status st = ST_OK;
        uint8_t spare;

        if (!z)
                return error_no_memory(err);
        ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, LIMIT_ZSTD_WINDOW_LOG);
        while (!st && (in.pos < in.size || rc != 0)) {
                ZSTD_outBuffer out = { NULL, 0, 0 };
                bool at_max;

                out.size = reserve_output_space(ret, &out.dst);
                at_max = out.size == 0;
                if (ret->failed) {
                        st = report_output_full(ret, "zstd data", err);
                        break;
                }
                if (at_max) {
                        out.dst = &spare;
                        out.size = 1;
                }
                rc = ZSTD_decompressStream(z, &out, &in);
                if (ZSTD_isError(rc) && ZSTD_getErrorCode(rc) == ZSTD_error_frameParameter_windowTooLarge)
                        st = error_set(err, ST_UNSUPPORTED, ZSTD_WINDOW_TEXT);
                else if (ZSTD_isError(rc))
                        st = error_set(err, ST_BAD_DATA, "zstd data is damaged: %s", ZSTD_getErrorName(rc));
                else if (at_max && out.pos)
                        st = report_output_full(ret, "zstd data", err);
                else if (!at_max)
                        buf_commit(ret, out.pos);
                if (!st && rc != 0 && in.pos == in.size && out.pos < out.size)
                        st = error_set(err, ST_BAD_DATA, "zstd data is cut off");
        }
        ZSTD_freeDCtx(z);
        if (st)
                ret->size = before;
        return st;
}
