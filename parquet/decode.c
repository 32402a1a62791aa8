/* SPDX-License-Identifier: Apache-2.0 */
#include "parquet/decode.h"

#include <endian.h>
#include <string.h>

#include "parquet/encode.h"

#define DELTA_MAX_BLOCK (1u << 20)

/* Value number i of width (at most 32) bits; reads no byte past end. */
static uint32_t unpack(const uint8_t *data, const uint8_t *end, size_t i, unsigned width)
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
        size_t count;        /* of values to take */
        uint32_t value;
        const uint8_t *data;
        const uint8_t *end;
};

/* The next run, cut to at most left values. */
static bool next_run(struct reader *r, unsigned width, size_t left, struct run *ret)
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

                if (!next_run(r, width, count - i, &run))
                        return false;
                if (run.packed) {
                        for (size_t k = 0; k < run.count; k++)
                                ret[i + k] = unpack(run.data, run.end, k, width);
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
        unsigned width = bits_for(max);

        for (size_t i = 0; i < count;) {
                struct run run;

                if (!next_run(r, width, count - i, &run))
                        return false;
                if (!run.packed) {
                        if (run.value > max)
                                return false;
                        memset(ret + i, (int)run.value, run.count);
                        i += run.count;
                        continue;
                }
                for (size_t k = 0; k < run.count; k++, i++) {
                        uint32_t level = unpack(run.data, run.end, k, width);

                        if (level > max)
                                return false;
                        ret[i] = (uint8_t)level;
                }
        }
        return true;
}

static bool zigzag(struct reader *r, uint64_t *ret)
{
        uint64_t v;

        if (!reader_uleb128(r, &v))
                return false;
        *ret = v >> 1 ^ -(v & 1);
        return true;
}

/* Add count deltas of width bits to previous, one after the other. */
static uint64_t add_deltas(const uint8_t *data, unsigned width, uint64_t min, uint64_t previous, int64_t *ret,
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
            !zigzag(r, &previous) || total != count || !block || block > DELTA_MAX_BLOCK || block % 128 || !miniblocks ||
            block % miniblocks || block / miniblocks % 32)
                return false;
        per = block / miniblocks;
        if (count)
                ret[0] = (int64_t)previous;
        while (done < count) {
                const uint8_t *widths, *data;
                uint64_t min;

                if (!zigzag(r, &min) || !reader_bytes(r, miniblocks, &widths))
                        return false;
                for (uint64_t m = 0; m < miniblocks && done < count; m++) {
                        size_t take = count - done < per ? count - done : per;

                        if (widths[m] > 64 || !reader_bytes(r, per * widths[m] / 8, &data))
                                return false;
                        previous = add_deltas(data, widths[m], min, previous, ret + done, take);
                        done += take;
                }
        }
        return true;
}
