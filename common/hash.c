/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hash.h"

#include <string.h>
#include <xxhash.h>

uint64_t hash_bytes64(const void *data, size_t n)
{
        return XXH3_64bits(data, n);
}

enum status hash64_begin(struct hash64_stream *s, struct error *err)
{
        s->state = XXH3_createState();
        if (!s->state)
                return error_no_memory(err);
        XXH3_64bits_reset(s->state);
        return ST_OK;
}

void hash64_update(struct hash64_stream *s, const void *data, size_t n)
{
        XXH3_64bits_update(s->state, data, n);
}

uint64_t hash64_end(struct hash64_stream *s)
{
        uint64_t h = XXH3_64bits_digest(s->state);

        XXH3_freeState(s->state);
        s->state = NULL;
        return h;
}

struct hash128 hash_bytes128(const void *data, size_t n)
{
        XXH128_canonical_t c;
        struct hash128 ret;

        XXH128_canonicalFromHash(&c, XXH3_128bits(data, n));
        memcpy(ret.bytes, c.digest, sizeof ret.bytes);
        return ret;
}
