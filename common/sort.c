/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorting millions of intervals by their start: a radix sort from the highest
 * bits down that swaps elements to their buckets in place, so that it needs no
 * memory, and leaves small buckets to insertion. A comparing sort takes five
 * times as long and copies everything.
 */
#include "common/sort.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define FEW 24    /* elements that insertion sorts faster */
#define MANY 4096 /* elements for which 256 buckets pay, else 16 */

struct element {
        uint64_t start, rest[2];
};

/* Elements are of several types; this is how one is looked at without naming any. */
static inline struct element load(const uint8_t *elements, size_t i)
{
        struct element e;

        memcpy(&e, elements + i * sizeof e, sizeof e);
        return e;
}

static inline void store(uint8_t *elements, size_t i, struct element e)
{
        memcpy(elements + i * sizeof e, &e, sizeof e);
}

static void insert(uint8_t *elements, size_t count)
{
        for (size_t i = 1; i < count; i++) {
                struct element e = load(elements, i);
                size_t at = i;

                for (; at > 0 && load(elements, at - 1).start > e.start; at--)
                        memcpy(elements + at * sizeof e, elements + (at - 1) * sizeof e, sizeof e);
                store(elements, at, e);
        }
}

/* Those of one bucket differ in the lowest `bits` bits only. Recursion ends after 16 steps of 4 bits. */
static void sort_bits(uint8_t *elements, size_t count, unsigned bits)
{
        unsigned width = count < MANY || bits < 8 ? 4 : 8, shift, buckets = 1u << width;
        size_t ends[256], next[256], sum = 0;

        if (count <= FEW) {
                insert(elements, count);
                return;
        }
        shift = bits > width ? bits - width : 0;
        memset(ends, 0, buckets * sizeof *ends);
        for (size_t i = 0; i < count; i++)
                ends[load(elements, i).start >> shift & (buckets - 1)]++;
        for (unsigned b = 0; b < buckets; b++) {
                next[b] = sum;
                sum += ends[b];
                ends[b] = sum;
        }
        for (unsigned b = 0; b < buckets; b++) {
                while (next[b] < ends[b]) {
                        struct element e = load(elements, next[b]);
                        unsigned to = e.start >> shift & (buckets - 1);

                        while (to != b) {
                                struct element other = load(elements, next[to]);

                                store(elements, next[to]++, e);
                                e = other;
                                to = e.start >> shift & (buckets - 1);
                        }
                        store(elements, next[b]++, e);
                }
        }
        sum = 0;
        for (unsigned b = 0; b < buckets && shift; b++) {
                if (ends[b] - sum > 1)
                        sort_bits(elements + sum * sizeof(struct element), ends[b] - sum, shift);
                sum = ends[b];
        }
}

void sort_by_start(void *elements, size_t count, size_t element_size)
{
        uint64_t differing = 0, before = 0;
        bool is_sorted = true;

        assert(element_size == sizeof(struct element));
        for (size_t i = 0; i < count; i++) {
                uint64_t start = load(elements, i).start;

                differing |= start ^ load(elements, 0).start;
                is_sorted &= start >= before;
                before = start;
        }
        if (is_sorted)
                return;
        sort_bits(elements, count, 64 - (unsigned)__builtin_clzll(differing));
}
