/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_BLOCK_BITS_H
#define CAIRN_SYMBOL_INDEX_BLOCK_BITS_H

/*
 * Unaligned little-endian loads, and fields of up to 57 bits at any bit. A field load touches the eight bytes from the
 * field's first byte on. Also the layout of a block header, shared by reader and writer.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/bytes.h"

#define BLOCK_VERSION 1
#define BLOCK_HEADER_BYTES 53
#define BLOCK_CHECKSUM_BYTES 8

static inline uint64_t low_mask(unsigned width)
{
        return width >= 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
}

static inline uint64_t load_bits(const uint8_t *p, uint64_t bit)
{
        return load_le64(p + (bit >> 3)) >> (bit & 7);
}

/**
 * Lines of consecutive rows differ little: a code of `width` bits is a small nonzero difference.
 * @param width 2 to 4.
 */
static inline unsigned line_codes_below(unsigned width)
{
        return width == 2 ? 1 : width == 3 ? 2 : 5;
}

static inline int32_t line_of_code(uint32_t code, unsigned below)
{
        return (int32_t)code - (int32_t)below + (code >= below);
}

/** Bits required for values 0..max. */
static inline unsigned bit_width(uint64_t max)
{
        return max ? 64 - (unsigned)__builtin_clzll(max) : 0;
}

static inline uint64_t bits_to_bytes(uint64_t bits)
{
        return (bits + 7) / 8;
}

static inline unsigned popcount64(uint64_t v)
{
        return (unsigned)__builtin_popcountll(v);
}

/*
 * Functions that count bits are compiled twice: with instructions available since 2013 (popcnt, pdep) and without.
 * Bodies are inlined into both variants; BLOCK_HAS_BITS selects one at run time.
 */
#if defined(__x86_64__)
#define BLOCK_BITS_TARGET __attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt")))
#define BLOCK_HAS_BITS                                                                                                 \
        (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt"))
#else
#define BLOCK_BITS_TARGET
#define BLOCK_HAS_BITS false
#endif
#define BLOCK_BODY inline __attribute__((always_inline))

/** Position of the n-th (from 1) set bit of v, which has at least n. @param fast if BLOCK_HAS_BITS. */
static BLOCK_BODY unsigned select64(uint64_t v, unsigned n, bool fast)
{
        unsigned at = 0;

#if defined(__x86_64__)
        if (fast) {
                uint64_t bit = (uint64_t)1 << (n - 1);

                __asm__("pdep %2, %1, %0" : "=r"(bit) : "r"(bit), "r"(v));
                return (unsigned)__builtin_ctzll(bit);
        }
#endif
        (void)fast;
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
