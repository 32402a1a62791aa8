/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_VALUE_READ_H
#define CAIRN_PARQUET_VALUE_READ_H

/**
 * @file
 * Decodes the values of a page into the column, densely, without nulls.
 *
 * Dictionary-coded numbers are resolved at once; byte values stay codes, and PLAIN byte values become new entries of
 * the column's dictionary.
 */
#include "parquet/page_read.h"
#include "parquet/parquet_reader.h"

struct value_reader {
        const struct parquet_node *node;
        struct parquet_column *column;
        int64_t *dict_ints; /* owned: the dictionary page of a number column; doubles as bits */
        uint32_t dict_ints_count;
        uint32_t dict_capacity;   /* of column->dict, in entries */
        uint32_t page_dict_count; /* entries of column->dict that came from the dictionary page */
        uint32_t *codes;          /* owned: scratch for a number column's codes */
        size_t codes_capacity;
};

/** Read a dictionary page. */
enum status value_read_dictionary(struct value_reader *v, struct read_page *p, struct error *err) MUST_CHECK;

/**
 * Decode count values of p's payload (after its levels) to slots [at, at + count) of the column, which are allocated.
 */
enum status value_read_page(struct value_reader *v, struct read_page *p, size_t at, size_t count,
                            struct error *err) MUST_CHECK;

void value_reader_deinit(struct value_reader *v);

#endif
