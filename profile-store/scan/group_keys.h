/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_SCAN_GROUP_KEYS_H
#define CAIRN_PROFILE_STORE_SCAN_GROUP_KEYS_H

/*
 * The columns of a row group by which rows are grouped (type, unit, period, ids and labels), as runs of equal texts. A
 * sorted file has few runs; the rows between two ends of runs belong to one group.
 *
 *     group_keys_read(k, chunk, err);
 *     end = group_keys_move(k, row, last);               ascending rows
 *     group_keys_find_group(k, table, &group, err);      the group of rows [row, end)
 *     group_keys_release(k);
 */
#include "profile-store/scan/group_table.h"

struct group_keys {
        const struct scan_group_by *by;
        const char *const *names;        /* of by->labels, in column spelling */
        const struct label_columns *all; /* of the tables */

        /* of the current row group */
        const struct scan_chunk *chunk;
        struct arena arena;               /* holds the texts */
        struct memory_reservation memory; /* of the arrays of the columns */
        struct key_column *columns;
        size_t column_count;
        bool needs_rest; /* labels without a column matter and exist; they are the last of the columns */
        struct parquet_column rest_keys, rest_values;
        struct column_source rest_source;

        /* by 1 + code of a column, 0 for null: 1 + number of its text; 0: unknown */
        uint32_t *text_numbers;
        size_t text_number_capacity;
        struct memory_reservation number_memory;
};

/* All arguments are borrowed. names: by->labels in column spelling; all: the labels with a column. */
void group_keys_init(struct group_keys *k, const struct scan_group_by *by, const char *const *names,
                     const struct label_columns *all);
void group_keys_deinit(struct group_keys *k);

/* Read the selected rows of a row group. Call group_keys_release() also after a failure. */
enum status group_keys_read(struct group_keys *k, const struct scan_chunk *chunk, struct error *err) MUST_CHECK;
void group_keys_release(struct group_keys *k);

/* Move to a selected row, in ascending order. Returns the end of the rows known to be in its group, at most `end`. */
uint32_t group_keys_move(struct group_keys *k, uint32_t row, uint32_t end);

/* Both are for the current row. */
struct parquet_bytes group_keys_get_type(const struct group_keys *k);
enum status group_keys_find_group(struct group_keys *k, struct group_table *t, uint32_t *ret,
                                  struct error *err) MUST_CHECK;

#endif
