/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_PAGE_READ_H
#define CAIRN_PARQUET_PAGE_READ_H

/**
 * @file
 * Pages of a column chunk: header, checksum, decompression.
 */
#include <stdbool.h>
#include <zstd.h>

#include "common/reader.h"
#include "parquet/reader.h"

struct read_page {
        int32_t type; /* enum parquet_page */
        int32_t encoding;
        uint32_t value_count; /* slots, or dictionary entries */
        bool levels_apart;    /* v2: levels are not in the payload, but in rep_levels and def_levels */
        struct reader rep_levels;
        struct reader def_levels;
        struct reader payload; /* unpacked; valid as long as the file's data and the column's pages */
};

struct page_source {
        struct reader chunk;           /* the pages that are left */
        int32_t codec;                 /* enum parquet_codec */
        ZSTD_DCtx *zstd;               /* owned, made when needed */
        uint64_t unpacked_bytes;       /* so far */
        struct parquet_column *column; /* owns the decompressed pages */
};

#endif
