/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_FOOTER_WRITE_H
#define CAIRN_PARQUET_FOOTER_WRITE_H

/**
 * @file
 * The FileMetaData of a file being written.
 */
#include "parquet/chunk_write.h"
#include "parquet/parquet_writer.h"

struct row_group_meta {
        uint64_t rows;
        uint64_t file_offset;
        struct chunk_meta *chunks; /* one a column, owned */
};

struct footer {
        const struct parquet_schema *schema;
        const struct row_group_meta *row_groups;
        size_t row_group_count;
        uint64_t rows;
        uint64_t column_indexes_at; /* file offset of chunk_writer.column_indexes */
        uint64_t offset_indexes_at;
        const struct parquet_sort *sort;
        const uint32_t *sort_columns; /* column numbers, sort_count of them */
        size_t sort_count;
        const struct parquet_key_value *metadata;
        size_t metadata_count;
};

/** Append metadata, its length and the magic number. Failures are kept in the buf. */
void footer_append(struct buf *out, const struct footer *f);

/**
 * An upper bound of the bytes that one row group adds to the footer. Of f only the schema, the sort order and that
 * group are used.
 */
size_t footer_group_bytes(const struct footer *f, size_t ordinal);

#endif
