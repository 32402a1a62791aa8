/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hash/sha256_short.h"

#include <string.h>

#define BLOCK_BYTES 64
#define LENGTH_BYTES 8 /* of the length in bits that ends the last block */

/* The fractions of the cube roots of the first 64 primes. */
static const uint32_t round_constants[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate_right(uint32_t x, unsigned n)
{
        return x >> n | x << (32 - n);
}

static uint32_t load_big_endian(const uint8_t *at)
{
        return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* The message schedule: FIPS 180-4, 6.2.2, step 1. */
static void expand_block(const uint8_t *block, uint32_t w[static 64])
{
        for (int i = 0; i < 16; i++)
                w[i] = load_big_endian(block + 4 * i);
        for (int i = 16; i < 64; i++) {
                uint32_t a = w[i - 15], b = w[i - 2];

                w[i] = w[i - 16] + (rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3) + w[i - 7] +
                       (rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10);
        }
}

static void add_block(uint32_t state[static 8], const uint8_t *block)
{
        uint32_t w[64], v[8];

        expand_block(block, w);
        memcpy(v, state, sizeof v);
        for (int i = 0; i < 64; i++) {
                uint32_t a = v[0], e = v[4], choice = (e & v[5]) ^ (~e & v[6]);
                uint32_t majority = (a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]);
                uint32_t t1 = v[7] + (rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25)) + choice +
                              round_constants[i] + w[i];
                uint32_t t2 = (rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22)) + majority;

                memmove(v + 1, v, 7 * sizeof *v);
                v[0] = t1 + t2;
                v[4] += t1;
        }
        for (int i = 0; i < 8; i++)
                state[i] += v[i];
}

void sha256_compute_short(const void *data, size_t n, uint8_t ret[static SHA256_BYTES])
{
        uint32_t state[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                              0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
        uint8_t last[2 * BLOCK_BYTES] = { 0 };
        const uint8_t *at = data;
        uint64_t bits = (uint64_t)n * 8;
        size_t left = n, size;

        for (; left >= BLOCK_BYTES; at += BLOCK_BYTES, left -= BLOCK_BYTES)
                add_block(state, at);
        if (left)
                memcpy(last, at, left);
        last[left] = 0x80;
        size = left + 1 + LENGTH_BYTES <= BLOCK_BYTES ? BLOCK_BYTES : 2 * BLOCK_BYTES;
        for (int i = 0; i < LENGTH_BYTES; i++)
                last[size - 1 - (size_t)i] = (uint8_t)(bits >> 8 * i);
        for (size_t done = 0; done < size; done += BLOCK_BYTES)
                add_block(state, last + done);
        for (int i = 0; i < SHA256_BYTES; i++)
                ret[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}
