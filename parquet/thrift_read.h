/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_THRIFT_READ_H
#define CAIRN_PARQUET_THRIFT_READ_H

/**
 * @file
 * Reads Thrift's compact protocol from a bounded reader.
 *
 *      struct thrift_fields s = { 0 };
 *      while (thrift_field(r, &s))
 *              switch (s.id) {
 *              case 1: thrift_read_i64(r, s.type, &n); break;
 *              default: thrift_skip(r, s.type);
 *              }
 *      if (r->failed) ...
 *
 * Every call after a failure does nothing, so one test at the end is enough.
 * A value of another type than expected is a failure. A list's count never
 * passes the bytes that are left, since every element has at least one.
 * Source: apache/thrift, doc/specs/thrift-compact-protocol.md.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/reader.h"
#include "parquet/thrift_write.h"

struct thrift_fields {
        int16_t id;
        uint8_t type; /* enum thrift_type */
};

/** Step to the next field; false at the struct's end and after a failure. */
bool thrift_field(struct reader *r, struct thrift_fields *s);

/** Keep a failure at the cursor. */
void thrift_fail(struct reader *r);

void thrift_skip(struct reader *r, uint8_t type);
void thrift_read_i64(struct reader *r, uint8_t type, int64_t *ret); /* of any integer type */
void thrift_read_i32(struct reader *r, uint8_t type, int32_t *ret); /* I64 out of range fails */
void thrift_read_size(struct reader *r, uint8_t type, uint64_t *ret); /* an integer that is not negative */
void thrift_read_bool(struct reader *r, uint8_t type, bool *ret);
void thrift_read_binary(struct reader *r, uint8_t type, const uint8_t **data_ret, size_t *n_ret);

/** The elements follow; each is read with the type element_ret says. */
void thrift_read_list(struct reader *r, uint8_t type, uint8_t *element_ret, size_t *count_ret);

/** A list whose elements are structs. */
void thrift_read_struct_list(struct reader *r, uint8_t type, size_t *count_ret);

#endif
