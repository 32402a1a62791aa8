/* SPDX-License-Identifier: Apache-2.0 */
/* Goes to one row of a block, and from there up its scopes and nodes, without unpacking the rest. */
#include "symbolizer/block.h"
#include "symbolizer/block_bits.h"

/* ---- counts */

static BLOCK_BODY void count_ones(struct block_counts *c, const uint8_t *bits, uint32_t bit_count)
{
        uint32_t ones = 0, words = bit_count / 64, w;

        for (w = 0; w < words; w++) {
                c->before[w] = (uint16_t)ones;
                ones += popcount64(load_le64(bits + 8 * (size_t)w));
        }
        if (bit_count % 64)
                c->before[w++] = (uint16_t)ones;
        c->word_count = w;
        c->bit_count = bit_count;
        do
                c->before[w++] = UINT16_MAX;
        while (w % 16);
}

static BLOCK_BODY void cursor_init_rows(struct block_cursor *c, const struct block *b)
{
        c->row = c->bit = 0;
        count_ones(&c->runs, b->run_bits, b->row_count);
        if (b->delta_width)
                count_ones(&c->deltas, b->delta_bits, b->row_count);
}

static BLOCK_BODY void cursor_init(struct block_cursor *c, const struct block *b)
{
        cursor_init_rows(c, b);
        count_ones(&c->scopes, b->scope_bits, b->scope_count + b->node_count + 1);
        count_ones(&c->nodes, b->node_bits, b->node_count + b->scope_count);
}

/* The run of a row, from 1. */
static BLOCK_BODY uint32_t run_of(const struct block *b, const struct block_cursor *c, uint32_t row)
{
        uint64_t word = load_le64(b->run_bits + row / 64 * 8);

        return c->runs.before[row / 64] + popcount64(word & low_mask(row % 64 + 1));
}

/* Zeros before the one with number index (from 0); the table's bit_count when there is no such one. */
static BLOCK_BODY uint32_t unary_get(const uint8_t *bits, const struct block_counts *c, uint32_t index, bool fast)
{
        uint32_t word = 0, at = 0, left;
        uint64_t ones;

        /* The last word with no more than index ones before it: their counts ascend. */
        do {
                uint16_t less = 0;

                for (uint32_t i = 0; i < 16; i++)
                        less = (uint16_t)(less + (c->before[at + i] <= index));
                word += less;
                at += 16;
                if (less < 16)
                        break;
        } while (at < c->word_count);
        word--;
        ones = load_le64(bits + 8 * (size_t)word);
        if (c->bit_count - word * 64 < 64)
                ones &= low_mask(c->bit_count - word * 64);
        left = index + 1 - c->before[word];
        if (popcount64(ones) < left)
                return c->bit_count;
        return word * 64 + select64(ones, left, fast) - index;
}

/* ---- rows */

static BLOCK_BODY uint64_t row_low(const struct block *b, uint32_t row)
{
        return load_bits(b->low, (uint64_t)row * b->low_width) & low_mask(b->low_width);
}

/* 64 of the high bits; those past the end read as 0, or as 1 when inverted. */
static BLOCK_BODY uint64_t high_word(const struct block *b, uint32_t bit)
{
        uint64_t word = load_le64(b->high + bit / 8);

        return b->high_bits - bit < 64 ? word & low_mask(b->high_bits - bit) : word;
}

/*
 * Move to the begin of a bucket ahead, which the caller knows to exist: past
 * the zero that ends the bucket before it.
 */
static BLOCK_BODY bool enter_bucket(const struct block *b, struct block_cursor *c, uint64_t bucket, bool fast)
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
        c->bit = at + select64(zeros, (unsigned)need, fast) + 1;
        if (c->bit > b->high_bits || c->bit < bucket)
                return false;
        c->row = c->bit - (uint32_t)bucket;
        return c->row > 0 && c->row <= b->row_count;
}

/* Start of row c->row. */
static BLOCK_BODY bool next_start(const struct block *b, const struct block_cursor *c, uint64_t *ret)
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

