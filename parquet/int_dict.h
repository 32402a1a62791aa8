/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_INT_DICT_H
#define CAIRN_PARQUET_INT_DICT_H

/**
 * @file
 * Distinct integers, numbered in order of arrival.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/hash_table.h"

struct int_dict {
        int64_t *values;  /* count of them */
        uint32_t *codes;  /* one a value given */
        struct hash_table numbers;
        size_t capacity; /* of values */
        uint32_t count;
        enum status failed;
};

/**
 * Number the values.
 *
 * @return false when more than max are distinct, or more than half of the
 *         values seen so far are (a dictionary will not pay), or when memory
 *         ran out, which failed says.
 */
bool int_dict_fill(struct int_dict *d, const int64_t *values, size_t count, uint32_t max) MUST_CHECK;
void int_dict_deinit(struct int_dict *d);

#endif
