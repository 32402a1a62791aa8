/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/encode.h"

#include <endian.h>
#include <string.h>

#define DELTA_BLOCK 128
#define DELTA_MINIBLOCKS 4
#define DELTA_MINIBLOCK (DELTA_BLOCK / DELTA_MINIBLOCKS)

unsigned bits_for(uint64_t max)
{
        return max ? 64 - (unsigned)__builtin_clzll(max) : 0;
}

/* Pack values of width bits, lowest bit first; count * width is a multiple of 8. */
static void pack(struct buf *out, const uint64_t *values, size_t count, unsigned width)
{
        size_t bytes = count * width / 8;
        uint8_t *to = buf_reserve(out, bytes);
        unsigned __int128 acc = 0;
        unsigned held = 0;

        if (!to)
                return;
        for (size_t i = 0; i < count; i++) {
                acc |= (unsigned __int128)values[i] << held;
                held += width;
                while (held >= 8) {
                        *to++ = (uint8_t)acc;
                        acc >>= 8;
                        held -= 8;
                }
        }
        buf_commit(out, bytes);
}

/* Equal values from i on, at most limit of them. */
static size_t run_length(const uint32_t *values, size_t i, size_t count, size_t limit)
{
        size_t end = count - i < limit ? count : i + limit;
        size_t k = i + 1;

        while (k < end && values[k] == values[i])
                k++;
        return k - i;
}

/* The end of the group-wise literal that begins at i: it stops where a run of 8 begins. */
static size_t literal_end(const uint32_t *values, size_t i, size_t count)
{
        do
                i += 8;
        while (i < count && run_length(values, i, count, 8) < 8);
        return i;
}

static size_t uleb_size(uint64_t v)
{
        return v ? (bits_for(v) + 6) / 7 : 1;
}

size_t encode_hybrid_size(const uint32_t *values, size_t count, unsigned width)
{
        size_t size = 0;

        for (size_t i = 0; i < count;) {
                size_t run = run_length(values, i, count, count);

                if (run >= 8) {
                        size += uleb_size((uint64_t)run << 1) + (width + 7) / 8;
                        i += run;
                } else {
                        size_t end = literal_end(values, i, count);

                        size += uleb_size((end - i) / 8 << 1 | 1) + (end - i) / 8 * width;
                        i = end;
                }
        }
        return size;
}

void encode_hybrid(struct buf *out, const uint32_t *values, size_t count, unsigned width)
{
        for (size_t i = 0; i < count;) {
                size_t run = run_length(values, i, count, count);

                if (run >= 8) {
                        uint32_t le = htole32(values[i]);

                        buf_append_uleb128(out, (uint64_t)run << 1);
                        buf_append(out, &le, (width + 7) / 8);
                        i += run;
                        continue;
                }
                size_t end = literal_end(values, i, count);

                buf_append_uleb128(out, (end - i) / 8 << 1 | 1);
                for (; i < end; i += 8) {
                        uint64_t group[8] = { 0 };

                        for (size_t k = 0; k < 8 && i + k < count; k++)
                                group[k] = values[i + k];
                        pack(out, group, 8, width);
                }
        }
}

static void append_zigzag(struct buf *out, int64_t v)
{
        buf_append_uleb128(out, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63));
}

/* Deltas wrap around; the reader's additions wrap back. */
static void encode_block(struct buf *out, const int64_t *values, size_t count, int64_t previous)
{
        uint64_t deltas[DELTA_BLOCK] = { 0 };
        uint8_t widths[DELTA_MINIBLOCKS] = { 0 };
        int64_t min = INT64_MAX;

        for (size_t i = 0; i < count; i++) {
                deltas[i] = (uint64_t)values[i] - (uint64_t)previous;
                previous = values[i];
                if ((int64_t)deltas[i] < min)
                        min = (int64_t)deltas[i];
        }
        append_zigzag(out, min);
        for (size_t i = 0; i < count; i++) {
                unsigned width;

                deltas[i] -= (uint64_t)min;
                width = bits_for(deltas[i]);
                if (width > widths[i / DELTA_MINIBLOCK])
                        widths[i / DELTA_MINIBLOCK] = (uint8_t)width;
        }
        buf_append(out, widths, sizeof widths);
        for (size_t m = 0; m * DELTA_MINIBLOCK < count; m++)
                pack(out, deltas + m * DELTA_MINIBLOCK, DELTA_MINIBLOCK, widths[m]);
}

void encode_delta(struct buf *out, const int64_t *values, size_t count)
{
        buf_append_uleb128(out, DELTA_BLOCK);
        buf_append_uleb128(out, DELTA_MINIBLOCKS);
        buf_append_uleb128(out, count);
        append_zigzag(out, count ? values[0] : 0);
        for (size_t i = 1; i < count; i += DELTA_BLOCK)
                encode_block(out, values + i, count - i < DELTA_BLOCK ? count - i : DELTA_BLOCK, values[i - 1]);
}

void encode_bools(struct buf *out, const int64_t *values, size_t count)
{
        for (size_t i = 0; i < count; i += 8) {
                uint8_t byte = 0;

                for (size_t k = 0; k < 8 && i + k < count; k++)
                        byte |= (uint8_t)((values[i + k] & 1) << k);
                buf_append_u8(out, byte);
        }
}
