/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_TABLES_TABLE_SCHEMA_H
#define CAIRN_PROFILE_STORE_TABLES_TABLE_SCHEMA_H

/**
 * @file
 * The columns of the tables (docs/formats/tables.md). In the logs all tables but locations have one more column, the
 * partition "date", which is not in their files.
 *
 * Threads: immutable.
 */
#include "common/memory/arena.h"
#include "common/error.h"
#include "parquet/schema.h"

enum table { TABLE_SAMPLES, TABLE_STACKS, TABLE_LOCATIONS, TABLE_HISTORY, TABLE_COUNT };

const char *table_name(enum table t);

#define LABEL_COLUMN_PREFIX "label_"

/** Labels with a column, in column order; all others are in labels_rest. */
struct label_columns {
        char **names; /* column spelling without the prefix; owned */
        size_t count, capacity;
};

enum status label_columns_add(struct label_columns *c, const char *name, size_t n, struct error *err) MUST_CHECK;
bool label_columns_contain(const struct label_columns *c, const char *name);
void label_columns_deinit(struct label_columns *c);

/* Of locations; absent from older parts and tables. */
#define START_LINES_COLUMN "start_lines"

/** Whether a table's schemaString has the column. */
bool schema_has_column(const char *schema_json, const char *name);

/** "label_NAME", owned. */
char *label_column(const char *name);

/** The label columns of a table's schemaString. */
enum status label_columns_parse(const char *schema_json, struct label_columns *ret, struct error *err) MUST_CHECK;

/**
 * Make a table's fields, in a.
 * @param columns    of samples; NULL for none.
 * @param partition  include the partition column, as in the log.
 */
enum status make_table_fields(struct arena *a, enum table t, const struct label_columns *columns, bool partition,
                              const struct parquet_field **ret, size_t *count_ret, struct error *err) MUST_CHECK;

#endif
