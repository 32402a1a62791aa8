/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_CHUNK_WRITE_H
#define CAIRN_PARQUET_CHUNK_WRITE_H

/**
 * @file
 * Encodes the pending values of one column as the pages of one column chunk.
 *
 * One encoding is chosen for the whole chunk, the smallest before compression:
 * RLE_DICTIONARY while the dictionary is small, DELTA_BINARY_PACKED for 64-bit
 * integers, else PLAIN. Pages begin at row boundaries.
 */
#include <zstd.h>

#include "common/memory/buf.h"
#include "common/error.h"
#include "parquet/column_builder.h"
#include "parquet/value_stats.h"

struct chunk_meta {
        uint64_t dictionary_offset; /* 0: none */
        uint64_t data_offset;
        uint64_t total_bytes;          /* as stored, with page headers */
        uint64_t total_unpacked_bytes; /* the same without compression */
        uint64_t value_count;          /* slots */
        uint8_t encoding;
        uint32_t data_page_count;
        uint64_t offset_index_start; /* into struct chunk_writer.offset_indexes */
        uint32_t offset_index_size;
        uint64_t column_index_start; /* into column_indexes */
        uint32_t column_index_size;  /* 0: none */
        struct value_stats stats;
};

struct chunk_writer {
        ZSTD_CCtx *zstd;
        int zstd_level;
        size_t page_bytes;
        uint64_t page_rows;
        struct buf pages;   /* the current chunk */
        struct buf payload; /* the current page */
        struct buf scratch;
        struct buf locations;      /* struct page_location of the current chunk */
        struct buf column_indexes; /* of the whole file, written before the footer */
        struct buf offset_indexes;
};

enum status chunk_writer_init(struct chunk_writer *w, struct error *err) MUST_CHECK;
void chunk_writer_deinit(struct chunk_writer *w);

/**
 * Encode a column into w->pages, to be written at file_offset.
 *
 * @return ST_OK; ST_TOO_BIG, ST_NO_MEMORY.
 */
enum status chunk_write(struct chunk_writer *w, const struct column_builder *c, uint64_t file_offset,
                        struct chunk_meta *ret, struct error *err) MUST_CHECK;

#endif
