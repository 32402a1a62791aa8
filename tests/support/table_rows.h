/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_TABLE_ROWS_H
#define CAIRN_TESTS_SUPPORT_TABLE_ROWS_H

/*
 * The rows of a store's tables as text, for comparing what they hold before and
 * after something that must not change it.
 */
#include "profile-store/store_internal.h"

struct table_rows {
        char **items; /* "column=value column=value", columns by name, nulls left out; sorted */
        size_t count, capacity;
};

/* All rows of a table's live files. Fails the test when a file cannot be read. */
struct table_rows read_table_rows(struct profile_store *s, enum table table);
void table_rows_deinit(struct table_rows *r);

/* Fails the test at the first row that only one of them has. */
void check_same_rows(const struct table_rows *a, const struct table_rows *b);

/* The rows of a file, in its order, each as text; for checks of the order. */
struct table_rows read_part_rows(const struct table_part *part);

#endif
