/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_INDEX_BLOCKS_H
#define CAIRN_SYMBOLIZER_INDEX_BLOCKS_H

/*
 * The writing side of the shared blocks: their numbers, how many objects use
 * each, and how a block is found that holds what comes next in a table
 * (docs/formats/index.md, "Blocks and who uses them").
 *
 * At every commit, a block has exactly as many users as there are entries in
 * map pages with its number.
 */
#include "symbolizer/block.h"
#include "symbolizer/index_internal.h"

/** What finds shared blocks: the numbers of an object's blocks by the frames they begin with. */
struct anchor_filter;
void anchor_filter_destroy(struct anchor_filter *f);

/** The number that the next block gets. */
enum status index_blocks_next(struct index_write *w, uint32_t *ret, struct error *err) MUST_CHECK;

/** Write a new block with one user. */
enum status index_blocks_put(struct index_write *w, uint32_t number, uint32_t anchor, const struct buf *block,
                             struct error *err) MUST_CHECK;

/** One more user. */
enum status index_blocks_ref(struct index_write *w, uint32_t number, struct error *err) MUST_CHECK;

/** One user less; the last one takes the block along. A block that is gone or damaged is no error. */
enum status index_blocks_unref(struct index_write *w, uint32_t number, struct error *err) MUST_CHECK;

/**
 * Go through the blocks that begin as told by anchor.
 * @param matches called for each until it returns true; that number is *number_ret, else 0.
 */
enum status index_blocks_find(struct index_write *w, uint32_t anchor,
                              bool (*matches)(void *arg, const struct block *block), void *arg, uint32_t *number_ret,
                              struct error *err) MUST_CHECK;

/** Bytes that blocks, their users and their anchors fill, in whole pages where LMDB tells them. */
uint64_t index_blocks_bytes(struct symbol_index *index, MDB_txn *txn);

#endif
