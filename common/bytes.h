/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_BYTES_H
#define CAIRN_COMMON_BYTES_H

/*
 * Unaligned loads and stores with a fixed byte order. The caller has checked the bounds; for untrusted input that is
 * not validated yet, use common/reader.h.
 */
#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t load_le16(const void *p)
{
        uint16_t v;

        memcpy(&v, p, sizeof v);
        return le16toh(v);
}

static inline uint32_t load_le32(const void *p)
{
        uint32_t v;

        memcpy(&v, p, sizeof v);
        return le32toh(v);
}

static inline uint64_t load_le64(const void *p)
{
        uint64_t v;

        memcpy(&v, p, sizeof v);
        return le64toh(v);
}

static inline uint32_t load_be32(const void *p)
{
        uint32_t v;

        memcpy(&v, p, sizeof v);
        return be32toh(v);
}

static inline uint64_t load_be64(const void *p)
{
        uint64_t v;

        memcpy(&v, p, sizeof v);
        return be64toh(v);
}

static inline void store_le32(void *p, uint32_t v)
{
        v = htole32(v);
        memcpy(p, &v, sizeof v);
}

static inline void store_le64(void *p, uint64_t v)
{
        v = htole64(v);
        memcpy(p, &v, sizeof v);
}

static inline void store_be32(void *p, uint32_t v)
{
        v = htobe32(v);
        memcpy(p, &v, sizeof v);
}

static inline void store_be64(void *p, uint64_t v)
{
        v = htobe64(v);
        memcpy(p, &v, sizeof v);
}

#endif
