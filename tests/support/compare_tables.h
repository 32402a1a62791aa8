/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_COMPARE_TABLES_H
#define CAIRN_TESTS_SUPPORT_COMPARE_TABLES_H

/* Compares two symbol tables of one object at every address. */
#include "symbol-index/symbol_table.h"

struct table_difference {
        uint64_t start, end;
        const struct symbol_range *a, *b; /* frames at these addresses; NULL: none */
};

/**
 * Call back for each range of addresses at which the frames differ in a name, file or line.
 * @return the number of bytes that differ.
 */
uint64_t compare_tables(const struct symbol_table *a, const struct symbol_table *b,
                        void (*differs)(void *context, const struct table_difference *d), void *context);

/** "name@file:line < name@file:line", the innermost frame first; "-" for NULL. */
void describe_range(const struct symbol_table *t, const struct symbol_range *r, char *text, size_t size);

#endif
