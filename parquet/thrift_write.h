/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_THRIFT_WRITE_H
#define CAIRN_PARQUET_THRIFT_WRITE_H

/**
 * @file
 * Thrift's compact protocol, the part that Parquet's metadata needs.
 *
 * Fields of a struct go in ascending order of id. Failures stay in the buf.
 * Source: apache/thrift, doc/specs/thrift-compact-protocol.md.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

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

#endif
