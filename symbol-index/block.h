/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_BLOCK_H
#define CAIRN_SYMBOL_INDEX_BLOCK_H

/**
 * @file
 * Block of the index: a few hundred neighbouring address ranges with their chains of frames, in a value of the `blocks`
 * database (docs/formats/index.md, "Block").
 *
 * Problem: a range takes 55 bytes as a row of a B-tree and 16 to 40 in a sorted array with its frames; its information
 * content is about 3. Finding one address must not decode the others; a batch with many addresses in a block must not
 * search for each; and relocated code should not be stored again.
 *
 * Model: addresses are relative to the block's begin, so a block serves any
 * object and address with the same code.
 *  - rows: a start and the low bits of a line, or its difference from the previous row's line in 2 to 4 bits. A gap
 *    between ranges is also a row. Starts are Elias-Fano coded: 2 + log2(mean distance) bits per row.
 *  - runs: consecutive rows whose leaf frames differ only in the low bits of their lines; one bit per row marks the
 *    start of a run. A run has a scope.
 *  - scopes: a site, a line without its low bits, and the node that it was inlined into. The number of low bits, and
 *    whether lines count from the declaration of their function, is chosen per block to minimize its size.
 *  - nodes: the frames that others were inlined into, each a scope and the low
 *    bits of a line. Equal tails of chains are one path of nodes.
 *  - sites: function, file, line of the function's declaration.
 * Scopes and nodes are numbered breadth-first, so that the nodes of scopes never decrease, nor the scopes of nodes:
 * both are stored in unary, two bits each.
 *
 * Two readers: block_seek() and block_get_frames() decode one row;
 * block_unpack() decodes the whole block in two or three microseconds.
 *
 * Invariants: 1. a scope's node has a smaller number than the nodes of that scope, so walks terminate. 2. the first row
 * starts at the block's begin, which a range covers; so does its last address. 3. eight bytes follow every table, so
 * one unaligned load reads any field.
 *
 * Rejected: byte-wise varints and entropy coding (a fifth smaller, but every
 * single lookup would decode half a block), general compression (the same).
 *
 * Threads: a builder belongs to one thread; blocks are read by any number.
 */
#include <stddef.h>
#include <stdint.h>

#include "common/memory/buf.h"
#include "common/error.h"
#include "symbol-index/block_bits.h"
#include "symbol-index/lookup.h"

#define BLOCK_BYTES 2020       /* two such values fill a page of 4096 bytes */
#define BLOCK_RECORDS_MAX 3000 /* rows and nodes of one block */
#define BLOCK_FRAMES_MAX 1024  /* frames of one chain */

struct block_frame {
        uint32_t function, file, line;
        uint32_t start_line; /* at most BLOCK_START_LINE_MAX */
};

#define BLOCK_START_LINE_MAX INT32_MAX

/** Anchor of a block: a hash of the length and frames of its first row, to find blocks that can be shared. */
uint32_t block_compute_anchor(uint64_t length, const struct block_frame *frames, uint32_t frame_count);

struct block_builder;

/** @param max_bytes upper bound of a block with more than one range; BLOCK_BYTES, except in measurements. */
enum status block_builder_create(size_t max_bytes, struct block_builder **ret, struct error *err) MUST_CHECK;
void block_builder_destroy(struct block_builder *b);

/**
 * Add the next range, after all earlier ones.
 * @return ST_OK; ST_BUSY if the block is full: nothing was added, finish it and add again; ST_TOO_BIG if the chain is
 *         longer than BLOCK_FRAMES_MAX.
 */
enum status block_builder_add(struct block_builder *b, uint64_t start, uint64_t end, const struct block_frame *frames,
                              uint32_t frame_count, struct error *err) MUST_CHECK;

/** Whether no range was added since the last block_builder_finish(). */
bool block_builder_is_empty(const struct block_builder *b);

