/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_CHUNK_READ_H
#define CAIRN_PARQUET_CHUNK_READ_H

#include "parquet/footer_read.h"
#include "parquet/reader.h"

/** Read one column chunk of the file at data, which has rows rows; see parquet_read_column(). */
enum status chunk_read(const uint8_t *data, const struct parquet_node *node, const struct read_chunk *chunk,
                       uint64_t rows, struct parquet_column *ret, struct error *err) MUST_CHECK;

#endif
