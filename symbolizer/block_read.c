/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/block.h"

#include "common/hash.h"
#include "symbolizer/block_bits.h"

struct block_key block_key_make(uint32_t object, uint64_t last)
{
        struct block_key key;

        object = htobe32(object);
        last = htobe64(last);
        memcpy(key.bytes, &object, 4);
        memcpy(key.bytes + 4, &last, 8);
        return key;
}

uint32_t block_key_object(const void *key)
{
        uint32_t object;

        memcpy(&object, key, 4);
        return be32toh(object);
}

uint64_t block_key_last(const void *key)
{
        uint64_t last;

        memcpy(&last, (const uint8_t *)key + 4, 8);
        return be64toh(last);
}

static enum status broken(struct error *err, const void *key, const char *how)
{
        return error_set(err, ST_BAD_DATA, "index block of object %u up to 0x%llx %s; index the file again",
                         block_key_object(key), (unsigned long long)block_key_last(key), how);
}

static bool widths_hold(const struct block *b)
{
        return b->low_width <= 32 && b->function_width <= 32 && b->file_width <= 32 && b->line_high_width <= 32 &&
               b->site_width <= 16 && b->line_width <= 16 && b->parent_width <= 16 && b->row_count > 0 &&
               b->high_bits > b->row_count && b->site_count > 0;
}

enum status block_open(struct block *b, const void *key, const void *value, size_t size, struct error *err)
{
        const uint8_t *p = value;
        uint64_t span, low, high, records, sites;
        struct block r;

        if (size < BLOCK_HEADER_BYTES + BLOCK_CHECKSUM_BYTES)
                return broken(err, key, "is cut off");
        if (p[0] != BLOCK_VERSION)
                return broken(err, key, "has an unknown version");
        if (load_le64(p + size - BLOCK_CHECKSUM_BYTES) !=
            (hash64(p, size - BLOCK_CHECKSUM_BYTES) ^ hash64(key, BLOCK_KEY_BYTES)))
                return broken(err, key, "does not match its checksum");
        span = load_le64(p + 8);
        r = (struct block){
                .last = block_key_last(key),
                .low_width = p[1], .site_width = p[2], .line_width = p[3], .parent_width = p[4],
                .function_width = p[5], .file_width = p[6], .line_high_width = p[7],
                .row_count = load_le16(p + 16), .node_count = load_le16(p + 18),
                .site_count = load_le16(p + 20), .high_bits = load_le16(p + 22),
                .function_base = load_le32(p + 24), .file_base = load_le32(p + 28), .line_base = load_le32(p + 32),
        };
        if (!widths_hold(&r) || span > r.last)
                return broken(err, key, "has impossible sizes");
        r.base = r.last - span;
        /* Counts have 16 bits and widths at most 32: no sum below can wrap. */
        low = bits_to_bytes((uint64_t)r.row_count * r.low_width);
        high = bits_to_bytes(r.high_bits);
        records = bits_to_bytes(((uint64_t)r.row_count + r.node_count) *
                                (r.site_width + r.line_width + r.parent_width));
        sites = bits_to_bytes((uint64_t)r.site_count * (r.function_width + r.file_width + r.line_high_width));
        if (BLOCK_HEADER_BYTES + low + high + records + sites + BLOCK_CHECKSUM_BYTES != size)
                return broken(err, key, "has tables of another size than it");
        r.low = p + BLOCK_HEADER_BYTES;
        r.high = r.low + low;
        r.records = r.high + high;
        r.sites = r.records + records;
        *b = r;
        return ST_OK;
}

static uint64_t row_low(const struct block *b, uint32_t row)
{
        return load_bits(b->low, (uint64_t)row * b->low_width) & low_mask(b->low_width);
}

/* 64 of the high bits; those past the end read as 0, or as 1 when inverted. */
static uint64_t high_word(const struct block *b, uint32_t bit)
{
        uint64_t word = load_le64(b->high + bit / 8);

        return b->high_bits - bit < 64 ? word & low_mask(b->high_bits - bit) : word;
}

/*
 * Move to the begin of a bucket ahead, which the caller knows to exist: past
 * the zero that ends the bucket before it.
 */
