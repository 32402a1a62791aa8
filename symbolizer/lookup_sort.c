/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Radix sort over the bits that differ at all: the code of one object spans
 * some 20 to 28 bits. Many elements are first dealt out by their highest bits
 * into parts that fit into the nearest cache, with one pass through memory;
 * each part, or all of few elements, is sorted by least digit first.
 */
#include <string.h>

#include "symbolizer/lookup_internal.h"

#define INSERTION_MAX 32
#define DEAL_FROM 16384  /* elements that do not fit into the nearest cache with their copies */
#define DEAL_PART 512    /* elements that a part has on average, in which most get along with two passes */
#define DEAL_BITS_MAX 11
#define COUNTERS 2048
#define NARROW_DIGIT 8   /* fewer elements than WIDE_FROM: clearing 2048 counters a pass is not cheap */
#define WIDE_DIGIT 11
#define WIDE_FROM 8192
#define PASSES_MAX 4     /* of NARROW_DIGIT */

static void insertion_sort(uint64_t *e, size_t count)
{
        for (size_t i = 1; i < count; i++) {
                uint64_t v = e[i];
                size_t at = i;

                for (; at > 0 && e[at - 1] > v; at--)
                        e[at] = e[at - 1];
                e[at] = v;
        }
}

/* How often each digit's values come, for all passes with one look at the elements. */
static void count_digits(const uint64_t *e, size_t count, unsigned shift, unsigned digit, unsigned passes,
                         uint32_t (*counts)[COUNTERS])
{
        uint32_t mask = (1u << digit) - 1;

        for (unsigned p = 0; p < passes; p++)
                memset(counts[p], 0, sizeof(uint32_t) << digit);
        for (size_t i = 0; i < count; i++)
                for (unsigned p = 0; p < passes; p++)
                        counts[p][e[i] >> (shift + p * digit) & mask]++;
}

/* Put elements in order of one digit; places are their counts, and then where each value's elements end. */
static void sort_pass(const uint64_t *from, uint64_t *to, size_t count, unsigned shift, unsigned bits, uint32_t *places)
{
        uint32_t mask = (1u << bits) - 1, sum = 0;

        for (uint32_t d = 0; d <= mask; d++) {
                uint32_t n = places[d];

                places[d] = sum;
                sum += n;
        }
        for (size_t i = 0; i < count; i++)
                to[places[from[i] >> shift & mask]++] = from[i];
}

/* The bits of the upper halves that differ; false when none does. */
static bool bits_that_differ(const uint64_t *e, size_t count, unsigned *shift_ret, unsigned *bits_ret)
{
        uint64_t differ = 0;

        for (size_t i = 1; i < count; i++)
                differ |= e[i] ^ e[0];
        differ >>= 32;
        if (!differ)
                return false;
        *shift_ret = 32 + (unsigned)__builtin_ctzll(differ);
        *bits_ret = 96 - (unsigned)__builtin_clzll(differ) - *shift_ret;
        return true;
}

/* Sort the elements of `from`, using `spare`; returns the one of both that holds them. */
static uint64_t *sort_least_first(uint64_t *from, uint64_t *spare, size_t count, unsigned shift, unsigned bits)
{
        unsigned digit = count < WIDE_FROM ? NARROW_DIGIT : WIDE_DIGIT, passes;
        uint32_t counts[PASSES_MAX][COUNTERS];
        uint64_t *to = spare;

        if (count <= INSERTION_MAX) {
                insertion_sort(from, count);
                return from;
        }
        /* Digits of equal size: the fewer counters, the faster a pass. The last digit reaches beyond the bits. */
        passes = (bits + digit - 1) / digit;
        digit = passes ? (bits + passes - 1) / passes : 0;
        count_digits(from, count, shift, digit, passes, counts);
        for (unsigned p = 0; p < passes; p++) {
                uint64_t *swap = from;

                sort_pass(from, to, count, shift + p * digit, digit, counts[p]);
                from = to;
                to = swap;
        }
        return from;
}

/* Deal the elements out by their highest bits, and sort each part. */
static void sort_parts(uint64_t *elements, uint64_t *tmp, size_t count, unsigned shift, unsigned bits)
{
        uint32_t ends[1][COUNTERS], begin = 0;
        unsigned deal = 1;

        while (deal < DEAL_BITS_MAX && deal < bits && count >> deal > DEAL_PART)
                deal++;
        bits -= deal;
        count_digits(elements, count, shift + bits, deal, 1, ends);
        sort_pass(elements, tmp, count, shift + bits, deal, ends[0]);
        for (uint32_t part = 0; part < 1u << deal; part++) {
                size_t n = ends[0][part] - begin;
                uint64_t *sorted = sort_least_first(tmp + begin, elements + begin, n, shift, bits);

                if (sorted != elements + begin)
                        memcpy(elements + begin, sorted, n * sizeof *sorted);
                begin = ends[0][part];
        }
}

void lookup_sort(uint64_t *elements, uint64_t *tmp, size_t count)
{
        unsigned shift, bits;
        uint64_t *sorted;

        if (!bits_that_differ(elements, count, &shift, &bits))
                return;
        if (count >= DEAL_FROM) {
                sort_parts(elements, tmp, count, shift, bits);
                return;
        }
        sorted = sort_least_first(elements, tmp, count, shift, bits);
        if (sorted != elements)
                memcpy(elements, sorted, count * sizeof *sorted);
}
