/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_COMPACTION_MERGE_INPUT_H
#define CAIRN_PROFILE_STORE_COMPACTION_MERGE_INPUT_H

/**
 * @file
 * One sorted sequence of rows that a merge reads: the row groups [group, group_end) of a part, one in memory at a time,
 * and the sort key of each row.
 *
 * The rows of a row group are sorted if necessary; row groups that overlap are reported (is_unsorted), since they
 * cannot be sorted one at a time.
 *
 * Memory: the columns of one row group, reserved for MEMORY_COMPACTION. Columns without a value are not read.
 * Threads: one.
 */
#include "common/memory/arena.h"
#include "profile-store/tables/part_read.h"
#include "profile-store/tables/table_schema.h"

/* A top-level field of a table and its leaf columns. */
struct merge_field {
        const char *name;
        bool is_repeated; /* a list or map */
        size_t first_leaf, leaf_count;
};

struct merge_leaf {
        const char *path;
        enum parquet_kind kind;
        bool is_key; /* key of a map: never null */
};

/** The columns of a table, flattened. */
struct merge_schema {
        enum table table;
        struct arena arena;
        struct merge_field *fields;
        struct merge_leaf *leaves;
        size_t field_count, leaf_count;
        size_t type, unit, stack, time, rest_key, rest_value;     /* leaves of samples; stack also of stacks */
        size_t build_id, address, id, state, quality, generation; /* leaves of locations */
        size_t *labels;                                           /* leaves of samples, by label name */
        const char **label_names;
        size_t label_count;
};

enum status merge_schema_init(struct merge_schema *ret, enum table t, const struct label_columns *columns,
                              struct error *err) MUST_CHECK;
void merge_schema_deinit(struct merge_schema *s);

/** Sort key of a row: a, b, c, d. Empty values sort first. */
struct merge_key {
        const uint8_t *a, *b; /* borrowed from the group */
        uint32_t a_size, b_size;
        int64_t c;
        uint64_t d;
};

int compare_merge_keys(const struct merge_key *x, const struct merge_key *y);

struct merge_input {
        const struct merge_schema *schema; /* borrowed */
        const struct part_file *file;      /* borrowed */
        uint32_t group, group_end;         /* group is loaded when row_count is not 0 */
        uint64_t row, row_count;           /* in the loaded group */
        struct merge_key key;              /* of the current row */

        struct parquet_column *columns; /* by leaf; without rows: null in all rows */
        uint32_t *order;                /* sorted order of the rows; NULL: as stored */
        uint32_t *sets;                 /* samples: label set number of each row */
        uint8_t *dropped;               /* rows dropped by the merge, by slot; NULL until they are selected */
        struct parquet_bytes *set_texts;
        size_t set_count, set_capacity;
        struct arena arena; /* of set_texts */
        struct memory_reservation memory;
};

/**
 * Begin with the first row.
 * @return ST_NOT_FOUND without any row; ST_BUSY or ST_TOO_BIG when memory is refused; failures as in part_read.h.
 */
enum status merge_input_begin(struct merge_input *in, const struct merge_schema *schema, const struct part_file *file,
                              uint32_t group, uint32_t group_end, struct error *err) MUST_CHECK;
void merge_input_deinit(struct merge_input *in);

/** Whether the next row is in the next row group: advancing then invalidates what was borrowed from this one. */
bool merge_input_is_at_group_end(const struct merge_input *in);

/**
 * Step to the next row.
 * @return ST_NOT_FOUND after the last one; ST_UNSUPPORTED with is_unsorted_ret set when the next row group overlaps
 *         this one.
 */
enum status merge_input_advance(struct merge_input *in, bool *is_unsorted_ret, struct error *err) MUST_CHECK;

/** The slot in the columns of row i of the sorted order. */
static inline uint64_t merge_input_slot(const struct merge_input *in, uint64_t i)
{
        return in->order ? in->order[i] : i;
}

/** Check that a file has only columns of the schema. */
enum status merge_schema_check_file(const struct merge_schema *schema, const struct part_file *f,
                                    struct error *err) MUST_CHECK;

/** Fetch the columns of files that are in an object store, of several at a time (tables/part_fetch.h). */
enum status merge_schema_fetch_files(const struct merge_schema *schema, struct table_part *const *parts, size_t count,
                                     struct error *err) MUST_CHECK;

/** Whether a leaf is null in all rows of a row group, or missing. */
bool is_null_throughout(const struct part_file *f, uint32_t group, const char *path);

#endif
