/* SPDX-License-Identifier: Apache-2.0 */
#include "common/compress/stream_compressor.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#define STEP_BYTES ((size_t)64 << 10)
#define GZIP_LEVEL 1
#define GZIP_WINDOW_BITS (15 + 16) /* with a gzip header */
#define GZIP_MEMORY_LEVEL 8
#define ZSTD_LEVEL 1

struct stream_compressor {
        enum compression compression;
        z_stream gzip;
        ZSTD_CStream *zstd;
};

enum status stream_compressor_create(enum compression compression, struct stream_compressor **ret, struct error *err)
{
        struct stream_compressor *c = calloc(1, sizeof *c);
        bool made = false;

        assert(compression != COMPRESSION_NONE);
        if (!c)
                return error_no_memory(err);
        c->compression = compression;
        if (compression == COMPRESSION_GZIP) {
                made = deflateInit2(&c->gzip, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEMORY_LEVEL,
                                    Z_DEFAULT_STRATEGY) == Z_OK;
        } else {
                c->zstd = ZSTD_createCStream();
                made = c->zstd && !ZSTD_isError(ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL));
        }
        if (!made) {
                ZSTD_freeCStream(c->zstd);
                free(c);
                return error_no_memory(err);
        }
        *ret = c;
        return ST_OK;
}

void stream_compressor_destroy(struct stream_compressor *c)
{
        if (!c)
                return;
        if (c->compression == COMPRESSION_GZIP)
                deflateEnd(&c->gzip);
        ZSTD_freeCStream(c->zstd);
        free(c);
}

static enum status compress_gzip_chunk(struct stream_compressor *c, const void *data, size_t n, bool last,
                                       struct buf *ret, struct error *err)
{
        int flush = last ? Z_FINISH : Z_SYNC_FLUSH;

        if (n > UINT_MAX)
                return error_set(err, ST_TOO_BIG, "a piece of %zu bytes is too large to pack", n);
        c->gzip.next_in = (Bytef *)data;
        c->gzip.avail_in = (uInt)n;
        do {
                c->gzip.next_out = buf_reserve(ret, STEP_BYTES);
                if (!c->gzip.next_out)
                        return buf_status(ret, err, "packed text");
                c->gzip.avail_out = STEP_BYTES;
                (void)!deflate(&c->gzip, flush); /* its only error means no progress and ends the loop */
                buf_commit(ret, STEP_BYTES - c->gzip.avail_out);
        } while (c->gzip.avail_out == 0);
        return ST_OK;
}

static enum status compress_zstd_chunk(struct stream_compressor *c, const void *data, size_t n, bool last,
                                       struct buf *ret, struct error *err)
{
        ZSTD_inBuffer in = { data, n, 0 };
        size_t left;

        do {
                ZSTD_outBuffer out = { buf_reserve(ret, STEP_BYTES), STEP_BYTES, 0 };

                if (!out.dst)
                        return buf_status(ret, err, "packed text");
                left = ZSTD_compressStream2(c->zstd, &out, &in, last ? ZSTD_e_end : ZSTD_e_flush);
                if (ZSTD_isError(left))
                        return error_set(err, ST_NO_MEMORY, "cannot pack: %s", ZSTD_getErrorName(left));
                buf_commit(ret, out.pos);
        } while (left);
        return ST_OK;
}

enum status stream_compressor_add(struct stream_compressor *c, const void *data, size_t n, bool last, struct buf *ret,
                                  struct error *err)
{
        return c->compression == COMPRESSION_GZIP ? compress_gzip_chunk(c, data, n, last, ret, err)
                                                  : compress_zstd_chunk(c, data, n, last, ret, err);
}
