/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/block.h"

#include "common/hash.h"
#include "symbolizer/block_bits.h"

static enum status broken(struct error *err, uint32_t number, const char *how)
{
        return error_set(err, ST_BAD_DATA, "index block %u %s; index its files again", number, how);
}

static bool widths_hold(const struct block *b)
{
        return b->low_width <= 32 && b->function_width <= 32 && b->file_width <= 32 && b->line_high_width <= 32 &&
               b->site_width <= 16 && b->line_width <= 16 && b->scope_width <= 16;
}

static bool counts_hold(const struct block *b)
{
        return b->row_count > 0 && b->row_count + b->node_count <= BLOCK_RECORDS_MAX && b->run_count > 0 &&
               b->run_count <= b->row_count && b->scope_count > 0 && b->scope_count <= BLOCK_RECORDS_MAX &&
               b->site_count > 0 && b->high_bits > b->row_count;
}

/* The place of each table behind the header; true when they end where the checksum begins. */
static bool place_tables(struct block *b, const uint8_t *p, size_t size)
{
        const struct {
                const uint8_t **table;
                uint64_t bits;
        } tables[] = {
                /* Counts have 16 bits and widths at most 32: nothing wraps. */
                { &b->low, (uint64_t)b->row_count * b->low_width },
                { &b->high, b->high_bits },
                { &b->run_bits, b->row_count },
                { &b->runs, (uint64_t)b->run_count * b->scope_width },
                { &b->lines, (uint64_t)b->row_count * b->line_width },
                { &b->scope_bits, (uint64_t)b->scope_count + b->node_count + 1 },
                { &b->scope_sites, (uint64_t)b->scope_count * b->site_width },
                { &b->node_bits, (uint64_t)b->node_count + b->scope_count },
                { &b->node_lines, (uint64_t)b->node_count * b->line_width },
                { &b->sites, (uint64_t)b->site_count * (b->function_width + b->file_width + b->line_high_width) },
        };
        uint64_t at = BLOCK_HEADER_BYTES;

        for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
                *tables[i].table = p + (at <= size ? at : size);
                at += bits_to_bytes(tables[i].bits);
        }
        return at + BLOCK_CHECKSUM_BYTES == size;
}

enum status block_open(struct block *b, uint32_t number, const void *value, size_t size, struct error *err)
{
        const uint8_t *p = value;

        if (size < BLOCK_HEADER_BYTES + BLOCK_CHECKSUM_BYTES)
                return broken(err, number, "is cut off");
        if ((load_le64(p + size - BLOCK_CHECKSUM_BYTES) ^ number) != hash64(p, size - BLOCK_CHECKSUM_BYTES))
                return broken(err, number, "does not match its checksum");
        return block_open_again(b, number, value, size, err);
}

enum status block_open_again(struct block *b, uint32_t number, const void *value, size_t size, struct error *err)
{
        const uint8_t *p = value;
        struct block r;

        if (size < BLOCK_HEADER_BYTES + BLOCK_CHECKSUM_BYTES)
                return broken(err, number, "is cut off");
        if (p[0] != BLOCK_VERSION)
                return broken(err, number, "has an unknown version");
        r = (struct block){
                .low_width = p[1], .line_width = p[2], .site_width = p[3], .scope_width = p[4],
                .function_width = p[5], .file_width = p[6], .line_high_width = p[7],
                .span = load_le64(p + 8),
                .row_count = load_le16(p + 16), .run_count = load_le16(p + 18), .node_count = load_le16(p + 20),
                .scope_count = load_le16(p + 22), .site_count = load_le16(p + 24), .high_bits = load_le16(p + 26),
                .function_base = load_le32(p + 28), .file_base = load_le32(p + 32), .line_base = load_le32(p + 36),
                .anchor = load_le32(p + 40),
        };
        if (!widths_hold(&r) || !counts_hold(&r) || r.span == UINT64_MAX)
                return broken(err, number, "has impossible sizes");
        if (!place_tables(&r, p, size))
                return broken(err, number, "has tables of another size than it");
        *b = r;
        return ST_OK;
}

void block_add_sizes(const struct block *b, struct block_sizes *sizes)
{
        unsigned site_bits = b->function_width + b->file_width + b->line_high_width;

        sizes->starts += (uint64_t)(b->run_bits - b->low);
        sizes->runs += (uint64_t)(b->lines - b->run_bits);
        sizes->lines += (uint64_t)(b->scope_bits - b->lines);
        sizes->scopes += (uint64_t)(b->node_bits - b->scope_bits);
        sizes->nodes += (uint64_t)(b->sites - b->node_bits);
        sizes->sites += bits_to_bytes((uint64_t)b->site_count * site_bits);
        sizes->heads += BLOCK_HEADER_BYTES + BLOCK_CHECKSUM_BYTES;
}

