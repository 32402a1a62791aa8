/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load to profile: sorts, hashes and sieves until it receives SIGINT or
 * SIGTERM. Each kind of work is a separate function with inlined helpers, so
 * that a flame graph of the stripped program shows raw addresses at first, and
 * functions, files, lines and inlined frames once its debuginfo is known.
 * `demo SECONDS` stops by itself.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ITEMS 20000
#define PRIMES_BELOW 200000
#define TEXT_BYTES 262144

static volatile sig_atomic_t stopped;
static uint64_t sink; /* keeps the compiler from removing the work */

static void note_signal(int signal)
{
        (void)signal;
        stopped = 1;
}

static inline uint64_t rotate_left(uint64_t v, unsigned bits)
{
        return v << bits | v >> (64 - bits);
}

static inline uint64_t next_random(uint64_t *state)
{
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        return *state;
}

/* ---- sorting ------------------------------------------------------------------ */

static inline void swap_items(uint32_t *a, uint32_t *b)
{
        uint32_t t = *a;

        *a = *b;
        *b = t;
}

/* Never the last item, so that both sides of a partition are smaller than the whole. */
static inline uint32_t pick_pivot(const uint32_t *items, size_t n)
{
        return items[(n - 1) / 2];
}

static __attribute__((noinline)) void quick_sort(uint32_t *items, size_t n)
{
        while (n > 1) {
                uint32_t pivot = pick_pivot(items, n);
                size_t i = 0, j = n - 1;

                for (;; i++, j--) {
                        while (items[i] < pivot)
                                i++;
                        while (items[j] > pivot)
                                j--;
                        if (i >= j)
                                break;
                        swap_items(&items[i], &items[j]);
                }
                quick_sort(items, j + 1);
                items += j + 1;
                n -= j + 1;
        }
}

static __attribute__((noinline)) void sort_items(uint32_t *items, uint64_t *random)
{
        for (size_t i = 0; i < ITEMS; i++)
                items[i] = (uint32_t)next_random(random);
        quick_sort(items, ITEMS);
        sink += items[ITEMS / 2];
}

/* ---- hashing ------------------------------------------------------------------- */

static inline uint64_t mix_word(uint64_t hash, uint64_t word)
{
        return rotate_left(hash ^ (word * 0x9e3779b97f4a7c15u), 27) * 0xc2b2ae3d27d4eb4fu;
}

static __attribute__((noinline)) uint64_t hash_block(const uint8_t *bytes, size_t n)
{
        uint64_t hash = n;

        for (size_t i = 0; i + 8 <= n; i += 8) {
                uint64_t word;

                memcpy(&word, bytes + i, sizeof word);
                hash = mix_word(hash, word);
        }
        return hash;
}

static __attribute__((noinline)) void hash_text(const uint8_t *text)
{
        for (size_t at = 0; at < TEXT_BYTES; at += 4096)
                sink ^= hash_block(text + at, 4096);
}

/* ---- primes --------------------------------------------------------------------- */

static inline void strike_multiples(uint8_t *composite, size_t prime)
{
        for (size_t multiple = prime * prime; multiple < PRIMES_BELOW; multiple += prime)
                composite[multiple] = 1;
}

static __attribute__((noinline)) void sieve_primes(uint8_t *composite)
{
        size_t count = 0;

        memset(composite, 0, PRIMES_BELOW);
        for (size_t i = 2; i < PRIMES_BELOW; i++) {
                if (composite[i])
                        continue;
                count++;
                strike_multiples(composite, i);
        }
        sink += count;
}

/* ---- */

static __attribute__((noinline)) void work_round(uint32_t *items, uint8_t *bytes, uint64_t *random)
{
        sort_items(items, random);
        for (int i = 0; i < 16; i++)
                hash_text(bytes);
        sieve_primes(bytes);
}

int main(int argc, char **argv)
{
        time_t end = argc > 1 ? time(NULL) + strtol(argv[1], NULL, 10) : 0;
        uint32_t *items = calloc(ITEMS, sizeof *items);
        uint8_t *bytes = calloc(TEXT_BYTES, 1);
        uint64_t random = 88172645463325252u;

        if (!items || !bytes)
                return EXIT_FAILURE;
        signal(SIGINT, note_signal);
        signal(SIGTERM, note_signal);
        while (!stopped && (!end || time(NULL) < end))
                work_round(items, bytes, &random);
        printf("%llx\n", (unsigned long long)sink);
        free(items);
        free(bytes);
        return EXIT_SUCCESS;
}