static BLOCK_BODY enum status seek(const struct block *b, struct block_cursor *c, uint64_t offset, uint32_t *row_ret,
                                   uint64_t *end_ret, bool fast)
{
        uint64_t bucket = offset >> b->low_width, low = offset & low_mask(b->low_width), start;

        if (bucket >= b->high_bits - b->row_count) {
                c->bit = b->high_bits;
                c->row = b->row_count;
        } else {
                if (bucket > c->bit - c->row && !enter_bucket(b, c, bucket, fast))
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

/* ---- frames */

/* Low bits of a row's line: a whole one at or before it in the same word, and the differences from there on. */
static BLOCK_BODY bool row_line(const struct block *b, const struct block_cursor *c, uint32_t row, uint32_t *ret)
{
        uint32_t word_at = row / 64, whole, deltas, line;
        unsigned below = line_codes_below(b->delta_width);
        uint64_t word, wholes;

        if (!b->delta_width) {
                *ret = (uint32_t)(load_bits(b->lines, (uint64_t)row * b->line_width) & low_mask(b->line_width));
                return true;
        }
        word = load_le64(b->delta_bits + (size_t)word_at * 8);
        wholes = ~word & low_mask(row % 64 + 1);
        if (!wholes)
                return false;
        whole = word_at * 64 + 63 - (uint32_t)__builtin_clzll(wholes);
        deltas = c->deltas.before[word_at] + popcount64(word & low_mask(whole % 64));
        if (deltas > whole || deltas + (row - whole) > b->delta_count ||
            whole - deltas >= b->row_count - b->delta_count)
                return false;
        line = (uint32_t)load_bits(b->lines, (uint64_t)(whole - deltas) * b->line_width);
        for (; whole < row; whole++, deltas++) {
                uint64_t code = load_bits(b->deltas, (uint64_t)deltas * b->delta_width) & low_mask(b->delta_width);

                line += (uint32_t)line_of_code((uint32_t)code, below);
        }
        *ret = line & (uint32_t)low_mask(b->line_width);
        return true;
}

static BLOCK_BODY enum status row_scope(const struct block *b, const struct block_cursor *c, uint32_t row,
                                        uint32_t *scope_ret, uint32_t *line_ret)
{
        uint32_t run = run_of(b, c, row), scope;

        if (run == 0 || run > b->run_count)
                return ST_BAD_DATA;
        scope = (uint32_t)(load_bits(b->runs, (uint64_t)(run - 1) * b->scope_width) & low_mask(b->scope_width));
        if (scope > b->scope_count)
                return ST_BAD_DATA;
        *scope_ret = scope;
        return row_line(b, c, row, line_ret) ? ST_OK : ST_BAD_DATA;
}

static BLOCK_BODY enum status frames_of(const struct block *b, const struct block_cursor *c, uint32_t row,
                                        struct symbol_frame *out, uint32_t *count_ret, bool fast)
{
        unsigned site_bits = b->function_width + b->file_width + b->line_high_width;
        uint32_t bound = b->node_count + 1, count = 0, scope, line;

        if (row_scope(b, c, row, &scope, &line))
                return ST_BAD_DATA;
        if (scope == 0) {
                *count_ret = 0;
                return ST_OK;
        }
        for (;;) {
                uint32_t site, parent;
                uint64_t bit;

                if (scope > b->scope_count)
                        return ST_BAD_DATA;
                site = (uint32_t)(load_bits(b->scope_sites, (uint64_t)(scope - 1) * b->site_width) &
                                  low_mask(b->site_width));
                parent = unary_get(b->scope_bits, &c->scopes, scope - 1, fast);
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
                scope = unary_get(b->node_bits, &c->nodes, parent - 1, fast) + 1;
        }
        *count_ret = count;
        return ST_OK;
}

/* ---- both ways */

BLOCK_BITS_TARGET static void cursor_init_fast(struct block_cursor *c, const struct block *b)
{
        cursor_init(c, b);
}

void block_cursor_init(struct block_cursor *c, const struct block *b)
{
        if (BLOCK_HAS_BITS)
                cursor_init_fast(c, b);
        else
                cursor_init(c, b);
}

BLOCK_BITS_TARGET static void cursor_init_rows_fast(struct block_cursor *c, const struct block *b)
{
        cursor_init_rows(c, b);
}

void block_cursor_init_rows(struct block_cursor *c, const struct block *b)
{
        if (BLOCK_HAS_BITS)
                cursor_init_rows_fast(c, b);
        else
                cursor_init_rows(c, b);
}

BLOCK_BITS_TARGET static enum status row_scope_fast(const struct block *b, const struct block_cursor *c, uint32_t row,
                                                    uint32_t *scope_ret, uint32_t *line_ret)
{
        return row_scope(b, c, row, scope_ret, line_ret);
}

enum status block_row_scope(const struct block *b, const struct block_cursor *c, uint32_t row, uint32_t *scope_ret,
                            uint32_t *line_ret)
{
        return BLOCK_HAS_BITS ? row_scope_fast(b, c, row, scope_ret, line_ret)
                              : row_scope(b, c, row, scope_ret, line_ret);
}

BLOCK_BITS_TARGET static enum status seek_fast(const struct block *b, struct block_cursor *c, uint64_t offset,
                                               uint32_t *row_ret, uint64_t *end_ret)
{
        return seek(b, c, offset, row_ret, end_ret, true);
}

enum status block_seek(const struct block *b, struct block_cursor *c, uint64_t offset, uint32_t *row_ret,
                       uint64_t *end_ret)
{
        return BLOCK_HAS_BITS ? seek_fast(b, c, offset, row_ret, end_ret)
                              : seek(b, c, offset, row_ret, end_ret, false);
}

BLOCK_BITS_TARGET static enum status frames_fast(const struct block *b, const struct block_cursor *c, uint32_t row,
                                                 struct symbol_frame *out, uint32_t *count_ret)
{
        return frames_of(b, c, row, out, count_ret, true);
}

enum status block_frames(const struct block *b, const struct block_cursor *c, uint32_t row, struct symbol_frame *out,
                         uint32_t *count_ret)
{
        return BLOCK_HAS_BITS ? frames_fast(b, c, row, out, count_ret)
                              : frames_of(b, c, row, out, count_ret, false);
}
