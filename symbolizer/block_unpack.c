/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole block as arrays, for batches that ask for many of its rows. Every
 * table is read once from front to back; what block_read.c checks for each row
 * is checked here for each entry.
 */
#include "symbolizer/block.h"
#include "symbolizer/block_bits.h"

static BLOCK_BODY bool unpack_starts(const struct block *b, struct block_rows *r)
{
        uint64_t mask = low_mask(b->low_width), last = 0;
        uint32_t row = 0;

        for (uint32_t at = 0; at < b->high_bits; at += 64) {
                uint64_t word = load_le64(b->high + at / 8);

                if (b->high_bits - at < 64)
                        word &= low_mask(b->high_bits - at);
                for (; word; word &= word - 1) {
                        uint64_t bucket = at + (unsigned)__builtin_ctzll(word) - row, start;

                        if (row == b->row_count)
                                return false;
                        start = bucket << b->low_width | (load_bits(b->low, (uint64_t)row * b->low_width) & mask);
                        if (row ? start <= last : start != 0)
                                return false;
                        r->starts[row++] = (uint32_t)start;
                        last = start;
                }
        }
        for (uint32_t i = 0; i < BLOCK_STARTS_AHEAD; i++)
                r->starts[row + i] = UINT32_MAX;
        return row == b->row_count && last <= b->span && last < UINT32_MAX;
}

/* Some two rows to a bucket where they are evenly spread. */
static BLOCK_BODY void make_buckets(const struct block *b, struct block_rows *r)
{
        uint32_t last = r->starts[b->row_count - 1];
        uint16_t most = 0;

        r->bucket_shift = b->low_width + 1 < 31 ? b->low_width + 1 : 31;
        while (last >> r->bucket_shift >= BLOCK_BUCKETS)
                r->bucket_shift++;
        r->last_bucket = last >> r->bucket_shift;
        memset(r->buckets, 0, (r->last_bucket + 2) * sizeof *r->buckets);
        for (uint32_t row = 0; row < b->row_count; row++)
                r->buckets[(r->starts[row] >> r->bucket_shift) + 1] = (uint16_t)row;
        for (uint32_t i = 0; i <= r->last_bucket; i++) {
                most = r->buckets[i] > most ? r->buckets[i] : most;
                r->buckets[i] = most;
        }
}

/* Ones of a table with a bit a row. */
static BLOCK_BODY uint32_t count_rows(const struct block *b, const uint8_t *bits)
{
        uint32_t count = 0;

        for (uint32_t row = 0; row < b->row_count; row += 64) {
                uint64_t word = load_le64(bits + row / 8);

                count += popcount64(b->row_count - row < 64 ? word & low_mask(b->row_count - row) : word);
        }
        return count;
}

static BLOCK_BODY bool unpack_runs(const struct block *b, struct block_rows *r)
{
        uint64_t mask = low_mask(b->scope_width);
        uint16_t scopes[BLOCK_RECORDS_MAX + 1];
        uint32_t run = 0, row = 0;

        if (!(b->run_bits[0] & 1) || count_rows(b, b->run_bits) != b->run_count)
                return false;
        for (uint32_t i = 0; i < b->run_count; i++) {
                scopes[i + 1] = (uint16_t)(load_bits(b->runs, (uint64_t)i * b->scope_width) & mask);
                if (scopes[i + 1] > b->scope_count)
                        return false;
        }
        for (row = 0; row < b->row_count;) {
                uint64_t word = load_le64(b->run_bits + row / 8);
                uint32_t end = row + 64 < b->row_count ? row + 64 : b->row_count;

                for (; row < end; row++, word >>= 1) {
                        run += word & 1;
                        r->row_scopes[row] = scopes[run];
                }
        }
        return true;
}

/* Lines without a branch: each is whole or a difference, and both are read. */
static BLOCK_BODY bool unpack_lines(const struct block *b, struct block_rows *r)
{
        uint64_t line_mask = low_mask(b->line_width), delta_mask = low_mask(b->delta_width), word = 0;
        unsigned below = line_codes_below(b->delta_width);
        uint32_t deltas = 0, line = 0;

        if (!b->delta_width) {
                for (uint32_t row = 0; row < b->row_count; row++)
                        r->row_lines[row] = (uint16_t)(load_bits(b->lines, (uint64_t)row * b->line_width) & line_mask);
                return true;
        }
        /* So no read goes further than to the entry behind the last one. */
        if (count_rows(b, b->delta_bits) != b->delta_count)
                return false;
        for (uint32_t row = 0; row < b->row_count; row++, word >>= 1) {
                uint64_t whole, code;
                bool is_delta;

                if (row % 64 == 0) {
                        word = load_le64(b->delta_bits + row / 8);
                        if (word & 1)
                                return false;
                }
                is_delta = word & 1;
                whole = load_bits(b->lines, (uint64_t)(row - deltas) * b->line_width);
                code = load_bits(b->deltas, (uint64_t)deltas * b->delta_width) & delta_mask;
                line = is_delta ? line + (uint32_t)line_of_code((uint32_t)code, below) : (uint32_t)whole;
                line &= (uint32_t)line_mask;
                r->row_lines[row] = (uint16_t)line;
                deltas += is_delta;
        }
        return true;
}

/* Widths and masks of the sites, outside of the loop that reads them. */
struct site_fields {
        unsigned bits, file_at, line_at, line_width;
        uint64_t function_mask, file_mask, line_mask;
};

