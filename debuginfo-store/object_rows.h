/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_OBJECT_ROWS_H
#define CAIRN_DEBUGINFO_STORE_OBJECT_ROWS_H

/**
 * @file
 * A Parquet file of the table of objects (object_table.h).
 *
 * Threads: any.
 */
#include "common/memory/buf.h"
#include "debuginfo-store/object_table.h"
#include "parquet/schema.h"

#define OBJECT_COLUMN_COUNT 17

extern const struct parquet_field object_columns[OBJECT_COLUMN_COUNT];

/** Visit the rows of a file. @return the first failure of visit(); ST_BAD_DATA for a file of another form. */
enum status object_rows_visit(struct storage *s, const char *key, object_row_visit *visit, void *context,
                              struct error *err) MUST_CHECK;

/** Write a file. @param rows  sorted by build-id and kind. @param stats  for the log; a text with its NUL is appended.
 */
enum status object_rows_write(struct storage *s, const char *key, const struct object_row *rows, size_t count,
                              struct buf *stats, uint64_t *bytes_ret, struct error *err) MUST_CHECK;

#endif
