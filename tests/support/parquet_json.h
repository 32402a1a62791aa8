/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_PARQUET_JSON_H
#define CAIRN_TESTS_SUPPORT_PARQUET_JSON_H

/*
 * A Parquet file as JSON lines, one object a row: binary in hexadecimal,
 * timestamps as they are, maps as objects, a struct whose leaves are all null
 * as null. Each column outside of lists and groups is also read by a cursor
 * (parquet/column_cursor.h), which must see the same values.
 */
#include "common/memory/buf.h"

enum status parquet_json_lines(const char *path, struct buf *ret, struct error *err);

#endif
