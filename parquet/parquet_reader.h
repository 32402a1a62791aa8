/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_PARQUET_READER_H
#define CAIRN_PARQUET_PARQUET_READER_H

/**
 * @file
 * Reads Parquet files written by Cairn or by programs that use the common encodings (PLAIN, dictionary, RLE,
 * DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, BYTE_STREAM_SPLIT; data pages v1 and v2; uncompressed or zstd). Input
 * is untrusted: a malformed file is ST_BAD_DATA.
 *
 *     file_map_open(path, LIMIT_PARQUET_FILE_BYTES, &map, err);
 *     parquet_file_open(map.data, map.size, path, &f, err);
 *     node = parquet_schema_find(parquet_file_schema(f), "stack_id");
 *     for (g = 0; g < parquet_file_row_groups(f); g++)
 *             parquet_read_column(f, g, node, &column, err);
 *
 * Threads: a file may be read by any number of threads at once; a struct parquet_column belongs to one.
 * Source: docs/formats/parquet.md; parquet-format README.md, Encodings.md, parquet.thrift.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "common/files/file.h"
#include "parquet/schema.h"

struct parquet_file;

/** A file of which parts may be absent until they are required. */
struct parquet_source {
        const void *data; /* borrowed until close */
        size_t size;
        /* Make ranges within the file present. Called before they are read, by any thread. NULL: all are present. */
        enum status (*require)(void *context, const struct file_range *ranges, size_t count, struct error *err);
        /* Get ranges anew, of which what was read is damaged: once for each column. Any thread. NULL: it cannot;
         * ST_UNSUPPORTED, without a message: not any more. */
        enum status (*reload)(void *context, const struct file_range *ranges, size_t count, struct error *err);
        void *context; /* of both */
};

/**
 * parquet_file_open() for such a file. It requires the last PARQUET_END_BYTES, then the rest of a larger footer; the
 * first bytes are not checked, which would take another round trip. Reading a column requires its chunk. Failures of
 * require() are returned.
 */
enum status parquet_file_open_source(const struct parquet_source *source, const char *name, struct parquet_file **ret,
                                     struct error *err) MUST_CHECK;
#define PARQUET_END_BYTES KiB(64)

/**
 * Read and check a file's metadata; no page is read.
 *
 * @param data  the whole file, borrowed until close.
 * @param name  for messages; copied.
 * @return ST_OK; ST_BAD_DATA; ST_UNSUPPORTED (an encrypted file, columns in
 *         other files); ST_TOO_BIG for a footer past a limit; ST_NO_MEMORY.
 */
enum status parquet_file_open(const void *data, size_t size, const char *name, struct parquet_file **ret,
                              struct error *err) MUST_CHECK;

/** NULL is allowed. Columns already read stay valid, except for data in the mapping. */
void parquet_file_close(struct parquet_file *f);

/** Borrowed until close, like all results below. */
const struct parquet_schema *parquet_file_schema(const struct parquet_file *f);
uint32_t parquet_file_row_groups(const struct parquet_file *f);
uint64_t parquet_file_group_rows(const struct parquet_file *f, uint32_t group);

/** The pages of a column chunk, which a source may be required to have. @param node  a leaf of the schema. */
struct file_range parquet_file_get_chunk_range(const struct parquet_file *f, uint32_t group, uint32_t node);

/**
 * The statistics of a column chunk. Bounds hold for every non-null value, but need not occur unless exact. Statistics
 * are untrusted; use them only to skip data.
 */
struct parquet_stats {
        bool has_null_count;
        bool has_min, has_max;
        bool min_exact, max_exact;
        uint64_t null_count;
        uint64_t value_count; /* includes nulls and empty lists */
        int64_t min_int, max_int;
        double min_double, max_double;
        const uint8_t *min_bytes, *max_bytes;
        size_t min_size, max_size;
};
void parquet_file_stats(const struct parquet_file *f, uint32_t group, uint32_t node, struct parquet_stats *ret);

struct parquet_bytes {
        const uint8_t *data;
        size_t size;
};

#define PARQUET_NULL_CODE UINT32_MAX

/**
 * One leaf column of one row group.
 *
 * Outside lists slot i is row i. Below a list or map, row r has the slots [offsets[r], offsets[r + 1]). The columns
 * below one list have equal offsets. A null struct shows as nulls in all of its leaves.
 *
 * Byte columns are always dictionary-coded in memory: slot i is dict[codes[i]], a null slot has PARQUET_NULL_CODE.
 * Entries of dict may repeat when the file's writer switched from dictionary to PLAIN pages, so equal codes are equal
 * values, but not vice versa: evaluate each entry of dict once, then compare codes.
 */
struct parquet_column {
        enum parquet_kind kind;
        uint64_t row_count;
        uint64_t count;      /* slots */
        uint32_t *offsets;   /* row_count + 1, NULL outside lists */
        uint8_t *list_valid; /* one a row, NULL when no list is null */
        uint8_t *valid;      /* one a slot, NULL when no slot is null */
        int64_t *ints;       /* BOOL, INT32, DATE, INT64, TIMESTAMP; 0 where null */
        double *doubles;
        uint32_t *codes;
        struct parquet_bytes *dict; /* pointers into the file or into pages owned by this column */
        uint32_t dict_count;

        void **pages; /* owned unpacked pages */
        size_t page_count, page_capacity;
};

/**
 * Read a column chunk.
 *
 * @param group below parquet_file_row_groups().
 * @param node  a leaf of the schema.
 * @param ret   owned, freed with parquet_column_deinit(); byte values of
 *              uncompressed files point into the file's data. Untouched on failure.
 * @return ST_OK; ST_BAD_DATA; ST_UNSUPPORTED (codec, encoding, type, a list
 *         inside a list); ST_TOO_BIG; ST_NO_MEMORY.
 *
 * Memory: at most LIMIT_PARQUET_CHUNK_BYTES of pages and 22 bytes for each of
 * at most LIMIT_PARQUET_CHUNK_VALUES values.
 */
enum status parquet_read_column(const struct parquet_file *f, uint32_t group, uint32_t node, struct parquet_column *ret,
                                struct error *err) MUST_CHECK;
void parquet_column_deinit(struct parquet_column *c);
#define _cleanup_parquet_column_ _cleanup_(parquet_column_deinit)

#endif
