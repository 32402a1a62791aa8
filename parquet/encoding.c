/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/encoding.h"

#include <endian.h>
#include <string.h>

#define DELTA_BLOCK 128
#define DELTA_MINIBLOCKS 4
#define DELTA_MINIBLOCK (DELTA_BLOCK / DELTA_MINIBLOCKS)

unsigned bits_for_max(uint64_t max)
{
        return max ? 64 - (unsigned)__builtin_clzll(max) : 0;
}

/* Pack values of width bits, lowest bit first; count * width is a multiple of 8. */
static void pack_bits(struct buf *out, const uint64_t *values, size_t count, unsigned width)
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
static size_t measure_run(const uint32_t *values, size_t i, size_t count, size_t limit)
{
        size_t end = count - i < limit ? count : i + limit;
        size_t k = i + 1;

        while (k < end && values[k] == values[i])
                k++;
        return k - i;
}

/* The end of the group-wise literal that begins at i: it stops where a run of 8 begins. */
static size_t find_literal_end(const uint32_t *values, size_t i, size_t count)
{
        do
                i += 8;
        while (i < count && measure_run(values, i, count, 8) < 8);
        return i;
}

static size_t uleb_size(uint64_t v)
{
        return v ? (bits_for_max(v) + 6) / 7 : 1;
}

size_t encode_hybrid_size(const uint32_t *values, size_t count, unsigned width)
{
        size_t size = 0;

        for (size_t i = 0; i < count;) {
                size_t run = measure_run(values, i, count, count);

                if (run >= 8) {
                        size += uleb_size((uint64_t)run << 1) + (width + 7) / 8;
                        i += run;
                } else {
                        size_t end = find_literal_end(values, i, count);

                        size += uleb_size((end - i) / 8 << 1 | 1) + (end - i) / 8 * width;
                        i = end;
                }
        }
        return size;
}

