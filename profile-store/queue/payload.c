/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/queue/payload.h"

#include <zstd.h>

#include "common/compress/zstd_contexts.h"
#include "common/limits.h"
#include "profile-formats/otlp/otlp.h"

#define LEVEL 1 /* read at most once, after a crash */

enum status payload_encode(const struct profile *p, struct buf *ret, struct error *err)
{
        _cleanup_buf_ struct buf plain;
        size_t bound, packed;
        void *to;
        enum status st;

        buf_init(&plain, LIMIT_PROFILE_MEMORY_BYTES);
        st = otlp_encode(p, &plain, err);
        if (st)
                return st;
        bound = ZSTD_compressBound(plain.size);
        to = buf_reserve(ret, bound);
        if (!to)
                return buf_status(ret, err, "a packed batch");
        packed = ZSTD_compress(to, bound, plain.data, plain.size, LEVEL);
        if (ZSTD_isError(packed))
                return error_set(err, ST_NO_MEMORY, "cannot pack a batch: %s", ZSTD_getErrorName(packed));
        buf_commit(ret, packed);
        return ST_OK;
}

enum status payload_decode(const void *data, size_t n, struct profile *ret, struct error *err)
{
        unsigned long long size = ZSTD_getFrameContentSize(data, n);
        _cleanup_buf_ struct buf plain;
        ZSTD_DCtx *context;
        size_t unpacked;
        void *to;

        buf_init(&plain, LIMIT_PROFILE_MEMORY_BYTES);
        if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN)
                return error_set(err, ST_BAD_DATA, "not a zstd frame with a content size");
        if (size > LIMIT_PROFILE_MEMORY_BYTES)
                return error_set(err, ST_TOO_BIG, "decompresses to %llu bytes, more than allowed", size);
        to = buf_reserve(&plain, (size_t)size + 1);
        if (!to)
                return buf_status(&plain, err, "an unpacked batch");
        context = take_zstd_context();
        if (!context)
                return error_no_memory(err);
        unpacked = ZSTD_decompressDCtx(context, to, (size_t)size, data, n);
        give_zstd_context(context);
        if (ZSTD_isError(unpacked))
                return error_set(err, ST_BAD_DATA, "cannot unpack: %s", ZSTD_getErrorName(unpacked));
        return otlp_decode_within(to, unpacked, 0, ret, err);
}
