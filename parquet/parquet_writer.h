/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_PARQUET_WRITER_H
#define CAIRN_PARQUET_PARQUET_WRITER_H

/**
 * @file
 * Writes one Parquet file, column by column.
 *
 *      parquet_writer_create(fd, path, fields, n, NULL, &w, err);
 *      time = parquet_writer_node(w, "time");
 *      frames = parquet_writer_node(w, "frames");
 *      line = parquet_writer_node(w, "frames.list.element.line");
 *      parquet_put_int(w, time, 1700000000000000);    a row with two frames:
 *      parquet_put_list(w, frames, 2);
 *      parquet_put_int(w, line, 10);
 *      parquet_put_null(w, line);
 *      parquet_writer_end_rows(w, 1, err);
 *      parquet_writer_finish(w, err);
 *
 * Between two parquet_writer_end_rows(w, n) each column gets exactly n rows, in
 * any order of columns, one at a time or in bulk. A row of a column below a
 * list or map is parquet_put_list(count) on the list's or map's node followed
 * by count values for each column below it; a row or element of a group that
 * is null is parquet_put_null() on the group. The puts never fail visibly: the
 * first failure is kept and reported by the next end_rows or finish.
 *
 * Memory: the values of one row group (8 bytes a number, 4 a string plus each distinct string once, 1 or 2 of levels
 * where the column is optional or repeated) plus the pages of one column. A row group ends after row_group_rows rows or
 * row_group_bytes of values, whichever comes first, but only in end_rows: a caller that ends many rows at once adds all
 * of them to it.
 *
 * The file is written front to back; nothing is synced. It is a Parquet file
 * only after parquet_writer_finish(): write to a temporary name and publish
 * with file_publish() of common/files/file.h.
 *
 * Threads: a writer belongs to one thread.
 * Source: docs/formats/parquet.md, parquet-format README.md and Encodings.md.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "parquet/schema.h"

struct parquet_writer;

struct parquet_key_value {
        const char *key;
        const char *value;
};

struct parquet_sort {
        const char *path; /* of a leaf */
        bool descending;
        bool nulls_first;
};

struct parquet_writer_options {
        size_t size;                     /* sizeof(struct parquet_writer_options) */
        int zstd_level;                  /* default 3 */
        uint64_t row_group_rows;         /* default 128 Ki */
        uint64_t row_group_bytes;        /* default 64 MiB */
        size_t page_bytes;               /* default 1 MiB */
        uint64_t page_rows;              /* granularity of the page index */
        size_t footer_bytes;             /* 0, or a smaller limit than LIMIT_PARQUET_FOOTER_BYTES */
        const struct parquet_sort *sort; /* the order in which the caller puts the rows; recorded, not checked */
        size_t sort_count;
        const struct parquet_key_value *metadata;
        size_t metadata_count;
};

/** The defaults; they also replace zero fields of a caller's options. */
#define PARQUET_WRITER_OPTIONS                                                                                         \
        {                                                                                                              \
                .size = sizeof(struct parquet_writer_options)                                                          \
        }

/**
 * Begin a file.
 *
 * @param fd     borrowed until finish or destroy; written at its position, which must be the file's start.
 * @param name   for messages; copied.
 * @param fields copied.
 * @return ST_OK; ST_USAGE for an invalid schema or sort column; ST_OS; ST_NO_MEMORY.
 */
enum status parquet_writer_create(int fd, const char *name, const struct parquet_field *fields, size_t field_count,
                                  const struct parquet_writer_options *options, struct parquet_writer **ret,
                                  struct error *err) MUST_CHECK;

/** NULL is allowed. An unfinished file is left incomplete. */
void parquet_writer_destroy(struct parquet_writer *w);

/** The node of a path, which must be in the schema (assert). */
uint32_t parquet_writer_node(const struct parquet_writer *w, const char *path);

/** The schema as it is in the file, borrowed until destroy. */
const struct parquet_schema *parquet_writer_schema(const struct parquet_writer *w);

/** One value of a BOOL (0 or 1), INT32, DATE, INT64, TIMESTAMP or DOUBLE (its bits) column; ST_USAGE if it does not fit
 * the type. */
void parquet_put_int(struct parquet_writer *w, uint32_t node, int64_t value);
/** The same for count values, each a row of its own. */
void parquet_put_ints(struct parquet_writer *w, uint32_t node, const int64_t *values, size_t count);

/** One value of a STRING or BINARY column; copied. Each byte of a STRING that is not UTF-8 becomes U+FFFD. */
void parquet_put_bytes(struct parquet_writer *w, uint32_t node, const void *data, size_t n);
void parquet_put_str(struct parquet_writer *w, uint32_t node, const char *s);

/** A null of an optional leaf, list, map or struct, in all columns below it. */
void parquet_put_null(struct parquet_writer *w, uint32_t node);

/** count rows of nulls of an optional leaf that is not below a list or map. */
void parquet_put_nulls(struct parquet_writer *w, uint32_t node, size_t count);

/** A list or map of count elements, which are put next; 0: an empty one. */
void parquet_put_list(struct parquet_writer *w, uint32_t node, uint64_t count);

/** A whole row of a list of numbers. */
void parquet_put_int_list(struct parquet_writer *w, uint32_t node, const int64_t *values, size_t count);

/**
 * Declare count rows complete in every column. May write a row group.
 *
 * @return ST_OK; ST_USAGE when a column has another number of rows or a list another number of elements than announced;
 *         ST_TOO_BIG; ST_OS; ST_NO_MEMORY. After a failure the writer can only be destroyed.
 */
enum status parquet_writer_end_rows(struct parquet_writer *w, uint64_t count, struct error *err) MUST_CHECK;

/**
 * Whether to finish this file and write further rows to a new one: another row group as large as the largest so far
 * could exceed the limits of parquet_file_open() (footer, row groups, file size). Past the limits
 * parquet_writer_finish() fails with ST_TOO_BIG rather than write an unreadable file.
 */
bool parquet_writer_is_full(const struct parquet_writer *w);

/** Write the last row group and the footer. The writer can only be destroyed afterwards. */
enum status parquet_writer_finish(struct parquet_writer *w, struct error *err) MUST_CHECK;

/** Rows ended so far, and bytes written (the file's size after finish). */
uint64_t parquet_writer_rows(const struct parquet_writer *w);
uint64_t parquet_writer_bytes(const struct parquet_writer *w);

/**
 * Statistics of a leaf over all row groups, for the log of a table. Valid after finish. Bounds of strings are truncated
 * to 64 bytes and stay valid bounds. Bytes are borrowed until destroy.
 */
struct parquet_column_summary {
        bool has_min_max;    /* false without any value, with a NaN, or for a string without a short bound */
        uint64_t null_count; /* slots without a value; meaningful outside lists only */
        int64_t min_int, max_int;
        double min_double, max_double;
        const uint8_t *min_bytes, *max_bytes;
        size_t min_size, max_size;
};
void parquet_writer_summary(const struct parquet_writer *w, uint32_t node, struct parquet_column_summary *ret);

#endif
