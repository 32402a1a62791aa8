/* SPDX-License-Identifier: Apache-2.0 */
#include "sending/batch_split.h"

#include <string.h>

#include "common/compress/compress.h"
#include "common/limits.h"
#include "profile-formats/otlp/otlp.h"
#include "profile-formats/profile_copy.h"

#define GZIP_LEVEL 4

enum status batch_pack(const struct profile *p, struct buf *ret, struct error *err)
{
        _cleanup_buf_ struct buf body = { 0 };
        enum status st;

        buf_init(&body, LIMIT_HTTP_BODY_BYTES);
        buf_init(ret, LIMIT_AGENT_QUEUE_BYTES);
        st = otlp_encode(p, &body, err);
        if (!st)
                st = gzip_compress(body.data, body.size, GZIP_LEVEL, ret, err);
        if (st)
                buf_deinit(ret);
        return st;
}

static struct hash128 derive_part_id(const struct hash128 *whole, uint8_t index)
{
        uint8_t bytes[sizeof whole->bytes + 1];

        memcpy(bytes, whole->bytes, sizeof whole->bytes);
        bytes[sizeof whole->bytes] = index;
        return hash_bytes128(bytes, sizeof bytes);
}

static enum status pack_sample_range(const struct profile *p, uint32_t first, uint32_t count, struct buf *ret,
                                     struct error *err)
{
        struct profile part;
        enum status st = profile_copy_samples(p, first, count, &part, err);

        if (st)
                return st;
        st = batch_pack(&part, ret, err);
        profile_deinit(&part);
        return st;
}

enum status batch_split(const struct hash128 *id, const void *packed, size_t n, struct batch_part ret[static 2],
                        struct error *err)
{
        struct batch_part parts[2] = { { .id = derive_part_id(id, 0) }, { .id = derive_part_id(id, 1) } };
        _cleanup_buf_ struct buf body = { 0 };
        struct profile p;
        uint32_t half;
        enum status st;

        buf_init(&body, LIMIT_HTTP_BODY_BYTES);
        st = gzip_decompress(packed, n, &body, err);
        if (!st)
                st = otlp_decode_within(body.data, body.size, 0, &p, err);
        if (st)
                return st;
        half = p.samples.count / 2;
        if (!half)
                st = error_set(err, ST_TOO_BIG, "a batch of one sample cannot be split");
        if (!st)
                st = pack_sample_range(&p, 0, half, &parts[0].packed, err);
        if (!st)
                st = pack_sample_range(&p, half, p.samples.count - half, &parts[1].packed, err);
        profile_deinit(&p);
        if (st) {
                buf_deinit(&parts[0].packed);
                return st;
        }
        memcpy(ret, parts, sizeof parts);
        return ST_OK;
}
