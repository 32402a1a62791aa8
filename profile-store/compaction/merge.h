/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_COMPACTION_MERGE_H
#define CAIRN_PROFILE_STORE_COMPACTION_MERGE_H

/**
 * @file
 * Streaming k-way merge of parts of one table and partition into new, sorted parts.
 *
 * samples    by profile type, unit, labels, stack, time; every row is kept unless the request drops it
 * stacks     by id; one row per id is kept
 * locations  by build-id, address, id; of the rows of an id the one with the best frames is kept
 *
 * Label columns without a value in any input are omitted from the outputs: Delta readers read them as null. Inputs need
 * not be sorted; a part whose row groups overlap is read with all of its row groups in memory.
 *
 * Memory: a row group of each input and one of the output, reserved for MEMORY_COMPACTION.
 * Threads: one.
 */
#include "profile-store/tables/tables.h"

struct part_file;

struct part_merge_request {
        const struct table_logs *logs; /* for paths only; nothing is committed */
        enum table table;
        const struct label_columns *columns; /* of the table; samples only */
        struct table_part *const *parts;     /* all of one partition */
        size_t part_count;
        unsigned output_count; /* maximum number of files, of about equal numbers of rows */
        /*
         * Called often, with the bytes read and written since the last call; may wait. Any status but ST_OK ends the
         * merge with that status.
         */
        enum status (*proceed)(void *context, uint64_t bytes, struct error *err);
        void *context;
        /* Sets rows[i] to 1 for the rows of a row group that the outputs omit. NULL: none. */
        enum status (*select_dropped)(void *drop_context, const struct part_file *f, uint32_t group, uint8_t *rows,
                                      struct error *err);
        void *drop_context;
};

struct merge_result {
        struct table_add *adds; /* owned; the files are durable and not committed */
        size_t add_count, add_capacity;
        uint64_t rows_read, rows_written; /* the difference: duplicates and dropped rows */
        uint64_t bytes_read, bytes_written;
};

#define MERGE_NO_PART SIZE_MAX

/**
 * @param failed_part_ret  the part that caused the failure, or MERGE_NO_PART.
 * @return ST_OK; ST_BAD_DATA, ST_UNSUPPORTED or ST_OS for an unreadable part, or one with a column that the table does
 *         not have; ST_BUSY or ST_TOO_BIG when memory is refused: merge fewer parts; ST_OS when writing fails; any
 *         status returned by `proceed`. No file is left after a failure.
 */
enum status merge_parts(const struct part_merge_request *request, struct merge_result *ret, size_t *failed_part_ret,
                        struct error *err) MUST_CHECK;

/** Free the result; its files are kept. */
void merge_result_deinit(struct merge_result *r);

/**
 * Check that the files of an uncommitted result still exist: the search for orphans deletes old files that no log
 * names, and since the merge the machine may have been suspended or its clock set.
 * @return ST_OK; ST_OS.
 */
enum status merge_result_check_files(const struct table_logs *logs, enum table table, const struct merge_result *r,
                                     struct error *err) MUST_CHECK;

/** Unlink the files of an uncommitted result. */
void merge_result_discard(const struct table_logs *logs, enum table table, const struct merge_result *r);

#endif
