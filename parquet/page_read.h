/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_PAGE_READ_H
#define CAIRN_PARQUET_PAGE_READ_H

/**
 * @file
 * Pages of a column chunk: header, checksum, decompression.
 *
 * Threads: a source belongs to one thread.
 */
#include <stdbool.h>
#include <zstd.h>

#include "common/reader.h"
#include "parquet/parquet_reader.h"

struct page_header {
        int32_t type;
        uint64_t unpacked;
        uint64_t stored;
        bool has_crc;
        int32_t crc;
        bool has_detail; /* it has the header of its page type */
        uint64_t value_count;
        int32_t encoding;
        int32_t def_encoding, rep_encoding;
        uint64_t def_bytes, rep_bytes; /* v2 */
        bool is_compressed;            /* v2 */
};

/* A page as it is in the file. */
struct stored_page {
        struct page_header header;
        struct reader payload; /* borrowed from the file's data */
};

struct read_page {
        int32_t type; /* enum parquet_page */
        int32_t encoding;
        uint32_t value_count; /* slots, or dictionary entries */
        bool levels_apart;    /* v2: levels are in rep_levels and def_levels, not in the payload */
        struct reader rep_levels;
        struct reader def_levels;
        struct reader payload; /* unpacked; valid as long as both the file's data and the memory passed to
                                  page_open() */
};

/* Memory for an unpacked page, reused from page to page; owned. */
struct page_buffer {
        uint8_t *data;
        size_t capacity;
};

struct page_source {
        struct reader chunk;           /* the remaining pages */
        int32_t codec;                 /* enum parquet_codec */
        ZSTD_DCtx *zstd;               /* from zstd_contexts.h, at the first use */
        uint64_t unpacked_bytes;       /* so far */
        struct parquet_column *column; /* owns the decompressed pages */
};

/** The next data or dictionary page; neither checksum nor content is checked. ST_NOT_FOUND after the last. */
enum status page_next(struct page_source *s, struct stored_page *ret, struct error *err) MUST_CHECK;

/**
 * Check and unpack a page.
 * @param into  buffer for the unpacked bytes, grown as needed; NULL: the source's column keeps them.
 */
enum status page_open(struct page_source *s, const struct stored_page *stored, struct page_buffer *into,
                      struct read_page *ret, struct error *err) MUST_CHECK;

void page_source_deinit(struct page_source *s);

#endif
