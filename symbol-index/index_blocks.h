/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_INDEX_BLOCKS_H
#define CAIRN_SYMBOL_INDEX_INDEX_BLOCKS_H

/*
 * Writing shared blocks: numbers, reference counts, and the search for an
 * existing block equal to the next ranges of a table (docs/formats/index.md,
 * "Blocks and who uses them").
 *
 * Invariant at every commit: the users of a block are exactly the entries with its number in map pages.
 */
#include "symbol-index/block.h"
#include "symbol-index/symbol_index_internal.h"

/** Filter of the anchors in the database, which avoids most searches for shared blocks. */
struct anchor_filter;
void anchor_filter_destroy(struct anchor_filter *f);

/** The number of the next block. */
enum status index_blocks_next_number(struct index_write *w, uint32_t *ret, struct error *err) MUST_CHECK;

/** Write a new block with one user. */
enum status index_blocks_put(struct index_write *w, uint32_t number, uint32_t anchor, const struct buf *block,
                             struct error *err) MUST_CHECK;

/** Increment the reference count. */
enum status index_blocks_ref(struct index_write *w, uint32_t number, struct error *err) MUST_CHECK;

/** Decrement the reference count; delete the block at 0. A missing or damaged block is not an error. */
enum status index_blocks_unref(struct index_write *w, uint32_t number, struct error *err) MUST_CHECK;

/**
 * Search the blocks with an anchor.
 * @param matches called for each until it returns true; *number_ret is that block, or 0.
 */
enum status index_blocks_find(struct index_write *w, uint32_t anchor,
                              bool (*matches)(void *arg, const struct block *block), void *arg, uint32_t *number_ret,
                              struct error *err) MUST_CHECK;

/** Bytes of blocks, reference counts and anchors, in whole pages where LMDB reports them. */
uint64_t index_blocks_count_bytes(struct symbol_index *index, MDB_txn *txn);

#endif
