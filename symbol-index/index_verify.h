/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_INDEX_VERIFY_H
#define CAIRN_SYMBOL_INDEX_INDEX_VERIFY_H

/**
 * @file
 * Statistics of an object's blocks, and a consistency check of the index, each in one read transaction.
 */
#include "symbol-index/block.h"

/** The blocks of one object; `sizes` are bytes by kind of table. */
struct index_object_blocks {
        uint64_t blocks, shared; /* shared: used by more than one map entry of the index */
        uint64_t map_bytes;
        struct block_sizes sizes;
};

/** ST_BAD_DATA at the first damaged page or block. */
enum status symbol_index_measure_blocks(struct symbol_index *index, const struct build_id *id,
                                        struct index_object_blocks *ret, struct error *err) MUST_CHECK;

struct index_verify {
        uint64_t objects, map_pages, blocks, shared_blocks, string_pages, problems;
        /* Called for each problem, with one line of text. */
        void (*problem)(void *context, const char *text);
        void *context;
};

/**
 * Check every page and block, and cross-references: reference counts and map
 * entries, anchors and blocks, texts and the numbers in blocks.
 * @param v problem and context set by the caller; the counts are filled.
 * @return ST_OK even if there are problems.
 */
enum status symbol_index_verify(struct symbol_index *index, struct index_verify *v, struct error *err) MUST_CHECK;

#endif
