/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing comes first, then reading.
 *
 * Hybrid: a run of at least 8 equal values is written as a run, others as bit-packed groups of 8. encode_hybrid_size()
 * follows the same steps as encode_hybrid(), because encodings are compared by size before one is written.
 * Delta: the first value, then blocks of differences, each as its minimum and four miniblocks with a width of their
 * own.
 *
 * Reading is in two layers: struct hybrid_reader moves from run to run, unpack_range() unpacks values of one run: up
 * to a multiple of 8, then groups of 8 with loads of 8 bytes, then the rest. A load never passes the end of the data,
 * so the last groups and values are unpacked one by one (unpack_bits()). decode_levels() and decode_miniblock() have
 * fast paths of their own.
 *
 * Untrusted input: widths and counts are checked before data is read (begin_hybrid_run(), decode_delta()).
 */
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

/* Length of the run of equal values that begins at i, at most limit. */
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

/* 8 values of width bits at a time, each half of them from one or two loads of 8 bytes. */
static void unpack_groups(const uint8_t *from, unsigned width, uint32_t *ret, size_t groups)
{
        uint64_t mask = (1ull << width) - 1;

        for (size_t g = 0; g < groups; g++, from += width, ret += 8) {
                unsigned step = width <= 16 ? 4 : 2;

                for (unsigned k = 0; k < 8; k += step) {
                        uint64_t raw;

                        memcpy(&raw, from + k * width / 8, sizeof raw);
                        raw = le64toh(raw) >> (k * width % 8);
                        ret[k] = (uint32_t)(raw & mask);
                        ret[k + 1] = (uint32_t)(raw >> width & mask);
                        if (step == 4) {
                                ret[k + 2] = (uint32_t)(raw >> 2 * width & mask);
                                ret[k + 3] = (uint32_t)(raw >> 3 * width & mask);
                        }
                }
        }
}

/* The values [first, first + count) of width (at most 32) bits; reads no byte past end. */
static void unpack_range(const uint8_t *data, const uint8_t *end, size_t first, unsigned width, uint32_t *ret,
                         size_t count)
{
        size_t i = 0, groups;

        for (; i < count && (first + i) % 8; i++)
                ret[i] = unpack_bits(data, end, first + i, width);
        groups = width == 31 ? 0 : (count - i) / 8; /* two values of 31 bits may lie in 9 bytes */
        data += (first + i) / 8 * width;
        first = i;
        while (groups &&
               (size_t)(end - data) < groups * width + sizeof(uint64_t)) /* the last load must end before end */
                groups--;
        unpack_groups(data, width, ret + i, groups);
        for (i += groups * 8; i < count; i++)
                ret[i] = unpack_bits(data, end, i - first, width);
}

/* Begin the next run, of at least one value. */
static bool begin_hybrid_run(struct hybrid_reader *h)
{
        uint64_t header, count;

        if (!reader_uleb128(&h->bytes, &header))
                return false;
        count = header >> 1;
        h->packed = header & 1;
        h->at = 0;
        if (h->packed) {
                uint64_t bytes;

                if (__builtin_mul_overflow(count, (uint64_t)h->width, &bytes) ||
                    !reader_bytes(&h->bytes, bytes, &h->data))
                        return false;
                h->end = h->data + bytes;
                count = count > UINT64_MAX / 8 ? UINT64_MAX : count * 8;
        } else {
                uint32_t le = 0;

                if (!reader_bytes(&h->bytes, (h->width + 7) / 8, &h->data))
                        return false;
                memcpy(&le, h->data, (h->width + 7) / 8);
                h->value = le32toh(le);
        }
        h->left = count;
        return count != 0;
}

bool hybrid_begin(struct hybrid_reader *h, const struct reader *bytes, unsigned width)
{
        *h = (struct hybrid_reader){ .bytes = *bytes, .width = width };
        return width <= 32;
}

bool hybrid_peek_run(struct hybrid_reader *h, size_t *count_ret)
{
        if (!h->left && !begin_hybrid_run(h))
                return false;
        *count_ret = h->packed ? 0 : (size_t)h->left;
        return true;
}