static inline uint64_t row_low(const struct block *b, uint32_t row)
{
        return load_bits(b->low, (uint64_t)row * b->low_width) & low_mask(b->low_width);
}

/* 64 of the high bits; those past the end read as 0, or as 1 when inverted. */
static inline uint64_t high_word(const struct block *b, uint32_t bit)
{
        uint64_t word = load_le64(b->high + bit / 8);

        return b->high_bits - bit < 64 ? word & low_mask(b->high_bits - bit) : word;
}

/*
 * Move to the begin of a bucket ahead, which the caller knows to exist: past
 * the zero that ends the bucket before it.
 */
static inline bool enter_bucket(const struct block *b, struct block_cursor *c, uint64_t bucket)
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

/* Start of row c->row. */
static inline bool next_start(const struct block *b, const struct block_cursor *c, uint64_t *ret)
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

BLOCK_CLONES enum status block_seek(const struct block *b, struct block_cursor *c, uint64_t offset, uint32_t *row_ret,
                       uint64_t *end_ret)
{
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
                *end_ret = b->span + 1;
        } else {
                if (!next_start(b, c, &start) || start <= offset)
                        return ST_BAD_DATA;
                *end_ret = start;
        }
        *row_ret = c->row - 1;
        return ST_OK;
}

/* Number of ones among the first count bits. */
static inline uint32_t rank(const uint8_t *bits, uint32_t count)
{
        uint32_t ones = 0;

        for (; count >= 64; count -= 64, bits += 8)
                ones += popcount64(load_le64(bits));
        return count ? ones + popcount64(load_le64(bits) & low_mask(count)) : ones;
}

/* Zeros before the one with number index (from 0); bit_count when there is no such one. */
static inline uint32_t unary_get(const uint8_t *bits, uint32_t bit_count, uint32_t index)
{
        uint32_t left = index + 1;

        for (uint32_t at = 0; at < bit_count; at += 64, bits += 8) {
                uint64_t word = load_le64(bits);
                unsigned ones;

                if (bit_count - at < 64)
                        word &= low_mask(bit_count - at);
                ones = popcount64(word);
                if (ones >= left)
                        return at + select64(word, left) - index;
                left -= ones;
        }
        return bit_count;
}

BLOCK_CLONES enum status block_frames(const struct block *b, uint32_t row, struct symbol_frame *out, uint32_t *count_ret)
{
        unsigned site_bits = b->function_width + b->file_width + b->line_high_width;
        uint32_t run = rank(b->run_bits, row + 1), bound = b->node_count + 1, count = 0, scope, line;

        if (run == 0 || run > b->run_count)
                return ST_BAD_DATA;
        scope = (uint32_t)(load_bits(b->runs, (uint64_t)(run - 1) * b->scope_width) & low_mask(b->scope_width));
        if (scope == 0) {
                *count_ret = 0;
                return ST_OK;
        }
        line = (uint32_t)(load_bits(b->lines, (uint64_t)row * b->line_width) & low_mask(b->line_width));
        for (;;) {
                uint32_t site, parent;
                uint64_t bit;

                if (scope > b->scope_count)
                        return ST_BAD_DATA;
                site = (uint32_t)(load_bits(b->scope_sites, (uint64_t)(scope - 1) * b->site_width) &
                                  low_mask(b->site_width));
                parent = unary_get(b->scope_bits, b->scope_count + b->node_count + 1, scope - 1);
                if (site >= b->site_count || parent >= bound)
                        return ST_BAD_DATA;
                bit = (uint64_t)site * site_bits;
                out[count].function = b->function_base +
                                      (uint32_t)(load_bits(b->sites, bit) & low_mask(b->function_width));
                bit += b->function_width;
                out[count].file = b->file_base + (uint32_t)(load_bits(b->sites, bit) & low_mask(b->file_width));
                bit += b->file_width;
                out[count].line = (b->line_base +
                                   (uint32_t)(load_bits(b->sites, bit) & low_mask(b->line_high_width)))
                                          << b->line_width | line;
                out[count].inlined = parent != 0;
                count++;
                if (parent == 0)
                        break;
                bound = parent;
                line = (uint32_t)(load_bits(b->node_lines, (uint64_t)(parent - 1) * b->line_width) &
                                  low_mask(b->line_width));
                scope = unary_get(b->node_bits, b->node_count + b->scope_count, parent - 1) + 1;
        }
        *count_ret = count;
        return ST_OK;
}