/** First and last address of the ranges added since the last block_builder_finish(); must not be empty. */
uint64_t block_builder_first_address(const struct block_builder *b);
uint64_t block_builder_last_address(const struct block_builder *b);

/** block_compute_anchor() of the first range. */
uint32_t block_builder_anchor(const struct block_builder *b);

/** Write the block; the builder is empty afterwards. @param number of the block. @param out cleared first. */
enum status block_builder_finish(struct block_builder *b, uint32_t number, struct buf *out,
                                 struct error *err) MUST_CHECK;

/** An open block; borrows the value. Public: span, row_count, node_count, anchor. */
struct block {
        const uint8_t *low, *high, *run_bits, *runs, *delta_bits, *deltas, *lines, *scope_bits, *scope_sites,
                *node_bits, *node_lines, *sites;
        uint64_t span; /* last covered address, relative to the begin */
        uint32_t anchor;
        uint32_t row_count, run_count, node_count, scope_count, site_count, delta_count;
        uint32_t high_bits;
        uint32_t function_base, file_base, line_base, start_base;
        uint8_t low_width, line_width, site_width, scope_width;
        uint8_t function_width, file_width, start_width, line_high_width;
        uint8_t delta_width;        /* 0: lines are not stored as differences */
        bool is_counted_from_start; /* lines of scopes count from the line of the declaration */
};

/** Verify the checksum and the header. ST_BAD_DATA for data that no builder wrote. */
enum status block_open(struct block *b, uint32_t number, const void *value, size_t size, struct error *err) MUST_CHECK;

/** As above, without the checksum, which was verified earlier. */
enum status block_open_verified(struct block *b, uint32_t number, const void *value, size_t size,
                                struct error *err) MUST_CHECK;

/** Bytes of a block by kind of table. */
struct block_sizes {
        uint64_t starts, runs, lines, scopes, nodes, sites, heads;
};
void block_add_sizes(const struct block *b, struct block_sizes *sizes);

#define BLOCK_COUNTS 112 /* words of the longest bit table, including padding */

/** Rank directory of a bit table: number of ones before each 64-bit word. */
struct block_counts {
        uint16_t before[BLOCK_COUNTS]; /* after the last word UINT16_MAX, up to a multiple of 16 */
        uint32_t word_count, bit_count;
};

/** Position in a block for seeks with ascending offsets, and the rank directories of the block's tables. */
struct block_cursor {
        uint32_t row; /* earlier rows start at or before the offset */
        uint32_t bit; /* position in the high bits; bit - row is the current bucket */
        struct block_counts runs, deltas, scopes, nodes;
};
void block_cursor_init(struct block_cursor *c, const struct block *b);

/** Like block_cursor_init(), but only for block_seek() and block_get_row_scope(). */
void block_cursor_init_rows(struct block_cursor *c, const struct block *b);

/**
 * Find the row of an offset in [0, span], which must not be below the previous offset.
 * @param row_ret the row. @param end_ret first offset after the row.
 */
enum status block_seek(const struct block *b, struct block_cursor *c, uint64_t offset, uint32_t *row_ret,
                       uint64_t *end_ret) MUST_CHECK;

/**
 * Write a row's frames, innermost first.
 * @param c   a cursor of the block at any position.
 * @param out room for 1 + node_count frames. @param count_ret 0 for a gap.
 */
enum status block_get_frames(const struct block *b, const struct block_cursor *c, uint32_t row,
                             struct symbol_frame *out, uint32_t *count_ret) MUST_CHECK;

/** The scope of a row, 0 for a gap, and the low bits of its line, for block_scope_frames(). */
enum status block_get_row_scope(const struct block *b, const struct block_cursor *c, uint32_t row, uint32_t *scope_ret,
                                uint32_t *line_ret) MUST_CHECK;

/** A scope, or a node with its whole line. */
struct block_entry {
        struct symbol_frame frame;
        uint32_t parent; /* number of a node; 0: none */
};

#define BLOCK_CHAIN 4 /* frames stored together; few chains are longer */

