/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_BLOCK_H
#define CAIRN_SYMBOLIZER_BLOCK_H

/**
 * @file
 * One block of the index: a few hundred neighbouring address ranges of one
 * object with their chains of frames, in a value of the `ranges` database
 * (docs/formats/index.md, "Block").
 *
 * Problem: a range costs 55 bytes as a row of a B-tree and 16 to 40 as a
 * sorted array with its frames; the content is worth about 5. Yet one address
 * must be found without unpacking the others.
 *
 * Model: three tables of records of a fixed number of bits, so that record i
 * is one shift away.
 *  - rows: a start, and a leaf frame with the number of its parent node. A gap
 *    between ranges is a row without a frame. The starts are Elias-Fano coded:
 *    the low bits in an array, the high bits as a bit string of one 1 a row
 *    and one 0 a bucket; 2 + log2(mean distance) bits a row.
 *  - nodes: the frames that others were inlined into; each chain is a path of
 *    parents, and equal tails of chains are stored once.
 *  - sites: (function, file, line without its low bits). A record names a site
 *    and adds the low bits; how many is chosen per block for the least size.
 *
 * Invariants: 1. a node's parent has a smaller number, so walks end.
 * 2. the first row starts at the block's base, which a range covers; so does
 * its last address. 3. eight bytes follow every table, so one unaligned load
 * reads any record.
 *
 * Rejected: byte-wise varints (every lookup would decode half a block),
 * general compression of blocks (the same, and slower).
 *
 * Threads: a builder belongs to one thread; blocks are read by any number.
 */
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "symbolizer/lookup.h"

#define BLOCK_BYTES 2016        /* two such values fill a page of 4096 bytes */
#define BLOCK_RECORDS_MAX 3000  /* rows and nodes of one block */
#define BLOCK_FRAMES_MAX 1024   /* frames of one chain */
#define BLOCK_KEY_BYTES 12

/** The key: object number and last covered address, big-endian. */
struct block_key {
        uint8_t bytes[BLOCK_KEY_BYTES];
};
struct block_key block_key_make(uint32_t object, uint64_t last);
uint32_t block_key_object(const void *key);
uint64_t block_key_last(const void *key);

struct block_frame {
        uint32_t function, file, line;
};

struct block_builder;

/** @param max_bytes size a block aims to stay under; BLOCK_BYTES but for measurements. Owned, block_builder_destroy(). */
enum status block_builder_create(size_t max_bytes, struct block_builder **ret, struct error *err) MUST_CHECK;
void block_builder_destroy(struct block_builder *b);

/**
 * Add the next range, after all earlier ones.
 * @return ST_OK; ST_BUSY when the block is full: nothing was added, finish it and add again;
 *         ST_TOO_BIG when the chain is longer than BLOCK_FRAMES_MAX.
 */
enum status block_builder_add(struct block_builder *b, uint64_t start, uint64_t end, const struct block_frame *frames,
                              uint32_t frame_count, struct error *err) MUST_CHECK;

/** Whether no range was added since the last block_builder_finish(). */
bool block_builder_empty(const struct block_builder *b);

/** Write the block and its key; the builder is empty afterwards. @param out cleared first. */
enum status block_builder_finish(struct block_builder *b, uint32_t object, struct block_key *key_ret, struct buf *out,
                                 struct error *err) MUST_CHECK;

/** An open block; borrows the value. The fields are block_read.c's own but for base, last and node_count. */
struct block {
        const uint8_t *low, *high, *records, *sites;
        uint64_t base, last;   /* first and last covered address */
        uint32_t row_count, node_count, site_count;
        uint32_t high_bits;
        uint32_t function_base, file_base, line_base;
        uint8_t low_width, site_width, line_width, parent_width;
        uint8_t function_width, file_width, line_high_width;
};

/** Verify the checksum and the header. ST_BAD_DATA for anything that no builder wrote. */
enum status block_open(struct block *b, const void *key, const void *value, size_t size, struct error *err) MUST_CHECK;

/** A place in a block for seeks with ascending addresses; zero is its beginning. */
struct block_cursor {
        uint32_t row;      /* rows before it start at or before the address */
        uint32_t bit;      /* of the high bits; bit - row is the current bucket */
};

/**
 * Find the row of an address in [base, last]; it must not be below the previous one's.
 * @param row_ret the row. @param end_ret first address after the row.
 */
enum status block_seek(const struct block *b, struct block_cursor *c, uint64_t address, uint32_t *row_ret,
                       uint64_t *end_ret) MUST_CHECK;

/**
 * Write a row's frames, innermost first.
 * @param out room for 1 + node_count frames. @param count_ret 0 for a gap.
 */
enum status block_frames(const struct block *b, uint32_t row, struct symbol_frame *out, uint32_t *count_ret) MUST_CHECK;

#endif
