/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/runtimes/v8_positions.h"

#include "common/reader.h"

struct v8_position v8_position_decode(uint64_t word)
{
        if (word & 1) /* in a file that V8 does not know as a script */
                return V8_POSITION_UNKNOWN;
        return (struct v8_position){ (int32_t)(word >> 1 & 0x3fffffff) - 1, (int32_t)(word >> 31 & 0xffff) - 1 };
}

/* Seven bits per byte, lowest first; bit 7: more follow. */
static bool read_table_number(struct reader *r, uint64_t *ret)
{
        uint8_t byte;

        *ret = 0;
        for (unsigned shift = 0; shift < 70 && reader_u8(r, &byte); shift += 7) {
                if (shift < 64)
                        *ret |= (uint64_t)(byte & 127) << shift;
                if (!(byte & 128))
                        return true;
        }
        return false;
}

struct v8_position v8_positions_find(const struct v8_position_format *f, const uint8_t *table, size_t size,
                                     int64_t offset)
{
        uint64_t at = (uint64_t)(int64_t)f->start, word = 0, step, change;
        struct v8_position ret = V8_POSITION_UNKNOWN;
        struct reader r;

        reader_init(&r, table, size);
        while (reader_left(&r)) {
                if (!read_table_number(&r, &step) || !read_table_number(&r, &change))
                        return V8_POSITION_UNKNOWN;
                at += step >> f->mark_bits;
                if ((int64_t)at > offset)
                        break;
                word += change >> 1 ^ -(change & 1);
                ret = v8_position_decode(word);
        }
        return ret;
}
