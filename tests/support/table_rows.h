/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_TABLE_ROWS_H
#define CAIRN_TESTS_SUPPORT_TABLE_ROWS_H

/* The rows of a store's tables as text, to verify that an operation does not change them. */
#include "profile-store/core/profile_store_internal.h"

struct table_rows {
        char **items; /* "column=value column=value", columns sorted by name, nulls omitted; sorted */
        size_t count, capacity;
};

/* All rows of a table's live files. Fails the test if a file cannot be read. */
struct table_rows read_table_rows(struct profile_store *s, enum table table);
void table_rows_deinit(struct table_rows *r);

/* Fails the test at the first row that is in only one of them. */
void check_same_rows(const struct table_rows *a, const struct table_rows *b);

/* The rows of a file in file order, each as text; for checks of the order. */
struct table_rows read_part_rows(const struct table_part *part);

#endif