static bool enter_bucket(const struct block *b, struct block_cursor *c, uint64_t bucket)
{
        uint64_t need = bucket - (c->bit - c->row);
        uint32_t at = c->bit & ~63u;
        uint64_t zeros = ~high_word(b, at) & ~low_mask(c->bit & 63);

        for (;;) {
                unsigned count = popcount64(zeros);

                if (count >= need)
                        break;
                need -= count;
                at += 64;
                if (at >= b->high_bits)
                        return false;
                zeros = ~high_word(b, at);
        }
        c->bit = at + select64(zeros, (unsigned)need) + 1;
        if (c->bit > b->high_bits || c->bit < bucket)
                return false;
        c->row = c->bit - (uint32_t)bucket;
        return c->row > 0 && c->row <= b->row_count;
}

/* Start of row c->row, relative to the base. */
static bool next_start(const struct block *b, const struct block_cursor *c, uint64_t *ret)
{
        uint32_t at = c->bit & ~63u;
        uint64_t ones;

        if (c->bit >= b->high_bits)
                return false;
        ones = high_word(b, at) & ~low_mask(c->bit & 63);
        while (!ones) {
                at += 64;
                if (at >= b->high_bits)
                        return false;
                ones = high_word(b, at);
        }
        at += (uint32_t)__builtin_ctzll(ones);
        *ret = ((uint64_t)(at - c->row) << b->low_width) | row_low(b, c->row);
        return true;
}

enum status block_seek(const struct block *b, struct block_cursor *c, uint64_t address, uint32_t *row_ret,
                       uint64_t *end_ret)
{
        uint64_t offset = address - b->base;
        uint64_t bucket = offset >> b->low_width, low = offset & low_mask(b->low_width), start;

        if (bucket >= b->high_bits - b->row_count) {
                c->bit = b->high_bits;
                c->row = b->row_count;
        } else {
                if (bucket > c->bit - c->row && !enter_bucket(b, c, bucket))
                        return ST_BAD_DATA;
                while (c->row < b->row_count && c->bit < b->high_bits && (b->high[c->bit / 8] >> (c->bit & 7) & 1) &&
                       row_low(b, c->row) <= low) {
                        c->row++;
                        c->bit++;
                }
        }
        if (c->row == 0)
                return ST_BAD_DATA;
        if (c->row == b->row_count) {
                *end_ret = b->last + 1;
        } else {
                if (!next_start(b, c, &start) || start <= offset)
                        return ST_BAD_DATA;
                *end_ret = b->base + start;
        }
        *row_ret = c->row - 1;
        return ST_OK;
}

enum status block_frames(const struct block *b, uint32_t row, struct symbol_frame *out, uint32_t *count_ret)
{
        unsigned record_width = b->site_width + b->line_width + b->parent_width;
        unsigned site_bits = b->function_width + b->file_width + b->line_high_width;
        uint32_t index = row, bound = b->node_count + 1, count = 0;

        for (;;) {
                uint64_t record = load_bits(b->records, (uint64_t)index * record_width);
                uint32_t site = (uint32_t)(record & low_mask(b->site_width)), parent;
                uint64_t bit;

                if (site == 0 && count == 0)
                        break;
                parent = (uint32_t)(record >> (b->site_width + b->line_width) & low_mask(b->parent_width));
                if (site == 0 || site > b->site_count || parent >= bound)
                        return ST_BAD_DATA;
                bit = (uint64_t)(site - 1) * site_bits;
                out[count].function = b->function_base +
                                      (uint32_t)(load_bits(b->sites, bit) & low_mask(b->function_width));
                bit += b->function_width;
                out[count].file = b->file_base + (uint32_t)(load_bits(b->sites, bit) & low_mask(b->file_width));
                bit += b->file_width;
                out[count].line = (b->line_base +
                                   (uint32_t)(load_bits(b->sites, bit) & low_mask(b->line_high_width)))
                                          << b->line_width |
                                  (uint32_t)(record >> b->site_width & low_mask(b->line_width));
                out[count].inlined = parent != 0;
                count++;
                if (parent == 0)
                        break;
                /* Node n has number n + 1; its parent's number is smaller than its own. */
                bound = parent;
                index = b->row_count + parent - 1;
        }
        *count_ret = count;
        return ST_OK;
}
