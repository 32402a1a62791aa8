/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hash.h"

#include <string.h>
#include <xxhash.h>

uint64_t hash64(const void *data, size_t n)
{
        return XXH3_64bits(data, n);
}

struct hash128 hash128(const void *data, size_t n)
{
        XXH128_canonical_t c;
        struct hash128 ret;

        XXH128_canonicalFromHash(&c, XXH3_128bits(data, n));
        memcpy(ret.bytes, c.digest, sizeof ret.bytes);
        return ret;
}
