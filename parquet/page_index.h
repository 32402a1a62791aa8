/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_PAGE_INDEX_H
#define CAIRN_PARQUET_PAGE_INDEX_H

/**
 * @file
 * Where each page of a chunk is and what range its values have, so that
 * readers skip pages.
 * Source: parquet-format PageIndex.md.
 */
#include "parquet/chunk_write.h"

struct page_location {
        uint64_t offset;
        uint64_t first_row; /* in the row group */
        uint32_t size;      /* with its header */
        struct value_stats stats;
};

/** Append the indexes of w->locations to w's index buffers, and say in m where. */
enum status page_index_append(struct chunk_writer *w, const struct parquet_node *node, struct chunk_meta *m);

#endif
