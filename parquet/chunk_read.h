/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_CHUNK_READ_H
#define CAIRN_PARQUET_CHUNK_READ_H

#include "parquet/footer_read.h"
#include "parquet/parquet_reader.h"

/** Read one column chunk of `rows` rows from the file at data; see parquet_read_column(). */
enum status chunk_read(const uint8_t *data, const struct parquet_node *node, const struct read_chunk *chunk,
                       uint64_t rows, struct parquet_column *ret, struct error *err) MUST_CHECK;

/** Check what can be checked before any page is read: the type, and that the counts are consistent. */
enum status chunk_check(const struct parquet_node *node, const struct read_chunk *chunk, uint64_t rows,
                        struct error *err) MUST_CHECK;

/* Accessors of an open file, for other readers of its chunks. */
const struct read_chunk *parquet_file_chunk(const struct parquet_file *f, uint32_t group, uint32_t node);
/* Make the pages of a chunk present. */
enum status parquet_require_chunk(const struct parquet_file *f, const struct read_chunk *chunk,
                                  struct error *err) MUST_CHECK;

/** After a failure of reading its pages. @return ST_OK when they were loaded anew: read them again. Else `failed`, or
 * why. */
enum status parquet_reload_chunk(const struct parquet_file *f, const struct read_chunk *chunk, enum status failed,
                                 struct error *err) MUST_CHECK;
const uint8_t *parquet_file_data(const struct parquet_file *f);
const char *parquet_file_name(const struct parquet_file *f);

#endif
