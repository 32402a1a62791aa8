/* SPDX-License-Identifier: Apache-2.0 */
#include "common/stream_compressor.h"

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
        struct stream_compressor *p = calloc(1, sizeof *p);
        bool made = false;

        assert(compression != COMPRESSION_NONE);
        if (!p)
                return error_no_memory(err);
        p->compression = compression;
        if (compression == COMPRESSION_GZIP) {
                made = deflateInit2(&p->gzip, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEMORY_LEVEL,
                                    Z_DEFAULT_STRATEGY) == Z_OK;
        } else {
                p->zstd = ZSTD_createCStream();
                made = p->zstd && !ZSTD_isError(ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL));
        }
        if (!made) {
                ZSTD_freeCStream(p->zstd);
                free(p);
                return error_no_memory(err);
        }
        *ret = p;
        return ST_OK;
}

void stream_compressor_destroy(struct stream_compressor *p)
{
        if (!p)
                return;
        if (p->compression == COMPRESSION_GZIP)
                deflateEnd(&p->gzip);
        ZSTD_freeCStream(p->zstd);
        free(p);
}

static enum status compress_gzip_chunk(struct stream_compressor *p, const void *data, size_t n, bool last,
                                       struct buf *ret, struct error *err)
{
        int flush = last ? Z_FINISH : Z_SYNC_FLUSH;

        if (n > UINT_MAX)
                return error_set(err, ST_TOO_BIG, "a piece of %zu bytes is too large to pack", n);
        p->gzip.next_in = (Bytef *)data;
        p->gzip.avail_in = (uInt)n;
        do {
                p->gzip.next_out = buf_reserve(ret, STEP_BYTES);
                if (!p->gzip.next_out)
                        return buf_status(ret, err, "packed text");
                p->gzip.avail_out = STEP_BYTES;
                (void)!deflate(&p->gzip, flush); /* its only error means no progress and ends the loop */
                buf_commit(ret, STEP_BYTES - p->gzip.avail_out);
        } while (p->gzip.avail_out == 0);
        return ST_OK;
}

static enum status compress_zstd_chunk(struct stream_compressor *p, const void *data, size_t n, bool last,
                                       struct buf *ret, struct error *err)
{
        ZSTD_inBuffer in = { data, n, 0 };
        size_t left;

        do {
                ZSTD_outBuffer out = { buf_reserve(ret, STEP_BYTES), STEP_BYTES, 0 };

                if (!out.dst)
                        return buf_status(ret, err, "packed text");
                left = ZSTD_compressStream2(p->zstd, &out, &in, last ? ZSTD_e_end : ZSTD_e_flush);
                if (ZSTD_isError(left))
                        return error_set(err, ST_NO_MEMORY, "cannot pack: %s", ZSTD_getErrorName(left));
                buf_commit(ret, out.pos);
        } while (left);
        return ST_OK;
}

enum status stream_compressor_add(struct stream_compressor *p, const void *data, size_t n, bool last, struct buf *ret,
                                  struct error *err)
{
        return p->compression == COMPRESSION_GZIP ? compress_gzip_chunk(p, data, n, last, ret, err)
                                                  : compress_zstd_chunk(p, data, n, last, ret, err);
}
