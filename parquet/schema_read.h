/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_SCHEMA_READ_H
#define CAIRN_PARQUET_SCHEMA_READ_H

/**
 * @file
 * The schema of a file's metadata.
 */
#include "common/reader.h"
#include "parquet/schema.h"

/** Read the list<SchemaElement> at the cursor; its field's type is given. A malformed one leaves r failed. */
enum status schema_read(struct reader *r, uint8_t type, struct arena *a, struct parquet_schema *ret,
                        struct error *err) MUST_CHECK;

#endif