bool hybrid_read(struct hybrid_reader *h, uint32_t *ret, size_t count)
{
        while (count) {
                size_t n;

                if (!h->left && !begin_hybrid_run(h))
                        return false;
                n = h->left < count ? (size_t)h->left : count;
                if (h->packed)
                        unpack_range(h->data, h->end, h->at, h->width, ret, n);
                else
                        for (size_t k = 0; k < n; k++)
                                ret[k] = h->value;
                h->at += n;
                h->left -= n;
                ret += n;
                count -= n;
        }
        return true;
}

bool hybrid_skip(struct hybrid_reader *h, size_t count)
{
        while (count) {
                size_t n;

                if (!h->left && !begin_hybrid_run(h))
                        return false;
                n = h->left < count ? (size_t)h->left : count;
                h->at += n;
                h->left -= n;
                count -= n;
        }
        return true;
}

bool decode_hybrid(struct reader *r, unsigned width, uint32_t *ret, size_t count)
{
        struct hybrid_reader h;

        if (!hybrid_begin(&h, r, width) || !hybrid_read(&h, ret, count))
                return false;
        *r = h.bytes;
        return true;
}

/* Read whole bytes of the current bit-packed run of width 1, one value a byte. Returns the count, at most `count`. */
static size_t read_level_bits(struct hybrid_reader *h, uint8_t *ret, size_t count)
{
        size_t n = h->left < count ? (size_t)h->left : count, bytes = h->at % 8 ? 0 : n / 8;
        const uint8_t *data = h->data + h->at / 8;

        for (size_t i = 0; i < bytes; i++) {
                /* Byte k of the word keeps bit k of the value; adding 0x7f carries it to the top bit. */
                uint64_t word = data[i] * 0x0101010101010101ull & 0x8040201008040201ull;

                word = htole64((((word & 0x7f7f7f7f7f7f7f7full) + 0x7f7f7f7f7f7f7f7full) | word) >> 7 &
                               0x0101010101010101ull);
                memcpy(ret + 8 * i, &word, sizeof word);
        }
        h->at += 8 * bytes;
        h->left -= 8 * bytes;
        return 8 * bytes;
}

bool decode_levels(struct reader *r, uint8_t max, uint8_t *ret, size_t count)
{
        struct hybrid_reader h;

        if (!hybrid_begin(&h, r, bits_for_max(max)))
                return false;
        while (count) {
                uint32_t levels[64];
                size_t n;

                if (!hybrid_peek_run(&h, &n))
                        return false;
                if (max == 1 && h.packed) {
                        n = read_level_bits(&h, ret, count);
                        if (n) {
                                ret += n;
                                count -= n;
                                continue;
                        }
                }
                if (n) {
                        n = n < count ? n : count;
                        if (h.value > max || !hybrid_skip(&h, n))
                                return false;
                        memset(ret, (int)h.value, n);
                } else {
                        n = count < 64 ? count : 64;
                        n = h.left < n ? (size_t)h.left : n;
                        if (!hybrid_read(&h, levels, n))
                                return false;
                        for (size_t k = 0; k < n; k++) {
                                if (levels[k] > max)
                                        return false;
                                ret[k] = (uint8_t)levels[k];
                        }
                }
                ret += n;
                count -= n;
        }
        *r = h.bytes;
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

/* Add count deltas of width bits to previous, one after another; reads no byte past end. */
static uint64_t decode_miniblock(const uint8_t *data, const uint8_t *end, unsigned width, uint64_t min,
                                 uint64_t previous, int64_t *ret, size_t count)
{
        uint64_t mask = width == 64 ? UINT64_MAX : (1ull << width) - 1;
        unsigned __int128 acc = 0;
        unsigned held = 0;

        if (width <= 56 && (size_t)(end - data) >= count * width / 8 + sizeof(uint64_t)) {
                for (size_t i = 0, bit = 0; i < count; i++, bit += width) {
                        uint64_t raw;

                        memcpy(&raw, data + bit / 8, sizeof raw);
                        previous += min + (le64toh(raw) >> (bit % 8) & mask);
                        ret[i] = (int64_t)previous;
                }
                return previous;
        }
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
                        previous =
                                decode_miniblock(data, r->data + r->size, widths[m], min, previous, ret + done, take);
                        done += take;
                }
        }
        return true;
}
