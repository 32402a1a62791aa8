/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_PARQUET_DOUBLE_H
#define CAIRN_TESTS_SUPPORT_PARQUET_DOUBLE_H

/** @file Columns of doubles, which the product reads in files of other programs and does not write. */
#include <string.h>

#include "parquet/parquet_writer.h"

/** One value of a DOUBLE column. */
static inline void put_parquet_double(struct parquet_writer *w, uint32_t node, double value)
{
        int64_t bits;

        memcpy(&bits, &value, sizeof bits);
        parquet_put_int(w, node, bits);
}

#endif