void encode_hybrid(struct buf *out, const uint32_t *values, size_t count, unsigned width)
{
        for (size_t i = 0; i < count;) {
                size_t run = measure_run(values, i, count, count);

                if (run >= 8) {
                        uint32_t le = htole32(values[i]);

                        buf_append_uleb128(out, (uint64_t)run << 1);
                        buf_append(out, &le, (width + 7) / 8);
                        i += run;
                        continue;
                }
                size_t end = find_literal_end(values, i, count);

                buf_append_uleb128(out, (end - i) / 8 << 1 | 1);
                for (; i < end; i += 8) {
                        uint64_t group[8] = { 0 };

                        for (size_t k = 0; k < 8 && i + k < count; k++)
                                group[k] = values[i + k];
                        pack_bits(out, group, 8, width);
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
                width = bits_for_max(deltas[i]);
                if (width > widths[i / DELTA_MINIBLOCK])
                        widths[i / DELTA_MINIBLOCK] = (uint8_t)width;
        }
        buf_append(out, widths, sizeof widths);
        for (size_t m = 0; m * DELTA_MINIBLOCK < count; m++)
                pack_bits(out, deltas + m * DELTA_MINIBLOCK, DELTA_MINIBLOCK, widths[m]);
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

/* ---- reading ---- */

#define DELTA_MAX_BLOCK (1u << 20)

/* Value number i of width (at most 32) bits; reads no byte past end. */
static uint32_t unpack_bits(const uint8_t *data, const uint8_t *end, size_t i, unsigned width)
{
        size_t bit = i * width;
        const uint8_t *at = data + bit / 8;
        uint64_t raw = 0;

        if ((size_t)(end - at) >= sizeof raw)
                memcpy(&raw, at, sizeof raw);
        else
                memcpy(&raw, at, (size_t)(end - at));
        return (uint32_t)(le64toh(raw) >> (bit % 8) & ((1ull << width) - 1));
}

struct run {
        bool packed;
        size_t count; /* of values to take */
        uint32_t value;
        const uint8_t *data;
        const uint8_t *end;
};

/* The next run, cut to at most left values. */
static bool read_hybrid_run(struct reader *r, unsigned width, size_t left, struct run *ret)
{
        uint64_t header, count;

        if (!reader_uleb128(r, &header))
                return false;
        count = header >> 1;
        ret->packed = header & 1;
        if (ret->packed) {
                uint64_t bytes;

                if (__builtin_mul_overflow(count, (uint64_t)width, &bytes) || !reader_bytes(r, bytes, &ret->data))
                        return false;
                ret->end = ret->data + bytes;
                count = count > UINT64_MAX / 8 ? UINT64_MAX : count * 8;
        } else {
                uint32_t le = 0;

                if (!reader_bytes(r, (width + 7) / 8, &ret->data))
                        return false;
                memcpy(&le, ret->data, (width + 7) / 8);
                ret->value = le32toh(le);
        }
        ret->count = count < left ? (size_t)count : left;
        return count != 0;
}

bool decode_hybrid(struct reader *r, unsigned width, uint32_t *ret, size_t count)
{
        if (width > 32)
                return false;
        for (size_t i = 0; i < count;) {
                struct run run;

                if (!read_hybrid_run(r, width, count - i, &run))
                        return false;
                if (run.packed) {
                        for (size_t k = 0; k < run.count; k++)
                                ret[i + k] = unpack_bits(run.data, run.end, k, width);
                } else {
                        for (size_t k = 0; k < run.count; k++)
                                ret[i + k] = run.value;
                }
                i += run.count;
        }
        return true;
}

bool decode_levels(struct reader *r, uint8_t max, uint8_t *ret, size_t count)
{
        unsigned width = bits_for_max(max);

        for (size_t i = 0; i < count;) {
                struct run run;

                if (!read_hybrid_run(r, width, count - i, &run))
                        return false;
                if (!run.packed) {
                        if (run.value > max)
                                return false;
                        memset(ret + i, (int)run.value, run.count);
                        i += run.count;
                        continue;
                }
                for (size_t k = 0; k < run.count; k++, i++) {
                        uint32_t level = unpack_bits(run.data, run.end, k, width);

                        if (level > max)
                                return false;
                        ret[i] = (uint8_t)level;
                }
        }
        return true;
}

static bool decode_zigzag(struct reader *r, uint64_t *ret)
{
        uint64_t v;

        if (!reader_uleb128(r, &v))
                return false;
        *ret = v >> 1 ^ -(v & 1);
        return true;
}

/* Add count deltas of width bits to previous, one after the other. */
static uint64_t decode_miniblock(const uint8_t *data, unsigned width, uint64_t min, uint64_t previous, int64_t *ret,
                                 size_t count)
{
        uint64_t mask = width == 64 ? UINT64_MAX : (1ull << width) - 1;
        unsigned __int128 acc = 0;
        unsigned held = 0;

        for (size_t i = 0; i < count; i++) {
                for (; held < width; held += 8)
                        acc |= (unsigned __int128)*data++ << held;
                previous += min + ((uint64_t)acc & mask);
                acc >>= width;
                held -= width;
                ret[i] = (int64_t)previous;
        }
        return previous;
}

bool decode_delta(struct reader *r, int64_t *ret, size_t count)
{
        uint64_t block, miniblocks, total, previous, per;
        size_t done = 1;

        if (!reader_uleb128(r, &block) || !reader_uleb128(r, &miniblocks) || !reader_uleb128(r, &total) ||
            !decode_zigzag(r, &previous) || total != count || !block || block > DELTA_MAX_BLOCK || block % 128 ||
            !miniblocks || block % miniblocks || block / miniblocks % 32)
                return false;
        per = block / miniblocks;
        if (count)
                ret[0] = (int64_t)previous;
        while (done < count) {
                const uint8_t *widths, *data;
                uint64_t min;

                if (!decode_zigzag(r, &min) || !reader_bytes(r, miniblocks, &widths))
                        return false;
                for (uint64_t m = 0; m < miniblocks && done < count; m++) {
                        size_t take = count - done < per ? count - done : per;

                        if (widths[m] > 64 || !reader_bytes(r, per * widths[m] / 8, &data))
                                return false;
                        previous = decode_miniblock(data, widths[m], min, previous, ret + done, take);
                        done += take;
                }
        }
        return true;
}