static BLOCK_BODY struct site_fields site_fields_of(const struct block *b)
{
        return (struct site_fields){ .bits = b->function_width + b->file_width + b->line_high_width,
                                     .file_at = b->function_width,
                                     .line_at = b->function_width + b->file_width,
                                     .line_width = b->line_width,
                                     .function_mask = low_mask(b->function_width),
                                     .file_mask = low_mask(b->file_width),
                                     .line_mask = low_mask(b->line_high_width) };
}

static BLOCK_BODY void load_site(const struct block *b, const struct site_fields *f, uint32_t site, struct block_entry *ret)
{
        uint64_t bit = (uint64_t)site * f->bits, function = load_bits(b->sites, bit), file, line;

        if (f->bits <= 57) {
                file = function >> f->file_at;
                line = function >> f->line_at;
        } else {
                file = load_bits(b->sites, bit + f->file_at);
                line = load_bits(b->sites, bit + f->line_at);
        }
        ret->function = b->function_base + (uint32_t)(function & f->function_mask);
        ret->file = b->file_base + (uint32_t)(file & f->file_mask);
        ret->line = (b->line_base + (uint32_t)(line & f->line_mask)) << f->line_width;
}

static BLOCK_BODY bool unpack_scopes(const struct block *b, struct block_rows *r)
{
        const struct site_fields fields = site_fields_of(b);
        uint64_t site_mask = low_mask(b->site_width);
        uint32_t bit_count = b->scope_count + b->node_count + 1, scope = 0;

        for (uint32_t at = 0; at < bit_count; at += 64) {
                uint64_t word = load_le64(b->scope_bits + at / 8);

                if (bit_count - at < 64)
                        word &= low_mask(bit_count - at);
                for (; word; word &= word - 1) {
                        uint32_t parent = at + (unsigned)__builtin_ctzll(word) - scope, site;

                        if (scope == b->scope_count || parent > b->node_count)
                                return false;
                        site = (uint32_t)(load_bits(b->scope_sites, (uint64_t)scope * b->site_width) & site_mask);
                        if (site >= b->site_count)
                                return false;
                        scope++;
                        load_site(b, &fields, site, &r->scopes[scope]);
                        r->scopes[scope].parent = parent;
                }
        }
        return scope == b->scope_count;
}

/* A node's frames: its own and those of the node that it was inlined into, which comes before. */
static inline void add_chain(struct block_rows *r, uint32_t node)
{
        const struct block_entry *e = &r->nodes[node];

        memcpy(&r->chains[node][1], r->chains[e->parent], (BLOCK_CHAIN - 1) * sizeof(struct symbol_frame));
        r->chains[node][0] = (struct symbol_frame){ e->function, e->file, e->line, e->parent != 0 };
        r->depths[node] = (uint16_t)(r->depths[e->parent] + 1);
        r->depth_max = r->depths[node] > r->depth_max ? r->depths[node] : r->depth_max;
}

static BLOCK_BODY bool unpack_nodes(const struct block *b, struct block_rows *r)
{
        uint32_t bit_count = b->node_count + b->scope_count, node = 0;
        uint64_t line_mask = low_mask(b->line_width);

        for (uint32_t at = 0; at < bit_count; at += 64) {
                uint64_t word = load_le64(b->node_bits + at / 8);

                if (bit_count - at < 64)
                        word &= low_mask(bit_count - at);
                for (; word; word &= word - 1) {
                        uint32_t scope = at + (unsigned)__builtin_ctzll(word) - node;

                        if (node == b->node_count || scope >= b->scope_count || r->scopes[scope + 1].parent > node)
                                return false;
                        r->nodes[node + 1] = r->scopes[scope + 1];
                        r->nodes[node + 1].line |= (uint32_t)(load_bits(b->node_lines, (uint64_t)node * b->line_width) &
                                                              line_mask);
                        node++;
                        add_chain(r, node);
                }
        }
        return node == b->node_count;
}

static BLOCK_BODY enum status unpack_chains(const struct block *b, struct block_rows *ret)
{
        ret->node_count = b->node_count;
        ret->scope_count = b->scope_count;
        ret->scopes[0] = ret->nodes[0] = (struct block_entry){ 0 };
        memset(ret->chains[0], 0, sizeof ret->chains[0]);
        ret->depths[0] = 0;
        ret->depth_max = 0;
        return unpack_scopes(b, ret) && unpack_nodes(b, ret) ? ST_OK : ST_BAD_DATA;
}

static BLOCK_BODY enum status unpack(const struct block *b, struct block_rows *ret)
{
        ret->row_count = b->row_count;
        ret->end = b->span + 1;
        if (!unpack_starts(b, ret) || !unpack_runs(b, ret) || !unpack_lines(b, ret))
                return ST_BAD_DATA;
        make_buckets(b, ret);
        return unpack_chains(b, ret);
}

BLOCK_BITS_TARGET static enum status unpack_fast(const struct block *b, struct block_rows *ret)
{
        return unpack(b, ret);
}

static enum status unpack_anywhere(const struct block *b, struct block_rows *ret)
{
        return unpack(b, ret);
}

enum status block_unpack(const struct block *b, struct block_rows *ret)
{
        return BLOCK_HAS_BITS ? unpack_fast(b, ret) : unpack_anywhere(b, ret);
}

BLOCK_BITS_TARGET static enum status unpack_chains_fast(const struct block *b, struct block_rows *ret)
{
        return unpack_chains(b, ret);
}

static enum status unpack_chains_anywhere(const struct block *b, struct block_rows *ret)
{
        return unpack_chains(b, ret);
}

enum status block_unpack_chains(const struct block *b, struct block_rows *ret)
{
        return BLOCK_HAS_BITS ? unpack_chains_fast(b, ret) : unpack_chains_anywhere(b, ret);
}
