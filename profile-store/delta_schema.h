/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_DELTA_SCHEMA_H
#define CAIRN_PROFILE_STORE_DELTA_SCHEMA_H

/**
 * @file
 * A table's columns as Delta's schemaString.
 * Source: delta-io PROTOCOL.md, "Schema Serialization Format".
 */
#include "common/buf.h"
#include "common/error.h"
#include "parquet/schema.h"

/** Append the schema's JSON. ST_USAGE for a type that Delta does not have or a nesting past LIMIT_PARQUET_DEPTH. */
enum status delta_schema_append(struct buf *out, const struct parquet_field *fields, size_t count,
                                struct error *err) MUST_CHECK;

#endif
