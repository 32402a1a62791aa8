/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Radix sort, least digit first, over the bits that differ at all: the code of
 * one object spans some 20 to 28 bits, so two or three passes sort it.
 */
#include <string.h>

#include "symbolizer/lookup_internal.h"

#define INSERTION_MAX 32
#define WIDE_FROM 8192 /* from here on, clearing 2048 counters a pass is cheap */
#define COUNTERS 2048
#define PASSES_MAX 4   /* of 8 bits */

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

void lookup_sort(uint64_t *elements, uint64_t *tmp, size_t count)
{
        unsigned digit = count < WIDE_FROM ? 8 : 11, shift, bits, passes;
        uint64_t *from = elements, *to = tmp, differ = 0;
        uint32_t counts[PASSES_MAX][COUNTERS];

        if (count <= INSERTION_MAX) {
                insertion_sort(elements, count);
                return;
        }
        for (size_t i = 1; i < count; i++)
                differ |= elements[i] ^ elements[0];
        differ >>= 32;
        if (!differ)
                return;
        shift = 32 + (unsigned)__builtin_ctzll(differ);
        bits = 96 - (unsigned)__builtin_clzll(differ) - shift;
        /* Digits of equal size: the fewer counters, the faster a pass. The last digit reaches beyond the bits. */
        passes = (bits + digit - 1) / digit;
        digit = (bits + passes - 1) / passes;
        count_digits(elements, count, shift, digit, passes, counts);
        for (unsigned p = 0; p < passes; p++) {
                uint64_t *swap = from;

                sort_pass(from, to, count, shift + p * digit, digit, counts[p]);
                from = to;
                to = swap;
        }
        if (from != elements)
                memcpy(elements, from, count * sizeof *elements);
}
