/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_PARQUET_JSON_H
#define CAIRN_TESTS_SUPPORT_PARQUET_JSON_H

/*
 * Prints a Parquet file as JSON lines, one object per row: binary in hexadecimal, timestamps as integers, maps as
 * objects, a struct whose leaves are all null as null. Each column outside of lists and groups is also read through a
 * cursor (parquet/column_cursor.h), which must return the same values.
 */
#include "common/memory/buf.h"

enum status parquet_json_lines(const char *path, struct buf *ret, struct error *err);

#endif