#define BLOCK_STARTS_AHEAD 4 /* starts compared at once by block_row_find() */
#define BLOCK_BUCKETS 4096

/** A block as arrays. */
struct block_rows {
        uint32_t row_count, node_count, scope_count;
        uint64_t end;                                            /* of the last row: span + 1 */
        uint32_t starts[BLOCK_RECORDS_MAX + BLOCK_STARTS_AHEAD]; /* after the last row UINT32_MAX */
        unsigned bucket_shift;                                   /* bucket of an offset: offset >> bucket_shift */
        uint32_t last_bucket;                                    /* of the last start */
        uint16_t buckets[BLOCK_BUCKETS + 1];    /* the last row that starts before the bucket; 0 for the first bucket */
        uint16_t row_scopes[BLOCK_RECORDS_MAX]; /* 0: a gap */
        uint16_t row_lines[BLOCK_RECORDS_MAX];  /* low bits of each row's line */
        struct block_entry scopes[BLOCK_RECORDS_MAX + 1], nodes[BLOCK_RECORDS_MAX + 1]; /* from 1 */
        uint16_t depths[BLOCK_RECORDS_MAX + 1]; /* number of frames from a node outwards; node 0 has none */
        uint32_t depth_max;
        struct symbol_frame chains[BLOCK_RECORDS_MAX + 1][BLOCK_CHAIN]; /* the first frames, padded with 0 */
};

/** Decode a block. The content is checked, so that block_row_frames() cannot fail. */
enum status block_unpack(const struct block *b, struct block_rows *ret) MUST_CHECK;

/** Like block_unpack(), without the rows: only block_scope_frames() may be called. */
enum status block_unpack_chains(const struct block *b, struct block_rows *ret) MUST_CHECK;

/**
 * The row of an offset in [0, end), where end <= UINT32_MAX - 1.
 * @param row start of the linear search if the bucket has many rows: any row that starts at or before the offset.
 */
static inline uint32_t block_row_find(const struct block_rows *b, uint32_t offset, uint32_t row)
{
        uint32_t bucket = offset >> b->bucket_shift;
        uint32_t at = b->buckets[bucket < b->last_bucket ? bucket : b->last_bucket];
        const uint32_t *next = b->starts + at + 1;

        at += (next[0] <= offset) + (next[1] <= offset) + (next[2] <= offset) + (next[3] <= offset);
        if (__builtin_expect(b->starts[at + 1] > offset, 1))
                return at;
        for (at = at > row ? at : row; b->starts[at + 1] <= offset; at++)
                ;
        return at;
}

/**
 * The frames of a scope, with the given low bits for the line of the innermost; returns their count.
 * @param scope 0 is a gap; its count is 0.
 * @param out room for 1 + max(depth_max, BLOCK_CHAIN) frames; those after the count are undefined.
 */
static inline uint32_t block_scope_frames(const struct block_rows *b, uint32_t scope_number, uint32_t line,
                                          struct symbol_frame *out)
{
        const struct block_entry *scope = &b->scopes[scope_number];
        uint32_t parent = scope->parent, depth = b->depths[parent];

        out[0] = scope->frame;
        out[0].line |= line;
        memcpy(out + 1, b->chains[parent], sizeof b->chains[parent]);
        for (uint32_t i = 0; i < BLOCK_CHAIN && depth > BLOCK_CHAIN; i++)
                parent = b->nodes[parent].parent;
        for (uint32_t i = 1 + BLOCK_CHAIN; i <= depth; i++) {
                const struct block_entry *node = &b->nodes[parent];

                out[i] = node->frame;
                parent = node->parent;
        }
        return scope_number ? 1 + depth : 0;
}

/** block_get_frames() for an unpacked block; like block_scope_frames(). */
static inline uint32_t block_row_frames(const struct block_rows *b, uint32_t row, struct symbol_frame *out)
{
        return block_scope_frames(b, b->row_scopes[row], b->row_lines[row], out);
}

#endif
