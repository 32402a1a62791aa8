/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_THRIFT_H
#define CAIRN_PARQUET_THRIFT_H

/**
 * @file
 * The part of Thrift's compact protocol that Parquet's metadata uses.
 *
 * Fields of a struct are written in ascending order of id. Write failures are kept in the buf.
 * Source: apache/thrift, doc/specs/thrift-compact-protocol.md.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/memory/buf.h"
#include "common/reader.h"

enum thrift_type {
        THRIFT_STOP = 0,
        THRIFT_TRUE = 1,
        THRIFT_FALSE = 2,
        THRIFT_I8 = 3,
        THRIFT_I16 = 4,
        THRIFT_I32 = 5,
        THRIFT_I64 = 6,
        THRIFT_DOUBLE = 7,
        THRIFT_BINARY = 8,
        THRIFT_LIST = 9,
        THRIFT_SET = 10,
        THRIFT_MAP = 11,
        THRIFT_STRUCT = 12,
        THRIFT_UUID = 13,
};

#define THRIFT_DEPTH 16

struct thrift_writer {
        struct buf *buf;
        unsigned depth;
        int16_t last_id[THRIFT_DEPTH];
};

void thrift_writer_init(struct thrift_writer *w, struct buf *buf);

/** Begin a struct as a field; the outermost one and elements of a list have id 0. */
void thrift_struct(struct thrift_writer *w, int16_t id);
void thrift_struct_end(struct thrift_writer *w);

void thrift_i16(struct thrift_writer *w, int16_t id, int16_t v);
void thrift_i32(struct thrift_writer *w, int16_t id, int32_t v);
void thrift_i64(struct thrift_writer *w, int16_t id, int64_t v);
void thrift_bool(struct thrift_writer *w, int16_t id, bool v);
void thrift_binary(struct thrift_writer *w, int16_t id, const void *data, size_t n);
void thrift_str(struct thrift_writer *w, int16_t id, const char *s);

/** Begin a list of count elements, which follow through the element calls or thrift_struct(w, 0). */
void thrift_list(struct thrift_writer *w, int16_t id, enum thrift_type element, size_t count);
void thrift_element_i32(struct thrift_writer *w, int32_t v);
void thrift_element_i64(struct thrift_writer *w, int64_t v);
void thrift_element_bool(struct thrift_writer *w, bool v);
void thrift_element_binary(struct thrift_writer *w, const void *data, size_t n);

struct thrift_fields {
        int16_t id;
        uint8_t type; /* enum thrift_type */
};

/** Step to the next field; false at the struct's end and after a failure. */
bool thrift_field(struct reader *r, struct thrift_fields *s);

/** Record a failure at the cursor. */
void thrift_fail(struct reader *r);

void thrift_skip(struct reader *r, uint8_t type);
void thrift_read_i32(struct reader *r, uint8_t type, int32_t *ret);   /* fails when an I64 is out of range */
void thrift_read_size(struct reader *r, uint8_t type, uint64_t *ret); /* an integer; fails when it is negative */
void thrift_read_bool(struct reader *r, uint8_t type, bool *ret);
void thrift_read_binary(struct reader *r, uint8_t type, const uint8_t **data_ret, size_t *n_ret);

/** A list whose elements are structs. */
void thrift_read_struct_list(struct reader *r, uint8_t type, size_t *count_ret);

#endif
