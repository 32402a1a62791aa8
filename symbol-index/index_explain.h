/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_INDEX_EXPLAIN_H
#define CAIRN_SYMBOL_INDEX_INDEX_EXPLAIN_H

/**
 * @file
 * The block and row of the index that resolve an address.
 *
 * Threads: those of the view.
 */
#include "symbol-index/lookup.h"

struct index_row_found {
        uint64_t page_last;               /* key of the map page: the last address it covers */
        uint32_t entry, entry_count;      /* of that page */
        uint32_t block, anchor;           /* numbers */
        uint64_t block_start, block_last; /* addresses in this object */
        size_t block_bytes;
        uint32_t users; /* map entries of all objects that refer to the block */
        uint32_t row, row_count;
        uint64_t row_end;     /* first address after the row */
        uint32_t frame_count; /* 0: the row is a gap */
};

/** @return ST_NOT_FOUND if no block contains the address; ST_BAD_DATA for a damaged page or block. */
enum status symbol_view_explain(struct symbol_view *view, const struct build_id *id, uint64_t address,
                                struct index_row_found *ret, struct error *err) MUST_CHECK;

#endif
