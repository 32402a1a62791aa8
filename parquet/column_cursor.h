/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_COLUMN_CURSOR_H
#define CAIRN_PARQUET_COLUMN_CURSOR_H

/**
 * @file
 * Reads a column chunk sequentially, some rows at a time, for scans that need few rows of many chunks. Pages of which
 * no row is read are not unpacked, and a run of equal values in the file is returned as a run.
 *
 *     c = parquet_cursor_create(reserve, context);
 *     parquet_cursor_open(c, f, group, node, err);
 *     parquet_cursor_skip(c, 1000, err);
 *     parquet_cursor_read(c, 500, &piece, err);     piece.count rows, 1 to 500
 *
 * Only for columns outside of lists, of integers (BOOL, INT32, DATE, INT64, TIMESTAMP) or bytes. The values are those
 * that parquet_read_column() returns for the same rows.
 *
 * Memory: the dictionary, one unpacked page and 12 bytes for each of its values; all unpacked pages when they hold
 * PLAIN bytes. The buffers are kept from one chunk to the next. Threads: a cursor belongs to one thread.
 */
#include "parquet/parquet_reader.h"

struct parquet_cursor;

/** Called before a cursor's memory grows by n bytes; any status but ST_OK refuses it. */
typedef enum status parquet_cursor_reserve(void *context, size_t n, struct error *err);

/** @param reserve  NULL: memory is not limited. @return NULL when memory runs out. */
struct parquet_cursor *parquet_cursor_create(parquet_cursor_reserve *reserve, void *context);
void parquet_cursor_destroy(struct parquet_cursor *c); /* NULL is allowed */

/**
 * Begin with the first row of a chunk; data of the previous chunk becomes invalid.
 * @param node  a leaf.
 * @return ST_OK; ST_UNSUPPORTED for a list or another type; ST_BAD_DATA; ST_TOO_BIG.
 */
enum status parquet_cursor_open(struct parquet_cursor *c, const struct parquet_file *f, uint32_t group, uint32_t node,
                                struct error *err) MUST_CHECK;

/** Bytes of the chunk as stored. */
uint64_t parquet_cursor_chunk_bytes(const struct parquet_cursor *c);

enum status parquet_cursor_skip(struct parquet_cursor *c, uint64_t rows, struct error *err) MUST_CHECK;

/* Consecutive rows. Valid until the next call. */
struct parquet_piece {
        uint32_t count;        /* at least 1 */
        bool is_run;           /* all rows have the same value: codes or ints have only index 0 */
        const uint32_t *codes; /* of bytes: indexes into the dictionary, PARQUET_NULL_CODE where null */
        const int64_t *ints;   /* of integers: 0 where null */
};

/** The next rows, at least one and at most max. At least one row must be left. */
enum status parquet_cursor_read(struct parquet_cursor *c, uint32_t max, struct parquet_piece *ret,
                                struct error *err) MUST_CHECK;

/**
 * The values of the codes read so far. Each read of a chunk with PLAIN pages may grow the array, so pointers into it
 * are valid until the next read.
 */
const struct parquet_bytes *parquet_cursor_dict(const struct parquet_cursor *c, uint32_t *count_ret);

#endif
