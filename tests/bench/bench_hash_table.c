/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the keyed hash of hash tables with XXH3 with a random secret, by key size, and measures interning through a
 * table, which decoding a profile does for each string, stack and label set.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

#include "common/clock.h"
#include "common/hash/hash_table.h"
#include "common/limits.h"
#include "profile-formats/profile.h"

#define KEYS 4096u
#define ROUNDS 50
#define RUNS 5

static uint8_t secret[192], keys[KEYS * 8 + 4096];
static volatile uint64_t sink;

static uint64_t hash_xxh3(const void *data, size_t n)
{
        return XXH3_64bits_withSecret(data, n, secret, sizeof secret);
}

static double ns_per_call(uint64_t (*hash)(const void *, size_t), size_t size)
{
        double best = 1e9;

        for (int run = 0; run < RUNS; run++) {
                int64_t start = monotonic_ns();
                uint64_t sum = 0;
                double ns;

                for (int round = 0; round < ROUNDS; round++)
                        for (uint32_t i = 0; i < KEYS; i++)
                                sum += hash(keys + (size_t)i * 8, size);
                sink = sum;
                ns = (double)(monotonic_ns() - start) / ROUNDS / KEYS;
                best = ns < best ? ns : best;
        }
        return best;
}

/* A million strings, of which one in ten is distinct. */
static double ns_per_string(void)
{
        double best = 1e9;

        for (int run = 0; run < RUNS; run++) {
                _cleanup_profile_ struct profile p;
                int64_t start;
                double ns;

                if (profile_init(&p, MiB(512), NULL))
                        exit(1);
                start = monotonic_ns();
                for (uint32_t i = 0; i < 1000000; i++) {
                        char text[32];
                        uint32_t index;

                        memset(text, 'x', sizeof text);
                        memcpy(text + 20, &(uint32_t){ i * 2654435761u % 100000 | 0x01010101u }, 4);
                        if (profile_add_string(&p, text, 24, &index, NULL))
                                exit(1);
                }
                ns = (double)(monotonic_ns() - start) / 1e6;
                best = ns < best ? ns : best;
        }
        return best;
}

int main(void)
{
        static const size_t sizes[] = { 8, 16, 24, 60, 120, 480, 4096 };

        if (getrandom(secret, sizeof secret, 0) != (ssize_t)sizeof secret ||
            getrandom(keys, sizeof keys, 0) != (ssize_t)sizeof keys)
                return 1;
        printf("hash of one key, fastest of %d runs\n", RUNS);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                printf("  %4zu bytes  SipHash-1-3 %7.1f ns   XXH3 with a secret %7.1f ns\n", sizes[i],
                       ns_per_call(keyed_hash, sizes[i]), ns_per_call(hash_xxh3, sizes[i]));
        printf("interning a string of 24 bytes in a profile: %.1f ns\n", ns_per_string());
        return 0;
}
