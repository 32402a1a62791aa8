/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_BLOCK_BITS_H
#define CAIRN_SYMBOLIZER_BLOCK_BITS_H

/*
 * Unaligned little-endian loads, and fields of up to 57 bits at any bit. A
 * field load touches the eight bytes from the field's first byte on.
 * Also the layout of a block's header, shared by reader and writer.
 */
#include <endian.h>
#include <stdint.h>
#include <string.h>

#define BLOCK_VERSION 2
#define BLOCK_HEADER_BYTES 44
#define BLOCK_CHECKSUM_BYTES 8

static inline uint64_t load_le64(const uint8_t *p)
{
        uint64_t v;

        memcpy(&v, p, sizeof v);
        return le64toh(v);
}

static inline uint32_t load_le32(const uint8_t *p)
{
        uint32_t v;

        memcpy(&v, p, sizeof v);
        return le32toh(v);
}

static inline uint32_t load_le16(const uint8_t *p)
{
        uint16_t v;

        memcpy(&v, p, sizeof v);
        return le16toh(v);
}

static inline uint64_t low_mask(unsigned width)
{
        return width >= 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
}

static inline uint64_t load_bits(const uint8_t *p, uint64_t bit)
{
        return load_le64(p + (bit >> 3)) >> (bit & 7);
}

/** Bits needed for values 0..max. */
static inline unsigned bit_width(uint64_t max)
{
        return max ? 64 - (unsigned)__builtin_clzll(max) : 0;
}

static inline uint64_t bits_to_bytes(uint64_t bits)
{
        return (bits + 7) / 8;
}

/*
 * Marks a function whose speed is that of counting bits: made twice, and the
 * one for the processor is taken when the program starts. Sanitizers are not
 * ready that early, and clang 14 cannot call a clone from another file.
 */
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define BLOCK_CLONES __attribute__((target_clones("default", "avx2")))
#else
#define BLOCK_CLONES
#endif

static inline unsigned popcount64(uint64_t v)
{
        return (unsigned)__builtin_popcountll(v);
}

/** Position of the n-th (from 1) set bit of v, which has at least n. */
static inline unsigned select64(uint64_t v, unsigned n)
{
        unsigned at = 0;

        for (unsigned half = 32; half >= 8; half /= 2) {
                unsigned ones = popcount64(v & low_mask(half));

                if (n > ones) {
                        n -= ones;
                        v >>= half;
                        at += half;
                }
        }
        while (--n)
                v &= v - 1;
        return at + (unsigned)__builtin_ctzll(v);
}

#endif
